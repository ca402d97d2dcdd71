package drivertest_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/target/cachenode"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest"
)

// faulty is the redis driver with one fault.
type faulty struct {
	redis.Driver
	codec func(driver.Codec) driver.Codec
}

func (f faulty) NewCodec(link driver.Link) (driver.Codec, error) {
	c, err := f.Driver.NewCodec(link)
	return f.codec(c), err
}

// codec is a codec with the given methods replaced.
type codec struct {
	driver.Codec
	appendRequest func(dst []byte, req *driver.Request) []byte
	parse         func(b []byte, v driver.Verb, r *driver.Reply) (int, error)
	parseGreeting func(b []byte, i int) (int, error)
}

func (c codec) AppendRequest(dst []byte, req *driver.Request) []byte {
	if c.appendRequest != nil {
		return c.appendRequest(dst, req)
	}
	return c.Codec.AppendRequest(dst, req)
}

func (c codec) Parse(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
	if c.parse != nil {
		return c.parse(b, v, r)
	}
	return c.Codec.Parse(b, v, r)
}

func (c codec) ParseGreeting(b []byte, i int) (int, error) {
	if c.parseGreeting != nil {
		return c.parseGreeting(b, i)
	}
	return c.Codec.ParseGreeting(b, i)
}

type parseFunc = func(b []byte, v driver.Verb, r *driver.Reply) (int, error)

// parsing returns a fault of Parse.
func parsing(fault func(parse parseFunc) parseFunc) driver.Driver {
	return faulty{codec: func(c driver.Codec) driver.Codec { return codec{Codec: c, parse: fault(c.Parse)} }}
}

// writing returns a fault of AppendRequest.
func writing(fault func(good driver.Codec) func([]byte, *driver.Request) []byte) driver.Driver {
	return faulty{codec: func(c driver.Codec) driver.Codec { return codec{Codec: c, appendRequest: fault(c)} }}
}

// misplaced is a codec that assumes that all lengths have two digits.
type misplaced struct{ driver.Codec }

func (misplaced) Offsets(req *driver.Request) (keyAt, valueAt int) {
	keyAt = len("*2\r\n$3\r\nGET\r\n$16\r\n")
	return keyAt, keyAt + len(req.Key) + len("\r\n$32\r\n")
}

// hasty is a codec that assumes that all replies are as long as the first.
type hasty struct{ driver.Codec }

func (h hasty) Skim(b []byte, v driver.Verb, most int) (n, took int) {
	var r driver.Reply
	size, err := h.Parse(b, v, &r)
	if size == 0 || err != nil || r.Outcome != driver.OK {
		return 0, 0
	}
	n = min(most, len(b)/size)
	return n, n * size
}

// Outline takes every reply for a value of two digits' length.
func (hasty) Outline(b []byte, _ driver.Verb) int {
	if len(b) < len("$32\r\n") {
		return 0
	}
	return len("$32\r\n") + int(b[1]-'0')*10 + int(b[2]-'0') + len("\r\n")
}

// undeclared is a driver that does not say that a get can miss.
type undeclared struct{ redis.Driver }

func (undeclared) Outcomes(driver.Verb) []driver.Outcome { return []driver.Outcome{driver.OK} }

// missingPut is a driver that says that a put can miss.
type missingPut struct{ redis.Driver }

func (missingPut) Outcomes(driver.Verb) []driver.Outcome {
	return []driver.Outcome{driver.OK, driver.Miss}
}

// shared is a driver whose targets all have the same config.
type shared struct {
	redis.Driver
	cfg *redis.Config
}

func (s shared) NewConfig() any { return s.cfg }

// nameless does not say what the server is.
type nameless struct{ redis.Driver }

func (nameless) Identify(context.Context, net.Conn, driver.Link) (map[string]string, error) {
	return map[string]string{"server": "?"}, nil
}

// impure takes another time for each reply.
type impure struct{ null.Driver }

func (impure) Reply(any, *driver.Request, *driver.Reply) time.Duration {
	return time.Since(time.Time{})
}

// orderly is the check of the order of replies.
const orderly = "replies_keep_the_order_of_requests"

// reversed is an executor that mixes up replies.
type reversed struct{ drivertest.Executor }

func (x reversed) Do(t testing.TB, reqs ...driver.Request) []driver.Reply {
	replies := x.Executor.Do(t, reqs...)
	if len(replies) > 64 {
		replies[1], replies[3] = replies[3], replies[1]
	}
	return replies
}

