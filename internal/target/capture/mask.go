package capture

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	mathrand "math/rand/v2"
	"regexp"
	"strings"
	"sync"
)

// Mask replaces the keys and values of Redis' commands by others of the same shape, for which it draws a key that nobody keeps.
//
// Each run of letters, digits and bytes above ASCII is a segment. It is replaced by another one in whose every place is a digit, a small or capital letter
// or a byte above ASCII as before; a number keeps its length. What was equal stays equal, and no two become one: the replacement is a Feistel network
// whose halves are those of the segment, with addition by place.
type Mask struct {
	key   [32]byte
	known map[string]string // the replacements of short segments, some of them
}

// NewMask draws a mask.
func NewMask() *Mask {
	m := &Mask{known: map[string]string{}}
	_, _ = rand.Read(m.key[:]) // never fails
	return m
}

// What the arguments of commands are. k is replaced. A dot stays: a number, or a word of the commands' own; o is any number of such words, and n is how
// many arguments behind it are replaced, all others stay. l is all but the last one, which stays. The last letter, or what is in parentheses, repeats.
const maskTable = `
- MULTI EXEC DBSIZE TIME RANDOMKEY
. SELECT INFO
k GET GETDEL STRLEN INCR DECR TTL PTTL EXPIRETIME PEXPIRETIME PERSIST TYPE LLEN HLEN HGETALL HKEYS HVALS SCARD SMEMBERS ZCARD XLEN DUMP DEL UNLINK EXISTS
k TOUCH MGET MSET MSETNX APPEND GETSET SETNX HGET HSET HSETNX HMGET HMSET HDEL HEXISTS HSTRLEN LPUSH LPUSHX RPUSH RPUSHX SADD SREM SISMEMBER SMISMEMBER
k SMOVE SDIFF SDIFFSTORE SINTER SINTERSTORE SUNION SUNIONSTORE RPOPLPUSH RENAME RENAMENX PFADD PFCOUNT PFMERGE ZREM ZSCORE ZMSCORE GEOHASH GEOPOS
k PUBLISH SPUBLISH ECHO PING
k. EXPIRE PEXPIRE EXPIREAT PEXPIREAT INCRBY DECRBY INCRBYFLOAT GETEX GETRANGE SUBSTR GETBIT SETBIT BITCOUNT BITPOS BITFIELD BITFIELD_RO LINDEX LRANGE
k. LTRIM LPOP RPOP SPOP SRANDMEMBER HRANDFIELD ZRANDMEMBER ZCOUNT ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYSCORE
k. ZPOPMAX ZPOPMIN XRANGE XREVRANGE XDEL XTRIM MOVE
kk. SET HINCRBY HINCRBYFLOAT ZRANK ZREVRANK COPY LMOVE BLMOVE BRPOPLPUSH LPOS
kkk. GEODIST
k.k SETEX PSETEX SETRANGE LREM LSET ZINCRBY LINSERT
.k BITOP OBJECT
.k. MEMORY
ko(.k) ZADD
ko(..k) GEOADD
l BLPOP BRPOP BZPOPMIN BZPOPMAX
n SINTERCARD ZINTER ZUNION ZDIFF ZINTERCARD LMPOP ZMPOP
kn ZUNIONSTORE ZINTERSTORE ZDIFFSTORE
.n BLMPOP BZMPOP
`

var maskOf = sync.OnceValue(func() map[string]string {
	of := map[string]string{}
	for line := range strings.Lines(maskTable) {
		words := strings.Fields(line)
		for i := 1; i < len(words); i++ {
			of[words[i]] = words[0]
		}
	}
	return of
})

// ownWords are arguments that stay: numbers, and words of commands.
var ownWords = regexp.MustCompile(`(?i)^(\(?[-+]?([0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?|inf)|[0-9]+-[0-9]+|#[0-9]+|[ui][0-9]{1,2}|[-+~=]|EX|PX|EXAT|PXAT|NX|XX|GT|LT|CH|INCR|` +
	`KEEPTTL|GET|SET|INCRBY|OVERFLOW|WRAP|SAT|FAIL|PERSIST|WITHSCORES?|WITHVALUES|LIMIT|REV|BYSCORE|COUNT|RANK|BEFORE|AFTER|LEFT|RIGHT|MIN|MAX|MAXLEN|MINID|BIT|BYTE|` +
	`AND|OR|XOR|NOT|ENCODING|FREQ|IDLETIME|REFCOUNT|USAGE|SAMPLES|DB|REPLACE|WEIGHTS|AGGREGATE|SUM|M|KM|FT|MI)$`)

