package engine

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/drivers/redis"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
)

// Connections share a codec that keeps no state of theirs and whose replies come in order. None of them is open at first, so none is closed.
func TestConnectionsOfANewWire(t *testing.T) {
	plain, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	tagged, err := ticket.Driver{}.NewCodec(driver.Link{})
	require.NoError(t, err)
	for _, c := range []struct {
		codec        driver.Codec
		shared, tags bool
	}{{plain, true, false}, {perConnection{plain}, false, false}, {tagged, false, true}, {&ownCodec{Tagged: tagged.(driver.Tagged)}, false, true}} {
		la := &lane{l: &loop{sessions: make([]*session, 2)}, side: &side{endpoints: make([]sockets.Endpoint, 3)}}
		n := &releasing{virtualNet: newVirtualNet(0)}
		w := newWire(la, n, c.codec)
		require.Equal(t, [2]bool{c.shared, c.tags}, [2]bool{w.shared, w.tags})
		require.Equal(t, c.shared, w.fast(new(op.Plain), nil) != nil, "only such a codec makes many requests at once")
		require.Len(t, w.conns, 6)
		w.close()
		require.Empty(t, n.closed)
	}
}

// A connection takes requests until as many as may be are outstanding, and none while it is down.
func TestRoomOfAConnection(t *testing.T) {
	w := &wire{limit: 3, lane: new(lane)}
	for owed, room := range []int{3, 2, 1, 0, 0} {
		c := &wireConn{state: isUp, queue: queue{owed: owed}}
		require.Equal(t, room, w.room(c), "%d are owed", owed)
		c.state = isGreeting
		require.Zero(t, w.room(c))
	}
}

