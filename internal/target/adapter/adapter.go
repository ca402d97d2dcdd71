// Package adapter checks that a server speaks the part of RESP that loadgen needs, so that figures of a load on it can be true: docs/adapters.md lists
// that part. It is meant for adapters, which stand between loadgen and a store that has a client library but no driver.
package adapter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	within     = 4 * time.Second // for all checks: an adapter that is silent fails the one at hand
	floorTime  = 500 * time.Millisecond
	mostPings  = 1000
	mostReply  = 4 << 20 // bytes that are read for one reply
	neighbours = 16      // connections that are used at once
	rounds     = 20      // of each of them
	piped      = 64      // requests that are sent before a reply is read
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string // what was checked
	Err    error  // what was wrong; nil for nothing
	Remedy string // what to do then
}

// Report is what the checks have found, in their order. It ends with the first check that lost its connection or ran out of time.
type Report struct {
	Findings []Finding
	P50, P99 time.Duration // of a PING, which is the floor of any load's latency; 0 if a check has failed
}

// OK reports whether all checks passed.
func (r *Report) OK() bool { return r.P50 > 0 }

// ErrOccupied says that a server holds keys already.
var ErrOccupied = errors.New("it holds keys: check an adapter over an empty store, or add --shared (the keys of the check have a prefix of their own, and are deleted)")

// checker makes the checks of one server.
type checker struct {
	ctx    context.Context
	dial   func(context.Context) (net.Conn, error)
	prefix string

	mu   sync.Mutex
	keys [][]byte // that were put
}

// Check checks the server that dial connects to, and deletes the keys that it put there: their names begin with prefix. It returns an error if the server
// cannot be reached or, unless shared, holds keys.
func Check(ctx context.Context, dial func(context.Context) (net.Conn, error), prefix string, shared bool) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	c := &checker{ctx: ctx, dial: dial, prefix: prefix}
	l, err := c.open()
	if err != nil {
		return nil, err
	}
	defer l.Close()
	if raw, err := l.raw("DBSIZE"); err == nil && !shared && raw[0] == ':' && !bytes.HasPrefix(raw, []byte(":0\r")) {
		return nil, ErrOccupied
	}
	r := &Report{}
	defer c.tidy()
	for _, k := range []struct {
		what, remedy string
		check        func() error
	}{
		{"answers PING", "answer +PONG", c.ping},
		{"an unknown command is an error", "answer -ERR and a text to a command that you do not know, and read on", c.unknown},
		{"a key that is not there", `answer "$-1" to GET, and ":0" to DEL`, c.missing},
		{"values of all sizes and bytes", "store a value as the bytes that came, as many as its length says; an empty one is a value, too", c.values},
		{"an overwrite counts", "let SET replace what is there: an upsert, not an insert", c.overwrite},
		{"a delete counts", `let DEL answer ":1" if the key was there, and remove it`, c.delete},
		{"keys are bytes", "take a key as the bytes that came: not as text, not in another case, not cut", c.names},
		{"replies keep the order of requests", "answer requests of a connection in the order in which they came", c.order},
		{"requests come in pieces", "read on until a request is whole: it may come in many reads, and several may come in one", c.pieces},
		{"connections do not share state", "let each connection have its own buffers and its own client", c.connections},
		{"INFO is answered", `answer a bulk string of lines NAME:VALUE, or -ERR`, c.info},
	} {
		err := k.check()
		r.Findings = append(r.Findings, Finding{k.what, err, k.remedy})
		var lost *lostError
		if errors.As(err, &lost) {
			return r, nil // what follows would only say the same
		}
	}
	if !slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Err != nil }) {
		r.P50, r.P99, err = c.floor()
	}
	return r, err
}

// lostError is the loss of a connection.
type lostError struct{ error }

// line is a connection to the server.
type line struct {
	net.Conn
	codec driver.Codec
	in    []byte
}

