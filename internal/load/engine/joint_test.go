package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/drivertest/ticket"
	"github.com/loadgen/loadgen/pkg/plan"
)

// spanPlan is a plan whose sessions get from one target and put two values into another.
func spanPlan(source, dest, executor, load string) string {
	return fmt.Sprintf(`
		target "source" {
			%s
			executor = %q
			timeout  = "30s"
		}
		target "dest" {
			%s
			executor = %q
			timeout  = "30s"
		}
		dataset "d" {
			keys { count = 50 }
			values { size = 30 }
		}
		phase "load" {
			target      = target.source
			dataset     = dataset.d
			expect_hits = 0
			max_bad     = 1
			scenario "copy" {
				step "get" {}
				step "put" {
					target = target.dest
					key    = "same"
					as     = "write"
					times  = 2
				}
			}
			%s
		}`, source, executor, dest, executor, load)
}

// callee is a driver whose clients bring their requests to it. It counts them by endpoint and verb.
type callee struct {
	driver.Driver // of whose other methods it has those of null
	mu            sync.Mutex
	got           map[string]int
}

func (*callee) Name() string { return "callee" }

func (c *callee) Dial(_ context.Context, link driver.Link) (driver.Session, error) {
	return doing(func(_ context.Context, req *driver.Request, _ *driver.Reply) error {
		c.mu.Lock()
		c.got[link.Endpoint+" "+req.Verb.String()]++
		c.mu.Unlock()
		time.Sleep(200 * time.Microsecond)
		return nil
	}), nil
}

// TestTargetsOfAllKinds has spans over two targets, whose transports are of all kinds that may share a loop. The ledger has all requests, and the
// servers have seen as many.
func TestTargetsOfAllKinds(t *testing.T) {
	of := map[string][]string{plan.EventLoop: {"ticket", "null"}, plan.Blocking: {"ticket", "null", "callee"}}
	for _, executor := range slices.Sorted(maps.Keys(of)) {
		for _, source := range of[executor] {
			for _, dest := range of[executor] {
				t.Run(fmt.Sprintf("%s to %s, %s", source, dest, executor), func(t *testing.T) { testTargetsOfKinds(t, executor, source, dest) })
			}
		}
	}
}

func testTargetsOfKinds(t *testing.T, executor, source, dest string) {
	called := &callee{Driver: null.Driver{}, got: map[string]int{}}
	var bodies [2]string
	var got [2]func(driver.Verb) int // nil for null
	for i, name := range []string{source, dest} {
		endpoint, more := fmt.Sprintf("h%d:1", i), ""
		switch name {
		case "ticket":
			s := serveTickets(t, nil)
			endpoint, got[i] = s.addr, func(v driver.Verb) int { return s.Got(v.String()) }
		case "callee":
			got[i] = func(v driver.Verb) int { return called.got[endpoint+" "+v.String()] }
		case "null":
			more = `latency = "300us"`
		}
		bodies[i] = fmt.Sprintf("driver = %q\nendpoints = [%q]\n%s", name, endpoint, more)
	}
	_, final, err := driveLines(t, Config{Loops: 2, Drivers: []driver.Driver{ticket.Driver{}, null.Driver{}, called}},
		spanPlan(bodies[0], bodies[1], executor, "closed {\n sessions = 5\n pipeline = 2\n iterations = 40\n}"))
	require.NoError(t, err)
	for target, sent := range [2]map[driver.Verb]uint64{{driver.Get: 200}, {driver.Put: 400}} {
		for v := range driver.Verb(driver.NumVerbs) {
			require.Equal(t, measure.Requests{Sent: sent[v], Answered: sent[v]}, *final.Totals.Request(target, v), "target %d, %v", target, v)
			if got[target] != nil {
				require.EqualValues(t, sent[v], got[target](v), "target %d, %v", target, v)
			}
		}
	}
}

