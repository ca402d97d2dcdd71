package capture

import (
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
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
var chance = set(`TIME RANDOMKEY SRANDMEMBER SPOP HRANDFIELD ZRANDMEMBER SCAN SSCAN HSCAN ZSCAN TTL PTTL EXPIRETIME PEXPIRETIME INFO CLIENT MEMORY LASTSAVE
	OBJECT|IDLETIME OBJECT|FREQ SCRIPT LOLWUT ROLE COMMAND XADD LATENCY SLOWLOG PUBSUB`)

// counted are commands whose keys follow a number of keys, at its index.
var counted = map[string]int{
	"EVAL": 2, "EVALSHA": 2, "EVAL_RO": 2, "EVALSHA_RO": 2, "FCALL": 2, "FCALL_RO": 2, "ZUNION": 1, "ZINTER": 1, "ZDIFF": 1, "ZINTERCARD": 1, "SINTERCARD": 1,
	"LMPOP": 1, "ZMPOP": 1, "ZUNIONSTORE": 2, "ZINTERSTORE": 2, "ZDIFFSTORE": 2,
}

// line is a request of the trace.
type line struct {
	words   []string // of the command that it is about
	replies int
	shape   shape
	chance  bool
	reads   bool
	keys    []uint64 // hashes of its database and keys; of the command, if it has none
	expiry  time.Duration
}

// lines reads the trace.
type lines struct {
	c        *comparison
	file     io.Closer
	in       *trace.Reader
	rec      trace.Record // of the line read last
	database string
	touched  map[string]map[string]bool // keys by database
}

func (c *comparison) lines() (*lines, error) {
	file, err := c.again()
	if err != nil {
		return nil, err
	}
	in, err := trace.NewReader(file, trace.Requests, false)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &lines{c: c, file: file, in: in, database: "0", touched: map[string]map[string]bool{}}, nil
}

// next reads the next line: one command or several. It returns nil at the end.
func (s *lines) next() (*line, error) {
	if _, err := s.in.Next(&s.rec); err == io.EOF {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	l := &line{}
	for rest := s.rec.Key; len(rest) > 0; {
		words, size, err := command(rest)
		if err != nil || len(words) == 0 || rest[0] != '*' {
			return nil, fmt.Errorf("request %d: no command of RESP: only traces of Redis can be compared", s.rec.Line)
		}
		rest = rest[size:]
		l.replies++
		name := strings.ToUpper(words[0])
		if name == "SELECT" && len(words) == 2 {
			s.database = words[1]
		}
		if len(rest) > 0 && (name == "SELECT" || name == "MULTI") || name == "EXEC" && l.words != nil {
			continue // they frame what the line is about
		}
		if l.words == nil {
			l.words = words
		}
		if err := s.enter(l, name, words); err != nil {
			return nil, err
		}
	}
	if len(l.keys) == 0 {
		l.keys = append(l.keys, maphash.String(s.c.seed, strings.ToUpper(l.words[0])))
	}
	return l, nil
}

// enter enters one command of a line.
func (s *lines) enter(l *line, name string, words []string) error {
	spec, err := s.c.spec(name)
	if err != nil {
		return err
	}
	of := name
	if name == "OBJECT" && len(words) > 1 {
		of += "|" + strings.ToUpper(words[1])
	}
	l.chance, l.reads, l.shape = l.chance || chance[of], spec.reads, shapeOf(name, words)
	if t := expiry(name, words); t > 0 && (l.expiry == 0 || t < l.expiry) {
		l.expiry = t
	}
	first, last, step := spec.first, spec.last, spec.step
	if last < 0 {
		last += len(words)
	}
	if at := counted[name]; at > 0 {
		first, last, step = at+1, 0, 1
		if strings.HasSuffix(name, "STORE") {
			s.take(l, words[1:min(2, len(words))])
		}
		if at < len(words) {
			n, _ := strconv.Atoi(words[at]) // otherwise the server refuses it
			last = at + min(n, len(words))
		}
	}
	for i := first; step > 0 && i > 0 && i <= min(last, len(words)-1); i += step {
		s.take(l, words[i:i+1])
	}
	return nil
}

// take enters keys.
func (s *lines) take(l *line, keys []string) {
	if s.touched[s.database] == nil {
		s.touched[s.database] = map[string]bool{}
	}
	for _, key := range keys {
		l.keys = append(l.keys, maphash.String(s.c.seed, s.database+" "+key))
		s.touched[s.database][key] = true
	}
}

// spec asks A about a command.
func (c *comparison) spec(name string) (s spec, err error) {
	if s, known := c.specs[name]; known {
		return s, nil
	}
	all, err := c.asks.ask("COMMAND", "INFO", name)
	if err != nil {
		return s, fmt.Errorf("about %s: %w", clip(name), err)
	}
	if len(all.list) == 1 && len(all.list[0].list) >= 6 {
		entry := all.list[0].list
		for i, to := range []*int{&s.first, &s.last, &s.step} {
			*to, _ = strconv.Atoi(entry[3+i].text) // 0 if it is none
		}
		s.reads = slices.ContainsFunc(entry[2].list, func(flag reply) bool { return flag.text == "readonly" })
	}
	if len(c.specs) < 1<<12 {
		c.specs[name] = s
	}
	return s, nil
}

// expiry returns how soon a command makes its key expire; 0 if it does not. A time of the clock counts as soon.
func expiry(name string, words []string) time.Duration {
	at := func(i int, unit time.Duration) time.Duration {
		if i >= len(words) {
			return 0
		}
		n, err := strconv.ParseInt(words[i], 10, 64)
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
			switch strings.ToUpper(w) {
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
	lines, err := c.lines()
	if err != nil {
		return err
	}
	defer lines.file.Close()
	why := map[uint64]string{} // why a key is not judged any more
	differs := map[uint64]bool{}
	for i := range min(len(first), len(third)) {
		l, err := lines.next()
		if l == nil || err != nil {
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
			c.differs(i, l, differs)
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
