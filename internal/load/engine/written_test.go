package engine

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

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

// idler is a poller that notes how long it is to wait.
type idler struct {
	sockets.Poller
	waited time.Duration
}

func (n *idler) Wait(_ []sockets.Readiness, d time.Duration) (int, error) {
	n.waited = d
	return 0, nil
}

// Sockets are only looked at if the wait is so short that a thread would wake later.
func TestShortWaitsForSocketsAreNone(t *testing.T) {
	n := new(idler)
	o := newOutlet(&wire{poll: n, partials: new(partials)}, n)
	for d, want := range map[time.Duration]time.Duration{0: 0, 1: 0, spinBelow / 2: 0, 2 * spinBelow: 2 * spinBelow, time.Second: time.Second} {
		_, err := o.wait(d)
		require.NoError(t, err)
		require.Equal(t, want, n.waited)
	}
}

// What has not left when the lease is over was refused, and not sent. What has timed out has ended already.
func TestRequestsThatHaveNotLeftAreTakenBack(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
	b.equip(worker.Load)
	w := b.l.tr.(*wire)
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