// faults are drivers that the suite must refuse, and the check that must refuse each.
var faults = []struct {
	name   string
	check  string
	driver driver.Driver
}{
	{"undeclared outcome", "a_key_that_is_not_there", undeclared{}},
	{"put that misses", "declaration", missingPut{}},
	{"one config for all", "declaration", shared{cfg: &redis.Config{Protocol: 2}}},
	{"no version", "wire/identity", nameless{}},
	{"impure", "timed", impure{}},
	{"mixed up replies", orderly, redis.Driver{}},
	{"delete of a missing key is ok", "a_key_that_is_not_there", parsing(func(parse parseFunc) parseFunc {
		return func(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
			n, err := parse(b, v, r)
			if v == driver.Delete && r.Outcome == driver.Miss {
				r.Outcome = driver.OK
			}
			return n, err
		}
	})},
	{"value cut at a line end", "values_of_all_sizes_and_bytes", parsing(func(parse parseFunc) parseFunc {
		return func(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
			n, err := parse(b, v, r)
			r.Value, _, _ = bytes.Cut(r.Value, []byte("\r\n"))
			return n, err
		}
	})},
	{"value left over", "wire/pieces", parsing(func(parse parseFunc) parseFunc {
		return func(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
			old := r.Value
			n, err := parse(b, v, r)
			if v == driver.Put {
				r.Value = old
			}
			return n, err
		}
	})},
	{"takes what is behind a reply", "wire/pieces", parsing(func(parse parseFunc) parseFunc {
		return func(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
			n, err := parse(b, v, r)
			if bytes.Equal(b[:n], b[n:]) {
				return len(b), err
			}
			return n, err
		}
	})},
	{"a cut reply is an error", "wire/pieces", parsing(func(parse parseFunc) parseFunc {
		return func(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
			if len(b) == 3 {
				return 0, io.ErrUnexpectedEOF
			}
			return parse(b, v, r)
		}
	})},
	{"panics on garbage", "wire/garbage", parsing(func(parse parseFunc) parseFunc {
		return func(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
			n, err := parse(b, v, r)
			if err != nil {
				panic(err)
			}
			return n, nil
		}
	})},
	{"takes garbage", "wire/garbage", parsing(func(parse parseFunc) parseFunc {
		return func(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
			n, err := parse(b, v, r)
			if err != nil {
				return len(b), nil
			}
			return n, nil
		}
	})},
	{"reading allocates", "wire/allocations", parsing(func(parse parseFunc) parseFunc {
		return func(b []byte, v driver.Verb, r *driver.Reply) (int, error) {
			n, err := parse(b, v, r)
			r.Value = append([]byte(nil), r.Value...)
			return n, err
		}
	})},
	{"writing allocates", "wire/allocations", writing(func(c driver.Codec) func([]byte, *driver.Request) []byte {
		return func(dst []byte, req *driver.Request) []byte { return append(dst, c.AppendRequest(nil, req)...) }
	})},
	{"writing over what is there", "wire/requests", writing(func(c driver.Codec) func([]byte, *driver.Request) []byte {
		return func(dst []byte, req *driver.Request) []byte {
			if string(dst) == "before" {
				dst = dst[:0]
			}
			return c.AppendRequest(dst, req)
		}
	})},
	{"key in upper case", "wire/requests", writing(func(c driver.Codec) func([]byte, *driver.Request) []byte {
		return func(dst []byte, req *driver.Request) []byte {
			copy(req.Key, bytes.ToUpper(req.Key))
			return c.AppendRequest(dst, req)
		}
	})},
	{"key cut and changed", "keys_are_bytes", writing(func(c driver.Codec) func([]byte, *driver.Request) []byte {
		return func(dst []byte, req *driver.Request) []byte {
			short := *req
			short.Key = bytes.ReplaceAll(req.Key, []byte("\x00"), nil)
			short.Key = short.Key[:min(len(short.Key), 511)]
			return c.AppendRequest(dst, &short)
		}
	})},
	{"key elsewhere", "wire/layout", faulty{codec: func(c driver.Codec) driver.Codec { return misplaced{c} }}},
	{"skims what is no value", "wire/skim", faulty{codec: func(c driver.Codec) driver.Codec { return hasty{c} }}},
	{"tells lengths of what is no value", "wire/outline", faulty{codec: func(c driver.Codec) driver.Codec { return hasty{c} }}},
	{"leaves goroutines behind", "session/goroutines", client{Driver: redis.Driver{}, connections: 1, leaks: true}},
	{"more connections than it says", "session/connections", client{Driver: redis.Driver{}, connections: 3}},
	{"connects by itself", "session/connections", client{Driver: redis.Driver{}, connections: 1, direct: true}},
	{"greeting in one piece", "wire/greeting", faulty{codec: func(c driver.Codec) driver.Codec {
		return codec{Codec: c, parseGreeting: func(b []byte, i int) (int, error) {
			n, err := c.ParseGreeting(b, i)
			if n == 0 && err == nil && len(b) > 0 {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}}
	}}},
}

// client is a driver whose clients block, with one fault at most.
type client struct {
	driver.Driver
	leaks, hides, direct bool
	connections          int
}

func (d client) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	s := &clientSession{}
	s.codec, _ = redis.Driver{}.NewCodec(link) // without secrets it cannot fail
	for range d.connections {
		conn, err := link.Dial(ctx)
		if d.direct {
			conn, err = net.Dial("tcp", link.Endpoint)
		}
		if err != nil && d.hides {
			return nil, errors.New("it did not work")
		}
		if err != nil {
			return nil, err
		}
		s.conns = append(s.conns, conn)
	}
	if d.leaks {
		go func() { select {} }()
	}
	return s, nil
}

