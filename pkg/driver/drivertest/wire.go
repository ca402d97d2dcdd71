package drivertest

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/target/behaviour"
	"github.com/loadgen/loadgen/pkg/driver"
)

// patience bounds every exchange with a server.
const patience = 10 * time.Second

// overConn is an executor over one connection.
type overConn struct {
	*behaviour.Conn
	greeting [][]byte // replies to the greeting
}

// OverConn returns an executor that carries requests over conn, which it closes at the end of the test. It greets first.
func OverConn(t testing.TB, codec driver.Codec, conn net.Conn) Executor {
	t.Helper()
	t.Cleanup(func() { _ = conn.Close() }) // the far end may have closed it
	x := overConn{Conn: &behaviour.Conn{Conn: conn, Codec: codec}}
	greeting, replies := codec.Greet(nil)
	require.NoError(t, x.SetDeadline(time.Now().Add(patience)))
	_, err := x.Write(greeting)
	require.NoError(t, err)
	for i := range replies {
		reply, err := x.Take(func(b []byte) (int, error) { return codec.ParseGreeting(b, i) })
		require.NoError(t, err)
		x.greeting = append(x.greeting, reply)
	}
	return x
}

// Do implements Executor.
func (x overConn) Do(t testing.TB, reqs ...driver.Request) []driver.Reply {
	t.Helper()
	require.NoError(t, x.SetDeadline(time.Now().Add(patience)))
	replies, err := x.Conn.Do(reqs...)
	require.NoError(t, err)
	return replies
}

func (s *Suite) codec(t testing.TB, d driver.Wire) driver.Codec {
	t.Helper()
	codec, err := d.NewCodec(s.link())
	require.NoError(t, err)
	if stateful, ok := codec.(driver.Stateful); ok {
		codec, err = stateful.Connection("127.0.0.1:1", 0)
		require.NoError(t, err)
	}
	return codec
}

func (s *Suite) dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := s.Dial()
	require.NoError(t, err)
	return conn
}

// wire checks a codec, with the bytes of a real exchange.
func (s *Suite) wire(t *testing.T, d driver.Wire) {
	x := OverConn(t, s.codec(t, d), s.begun(t, d)).(overConn)
	k, missing := key(t, "wire"), key(t, "wire-missing")
	x.Do(t, put(k, *behaviour.Binary(300)), get(k), get(missing), del(k), del(missing))
	if known, ok := d.(driver.Identifier); ok {
		t.Run("identity", func(t *testing.T) { s.identity(t, known) })
	}
	t.Run("requests", func(t *testing.T) { requests(t, x.Codec) })
	if l, ok := x.Codec.(driver.Layout); ok {
		t.Run("layout", func(t *testing.T) { layout(t, x.Codec, l) })
	}
	t.Run("greeting", func(t *testing.T) { greeting(t, x) })
	if tagged, ok := x.Codec.(driver.Tagged); ok {
		t.Run("tags", func(t *testing.T) { tags(t, x, tagged) })
	}
	t.Run("pieces", func(t *testing.T) { pieces(t, x) })
	t.Run("garbage", func(t *testing.T) { garbage(t, x) })
	t.Run("allocations", func(t *testing.T) { allocations(t, x) })
	if sk, ok := x.Codec.(driver.Skimmer); ok {
		t.Run("skim", func(t *testing.T) { skim(t, x, sk) })
		t.Run("outline", func(t *testing.T) { outline(t, x, sk) })
	}
}

// link returns the link of the suite's codecs.
func (s *Suite) link() driver.Link {
	link := driver.Link{Config: s.Config, Forms: s.Forms, Secrets: s.Secrets, Endpoint: "127.0.0.1:1", Run: "drivertest", Values: true, Room: new(Room)}
	if _, dials := s.Driver.(driver.Dialer); dials && s.Dial != nil {
		link.Dial = func(context.Context) (net.Conn, error) { return s.Dial() }
	}
	return link
}

