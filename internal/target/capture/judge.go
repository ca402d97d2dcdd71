package capture

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/plan/trace"
)

// spec says where a command's keys are, as COMMAND INFO tells it, and whether it only reads.
type spec struct {
	first, last, step int
	reads             bool
}

// chance are commands whose answers no two servers, and no two times, need share.
var chance = words(`TIME RANDOMKEY SRANDMEMBER SPOP HRANDFIELD ZRANDMEMBER SCAN SSCAN HSCAN ZSCAN TTL PTTL EXPIRETIME PEXPIRETIME INFO CLIENT MEMORY LASTSAVE
	OBJECT|IDLETIME OBJECT|FREQ SCRIPT LOLWUT ROLE COMMAND XADD LATENCY SLOWLOG PUBSUB`)

// counted are commands whose keys follow a number of keys, at its index.
var counted = map[string]int{
	"EVAL": 2, "EVALSHA": 2, "EVAL_RO": 2, "EVALSHA_RO": 2, "FCALL": 2, "FCALL_RO": 2, "ZUNION": 1, "ZINTER": 1, "ZDIFF": 1, "ZINTERCARD": 1, "SINTERCARD": 1,
	"LMPOP": 1, "ZMPOP": 1, "ZUNIONSTORE": 2, "ZINTERSTORE": 2, "ZDIFFSTORE": 2,
}

