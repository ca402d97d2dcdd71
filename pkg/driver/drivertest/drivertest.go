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
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/target/behaviour"
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
	// UTF8Keys says that keys must be UTF-8.
	UTF8Keys bool
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
		s.behaves(t)
		if s.Tokens {
			t.Run("compare and set", s.compareAndSet)
		}
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

// behaves checks what loadgen relies on in any store.
func (s *Suite) behaves(t *testing.T) {
	rules := behaviour.Rules{MaxKey: s.MaxKey, MaxValue: s.MaxValue, TextKeys: s.TextKeys, UTF8Keys: s.UTF8Keys, BlindDeletes: s.BlindDeletes, Unordered: s.Unordered}
	unique := key(t, "")
	for _, c := range behaviour.Checks(rules, func(name string) []byte { return append(bytes.Clone(unique), name...) }) {
		t.Run(c.Name, func(t *testing.T) {
			x := s.Open(t)
			require.NoError(t, c.Make(func(reqs ...driver.Request) ([]driver.Reply, error) {
				replies := x.Do(t, reqs...)
				for i, r := range replies {
					s.declared(t, reqs[i].Verb, r)
				}
				return replies, nil
			}))
		})
	}
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
