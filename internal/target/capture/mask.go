package capture

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	mathrand "math/rand/v2"
	"regexp"
	"slices"
	"strconv"
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

var maskOf = sync.OnceValue(func() map[string]string { return table(maskTable) })

// ownWords are arguments that stay: numbers, and words of commands.
var ownWords = regexp.MustCompile(`(?i)^(\(?[-+]?([0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?|inf)|[0-9]+-[0-9]+|#[0-9]+|[ui][0-9]{1,2}|[-+~=]|EX|PX|EXAT|PXAT|NX|XX|GT|LT|CH|INCR|` +
	`KEEPTTL|GET|SET|INCRBY|OVERFLOW|WRAP|SAT|FAIL|PERSIST|WITHSCORES?|WITHVALUES|LIMIT|REV|BYSCORE|COUNT|RANK|BEFORE|AFTER|LEFT|RIGHT|MIN|MAX|MAXLEN|MINID|BIT|BYTE|` +
	`AND|OR|XOR|NOT|ENCODING|FREQ|IDLETIME|REFCOUNT|USAGE|SAMPLES|DB|REPLACE|WEIGHTS|AGGREGATE|SUM|M|KM|FT|MI)$`)

// options are the words before the scores of ZADD and GEOADD.
var options = regexp.MustCompile(`(?i)^(NX|XX|GT|LT|CH|INCR)$`)

// hide replaces a record's arguments, or says why it must be left out.
func (m *Mask) hide(r *Record) (why string) {
	all := make([][]string, len(r.commands))
	for i, words := range r.commands {
		name := strings.ToUpper(words[0])
		hidden, ok := spread(maskOf()[name], words[1:])
		if !ok {
			return "not covered by --anonymize: " + clip(name)
		}
		all[i] = slices.Clone(words)
		for at, w := range words[1:] {
			if hidden[at] == 'k' {
				all[i][at+1] = m.text(w)
			} else if !ownWords.MatchString(w) {
				return "not covered by --anonymize: " + clip(name)
			}
		}
	}
	r.commands = all
	return ""
}

// spread returns a letter for each of a command's arguments: k if it is replaced, or a dot.
func spread(shape string, words []string) (letters string, ok bool) {
	if shape == "" || shape == "-" {
		return "", shape != "" && len(words) == 0
	}
	first, group, _ := strings.Cut(strings.TrimSuffix(shape, ")"), "(")
	if group == "" {
		group = first[len(first)-1:]
	}
	for next := first; len(letters) < len(words); next = next[1:] {
		if next == "" {
			next = group
		}
		left := len(words) - len(letters)
		switch next[0] {
		case 'o':
			for ; left > 0 && options.MatchString(words[len(letters)]); left-- {
				letters += "."
			}
		case 'l':
			letters += strings.Repeat("k", left-1) + "."
		case 'n':
			n, err := strconv.Atoi(words[len(letters)])
			if err != nil || n < 0 || n >= left {
				return "", false
			}
			letters += "." + strings.Repeat("k", n) + strings.Repeat(".", left-1-n)
		default:
			letters += next[:1]
		}
	}
	return letters, true
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
func (m *Mask) text(text string) string {
	out := []byte(text)
	begin := 0
	for i := range len(out) + 1 {
		if i < len(out) {
			if n, _ := radix(out[i]); n > 0 {
				continue
			}
		}
		m.segment(out[begin:i])
		begin = i + 1
	}
	return string(out)
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
	was := string(s)
	m.replace(s)
	if len(s) <= longestKnown && len(m.known) < mostKnown {
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
