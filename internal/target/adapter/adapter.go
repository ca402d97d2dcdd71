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
	"time"

	"github.com/loadgen/loadgen/internal/target/behaviour"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
)

const (
	floorTime  = 500 * time.Millisecond
	mostPings  = 1000
	neighbours = 16 // connections that are used at once
	rounds     = 8  // of requests over them
)

// Finding is the outcome of one check.
type Finding struct {
	Check  string // what was checked
	Err    error  // what was wrong; nil for nothing
	Remedy string // what to do then
}

// Report is what the checks have found, in their order. It ends with the first check that found nobody there or ran out of time.
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
	keys   [][]byte // that were put
}

// check is a check, and what to do about a fault.
type check struct {
	name, remedy string
	run          func() error
}

// Within is how long all checks of one server may take: one that is silent fails the check at hand.
const Within = 4 * time.Second

// Check checks the server that dial connects to until the context ends, and deletes the keys that it put there: their names begin with prefix. It returns
// an error if the server cannot be reached or, unless shared, holds keys.
func Check(ctx context.Context, dial func(context.Context) (net.Conn, error), prefix string, shared bool) (*Report, error) {
	c := &checker{ctx: ctx, dial: dial, prefix: prefix}
	if err := c.over(func(l *behaviour.Conn) error {
		if raw, err := say(l, "DBSIZE"); err == nil && !shared && raw[0] == ':' && !bytes.HasPrefix(raw, []byte(":0\r")) {
			return ErrOccupied
		}
		return nil
	}); err != nil {
		return nil, err
	}
	r := &Report{}
	defer c.tidy()
	for _, k := range c.checks() {
		err := k.run()
		r.Findings = append(r.Findings, Finding{k.name, err, k.remedy})
		var network *net.OpError
		if errors.As(err, &network) && (network.Op == "dial" || network.Timeout()) { // the server is lost, or was silent for too long
			return r, nil // what follows would only say the same
		}
	}
	if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Err != nil }) {
		return r, nil
	}
	return r, c.over(r.floor)
}

func (c *checker) checks() []check {
	ping := []string{"PING", "+PONG\r\n", "$4\r\nPONG\r\n"}
	all := []check{
		{"answers PING", "answer +PONG", c.says(ping)},
		{"an unknown command is an error", "answer -ERR and a text to a command that you do not know, and read on", c.says([]string{"LOADGEN.UNKNOWN", "-"}, ping)},
	}
	store := behaviour.Checks(behaviour.Rules{MaxKey: 250}, c.key)
	for _, k := range store {
		all = append(all, check{k.Name, k.Remedy, func() error { return c.over(func(l *behaviour.Conn) error { return k.Make(l.Do) }) }})
	}
	return append(all,
		check{"requests come in pieces", "read on until a request is whole: it may come in many reads, and several may come in one", func() error {
			return c.over(func(l *behaviour.Conn) error {
				l.Conn = dribble{l.Conn}
				return store[behaviour.Delete].Make(l.Do)
			})
		}},
		check{"connections do not share state", "let each connection have its own buffers and its own client", func() error { return c.apart(nil) }},
		check{"INFO is answered", `answer a bulk string of lines NAME:VALUE, or -ERR`, c.says([]string{"INFO", "$", "-"})},
	)
}