// TestSpansThatAreDue has spans begin when they are due, and the loop wait meanwhile, whatever its targets are.
func TestSpansThatAreDue(t *testing.T) {
	for executor, names := range map[string][]string{plan.EventLoop: {"ticket", "null"}, plan.Blocking: {"ticket", "null", "callee"}} {
		for _, name := range names {
			t.Run(name+", "+executor, func(t *testing.T) {
				endpoint := "a:1"
				if name == "ticket" {
					endpoint = serveTickets(t, nil).addr
				}
				body := fmt.Sprintf("driver = %q\nendpoints = [%q]", name, endpoint)
				called := &callee{Driver: null.Driver{}, got: map[string]int{}}
				_, final, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{ticket.Driver{}, null.Driver{}, called}},
					spanPlan(body, body, executor, "open {\n rate = 100\n arrivals = \"constant\"\n duration = \"300ms\"\n sessions = 4\n}"))
				require.NoError(t, err)
				s := final.Totals.Scenarios[0]
				require.EqualValues(t, 30, s.Due)
				require.EqualValues(t, 30, s.Outcomes[driver.OK]+s.Outcomes[driver.Miss])
				require.Less(t, final.Generator.Busy, 0.9, "it waits without being busy")
			})
		}
	}
}

// TestJointWaitsForNothing says that nothing has happened if nothing has: what a loop does then is no work.
func TestJointWaitsForNothing(t *testing.T) {
	for executor, name := range map[string]string{plan.EventLoop: "ticket", plan.Blocking: "callee"} {
		endpoint := "a:1"
		if name == "ticket" {
			endpoint = serveTickets(t, nil).addr
		}
		body := fmt.Sprintf("driver = %q\nendpoints = [%q]", name, endpoint)
		ds := []driver.Driver{ticket.Driver{}, &callee{Driver: null.Driver{}, got: map[string]int{}}}
		p := parsePlanFor(t, ds, spanPlan(body, body, executor, "closed { iterations = 1 }"))
		e := assigned(t, Config{Loops: 1, Drivers: ds}, p)
		loaded(t, e)
		for _, d := range []time.Duration{0, time.Millisecond} {
			require.False(t, e.group.loops[0].tr.wait(d), executor)
		}
	}
}

// A wait that ends with a call that a client returns was not for nothing.
func TestOneCallEndsAWait(t *testing.T) {
	body := "driver = \"callee\"\nendpoints = [\"a:1\"]"
	ds := []driver.Driver{&callee{Driver: null.Driver{}, got: map[string]int{}}}
	p := parsePlanFor(t, ds, spanPlan(body, body, plan.Blocking, "closed { iterations = 1 }"))
	e := assigned(t, Config{Loops: 1, Drivers: ds}, p)
	loaded(t, e)
	l := e.group.loops[0]
	l.begin(e.clock.now(), make(chan part, 10))
	l.enter()
	require.True(t, l.cycle())
	require.Zero(t, l.woken)
}

// noted is a transport that notes what it is asked to do.
type noted struct {
	transport
	name string
	done *[]string
	next int64 // when to look again
	err  error // why it cannot be opened
}

func (n noted) open(int64) error {
	n.note("open")
	return n.err
}

func (n noted) note(what string)                    { *n.done = append(*n.done, n.name+" "+what) }
func (n noted) flush()                              { n.note("flush") }
func (n noted) recall()                             { n.note("recall") }
func (n noted) close()                              { n.note("close") }
func (n noted) outstanding(into []measure.Requests) { into[0].InFlight += n.next }
func (n noted) sweep(int64) int64                   { return n.next }

// What a loop does for its targets it does for all of them. The first one closes the poller that they share, so it is closed last.
func TestAllTargetsTakePart(t *testing.T) {
	var done []string
	l := new(loop)
	for i, name := range []string{"a", "b", "c"} {
		l.lanes = append(l.lanes, &lane{l: l, tr: noted{name: name, done: &done, next: []int64{5, 3, 4}[i]}})
	}
	j := newJoint(l)
	j.flush()
	j.recall()
	j.close()
	require.Equal(t, []string{"a flush", "b flush", "c flush", "a recall", "b recall", "c recall", "c close", "b close", "a close"}, done)
	require.EqualValues(t, 3, j.sweep(0), "it looks again when the first of them has to")
	owed := make([]measure.Requests, 1)
	j.outstanding(owed)
	require.EqualValues(t, 12, owed[0].InFlight)
}