// options are the words before the scores of ZADD and GEOADD.
var options = regexp.MustCompile(`(?i)^(NX|XX|GT|LT|CH|INCR)$`)

// Hide replaces a record's arguments, or says why it must be left out.
func (m *Mask) Hide(r *Record) (why string) {
	all := make([][][]byte, len(r.Commands))
	for i, words := range r.Commands {
		masked, ok := m.command(words)
		if !ok {
			return "not covered by --anonymize: " + clip(strings.ToUpper(string(words[0])))
		}
		all[i] = masked
	}
	r.Commands = all
	return ""
}

// command returns a command with its arguments replaced.
func (m *Mask) command(words [][]byte) (masked [][]byte, ok bool) {
	shape, known := maskOf()[strings.ToUpper(string(words[0]))]
	masked, words = append(masked, words[0]), words[1:]
	if shape == "-" {
		return masked, known && len(words) == 0
	}
	first, group, _ := strings.Cut(strings.TrimSuffix(shape, ")"), "(")
	for at, hidden := 0, 0; known && len(words) > 0; at++ {
		letter := byte(0)
		switch {
		case at < len(first):
			letter = first[at]
		case group != "":
			letter = group[(at-len(first))%len(group)]
		default:
			letter = first[len(first)-1]
		}
		n := 1
		switch letter {
		case 'o':
			for n = 0; n < len(words) && options.Match(words[n]); n++ {
			}
			masked, words = append(masked, words[:n]...), words[n:]
			continue
		case 'l':
			n = len(words)
			hidden = n - 1
		case 'n':
			if hidden, n = 0, len(words); !ownWords.Match(words[0]) {
				return nil, false
			}
			if _, err := fmt.Sscan(string(words[0]), &hidden); err != nil || hidden < 0 || hidden >= n {
				return nil, false
			}
			masked, words, n = append(masked, words[0]), words[1:], n-1
		case 'k':
			hidden = 1
		default:
			hidden = 0
		}
		for i, w := range words[:n] {
			switch {
			case i < hidden:
				w = m.text(w)
			case !ownWords.Match(w):
				return nil, false
			}
			masked = append(masked, w)
		}
		words = words[n:]
	}
	return masked, known
}

// radix returns how many bytes may stand in the place of one, from the least on; 0 for what stays.
func radix(c byte) (n int, least byte) {
	switch {
	case c >= '0' && c <= '9':
		return 10, '0'
	case c >= 'a' && c <= 'z':
		return 26, 'a'
	case c >= 'A' && c <= 'Z':
		return 26, 'A'
	case c >= 0x80:
		return 128, 0x80
	}
	return 0, 0
}

// text returns a text with its segments replaced.
func (m *Mask) text(text []byte) []byte {
	out := bytes.Clone(text)
	for i := 0; i < len(out); {
		end := i
		for ; end < len(out); end++ {
			if n, _ := radix(out[end]); n == 0 {
				break
			}
		}
		if end == i {
			i++
			continue
		}
		m.segment(out[i:end])
		i = end
	}
	return out
}

// mostKnown and longestKnown bound the replacements that are kept.
const (
	mostKnown    = 1 << 16
	longestKnown = 64
)

func (m *Mask) segment(s []byte) {
	if is, ok := m.known[string(s)]; ok {
		copy(s, is)
		return
	}
	was := ""
	if len(s) <= longestKnown && len(m.known) < mostKnown {
		was = string(s)
	}
	m.replace(s)
	if was != "" {
		m.known[was] = string(s)
	}
}

// replace is one-to-one among the segments whose places have the same radices. A number's first digit is none of 0 unless it was.
func (m *Mask) replace(s []byte) {
	radices, least := make([]uint64, len(s)), make([]byte, len(s))
	number := len(s) > 1
	for i, c := range s {
		n, from := radix(c)
		radices[i], least[i] = uint64(n), from
		number = number && from == '0'
	}
	if number {
		if radices[0], least[0] = 9, '1'; s[0] == '0' {
			radices[0], least[0] = 1, '0'
		}
	}
	half := len(s) / 2
	for round := range 6 {
		from, to := 0, half // the half that changes
		if round%2 == 0 {
			from, to = half, len(s)
		}
		h := sha256.New()
		h.Write(m.key[:])
		h.Write(binary.AppendUvarint([]byte{byte(round)}, uint64(len(s))))
		h.Write(s[:from])
		h.Write(s[to:])
		stream := mathrand.NewChaCha8([32]byte(h.Sum(nil)))
		for i := from; i < to; i++ {
			s[i] = least[i] + byte((uint64(s[i]-least[i])+stream.Uint64()%radices[i])%radices[i])
		}
	}
}