// over calls f with a fresh connection.
func (c *checker) over(f func(*behaviour.Conn) error) error {
	conn, err := c.dial(c.ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	codec, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	deadline, _ := c.ctx.Deadline()
	if err := errors.Join(err, conn.SetDeadline(deadline)); err != nil {
		return err
	}
	return f(&behaviour.Conn{Conn: conn, Codec: resp2{codec}})
}

// resp2 refuses RESP3.
type resp2 struct{ driver.Codec }

func (c resp2) Parse(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
	if len(b) > 0 && bytes.IndexByte([]byte("_#,(!=%~>|"), b[0]) >= 0 {
		return 0, fmt.Errorf("%.20q is RESP3, which was not asked for", b)
	}
	return c.Codec.Parse(b, v, r)
}

// dribble sends each byte by itself.
type dribble struct{ net.Conn }

func (d dribble) Write(b []byte) (int, error) {
	for i := range b {
		if _, err := d.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
		time.Sleep(200 * time.Microsecond)
	}
	return len(b), nil
}

// say sends a command of one word and returns its reply as it came: a line, and what a bulk string's length announces.
func say(l *behaviour.Conn, command string) ([]byte, error) {
	if _, err := fmt.Fprintf(l, "*1\r\n$%d\r\n%s\r\n", len(command), command); err != nil {
		return nil, err
	}
	return l.Take(func(b []byte) (int, error) {
		size := bytes.Index(b, []byte("\r\n")) + len("\r\n")
		if size < len("\r\n") {
			return 0, nil
		}
		if size == len("\r\n") {
			return 0, errors.New("the reply begins with an empty line")
		}
		if n, err := strconv.ParseUint(string(b[1:size-2]), 10, 32); b[0] == '$' && err == nil {
			size += int(n) + len("\r\n")
		}
		if size > len(b) {
			size = 0
		}
		return size, nil
	})
}

// says is a check of replies on one connection: each list is a command, and in which ways its reply may begin.
func (c *checker) says(lists ...[]string) func() error {
	return func() error {
		return c.over(func(l *behaviour.Conn) error {
			for _, list := range lists {
				raw, err := say(l, list[0])
				if err == nil && !slices.ContainsFunc(list[1:], func(s string) bool { return bytes.HasPrefix(raw, []byte(s)) }) {
					err = fmt.Errorf("the reply is %.40q", raw)
				}
				if err != nil {
					return fmt.Errorf("%s: %w", list[0], err)
				}
			}
			return nil
		})
	}
}

// key returns a key of the check's own, which will be deleted.
func (c *checker) key(name string) []byte {
	c.keys = append(c.keys, append([]byte(c.prefix), name...))
	return c.keys[len(c.keys)-1]
}

// apart has connections carry out requests at the same time.
func (c *checker) apart(lines []*behaviour.Conn) error {
	if len(lines) < neighbours {
		return c.over(func(l *behaviour.Conn) error { return c.apart(append(lines, l)) })
	}
	var err error
	for n := 0; n < rounds && err == nil; n++ {
		err = behaviour.Checks(behaviour.Rules{Unordered: true}, c.key)[behaviour.Order].Make(func(reqs ...driver.Request) ([]driver.Reply, error) {
			shares, replies := make([][]driver.Request, len(lines)), make([]driver.Reply, len(reqs))
			for i, r := range reqs {
				shares[i%len(lines)] = append(shares[i%len(lines)], r)
			}
			for i, l := range lines {
				if err := l.Send(shares[i]); err != nil {
					return nil, err
				}
			}
			for i, l := range lines {
				got, err := l.Receive(shares[i])
				if err != nil {
					return nil, err
				}
				for j := range got {
					replies[i+j*len(lines)] = got[j]
				}
			}
			return replies, nil
		})
	}
	return err
}

// floor times PING on one connection.
func (r *Report) floor(l *behaviour.Conn) error {
	var took []time.Duration
	for began := time.Now(); len(took) < mostPings && time.Since(began) < floorTime; {
		sent := time.Now()
		if _, err := say(l, "PING"); err != nil {
			return err
		}
		took = append(took, time.Since(sent))
	}
	slices.Sort(took)
	r.P50, r.P99 = took[len(took)/2], took[len(took)*99/100]
	return nil
}

// tidy deletes the keys that were put. What a faulty server does not delete has been reported.
func (c *checker) tidy() {
	_ = c.over(func(l *behaviour.Conn) error {
		var reqs []driver.Request
		for _, k := range c.keys {
			reqs = append(reqs, driver.Request{Verb: driver.Delete, Key: k})
		}
		_, err := l.Do(reqs...)
		return err
	})
}