// A target that cannot be opened is named, and is the last that is tried.
func TestOpeningEndsAtTheFirstThatRefuses(t *testing.T) {
	var done []string
	l := new(loop)
	refused := errors.New("no such user")
	for _, name := range []string{"a", "b", "c"} {
		x := noted{name: name, done: &done}
		if name == "b" {
			x.err = refused
		}
		l.lanes = append(l.lanes, &lane{l: l, side: &side{target: &plan.Target{Name: name}}, tr: x})
	}
	err := newJoint(l).open(never)
	require.EqualError(t, err, `target "b": no such user`)
	require.Equal(t, []string{"a open", "b open"}, done)
}

// naps is a clock that notes for how long it is slept on.
type naps struct {
	clock
	taken []time.Duration
}

func (n *naps) sleep(d time.Duration) { n.taken = append(n.taken, d) }

// Targets that nothing is sent to let the loop sleep, to the nanosecond, and nothing happens meanwhile.
func TestWaitWithoutConnections(t *testing.T) {
	c := new(naps)
	j := newJoint(&loop{clock: c, lanes: []*lane{{tr: new(timed)}, {tr: new(timed)}}})
	for _, d := range []time.Duration{0, 1, time.Second} {
		require.False(t, j.wait(d))
	}
	require.Equal(t, []time.Duration{1, time.Second}, c.taken)
}

// Requests that replies lead to leave once for each session and target, after everything that came from there, in whichever order it came.
func TestRequestsLeaveOnceForEachSession(t *testing.T) {
	var done []string
	l := &loop{sessions: []*session{{}, {}}}
	wireOf := func(places int) *wire {
		w := &wire{l: l, places: places, partials: new(partials)}
		for i := range len(l.sessions) * places {
			w.conns = append(w.conns, &wireConn{index: int32(i)}) // which are down, so that nothing else happens
		}
		return w
	}
	l.lanes = []*lane{{tr: wireOf(2)}, {tr: wireOf(1)}, {tr: noted{name: "all", done: &done}}}
	j := newJoint(l).(*joint)
	var ready []sockets.Readiness
	for _, token := range []int32{4, 2, 0, 5, 3, 1} {
		ready = append(ready, sockets.Readiness{Token: token})
	}
	j.handle(ready)
	require.Len(t, done, 2*2+1, "before each session's on each target, and at the end")
}

// waiting is a loop with a client that blocks and, if piped, a connection over pipes, before a wait.
func waiting(t *testing.T, piped bool) (c *clients, b *blocking, flushes *[]string) {
	l := &loop{clock: &wallClock{zero: time.Now(), nap: time.Sleep}, sealAt: never, sessions: []*session{{}}}
	b = &blocking{l: l, returned: make(chan *blockingCall, 2)}
	flushes = new([]string)
	l.lanes = []*lane{{tr: b}, {tr: noted{name: "all", done: flushes}}}
	if piped {
		refuse := func(context.Context, int32) (net.Conn, error) { return nil, errors.New("nobody is there") }
		pipes := sockets.NewPipes(l.clock.now, func(int64) bool { return false }, refuse)
		w := &wire{l: l, poll: pipes, places: 1, conns: []*wireConn{{}}, ready: make([]sockets.Readiness, 1), partials: new(partials)}
		w.out = newOutlet(w, pipes)
		l.poll, l.lanes = pipes, append(l.lanes, &lane{tr: w})
	}
	c, is := newJoint(l).(*clients)
	require.True(t, is)
	return c, b, flushes
}