type clientSession struct {
	codec driver.Codec
	conns []net.Conn
}

func (s *clientSession) Do(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
	deadline, _ := ctx.Deadline()
	conn := s.conns[0]
	if err := errors.Join(conn.SetDeadline(deadline), ctx.Err()); err != nil {
		return err
	}
	if _, err := conn.Write(s.codec.AppendRequest(nil, req)); err != nil {
		return errors.Join(err, ctx.Err())
	}
	for b := []byte(nil); ; {
		if n, err := s.codec.Parse(b, req.Verb, reply); n > 0 || err != nil {
			return err
		}
		b = slices.Grow(b, 1<<16)
		n, err := conn.Read(b[len(b):cap(b)])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = context.DeadlineExceeded
		}
		if b = b[:len(b)+n]; err != nil {
			return err
		}
	}
}

func (s *clientSession) Close() error {
	for _, conn := range s.conns {
		_ = conn.Close() // a test may have cut it
	}
	return nil
}

// conform runs the suite over a node in this process.
func conform(t *testing.T, d driver.Driver, open func(drivertest.Executor) drivertest.Executor) {
	node, err := cachenode.New(cachenode.Config{Listen: "127.0.0.1:0", Memory: 64 << 20, Version: "1"})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- node.Serve(context.Background()) }()
	t.Cleanup(func() { node.Close(); <-served })
	dial := func() (net.Conn, error) { return net.Dial("tcp", node.Addr().String()) }
	suite := drivertest.Suite{Driver: d, Dial: dial, Connections: 2}
	if wire, ok := d.(driver.Wire); ok && open != nil {
		suite.Open = func(t testing.TB) drivertest.Executor {
			c, err := wire.NewCodec(driver.Link{Config: d.NewConfig()})
			require.NoError(t, err)
			conn, err := dial()
			require.NoError(t, err)
			return open(drivertest.OverConn(t, c, conn))
		}
	}
	drivertest.Run(t, suite)
}

// faultVariable names the fault of a child process.
const faultVariable = "LOADGEN_DRIVERTEST_FAULT"

// TestSuite runs the suite over a faultless driver; in a child process, over the faulty one asked for.
func TestSuite(t *testing.T) {
	name := os.Getenv(faultVariable)
	if name == "" {
		conform(t, redis.Driver{}, nil)
		conform(t, client{Driver: redis.Driver{}, connections: 2, hides: true}, nil)
	}
	for _, f := range faults {
		if f.name != name {
			continue
		}
		var open func(drivertest.Executor) drivertest.Executor
		if f.check == orderly {
			open = func(x drivertest.Executor) drivertest.Executor { return reversed{x} }
		}
		conform(t, f.driver, open)
	}
}

// TestSuiteFindsFaults runs the suite over faulty drivers, in child processes since it is to fail there.
func TestSuiteFindsFaults(t *testing.T) {
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			child := exec.Command(os.Args[0], "-test.run=^TestSuite$", "-test.count=1")
			child.Env = append(os.Environ(), faultVariable+"="+f.name)
			out, err := child.CombinedOutput()
			require.Error(t, err, "the suite passes:\n%s", out)
			require.Regexp(t, `--- FAIL: TestSuite/`+f.check, string(out))
		})
	}
}