// begun opens a connection that is ready for requests.
func (s *Suite) begun(t testing.TB, d driver.Wire) net.Conn {
	t.Helper()
	conn := s.dial(t)
	shaker, ok := d.(driver.Handshaker)
	if !ok {
		return conn
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := shaker.Handshake(ctx, conn, s.link())
	require.NoError(t, err)
	return conn
}

// prepared prepares the server if the driver is a driver.Preparer.
func (s *Suite) prepared(t testing.TB) {
	p, ok := s.Driver.(driver.Preparer)
	if !ok || s.Dial == nil {
		return
	}
	conn := s.dial(t)
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	require.NoError(t, p.Prepare(ctx, conn, s.link()))
}

func (s *Suite) identity(t *testing.T, d driver.Identifier) {
	conn := s.dial(t)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	id, err := d.Identify(context.Background(), conn, s.link())
	require.NoError(t, err)
	if s.Note != "" {
		require.Contains(t, id[driver.Note], s.Note)
		return
	}
	require.NotEmpty(t, id["server"])
	require.NotEmpty(t, id["version"])
}

// samples are requests of every shape.
func samples() []driver.Request {
	k := []byte("key")
	all := []driver.Request{get(k), del(k), put(k, driver.Value{}), put(k, driver.Value{Size: 200}), put(k, *behaviour.Binary(70_000))}
	for i := range all {
		all[i].ID = 1000
	}
	return all
}

// requests checks that requests are appended to what is there, and depend on nothing but themselves.
func requests(t *testing.T, codec driver.Codec) {
	for _, req := range samples() {
		alone := codec.AppendRequest(nil, &req)
		require.NotEmpty(t, alone)
		after := codec.AppendRequest([]byte("before"), &req)
		require.Equal(t, "before"+string(alone), string(after), "a %s after other bytes", req.Verb)
		require.Equal(t, "key", string(req.Key), "the key of a %s", req.Verb)
	}
}

// wireVerbs is the number of verbs the wire tests use: get, put and delete.
const wireVerbs = driver.Delete + 1

// layout makes requests from others by replacing key and value.
func layout(t *testing.T, codec driver.Codec, l driver.Layout) {
	for v := range wireVerbs {
		for _, length := range []int{1, 9, 10, 16, 99, 100, 250} {
			for _, size := range []int{0, 1, 9, 10, 99, 100, 16 << 10, 100_000} {
				a, b := bytes.Repeat([]byte("a"), length), bytes.Repeat([]byte("b"), length)
				first := driver.Request{Verb: v, Key: a, Stream: 1}
				second := driver.Request{Verb: v, Key: b, N: 3}
				if v == driver.Put {
					first.Value, second.Value = &driver.Value{Size: size, Seed: 1}, &driver.Value{Size: size, Seed: 2}
				}
				remade(t, codec, l, first, second)
				if v == driver.Put {
					for _, ttl := range []uint32{1, 1000, 9_999, 10_000, 60_000, 99_999, 100_000, 3_600_000, math.MaxUint32} {
						first.Value.TTL, second.Value.TTL = ttl, ttl
						remade(t, codec, l, first, second)
					}
				}
			}
		}
	}
}

// remade makes the second request from the bytes of the first.
func remade(t *testing.T, codec driver.Codec, l driver.Layout, first, second driver.Request) {
	made := codec.AppendRequest(nil, &first)
	keyAt, valueAt := l.Offsets(&first)
	if keyAt < 0 {
		return // requests differ in other ways, too
	}
	copy(made[keyAt:], second.Key)
	if first.Value != nil {
		copy(made[valueAt:], second.Value.AppendTo(nil))
	}
	require.Equal(t, string(codec.AppendRequest(nil, &second)), string(made), "a %s by a key of %d bytes, %+v", first.Verb, len(first.Key), first.Value)
}

func greeting(t *testing.T, x overConn) {
	alone, replies := x.Codec.Greet(nil)
	after, again := x.Codec.Greet([]byte("before"))
	require.Equal(t, "before"+string(alone), string(after))
	require.Equal(t, replies, again)
	require.Equal(t, replies == 0, len(alone) == 0, "a greeting has replies")
	for i, reply := range x.greeting {
		for cut := range reply {
			n, err := x.Codec.ParseGreeting(reply[:cut:cut], i)
			require.NoError(t, err, "reply %d to the greeting, cut to %q", i, reply[:cut])
			require.Zero(t, n, "reply %d to the greeting, cut to %q", i, reply[:cut])
		}
		n, err := x.Codec.ParseGreeting(append(slices.Clone(reply), "next"...), i)
		require.NoError(t, err)
		require.Equal(t, len(reply), n)
	}
}

// tags reads the id of replies cut short: it is the whole reply's id, or not known yet. Requests differ by their ids.
func tags(t *testing.T, x overConn, codec driver.Tagged) {
	for _, e := range x.Replies {
		id, ok := codec.Tag(e.Bytes)
		require.True(t, ok, "the id of %.40q", e.Bytes)
		for cut := range e.Bytes {
			if of, told := codec.Tag(e.Bytes[:cut:cut]); told {
				require.Equal(t, id, of, "the id of %.40q, cut to %q", e.Bytes, e.Bytes[:cut])
			}
		}
	}
	for _, req := range samples() {
		first := codec.AppendRequest(nil, &req)
		req.ID++
		require.NotEqual(t, first, codec.AppendRequest(nil, &req), "a %s with another id", req.Verb)
	}
}

// pieces reads every reply cut short at every byte, whole, and followed by the next one.
func pieces(t *testing.T, x overConn) {
	for _, e := range x.Replies {
		var whole, followed driver.Reply
		n, err := x.Codec.Parse(e.Bytes, e.Verb, &whole)
		require.NoError(t, err)
		require.Equal(t, len(e.Bytes), n)
		for cut := range e.Bytes {
			var r driver.Reply
			n, err := x.Codec.Parse(e.Bytes[:cut:cut], e.Verb, &r)
			require.NoError(t, err, "reply to a %s, cut to %q", e.Verb, e.Bytes[:cut])
			require.Zero(t, n, "reply to a %s, cut to %q", e.Verb, e.Bytes[:cut])
		}
		if resumer, ok := x.Codec.(driver.Resumer); ok {
			resumed(t, resumer, e.Bytes)
		}
		followed = driver.Reply{Outcome: driver.Shed, Value: []byte("left over"), Message: []byte("left over")}
		n, err = x.Codec.Parse(append(slices.Clone(e.Bytes), e.Bytes...), e.Verb, &followed)
		require.NoError(t, err)
		require.Equal(t, len(e.Bytes), n, "bytes taken of two replies to a %s", e.Verb)
		require.Equal(t, whole, followed, "a reply to a %s in place of another", e.Verb)
	}
}

// resumed has a codec resume a reply byte by byte. The codec must never go back or read past the end, and must accept the whole reply.
func resumed(t *testing.T, codec driver.Resumer, reply []byte) {
	var p driver.Progress
	whole := false
	for n := 1; n <= len(reply); n++ {
		before := p.At
		var err error
		whole, err = codec.Resume(reply[:n:n], &p)
		require.NoError(t, err, "resume at %q", reply[:n])
		require.True(t, before <= p.At && p.At <= n, "resume at %q: from %d to %d", reply[:n], before, p.At)
		if whole { // or Parse will say what it is
			p = driver.Progress{}
		}
	}
	require.True(t, whole, "resume at the end of %.40q", reply)
}

// garbage changes real replies at random. Parse may take or refuse them, but must not panic or take bytes that are not there.
func garbage(t *testing.T, x overConn) {
	rnd := rand.New(rand.NewPCG(1, 2))
	alphabet := []byte("\r\n$*+-:0123456789 \x00\xffVHEND")
	refused := 0
	for range 5000 {
		e := x.Replies[rnd.IntN(len(x.Replies))]
		b := slices.Clone(e.Bytes[:min(len(e.Bytes), 40)])
		for range 1 + rnd.IntN(4) {
			b[rnd.IntN(len(b))] = alphabet[rnd.IntN(len(alphabet))]
		}
		var r driver.Reply
		n, err := x.Codec.Parse(b, e.Verb, &r)
		switch {
		case err != nil:
			refused++
			require.NotEmpty(t, err.Error())
		case n < 0 || n > len(b):
			t.Fatalf("parsing %q took %d bytes of %d", b, n, len(b))
		}
	}
	require.NotZero(t, refused, "no changed reply was refused")
}

// skim reads rows of replies, cut short and changed. Whatever Skim takes, Parse must take too, as OK.
func skim(t *testing.T, x overConn, sk driver.Skimmer) {
	k := key(t, "skim")
	for _, size := range []int{0, 3, 3, 99, 100, 300} {
		x.Do(t, put(k, driver.Value{Size: size, Seed: 1}), get(k))
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	all := 0
	for range 500 {
		verb, row := driver.Verb(rnd.IntN(int(wireVerbs))), []byte(nil)
		for len(row) < 400 {
			if e := x.Replies[rnd.IntN(len(x.Replies))]; e.Verb == verb {
				row = append(row, bytes.Repeat(e.Bytes, 1+rnd.IntN(3))...)
			}
		}
		row = row[:rnd.IntN(len(row)+1)]
		if len(row) > 0 && rnd.IntN(2) == 0 {
			row[rnd.IntN(len(row))] = "\r\n$9"[rnd.IntN(4)]
		}
		most := rnd.IntN(12)
		n, took := sk.Skim(row, verb, most)
		require.LessOrEqual(t, n, most)
		all += n
		at := 0
		for range n {
			var r driver.Reply
			size, err := x.Codec.Parse(row[at:], verb, &r)
			require.NoError(t, err)
			require.Equal(t, driver.OK, r.Outcome, "what was skimmed at %d of %q, replies to a %s", at, row, verb)
			require.NotZero(t, size, "what was skimmed at %d of %q, replies to a %s", at, row, verb)
			at += size
		}
		require.Equal(t, at, took, "bytes of %d replies to a %s in %q", n, verb, row)
	}
	require.NotZero(t, all, "nothing was skimmed")
	row := bytes.Repeat(x.Replies[1].Bytes, 10)
	require.Zero(t, testing.AllocsPerRun(50, func() { sk.Skim(row, x.Replies[1].Verb, 10) }))
}

// outline cuts replies short, changes some, and completes those whose length Outline returns.
func outline(t *testing.T, x overConn, sk driver.Skimmer) {
	told := 0
	for _, e := range x.Replies {
		for cut := range e.Bytes {
			if n := sk.Outline(e.Bytes[:cut:cut], e.Verb); n > 0 {
				require.Equal(t, len(e.Bytes), n, "outline of a reply to a %s, cut to %q", e.Verb, e.Bytes[:cut])
				told++
			}
		}
	}
	require.NotZero(t, told, "no reply had an outline")
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 5000 {
		e := x.Replies[rnd.IntN(len(x.Replies))]
		b := slices.Clone(e.Bytes[:rnd.IntN(min(len(e.Bytes), 20))])
		if len(b) > 0 && rnd.IntN(2) == 0 {
			b[rnd.IntN(len(b))] = "\r\n$9 -"[rnd.IntN(6)]
		}
		verb := driver.Verb(rnd.IntN(int(wireVerbs)))
		if n := sk.Outline(b, verb); n > 0 && n >= len(b) && n < 1<<16 {
			completed(t, x.Codec, b, verb, n)
		}
	}
	e := x.Replies[1]
	require.Zero(t, testing.AllocsPerRun(50, func() { sk.Outline(e.Bytes[:len(e.Bytes)-1], e.Verb) }))
}

// completed completes b to a reply of n bytes. Whatever bytes follow b, it must be OK if it ends in CR LF, and an error otherwise.
func completed(t *testing.T, codec driver.Codec, b []byte, verb driver.Verb, n int) {
	whole := append(slices.Clone(b), bytes.Repeat([]byte("-\r\n"), n)...)[:n]
	copy(whole[n-2:], "\r\n")
	var r driver.Reply
	size, err := codec.Parse(whole, verb, &r)
	require.NoError(t, err, "%q", whole)
	require.Equal(t, n, size, "%q", whole)
	require.Equal(t, driver.OK, r.Outcome, "%q", whole)
	for at := n - 2; at < n; at++ {
		broken := slices.Clone(whole)
		broken[at] = 'x'
		_, err := codec.Parse(broken, verb, &r)
		require.Error(t, err, "%q", broken)
	}
}

func allocations(t *testing.T, x overConn) {
	dst := make([]byte, 0, 128<<10)
	for _, req := range samples() {
		require.Zero(t, testing.AllocsPerRun(50, func() { x.Codec.AppendRequest(dst, &req) }), "to write a %s", req.Verb)
	}
	var r driver.Reply
	for _, e := range x.Replies {
		n := testing.AllocsPerRun(50, func() {
			if _, err := x.Codec.Parse(e.Bytes, e.Verb, &r); err != nil {
				t.Error(err)
			}
		})
		require.Zero(t, n, "to read %.40q", e.Bytes)
	}
}