func (c *checker) open() (*line, error) {
	conn, err := c.dial(c.ctx)
	if err != nil {
		return nil, &lostError{err}
	}
	codec, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	deadline, _ := c.ctx.Deadline()
	if err := errors.Join(err, conn.SetDeadline(deadline)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &line{Conn: conn, codec: codec}, nil
}

// more reads more bytes.
func (l *line) more() error {
	if len(l.in) > mostReply {
		return fmt.Errorf("a reply goes on after %d bytes, and begins %.40q", mostReply, l.in)
	}
	l.in = slices.Grow(l.in, 1<<16)
	n, err := l.Read(l.in[len(l.in):cap(l.in)])
	if l.in = l.in[:len(l.in)+n]; err == nil {
		return nil
	}
	return &lostError{fmt.Errorf("no whole reply came, only %.40q: %w", l.in, err)}
}

// raw sends a command of one word and returns its reply as it came: a line, and what a bulk string's length announces.
func (l *line) raw(command string) ([]byte, error) {
	if _, err := fmt.Fprintf(l, "*1\r\n$%d\r\n%s\r\n", len(command), command); err != nil {
		return nil, &lostError{err}
	}
	for {
		end := bytes.Index(l.in, []byte("\r\n"))
		if end == 0 {
			return nil, fmt.Errorf("%s: the reply begins with an empty line", command)
		}
		if end > 0 {
			size := end + 2
			if n, err := strconv.Atoi(string(l.in[1:end])); l.in[0] == '$' && err == nil && n >= 0 {
				size += min(n, mostReply) + 2
			}
			if len(l.in) >= size {
				reply := l.in[:size]
				l.in = l.in[size:]
				return reply, nil
			}
		}
		if err := l.more(); err != nil {
			return nil, fmt.Errorf("%s: %w", command, err)
		}
	}
}

// do sends requests and returns their replies, once each has come whole.
func (l *line) do(reqs ...driver.Request) ([]driver.Reply, error) {
	var out []byte
	for i := range reqs {
		out = l.codec.AppendRequest(out, &reqs[i])
	}
	sent := make(chan error, 1)
	go func() { _, err := l.Write(out); sent <- err }() // the server may answer before it reads on
	var replies []driver.Reply
	var fault error
	for i := range reqs {
		r, err := l.reply(reqs[i].Verb)
		if err != nil {
			fault = fmt.Errorf("reply %d of %d, to a %s: %w", i+1, len(reqs), reqs[i].Verb, err)
			_ = l.Close() // ends the write, too
			break
		}
		replies = append(replies, r)
	}
	if err := <-sent; err != nil && fault == nil {
		fault = &lostError{err}
	}
	return replies, fault
}

// reply reads one reply.
func (l *line) reply(v driver.Verb) (driver.Reply, error) {
	for {
		if len(l.in) > 0 && bytes.IndexByte([]byte("_#,(!=%~>|"), l.in[0]) >= 0 {
			return driver.Reply{}, fmt.Errorf("%.20q is RESP3, which was not asked for", l.in)
		}
		var r driver.Reply
		n, err := l.codec.Parse(l.in, v, &r)
		if err != nil {
			return r, err
		}
		if n > 0 {
			r.Value, r.Message, l.in = slices.Clone(r.Value), slices.Clone(r.Message), l.in[n:]
			return r, nil
		}
		if err := l.more(); err != nil {
			return r, err
		}
	}
}

// key returns a key of the check's own, which will be deleted.
func (c *checker) key(name string) []byte {
	k := append([]byte(c.prefix), name...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys = append(c.keys, k)
	return k
}

func get(key []byte) driver.Request { return driver.Request{Verb: driver.Get, Key: key} }
func del(key []byte) driver.Request { return driver.Request{Verb: driver.Delete, Key: key} }
func put(key []byte, v driver.Value) driver.Request {
	return driver.Request{Verb: driver.Put, Key: key, Value: &v}
}

// wanted is what a reply must be.
type wanted struct {
	outcome driver.Outcome
	value   *driver.Value // of a get; nil for any
}

// talk sends requests over a fresh connection and compares the replies.
func (c *checker) talk(reqs []driver.Request, want []wanted) error {
	l, err := c.open()
	if err != nil {
		return err
	}
	defer l.Close()
	return l.talk(reqs, want)
}

func (l *line) talk(reqs []driver.Request, want []wanted) error {
	replies, err := l.do(reqs...)
	if err != nil {
		return err
	}
	for i, r := range replies {
		switch v := want[i].value; {
		case r.Outcome != want[i].outcome:
			return fmt.Errorf("%s of %.40q is %s %.60q, not %s", reqs[i].Verb, reqs[i].Key, r.Outcome, r.Message, want[i].outcome)
		case v != nil && !bytes.Equal(r.Value, v.AppendTo(nil)):
			return fmt.Errorf("get of %.40q returns %d bytes %.30q, not the %d that were put there", reqs[i].Key, len(r.Value), r.Value, v.Size)
		}
	}
	return nil
}

// script collects requests and what their replies must be.
type script struct {
	reqs []driver.Request
	want []wanted
}

func (s *script) add(r driver.Request, o driver.Outcome, v *driver.Value) {
	s.reqs, s.want = append(s.reqs, r), append(s.want, wanted{o, v})
}

// kept puts a value and gets it.
func (s *script) kept(key []byte, v driver.Value) {
	s.add(put(key, v), driver.OK, nil)
	s.add(get(key), driver.OK, &v)
}

func (c *checker) ping() error {
	l, err := c.open()
	if err != nil {
		return err
	}
	defer l.Close()
	raw, err := l.raw("PING")
	if err == nil && string(raw) != "+PONG\r\n" && string(raw) != "$4\r\nPONG\r\n" {
		err = fmt.Errorf("the reply is %.40q", raw)
	}
	return err
}

func (c *checker) unknown() error {
	l, err := c.open()
	if err != nil {
		return err
	}
	defer l.Close()
	raw, err := l.raw("LOADGEN.UNKNOWN")
	if err == nil && raw[0] != '-' {
		err = fmt.Errorf("the reply is %.40q", raw)
	}
	if err == nil {
		_, err = l.raw("PING")
	}
	var lost *lostError
	if errors.As(err, &lost) && c.ctx.Err() == nil {
		return fmt.Errorf("it costs the connection: %v", err)
	}
	return err
}

func (c *checker) missing() error {
	var s script
	s.add(get(c.key("missing")), driver.Miss, nil)
	s.add(del(c.key("missing")), driver.Miss, nil)
	return c.talk(s.reqs, s.want)
}

func (c *checker) values() error {
	for _, size := range []int{0, 1, driver.HeaderSize, 200, 64 << 10, 1 << 20} {
		var s script
		v := driver.Value{Size: size, Seed: 7}
		if size >= driver.HeaderSize {
			const crlf, ok, nulEnd = 0x2B0A_0D00, 0x0A0D_4B4F, 0x0A0D_444E_450A_0DFF // "\0\r\n+OK\r\n", "\xff\r\nEND\r\n"
			v.Checked, v.Writer, v.Key, v.Version = true, crlf, ok, nulEnd
		}
		k := c.key("value" + strconv.Itoa(size))
		s.kept(k, v)
		s.add(del(k), driver.OK, nil)
		if err := c.talk(s.reqs, s.want); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) overwrite() error {
	var s script
	k := c.key("overwritten")
	for _, size := range []int{200, 3, 1000, 0, 24} {
		s.kept(k, driver.Value{Size: size, Seed: uint64(size)})
	}
	return c.talk(s.reqs, s.want)
}

func (c *checker) delete() error {
	var s script
	k := c.key("deleted")
	s.kept(k, driver.Value{Size: 5})
	s.add(del(k), driver.OK, nil)
	s.add(get(k), driver.Miss, nil)
	s.add(del(k), driver.Miss, nil)
	return c.talk(s.reqs, s.want)
}

// names puts keys that differ only in what a careless adapter changes, each with its own value, before it gets any.
func (c *checker) names() error {
	long := string(bytes.Repeat([]byte("k"), 200))
	var puts, gets script
	for i, name := range []string{"plain", "PLAIN", "a space", "a\r\nb", "nul\x00nul", "nul", "ünïcode", "\xff", "\xfe", "$-1\r\n", long + "1", long + "2"} {
		k, v := c.key(name), driver.Value{Size: 10 + i, Seed: uint64(i)}
		puts.add(put(k, v), driver.OK, nil)
		gets.add(get(k), driver.OK, &v)
	}
	return c.talk(append(puts.reqs, gets.reqs...), append(puts.want, gets.want...))
}

// order sends many requests before it reads a reply; each value's size says whose it is.
func (c *checker) order() error {
	var s script
	for i := range piped {
		s.kept(c.key("order"+strconv.Itoa(i)), driver.Value{Size: i, Seed: uint64(i)})
	}
	for i := range piped {
		k := c.key("order" + strconv.Itoa(piped-1-i))
		s.add(get(k), driver.OK, &driver.Value{Size: piped - 1 - i, Seed: uint64(piped - 1 - i)})
		s.add(del(k), driver.OK, nil)
		s.add(get(k), driver.Miss, nil)
	}
	return c.talk(s.reqs, s.want)
}

func (c *checker) pieces() error {
	l, err := c.open()
	if err != nil {
		return err
	}
	defer l.Close()
	k, v := c.key("pieces"), driver.Value{Size: 30, Seed: 9}
	first, second := put(k, v), get(k)
	out := l.codec.AppendRequest(l.codec.AppendRequest(nil, &first), &second)
	for i := range out {
		if _, err := l.Write(out[i : i+1]); err != nil {
			return &lostError{err}
		}
		time.Sleep(200 * time.Microsecond) // so that it arrives by itself
	}
	if _, err := l.reply(driver.Put); err != nil {
		return err
	}
	if r, err := l.reply(driver.Get); err != nil || !bytes.Equal(r.Value, v.AppendTo(nil)) {
		return errors.Join(err, fmt.Errorf("get returns %.40q, not what was put", r.Value))
	}
	return nil
}

// connections uses several connections at once. Each has keys of its own, and values that say which key they are of.
func (c *checker) connections() error {
	errs := make([]error, neighbours)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			l, err := c.open()
			if err != nil {
				errs[i] = err
				return
			}
			defer l.Close()
			for n := range rounds {
				var s script
				for j := range 4 {
					s.kept(c.key(fmt.Sprintf("of%d.%d", i, j)), driver.Value{Size: 100 + 50*i, Seed: uint64(i)<<32 | uint64(n)<<8 | uint64(j)})
				}
				if errs[i] = l.talk(s.reqs, s.want); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) info() error {
	l, err := c.open()
	if err != nil {
		return err
	}
	defer l.Close()
	raw, err := l.raw("INFO")
	if err == nil && raw[0] != '$' && raw[0] != '-' {
		err = fmt.Errorf("the reply is %.40q", raw)
	}
	return err
}

// floor times PING on one connection.
func (c *checker) floor() (p50, p99 time.Duration, err error) {
	l, err := c.open()
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	var took []time.Duration
	for began := time.Now(); len(took) < mostPings && time.Since(began) < floorTime; {
		sent := time.Now()
		if _, err := l.raw("PING"); err != nil {
			return 0, 0, err
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	return took[len(took)/2], took[len(took)*99/100], nil
}

// tidy deletes the keys that were put.
func (c *checker) tidy() {
	l, err := c.open()
	if err != nil {
		return // nobody is there any more
	}
	defer l.Close()
	var reqs []driver.Request
	for _, k := range c.keys {
		reqs = append(reqs, del(k))
	}
	_, _ = l.do(reqs...) // what a faulty server does not delete has been reported
}
