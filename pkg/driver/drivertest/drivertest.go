// Package drivertest is the conformance suite of drivers. Each driver's tests run it against every server available:
//
//	drivertest.Run(t, drivertest.Suite{
//		Driver: redis.Driver{},
//		Dial:   func() (net.Conn, error) { return net.Dial("tcp", addr) },
//	})
//
// It checks what programs and executors rely on: outcomes are declared, a key holds what was put until it is overwritten or deleted, and replies come
// in request order. It also checks that a codec reads replies however they are split, survives bytes that are not replies, touches only its own bytes
// and allocates nothing, and that its optional methods agree with the basic ones. It tests the codec with replies that the server gave.
package drivertest

import (
	"bytes"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// Suite says what to check and how to reach the target.
type Suite struct {
	Driver  driver.Driver
	Config  any                               // of the type of Driver.NewConfig; nil for its defaults
	Secrets func(name string) (string, error) // nil if the config names none
	Forms   []driver.Form                     // for a form.Former, forms that word get, put or delete anew; nil for the driver's own

	// Dial opens a new connection to the server to check a driver.Wire or a driver.Dialer against.
	Dial func() (net.Conn, error)
	// Open begins a session with the target. If nil, the suite uses OverConn on Dial, a client of a driver.Dialer, a session of a localfile.Driver, or
	// the replies of a driver.Timed.
	Open func(t testing.TB) Executor

	// Connections is the most connections that a client of a driver.Dialer opens; 0 for one.
	Connections int

	// Note is the expected note for a server that reports nothing about itself; "" if it does report.
	Note string

	// MaxKey is the longest key the protocol takes, in bytes; 0 for no limit below 512.
	MaxKey int
	// Tokens says that replies to gets have tokens, and that a put may carry one.
	Tokens bool
	// BlindDeletes says that a delete is OK whether the key was there or not.
	BlindDeletes bool
	// Unordered says that the server carries out requests that are under way together in any order.
	Unordered bool
	// TextKeys says that keys must be printable and hold no space.
	TextKeys bool
	// MaxValue is the longest value the target takes, in bytes; 0 for no limit below 1 MiB.
	MaxValue int
}

// Executor carries requests to one endpoint.
type Executor interface {
	// Do carries out reqs in order, sends all of them before it waits for the first reply, and returns their replies, which stay valid. It fails t if
	// it cannot.
	Do(t testing.TB, reqs ...driver.Request) []driver.Reply
}

// Run runs the suite as subtests of t.
func Run(t *testing.T, s Suite) {
	if s.Config == nil {
		s.Config = s.Driver.NewConfig()
	}
	if config, ok := s.Config.(interface{ Validate() error }); ok {
		require.NoError(t, config.Validate())
	}
	t.Run("declaration", s.declaration)
	s.prepared(t)
	if timed, ok := s.Driver.(driver.Timed); ok {
		t.Run("timed", func(t *testing.T) { s.timed(t, timed) })
	}
	if local, ok := s.Driver.(localfile.Driver); ok {
		t.Run("local", func(t *testing.T) { s.local(t, local) })
		if localfile.Keyed(local) && s.Open == nil {
			s.Open = func(t testing.TB) Executor { return s.overStore(t, local) }
		}
	}
	wire, isWire := s.Driver.(driver.Wire)
	if isWire && s.Open == nil {
		s.Open = func(t testing.TB) Executor { return OverConn(t, s.codec(t, wire), s.begun(t, wire)) }
	}
	dialer, dials := s.Driver.(driver.Dialer)
	if dials && s.Open == nil {
		s.Open = func(t testing.TB) Executor { return s.openSession(t, dialer) }
	}
	if s.Open != nil {
		t.Run("missing key", s.missingKey)
		t.Run("values", s.values)
		t.Run("overwrite", s.overwrite)
		t.Run("delete", s.delete)
		if s.Tokens {
			t.Run("compare and set", s.compareAndSet)
		}
		t.Run("order", s.order)
		t.Run("keys", s.keys)
	}
	if isWire {
		t.Run("wire", func(t *testing.T) { s.wire(t, wire) })
	}
	if dials {
		t.Run("session", func(t *testing.T) { s.session(t, dialer) })
	}
}

// declaration checks what the driver declares.
func (s *Suite) declaration(t *testing.T) {
	require.Regexp(t, `^[a-z][a-z0-9_]*$`, s.Driver.Name())
	require.Equal(t, fmt.Sprintf("%T", s.Driver.NewConfig()), fmt.Sprintf("%T", s.Config), "type of the config")
	if config := s.Driver.NewConfig(); reflect.TypeOf(config).Elem().Size() > 0 { // pointers to zero-size values may be equal
		require.NotSame(t, config, s.Driver.NewConfig(), "every call returns a new config")
	}
	known := 0
	for v := range driver.Verb(driver.NumVerbs) {
		outcomes := s.Driver.Outcomes(v)
		if outcomes == nil {
			continue
		}
		known++
		require.Contains(t, outcomes, driver.OK, "%s", v)
		for _, o := range outcomes {
			require.Contains(t, []driver.Outcome{driver.OK, driver.Miss, driver.Conflict, driver.QuorumFailed}, o, "a server's answer to a %s", v)
		}
		if v == driver.Put {
			require.NotContains(t, outcomes, driver.Miss, "overwriting is ok, and so is a new key")
		}
	}
	require.NotZero(t, known, "verbs the driver knows")
}

// timed checks that replies are pure.
func (s *Suite) timed(t *testing.T, d driver.Timed) {
	for stream := range uint32(8) {
		for n := range uint64(64) {
			for v := range driver.Verb(driver.NumVerbs) {
				if s.Driver.Outcomes(v) == nil {
					continue
				}
				req := driver.Request{Endpoint: int(n % 3), Verb: v, Stream: stream, N: n, Key: []byte("k"), Value: &driver.Value{Size: 1}}
				first := driver.Reply{Value: []byte("left over"), Message: []byte("left over")}
				var second driver.Reply
				took := d.Reply(s.Config, &req, &first)
				require.GreaterOrEqual(t, took, time.Duration(0))
				require.Equal(t, took, d.Reply(s.Config, &req, &second), "the same request takes the same time")
				require.Equal(t, second, first, "and has the same reply, whatever the reply held before")
				s.declared(t, v, first)
			}
		}
	}
	var reply driver.Reply
	req := driver.Request{Verb: driver.Get, Key: []byte("k")}
	require.Zero(t, testing.AllocsPerRun(100, func() { d.Reply(s.Config, &req, &reply) }), "allocations per reply")
}

// declared checks a reply's outcome against the declaration.
func (s *Suite) declared(t testing.TB, v driver.Verb, r driver.Reply) {
	t.Helper()
	if r.Outcome != driver.Error {
		require.Contains(t, s.Driver.Outcomes(v), r.Outcome, "outcome of a %s", v)
	}
}

// key returns a key that no other test uses.
func key(t testing.TB, name string) []byte {
	return fmt.Appendf(nil, "drivertest:%x:%s", time.Now().UnixNano(), name)
}

func get(key []byte) driver.Request { return driver.Request{Verb: driver.Get, Key: key} }

func del(key []byte) driver.Request { return driver.Request{Verb: driver.Delete, Key: key} }

func put(key []byte, v driver.Value) driver.Request {
	return driver.Request{Verb: driver.Put, Key: key, Value: &v}
}

// binaryValue returns a value whose header, from HeaderSize on, imitates the ends and beginnings of replies.
func binaryValue(size int) driver.Value {
	if size < driver.HeaderSize {
		return driver.Value{Size: size, Seed: 7}
	}
	const crlf, ok, nulEnd = 0x2B0A_0D00, 0x0A0D_4B4F, 0x0A0D_444E_450A_0DFF // "\0\r\n+OK\r\n", "\xff\r\nEND\r\n"
	return driver.Value{Size: size, Seed: 7, Checked: true, Writer: crlf, Key: ok, Version: nulEnd}
}

// do carries out one request and checks its outcome.
func (s *Suite) do(t testing.TB, x Executor, want driver.Outcome, req driver.Request) driver.Reply {
	t.Helper()
	r := x.Do(t, req)[0]
	s.declared(t, req.Verb, r)
	require.Equal(t, want.String(), r.Outcome.String(), "%s of %.60q: %s", req.Verb, req.Key, r.Message)
	return r
}

// holds checks that the key holds the value.
func (s *Suite) holds(t testing.TB, x Executor, key []byte, v driver.Value) {
	t.Helper()
	r := s.do(t, x, driver.OK, get(key))
	require.True(t, bytes.Equal(v.AppendTo(nil), r.Value), "value of %d bytes came back as %d bytes: %.60q", v.Size, len(r.Value), r.Value)
}

func (s *Suite) missingKey(t *testing.T) {
	x := s.Open(t)
	r := s.do(t, x, driver.Miss, get(key(t, "missing")))
	require.Empty(t, r.Value)
	s.do(t, x, s.gone(), del(key(t, "missing")))
}

func (s *Suite) values(t *testing.T) {
	x := s.Open(t)
	for _, size := range []int{0, 1, driver.HeaderSize, 200, 64 << 10, 1 << 20} {
		if s.MaxValue > 0 && size > s.MaxValue {
			continue
		}
		t.Run("size="+strconv.Itoa(size), func(t *testing.T) {
			k := key(t, "value")
			s.do(t, x, driver.OK, put(k, binaryValue(size)))
			s.holds(t, x, k, binaryValue(size))
			s.do(t, x, driver.OK, del(k))
		})
	}
}

func (s *Suite) overwrite(t *testing.T) {
	x := s.Open(t)
	k := key(t, "overwritten")
	for _, size := range []int{200, 3, 1000, 0, 24} {
		v := driver.Value{Size: size, Seed: uint64(size)}
		s.do(t, x, driver.OK, put(k, v))
		s.holds(t, x, k, v)
	}
	s.do(t, x, driver.OK, del(k))
}

func (s *Suite) delete(t *testing.T) {
	x := s.Open(t)
	k := key(t, "deleted")
	s.do(t, x, driver.OK, put(k, driver.Value{Size: 5}))
	s.do(t, x, driver.OK, del(k))
	s.do(t, x, driver.Miss, get(k))
	s.do(t, x, s.gone(), del(k))
}

// gone is the outcome of a delete of a key that is not there.
func (s *Suite) gone() driver.Outcome {
	if s.BlindDeletes {
		return driver.OK
	}
	return driver.Miss
}

// compareAndSet puts with the token of a reply: the put succeeds only if the value is still the one that was read.
func (s *Suite) compareAndSet(t *testing.T) {
	x := s.Open(t)
	k := key(t, "token")
	first, second, third := driver.Value{Size: 5, Seed: 1}, driver.Value{Size: 6, Seed: 2}, driver.Value{Size: 7, Seed: 3}
	s.do(t, x, driver.OK, put(k, first))
	read := s.do(t, x, driver.OK, get(k))
	require.NotZero(t, read.Token, "token of a value")
	replace := put(k, second)
	replace.Token = read.Token
	s.do(t, x, driver.OK, replace)
	s.holds(t, x, k, second)
	replace.Value = &third
	s.do(t, x, driver.Conflict, replace) // the value has changed
	s.holds(t, x, k, second)
	replace.Token = s.do(t, x, driver.OK, get(k)).Token
	require.NotEqual(t, read.Token, replace.Token, "values that differ have tokens that do")
	s.do(t, x, driver.OK, del(k))
	s.do(t, x, driver.Conflict, replace) // it is gone
	s.do(t, x, driver.Miss, get(k))
}

// order sends many requests before it reads a reply, and tells the replies apart by their values' sizes.
func (s *Suite) order(t *testing.T) {
	x := s.Open(t)
	const n = 64
	var reqs []driver.Request
	var keys [][]byte
	for i := range n {
		k := key(t, strconv.Itoa(i))
		keys = append(keys, k)
		reqs = append(reqs, put(k, driver.Value{Size: i, Seed: uint64(i)}), get(k))
	}
	for _, k := range slices.Backward(keys) {
		reqs = append(reqs, get(k), del(k), get(k))
	}
	turn := func(int) int { return 0 }
	if s.Unordered { // each key is in one request of a turn
		turn = func(i int) int {
			if i < 2*n {
				return i % 2
			}
			return 2 + (i-2*n)%3
		}
	}
	replies := make([]driver.Reply, len(reqs))
	for now := range 5 {
		var at []int
		var together []driver.Request
		for i := range reqs {
			if turn(i) == now {
				at, together = append(at, i), append(together, reqs[i])
			}
		}
		if len(together) == 0 {
			continue
		}
		got := x.Do(t, together...)
		require.Len(t, got, len(together))
		for i := range got {
			replies[at[i]] = got[i]
		}
	}
	for i, r := range replies {
		s.declared(t, reqs[i].Verb, r)
		want, size := driver.OK, -1
		switch {
		case i < 2*n && i%2 == 1:
			size = i / 2
		case i >= 2*n && (i-2*n)%3 == 0:
			size = n - 1 - (i-2*n)/3
		case i >= 2*n && (i-2*n)%3 == 2:
			want = driver.Miss
		}
		require.Equal(t, want.String(), r.Outcome.String(), "reply %d, to a %s", i, reqs[i].Verb)
		if size >= 0 {
			require.Equal(t, string((&driver.Value{Size: size, Seed: uint64(size)}).AppendTo(nil)), string(r.Value), "reply %d", i)
		}
	}
}

func (s *Suite) keys(t *testing.T) {
	x := s.Open(t)
	longest := 512
	if s.MaxKey > 0 {
		longest = min(longest, s.MaxKey)
	}
	names := []string{"plain", "ünïcode"}
	if !s.TextKeys {
		names = append(names, "a space", "a\r\nb", "nul\x00nul", "\xff\xfe", "$-1\r\n")
	}
	for _, name := range names {
		k := key(t, name)
		v := driver.Value{Size: 10 + len(name), Seed: 3}
		s.do(t, x, driver.OK, put(k, v))
		s.holds(t, x, k, v)
		s.do(t, x, driver.OK, del(k))
	}
	k := key(t, "")
	k = append(k, bytes.Repeat([]byte("k"), longest-len(k))...)
	s.do(t, x, driver.OK, put(k, driver.Value{Size: 1}))
	k[longest-1] = 'l'
	s.do(t, x, driver.Miss, get(k))
	k[longest-1] = 'k'
	s.do(t, x, driver.OK, del(k))
}