// A loop with clients that block waits as long as it may, which counts as idle, unless a call has come back or, over pipes, something has happened to
// a connection. A client that returns a call ends the wait, also if it does so just before.
func TestWaitForClients(t *testing.T) {
	for _, piped := range []bool{false, true} {
		servertest.Bubble(t, func(t *testing.T) {
			c, b, flushes := waiting(t, piped)
			waits := func(d, takes time.Duration, happens bool) {
				t.Helper()
				began, idle := time.Now(), b.idle
				require.Equal(t, happens, c.wait(d))
				require.Equal(t, takes, time.Since(began))
				require.EqualValues(t, takes, b.idle-idle)
			}
			back := func() { b.returned <- &blockingCall{lost: true} }
			waits(0, 0, false)
			waits(1, 1, false)
			waits(time.Second, time.Second, false)
			b.ring()
			waits(time.Hour, 0, false)
			waits(time.Second, time.Second, false)
			if !piped {
				require.Empty(t, *flushes)
			}
			back()
			waits(time.Hour, 0, true)
			require.NotEmpty(t, *flushes, "what the call led to leaves")
			time.AfterFunc(time.Minute, func() {
				back()
				b.ring()
			})
			waits(time.Hour, time.Minute, true)
			if piped {
				_, err := c.pipes.Connect(nil, 0)
				require.NoError(t, err)
				synctest.Wait()
				waits(time.Hour, 0, true)
			}
			c.l.clock = &virtualClock{tick: 10}
			idle := b.idle
			require.False(t, c.wait(0))
			require.Equal(t, idle, b.idle, "a look is no wait")
		})
	}
}

// TestOneOfTwoTargetsRefuses has the connections of one target fail to be made. The error names the target.
func TestOneOfTwoTargetsRefuses(t *testing.T) {
	for _, executor := range []string{plan.EventLoop, plan.Blocking} {
		for i, name := range []string{"source", "dest"} {
			t.Run(fmt.Sprintf("%s, %s", name, executor), func(t *testing.T) {
				servers := [2]*ticketServer{serveTickets(t, nil), serveTickets(t, nil)}
				d := shaking{shake: func(_ context.Context, conn net.Conn, link driver.Link) (net.Conn, error) {
					if link.Endpoint == servers[i].addr {
						return nil, errors.New("no such user")
					}
					return conn, nil
				}}
				require.ErrorContains(t, openSpans(t, d, executor, servers), fmt.Sprintf("target %q: connect to n0 (%s): no such user", name, servers[i].addr))
			})
		}
	}
}

// TestOneOfTwoTargetsIsLost has a target's connection be lost while the other target's is being made.
func TestOneOfTwoTargetsIsLost(t *testing.T) {
	servers := [2]*ticketServer{serveTickets(t, nil), serveTickets(t, nil)}
	made := make(chan *os.File, 1)
	d := shaking{shake: func(_ context.Context, conn net.Conn, link driver.Link) (net.Conn, error) {
		if link.Endpoint == servers[0].addr {
			also, err := conn.(*net.TCPConn).File()
			made <- also
			return conn, err
		}
		first := <-made
		return conn, errors.Join(unix.Shutdown(int(first.Fd()), unix.SHUT_RDWR), first.Close())
	}}
	require.ErrorContains(t, openSpans(t, d, plan.EventLoop, servers), fmt.Sprintf("target \"source\": connect to n0 (%s)", servers[0].addr))
}

// openSpans prepares spans over two servers with a session, and returns the error.
func openSpans(t *testing.T, d driver.Driver, executor string, servers [2]*ticketServer) error {
	t.Helper()
	var bodies [2]string
	for i, s := range servers {
		bodies[i] = fmt.Sprintf("driver = \"ticket\"\nendpoints = [%q]", s.addr)
	}
	_, _, err := driveLines(t, Config{Loops: 1, Drivers: []driver.Driver{d}}, spanPlan(bodies[0], bodies[1], executor, "closed {\n sessions = 1\n iterations = 1\n}"))
	return err
}
