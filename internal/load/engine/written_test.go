package engine

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/target/drivers/redis"
	"github.com/loadgen/loadgen/pkg/driver"
)

// narrow is a poller whose sockets take a few bytes at a time.
type narrow struct {
	sockets.Poller
	most  int
	taken []byte
}

func (n *narrow) Watch(int, int32, bool) error { return nil }

func (n *narrow) Write(_ int, p []byte) (int, error) {
	took := min(n.most, len(p))
	n.taken = append(n.taken, p[:took]...)
	return took, nil
}

func (n *narrow) Writev(_ int, parts [][]byte) (int, error) {
	taken := len(n.taken)
	for _, part := range parts {
		n.taken = append(n.taken, part[:min(n.most-(len(n.taken)-taken), len(part))]...)
	}
	return len(n.taken) - taken, nil
}

// Lent values leave between the bytes of their requests, whatever part of them the socket takes at a time.
func TestLentValuesLeaveInTheirPlaces(t *testing.T) {
	codec, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		sock := &narrow{most: rapid.SampledFrom([]int{700, 9000, 50_000, 10_000_000}).Draw(t, "most")}
		w := &wire{poll: sock, codec: newGuarded(codec, new(hold)), partials: new(partials)}
		c := &wireConn{state: isUp, codec: w.codec}
		w.out, w.writer = newOutlet(w, sock), newWriter(w.codec, true)
		var want []byte
		for range rapid.IntRange(1, 25).Draw(t, "requests") {
			o := op.Op{Verb: driver.Put, Key: fmt.Appendf(nil, "key:%d", len(want))}
			o.Value = driver.Value{
				Size: rapid.SampledFrom([]int{10, leastLent, leastLent, leastLent, 70_000}).Draw(t, "size"), Seed: rapid.Uint64().Draw(t, "seed"),
			}
			before := len(want)
			want = codec.AppendRequest(want, &driver.Request{Verb: o.Verb, Key: o.Key, Value: &o.Value})
			w.touch(c)
			require.Equal(t, len(want)-before, w.put(c, &o))
			if rapid.Bool().Draw(t, "write") {
				w.write(c)
			}
		}
		for c.out != nil {
			w.write(c)
		}
		require.True(t, bytes.Equal(want, sock.taken))
		require.Empty(t, c.lent)
	})
}

// Large requests leave piece by piece, in order, while others are gathered behind them: waiting bytes are not moved with every piece, and the buffer
// is reused.
func TestRequestsLeaveBitByBit(t *testing.T) {
	sock := &narrow{most: 1000}
	w := &wire{poll: sock, partials: new(partials)}
	w.out = newOutlet(w, sock)
	c := &wireConn{state: isUp}
	var want []byte
	gather := func(size int) {
		w.touch(c)
		for range size {
			c.out = append(c.out, byte(len(want)*7))
			want = append(want, byte(len(want)*7))
		}
		c.dirty, w.dirty = false, nil
	}
	gather(300_000)
	moves := 0
	for left := 0; c.out != nil; left++ {
		before := c.gone
		w.write(c)
		if c.out != nil && c.gone < before {
			moves++
		}
		if left == 100 {
			gather(50_000)
		}
	}
	require.Equal(t, want, sock.taken)
	require.Less(t, moves, 30, "of 350 writes")
	require.Positive(t, moves, "what has left does not stay until all has")
	require.Zero(t, c.gone)
	require.False(t, c.blocked)
	require.GreaterOrEqual(t, cap(w.buffer()), 300_000)
	require.Zero(t, w.kept)
}

// Where a connection may go: to an address that is known, or to a socket in the file system.
func TestConnectionsGoWhereTheyCan(t *testing.T) {
	o := &immediate{w: &wire{lane: &lane{side: new(side)}, partials: new(partials)}}
	for text, want := range map[string]error{"unix:///run/cache.sock": nil, "cache.example.org:6379": errUnknownAddress} {
		end := sockets.NewEndpoint("n0", text)
		require.Equal(t, want, o.admits(&end), text)
	}
	end := sockets.NewEndpoint("n0", "10.0.0.1:6379")
	end.Addr = netip.MustParseAddrPort(end.Text)
	require.NoError(t, o.admits(&end))
}