// Requests for a cluster's node may wait for a connection that is being made for the first time, and have it made. They do not wait for one that was
// lost or could not be made.
func TestConnectionsThatRequestsWaitFor(t *testing.T) {
	for _, tt := range []struct {
		state   connState
		wasUp   bool
		backoff time.Duration
		coming  bool
		dials   int
	}{
		{isDown, false, 0, true, 1},
		{isConnecting, false, 0, true, 0},
		{isGreeting, false, 0, true, 0},
		{isDown, true, 0, false, 0},
		{isDown, false, firstBackoff, false, 0},
		{isConnecting, true, firstBackoff, false, 0},
	} {
		b := &bench{t: t, net: newVirtualNet(10), slotless: 1}
		require.NoError(t, b.connect(redisPlan(t, 2, "cluster = true", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0, b.net.clock))
		w := b.l.tr.(*wire)
		c := w.conns[1]
		c.state, c.wasUp, c.backoff = tt.state, tt.wasUp, tt.backoff
		before := len(b.net.socks)
		require.Equal(t, tt.coming, w.coming(c), "%+v", tt)
		require.Equal(t, tt.dials, len(b.net.socks)-before, "%+v", tt)
		w.limit = 1
		require.Equal(t, tt.coming, w.room(c) > 0, "%+v", tt)
		w.lane.routes = nil
		require.False(t, w.coming(c))
	}
}

// A wait has been for nothing if nothing happened. One that is shorter than it takes a thread to wake is none.
func TestWaitsOfAWire(t *testing.T) {
	b, c, _ := asked(t)
	w := b.l.tr.(*wire)
	for d, waits := range map[time.Duration]time.Duration{0: 0, 20*time.Microsecond - 1: 0, 20 * time.Microsecond: 20 * time.Microsecond, time.Second: time.Second} {
		began := b.net.clock.t
		require.False(t, w.wait(d))
		require.EqualValues(t, waits, b.net.clock.t-began, d)
	}
	b.net.wake(c.fd)
	require.True(t, w.wait(0))
}

// watchedNet is a network in which nothing is read. It notes what is read from and written to, and looks on.
type watchedNet struct {
	*virtualNet
	said   []string
	look   func(fd int) // before a read
	broken error        // of writes
}

func (n *watchedNet) Read(fd int, _ []byte) (int, error) {
	n.said = append(n.said, fmt.Sprintf("read %d", fd))
	n.look(fd)
	return -1, sockets.ErrAgain
}

func (n *watchedNet) Write(fd int, p []byte) (int, error) {
	n.said = append(n.said, fmt.Sprintf("write %d", fd))
	return len(p), n.broken
}

// What has happened to a session is handled together, connection by connection. What it leads to leaves before the next session's turn.
func TestSessionsAreHandledOneByOne(t *testing.T) {
	for _, tt := range []struct {
		endpoints int
		ready     []int32
		want      []string
	}{
		{1, []int32{2, 0, 1}, []string{"read 2", "write 2", "read 0", "write 0", "read 1", "write 1"}},
		{2, []int32{3, 0, 2, 1}, []string{"read 0", "read 1", "write 0", "write 1", "read 2", "read 3", "write 2", "write 3"}},
		{2, []int32{5, 1, 2}, []string{"read 1", "write 1", "read 2", "write 2", "read 5", "write 5"}},
		{2, []int32{4}, []string{"read 4", "write 4"}},
	} {
		b := newBench(t, redisPlan(t, tt.endpoints, "", "ops = { get = 1 }\nclosed {\n sessions = 3\n iterations = 1\n}"), "load", 0)
		b.equip(worker.Load)
		w := b.l.tr.(*wire)
		n := &watchedNet{virtualNet: b.net, look: func(fd int) {
			c := w.conns[slices.IndexFunc(w.conns, func(c *wireConn) bool { return c.fd == fd })]
			w.touch(c)
			c.out = append(c.out, "get"...)
		}}
		w.poll = n
		var ready []sockets.Readiness
		for _, token := range tt.ready {
			ready = append(ready, sockets.Readiness{Token: token, Read: true})
		}
		w.handleAll(ready)
		require.Equal(t, tt.want, n.said)
	}
}

// A socket is read when there is something to read, and written to when it has room again for what did not fit.
func TestWhatAConnectionIsReadyFor(t *testing.T) {
	for _, tt := range []struct {
		ready   sockets.Readiness
		blocked bool
		over    bool // the lease
		broken  error
		want    []string
	}{
		{ready: sockets.Readiness{Read: true}, want: []string{"read 0"}},
		{ready: sockets.Readiness{Write: true}},
		{ready: sockets.Readiness{Read: true}, blocked: true, want: []string{"read 0"}},
		{ready: sockets.Readiness{Write: true}, blocked: true, want: []string{"write 0"}},
		{ready: sockets.Readiness{Write: true}, blocked: true, over: true},
		{ready: sockets.Readiness{Read: true, Write: true}, blocked: true, want: []string{"write 0", "read 0"}},
		{ready: sockets.Readiness{Read: true, Write: true}, blocked: true, broken: errors.New("broken"), want: []string{"write 0"}},
	} {
		b, c, _ := asked(t)
		w := b.l.tr.(*wire)
		n := &watchedNet{virtualNet: b.net, look: func(int) {}, broken: tt.broken}
		w.poll = n
		if c.blocked = tt.blocked; tt.blocked {
			c.out = append(w.buffer(), "get"...)
		}
		if tt.over {
			b.e.SetLease(0)
		}
		w.handle(c, tt.ready)
		require.Equal(t, tt.want, n.said, "%+v", tt)
		require.Equal(t, tt.broken == nil, c.state == isUp)
	}
}

// dating is an outlet of requests that leave later: a connection's first one at a time.
type dating struct {
	outlet
	at int64
}

func (o dating) date(c *wireConn) bool {
	c.queue.at(0).sent = o.at
	return true
}

// A request times out once its timeout is over, if it has left. A connection is lost on which nothing has come for two timeouts since the oldest
// request left; with ids, also if that is unanswered after ten.
func TestRequestsThatWaitForLong(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, tt := range []struct {
		sent   []int64 // of the requests, in milliseconds; the timeout is 100
		dead   int     // of them
		fresh  int     // behind them
		heard  int64
		left   int64 // if set, when the first one left
		tags   bool
		now    int64
		failed []uint32
		next   int64 // 0: there is nothing to look for any more
		lost   string
	}{
		{sent: []int64{10, 20}, now: 109, next: 110},
		{sent: []int64{10, 20}, now: 110, failed: []uint32{1}, next: 120},
		{sent: []int64{10, 20}, now: 120, failed: []uint32{1, 2}, next: 210},
		{sent: []int64{10, 20}, fresh: 1, now: 150, failed: []uint32{1, 2}, next: 210},
		{sent: []int64{10, 90}, dead: 1, now: 150, next: 190},
		{sent: []int64{10, 150}, dead: 1, now: 209, next: 210},
		{sent: []int64{10, 150}, dead: 1, heard: 50, now: 210, next: 250},
		{sent: []int64{10}, left: 80, now: 150, next: 180},
		{sent: []int64{10, 150}, dead: 1, now: 210, lost: "silent for 200ms"},
		{sent: []int64{10, 190}, dead: 1, heard: 50, now: 250, lost: "silent for 200ms"},
		{sent: []int64{10, 990}, dead: 1, heard: 900, tags: true, now: 1009, next: 1010},
		{sent: []int64{10, 990}, dead: 1, heard: 900, now: 1010, next: 1090},
		{sent: []int64{10, 990}, dead: 1, heard: 811, tags: true, now: 1010, lost: "no reply to a request for 1s, while others were answered"},
		{sent: []int64{810, 990}, dead: 1, heard: 15, tags: true, now: 1010, lost: "silent for 200ms"},
		{sent: []int64{10, 990}, dead: 1, heard: 810, tags: true, now: 1010, lost: "silent for 200ms"},
	} {
		b, c, _ := asked(t)
		w := b.l.tr.(*wire)
		way := &taking{w: w}
		w.way, w.timeout, w.tags, c.heard, c.fresh, c.queue = way, 100*ms, tt.tags, tt.heard*ms, 0, queue{}
		if tt.left > 0 {
			w.out = dating{w.out, tt.left * ms}
		}
		c.queue.push(pending{n: 1, sent: tt.now * ms})
		c.queue.take(1) // which was answered
		for i, sent := range tt.sent {
			c.queue.push(pending{id: uint32(i + 1), n: 1, sent: sent * ms, dead: i < tt.dead})
		}
		c.queue.dead = tt.dead
		for range tt.fresh {
			c.queue.push(pending{id: 9, n: 1})
			c.fresh++
		}
		next := w.expire(c, tt.now*ms)
		if tt.lost != "" {
			require.EqualValues(t, never, next, "%+v", tt)
			require.Equal(t, map[string]uint64{"n0 (127.0.0.1:7001): " + tt.lost: 1}, maps.Collect(b.l.rec.Errors.All()))
			require.Equal(t, isDown, c.state)
			continue
		}
		require.Equal(t, tt.next*ms, next, "%+v", tt)
		require.Equal(t, tt.failed, way.timedOut, "%+v", tt)
		require.Equal(t, isUp, c.state)
		require.Equal(t, tt.dead+len(tt.failed), c.queue.dead)
		for i := range c.queue.len() {
			require.Equal(t, i < c.queue.dead, c.queue.at(i).dead, "%+v: %d", tt, i)
		}
	}
}

// What is outstanding is counted for each endpoint and verb, without what has timed out.
func TestOutstandingRequests(t *testing.T) {
	b := newBench(t, redisPlan(t, 2, "", "ops = { get = 1 }\nclosed {\n sessions = 2\n iterations = 1\n}"), "load", 0)
	w := b.l.tr.(*wire)
	for i, c := range w.conns {
		c.queue.push(pending{verb: driver.Get, n: 100, dead: true})
		c.queue.push(pending{verb: driver.Put, n: int32(i + 1)})
		c.queue.push(pending{verb: driver.Get, n: 10})
		c.queue.dead = 1
	}
	got := make([]measure.Requests, 2*driver.NumVerbs)
	for n := range int64(2) { // it adds
		w.outstanding(got)
		for endpoint, puts := range []int64{1 + 3, 2 + 4} {
			of := got[endpoint*driver.NumVerbs:]
			require.Equal(t, [3]int64{20 * (n + 1), puts * (n + 1), 0}, [3]int64{of[driver.Get].InFlight, of[driver.Put].InFlight, of[driver.Delete].InFlight})
		}
	}
}

// A server has a second, or the timeout if that is longer, to answer a connection that is being made. One that owes no reply may say nothing.
func TestServersThatDoNotAnswerConnections(t *testing.T) {
	const s = int64(time.Second)
	for _, tt := range []struct {
		state        connState
		timeout, now int64
		lost         bool
		next         int64
	}{
		{isConnecting, s / 10, 5*s - 1, false, 5 * s},
		{isConnecting, s / 10, 4*s + 1, false, 4*s + 1 + s/10},
		{isConnecting, s / 10, 5 * s, true, 5*s + s/10},
		{isGreeting, s / 10, 5 * s, true, 5*s + s/10},
		{isGreeting, 3 * s, 7*s - 1, false, 7 * s},
		{isGreeting, 3 * s, 7 * s, true, 10 * s},
		{isUp, s / 10, 60 * s, false, 60*s + s/10},
		{isDown, s / 10, 60 * s, false, 60*s + s/10},
	} {
		b, c, _ := asked(t)
		w := b.l.tr.(*wire)
		c.state, c.since, c.queue, w.timeout = tt.state, 4*s, queue{}, tt.timeout
		require.Equal(t, tt.next, w.sweep(tt.now), "%+v", tt)
		texts := map[string]uint64{}
		if tt.lost {
			texts["n0 (127.0.0.1:7001): connect: no answer"] = 1
		}
		require.Equal(t, texts, maps.Collect(b.l.rec.Errors.All()), "%+v", tt)
	}
}