// words returns a set.
func words(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// line reads a request: one command or several. It hands over each key.
func (c *comparison) line(request []byte, database *string, key func([]byte)) (l line, err error) {
	l.text = bytes.Clone(request)
	for rest := l.text; len(rest) > 0; {
		words, size, err := command(rest)
		if err != nil || len(words) == 0 || rest[0] != '*' {
			return l, errors.New("no command of RESP: only traces of Redis can be compared")
		}
		rest = rest[size:]
		l.replies++
		name := strings.ToUpper(string(words[0]))
		if name == "SELECT" && len(words) == 2 {
			*database = string(words[1])
		}
		if len(rest) > 0 && (name == "SELECT" || name == "MULTI") || name == "EXEC" && l.words != nil {
			continue // they frame what the line is about
		}
		if l.words == nil {
			l.words = words
		}
		if err := c.command(&l, name, words, *database, key); err != nil {
			return l, err
		}
	}
	if l.words == nil {
		l.words = [][]byte{[]byte("SELECT")}
	}
	if len(l.keys) == 0 {
		l.keys = append(l.keys, maphash.Bytes(c.seed, bytes.ToUpper(l.words[0])))
	}
	return l, nil
}

// command enters one command of a line.
func (c *comparison) command(l *line, name string, words [][]byte, database string, key func([]byte)) error {
	s, err := c.spec(name)
	if err != nil {
		return err
	}
	of := name
	if name == "OBJECT" && len(words) > 1 {
		of += "|" + strings.ToUpper(string(words[1]))
	}
	l.chance, l.reads, l.shape = l.chance || chance[of], s.reads, shapeOf(name, words)
	if t := expiry(name, words); t > 0 && (l.expiry == 0 || t < l.expiry) {
		l.expiry = t
	}
	take := func(i int) {
		if i > 0 && i < len(words) {
			l.keys = append(l.keys, maphash.String(c.seed, database+" "+string(words[i])))
			key(words[i])
		}
	}
	if at := counted[name]; at > 0 {
		if at == 2 && strings.HasSuffix(name, "STORE") {
			take(1)
		}
		if at < len(words) {
			n, _ := strconv.Atoi(string(words[at])) // otherwise the server refuses it
			for i := range min(n, len(words)) {
				take(at + 1 + i)
			}
		}
		return nil
	}
	last := s.last
	if last < 0 {
		last += len(words)
	}
	for i := s.first; s.step > 0 && i <= last; i += s.step {
		take(i)
	}
	return nil
}

// spec asks A about a command.
func (c *comparison) spec(name string) (s spec, err error) {
	if s, known := c.specs[name]; known {
		return s, nil
	}
	x := c.asks
	if err := x.conn.SetDeadline(time.Now().Add(patient)); err != nil {
		return s, err
	}
	if _, err := x.conn.Write(AppendCommand(nil, "COMMAND", "INFO", name)); err != nil {
		return s, err
	}
	all, err := decode(x.in.in, 0)
	if err != nil {
		return s, fmt.Errorf("COMMAND INFO %s: %w", clip(name), err)
	}
	if list, ok := all.([]any); ok && len(list) == 1 {
		if entry, ok := list[0].([]any); ok && len(entry) >= 6 {
			at := [3]int{}
			for i := range at {
				n, _ := entry[3+i].(int64)
				at[i] = int(n)
			}
			s.first, s.last, s.step = at[0], at[1], at[2]
			flags, _ := entry[2].([]any)
			for _, f := range flags {
				s.reads = s.reads || f == "readonly"
			}
		}
	}
	if len(c.specs) < 1<<12 {
		c.specs[name] = s
	}
	return s, nil
}

// decode reads a reply as data: texts, integers, lists and nil.
func decode(in *bufio.Reader, depth int) (any, error) {
	head, err := in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(head) < 3 || depth > mostDepth {
		return nil, errReply
	}
	kind, text := head[0], string(head[1:len(head)-2])
	switch kind {
	case '+':
		return text, nil
	case '-':
		return nil, errors.New(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return nil, errReply
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$' && n <= 1<<20:
		b := make([]byte, n+2)
		_, err := io.ReadFull(in, b)
		return string(b[:n]), err
	case kind == '*' && n <= 1<<16:
		var list []any
		for range n {
			v, err := decode(in, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	return nil, errReply
}

// expiry returns how soon a command makes its key expire; 0 if it does not. A time of the clock counts as soon.
func expiry(name string, words [][]byte) time.Duration {
	at := func(i int, unit time.Duration) time.Duration {
		if i >= len(words) {
			return 0
		}
		n, err := strconv.ParseInt(string(words[i]), 10, 64)
		if err != nil || n <= 0 || n > int64(100*365*24*time.Hour/unit) {
			return 1
		}
		return time.Duration(n) * unit
	}
	switch name {
	case "EXPIRE", "SETEX":
		return at(2, time.Second)
	case "PEXPIRE", "PSETEX":
		return at(2, time.Millisecond)
	case "EXPIREAT", "PEXPIREAT", "HEXPIRE", "HPEXPIRE", "HEXPIREAT", "HPEXPIREAT", "HGETEX", "HSETEX":
		return 1
	case "SET", "GETEX":
		for i, w := range words {
			switch strings.ToUpper(string(w)) {
			case "EX":
				return at(i+1, time.Second)
			case "PX":
				return at(i+1, time.Millisecond)
			case "EXAT", "PXAT":
				return 1
			}
		}
	}
	return 0
}

// judge compares the digests of the three passes, line by line.
func (c *comparison) judge(first, second, third []uint64) error {
	file, err := c.again()
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := trace.NewReader(file, trace.Requests, false)
	if err != nil {
		return err
	}
	why := map[uint64]string{} // why a key is not judged any more
	differs := map[uint64]bool{}
	var rec trace.Record
	database := "0"
	for i := 0; i < min(len(first), len(third)); i++ {
		if _, err := r.Next(&rec); err != nil {
			return err
		}
		l, err := c.line(rec.Key, &database, func([]byte) {})
		if err != nil {
			return err
		}
		c.d.Lines++
		reason := ""
		for _, k := range l.keys {
			if why[k] != "" {
				reason = why[k]
			}
		}
		switch {
		case l.chance:
			reason = byChance
		case reason == "" && first[i] != third[i]:
			reason = unsteady
		}
		if reason != "" {
			c.d.NotJudged[reason]++
			if reason == byChance || reason == unsteady {
				reason = afterIt
			}
			spoil(why, l.keys, reason)
			continue
		}
		if l.expiry > 0 && l.expiry < restful*c.d.Longest {
			spoil(why, l.keys, expires)
		}
		if i < len(second) && first[i] != second[i] {
			c.differs(i, &l, differs)
		}
	}
	return nil
}

// spoil marks the keys of a line.
func spoil(why map[uint64]string, keys []uint64, reason string) {
	for _, k := range keys {
		why[k] = reason
	}
}

// differs enters a line whose replies differ.
func (c *comparison) differs(i int, l *line, before map[uint64]bool) {
	c.d.Different++
	follows := false
	for _, k := range l.keys {
		follows = follows || before[k]
	}
	for _, k := range l.keys {
		before[k] = true
	}
	if follows {
		c.d.Followers++
		return
	}
	if len(c.d.First) == mostFirst {
		return
	}
	d := Difference{Line: int64(i) + 1, Command: shownCommand(l.words)}
	if shown := c.shown[i]; shown != nil {
		d = *shown
	}
	c.d.First = append(c.d.First, d)
}