// notebook is a poller that notes what it is asked to do. It fails, or takes less, as a test says.
type notebook struct {
	sockets.Poller                  // that does it; nil: nobody does
	calls          []string         // to connect, watch, write and close
	fails          map[string]error // by the name of the call
	takes          []int            // bytes that each of the next writes takes; then all
	waited         time.Duration    // the last time
}

// does notes a call, and returns why it fails.
func (n *notebook) does(name string, args ...any) error {
	n.calls = append(n.calls, strings.TrimSpace(name+" "+fmt.Sprintln(args...)))
	return n.fails[name]
}

func (n *notebook) Connect(to *sockets.Endpoint, token int32) (int, error) {
	if err := n.does("connect", token); err != nil {
		return -1, err
	}
	return n.Poller.Connect(to, token)
}

func (n *notebook) Connected(fd int) error { return n.does("connected", fd) }

func (n *notebook) Watch(fd int, token int32, room bool) error {
	if err := n.does("watch", fd, room); err != nil || n.Poller == nil {
		return err
	}
	return n.Poller.Watch(fd, token, room)
}

func (n *notebook) Wait(ready []sockets.Readiness, d time.Duration) (int, error) {
	if n.waited = d; n.Poller == nil {
		return 0, nil
	}
	return n.Poller.Wait(ready, d)
}

func (n *notebook) Write(fd int, p []byte) (int, error) {
	return n.leave(fd, p, n.does("write", fd, string(p)))
}

func (n *notebook) Writev(fd int, parts [][]byte) (int, error) {
	return n.leave(fd, slices.Concat(parts...), n.does("writev", fd, string(bytes.Join(parts, []byte("|")))))
}

func (n *notebook) leave(fd int, p []byte, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	if len(n.takes) > 0 {
		p, n.takes = p[:n.takes[0]], n.takes[1:]
	}
	if n.Poller != nil {
		return n.Poller.Write(fd, p)
	}
	return len(p), nil
}

func (n *notebook) Close(fd int) {
	_ = n.does("close", fd)
	if n.Poller != nil {
		n.Poller.Close(fd)
	}
}

// What has more parts than one call takes is written by several, as long as the socket takes them whole.
func TestAWriteOfManyParts(t *testing.T) {
	n := new(notebook)
	w := &wire{poll: n, partials: new(partials)}
	w.out = newOutlet(w, n)
	c := &wireConn{fd: 3, state: isUp, out: []byte("end"), lent: slices.Repeat([]lent{{text: []byte("value")}}, 2*mostParts)}
	w.write(c)
	require.Equal(t, []string{"writev 3", "writev 3", "write 3 end"}, []string{n.calls[0][:8], n.calls[1][:8], strings.Join(n.calls[2:], ", ")})
	require.Nil(t, c.out)
}

// Only what stands in several places is gathered for a write. It is whole if the socket took all of it.
func TestWhatIsGatheredForAWrite(t *testing.T) {
	n := new(notebook)
	o := newOutlet(&wire{poll: n, partials: new(partials)}, n)
	c := &wireConn{fd: 3, out: []byte("put a end"), gone: 4}
	pass := func(want int, whole bool, err error) {
		t.Helper()
		n.calls = nil
		took, all, failed := o.pass(c)
		require.Equal(t, []any{want, whole, err}, []any{took, all, failed})
	}
	pass(5, false, nil)
	require.Equal(t, []string{"write 3 a end"}, n.calls)
	c.lent = []lent{{at: 6, text: []byte("value")}}
	pass(10, true, nil)
	require.Equal(t, []string{"writev 3 a |value|end"}, n.calls)
	n.takes = []int{9, 1}
	pass(9, false, nil)
	c.lent = nil
	pass(1, false, nil)
	failure := errors.New("no way")
	n.fails = map[string]error{"write": failure, "writev": failure}
	pass(0, false, failure)
	c.lent = []lent{{at: 6, text: []byte("value")}}
	pass(0, false, failure)
	require.True(t, o.date(c), "what was passed has left at once")
}

// swallow is a poller that takes everything.
type swallow struct{ sockets.Poller }

func (swallow) Writev(int, [][]byte) (int, error) { return 0, nil }

// The list of a write's parts is used again for the next.
func TestGatheringAllocatesNothing(t *testing.T) {
	o := newOutlet(&wire{partials: new(partials)}, swallow{})
	c := &wireConn{out: []byte("put "), lent: []lent{{at: 4, text: []byte("value")}}}
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = o.pass(c) }))
}

