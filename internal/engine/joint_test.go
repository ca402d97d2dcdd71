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
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/drivers/null"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/worker"
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
		endpoint, more := fmt.Sprintf("%d", i), ""
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
				endpoint := "a"
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
		endpoint := "a"
		if name == "ticket" {
			endpoint = serveTickets(t, nil).addr
		}
		body := fmt.Sprintf("driver = %q\nendpoints = [%q]", name, endpoint)
		ds := []driver.Driver{ticket.Driver{}, &callee{Driver: null.Driver{}, got: map[string]int{}}}
		p := parsePlanFor(t, ds, spanPlan(body, body, executor, "closed { iterations = 1 }"))
		e := assigned(t, Config{Loops: 1, Drivers: ds}, p)
		_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Load))
		require.NoError(t, err)
		for _, d := range []time.Duration{0, time.Millisecond} {
			require.False(t, e.group.loops[0].tr.wait(d), executor)
		}
	}
}

// A wait that ends with a call that a client returns was not for nothing.
func TestOneCallEndsAWait(t *testing.T) {
	body := "driver = \"callee\"\nendpoints = [\"a\"]"
	ds := []driver.Driver{&callee{Driver: null.Driver{}, got: map[string]int{}}}
	p := parsePlanFor(t, ds, spanPlan(body, body, plan.Blocking, "closed { iterations = 1 }"))
	e := assigned(t, Config{Loops: 1, Drivers: ds}, p)
	_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Load))
	require.NoError(t, err)
	l := e.group.loops[0]
	l.begin(e.clock.now(), make(chan part, 10))
	l.enter()
	require.True(t, l.cycle())
	require.Zero(t, l.woken)
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