// Sockets are only looked at if the wait is so short that a thread would wake later.
func TestShortWaitsForSocketsAreNone(t *testing.T) {
	n := new(notebook)
	o := newOutlet(&wire{poll: n, partials: new(partials)}, n)
	for d, want := range map[time.Duration]time.Duration{0: 0, 1: 0, spinBelow / 2: 0, 2 * spinBelow: 2 * spinBelow, time.Second: time.Second} {
		_, err := o.wait(d)
		require.NoError(t, err)
		require.Equal(t, want, n.waited)
	}
}

// What has not left when the lease is over was refused, and not sent. What has timed out has ended already.
func TestRequestsThatHaveNotLeftAreTakenBack(t *testing.T) {
	b, w, _ := newWireBench(t, 1)
	for _, tt := range []struct{ sent, behind, fresh, dead, want int }{
		{0, 0, 0, 0, 0},
		{3, 0, 0, 0, 0},
		{3, 0, 1, 0, 1},
		{3, 1, 0, 0, 1},
		{3, 1, 2, 0, 3},
		{0, 1, 1, 0, 2},
		{2, 0, 2, 3, 1},
		{2, 0, 1, 3, 0},
		{3, 0, 1, 2, 1},
	} {
		c, ledger := w.conns[0], b.l.rec.Request(0, driver.Get)
		c.queue, c.behind, c.fresh = queue{}, tt.behind, tt.fresh
		all, back := tt.sent+tt.behind+tt.fresh, uint64(0)
		*ledger, w.recalled = measure.Requests{}, [driver.NumVerbs]int64{}
		for i := range all {
			c.queue.push(pending{n: int32(i + 1), verb: driver.Get})
			ledger.Sent += uint64(i + 1)
			if i >= all-tt.want {
				back += uint64(i + 1)
			}
		}
		c.queue.dead = tt.dead
		c.dirty = true
		w.dirty = append(w.dirty, c)
		want := measure.Requests{Sent: ledger.Sent - back, Refused: back}
		w.recall()
		require.Equal(t, want, *ledger, "%+v", tt)
		require.EqualValues(t, back, w.recalled[driver.Get], "%+v", tt)
		require.Equal(t, all-tt.want, c.queue.len(), "%+v", tt)
		require.Zero(t, c.unwritten(), "%+v", tt)
		require.False(t, c.dirty)
		require.Empty(t, w.dirty)
	}
}

// Entries of the queue that have not left are those that were gathered, those that wait for a pipe, and those that a pipe has not begun to write.
func TestWhatIsUnwritten(t *testing.T) {
	require.Equal(t, 421, (&wireConn{fresh: 1, behind: 20, handed: 400}).unwritten())
}

// The part of a batch that goes to an endpoint is a batch, though it may have a single key.
func TestBatchesOfOneKey(t *testing.T) {
	c := &wireConn{codec: newGuarded(new(bustling), new(hold))}
	w := newWriter(c.codec, false)
	for keys, want := range []string{"get", "mget", "mget"} {
		req := &driver.Request{Verb: driver.Get, Batch: make([]driver.Item, keys)}
		require.Equal(t, "-"+want, string(c.request([]byte("-"), req)), "%d keys", keys)
		require.Equal(t, "-"+want, string(w.request([]byte("-"), req, new(op.Op))), "%d keys", keys)
	}
}

// Requests to a node of a cluster wait while the first connection to it is made, and leave together once it is up.
func TestRequestsWaitForAFirstConnection(t *testing.T) {
	b, w := newSlotlessBench(t)
	b.server(1).latency = func(int) time.Duration { return -1 }
	s, c := b.l.sessions[0], w.conns[1]
	w.recycle(make([]byte, 0, 4096))
	st := &opState{Op: op.Op{Verb: driver.Get, Key: []byte("key:000000000001")}}
	for range 2 {
		require.True(t, w.send(s, st, &driver.Request{Endpoint: 1, Verb: driver.Get, Key: st.Key}))
	}
	w.flush()
	require.Equal(t, 4096, cap(c.held), "a buffer that was used before")
	require.Equal(t, len(c.held), int(st.out))
	require.Empty(t, w.dirty)
	for range 10 {
		w.wait(time.Millisecond)
	}
	require.Equal(t, isUp, c.state)
	require.Equal(t, 2, *b.server(1).got["GET"])
	require.Nil(t, c.held)
	require.Zero(t, c.fresh)
	require.Positive(t, c.queue.at(0).sent)
}
