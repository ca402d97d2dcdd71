package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// replying is a driver without a transport whose replies are a function.
type replying struct {
	driver.Driver // of whose methods it needs none
	reply         func() time.Duration
}

func (d replying) Reply(any, *driver.Request, *driver.Reply) time.Duration { return d.reply() }

// newTimed is a loop over two endpoints of a driver without a transport. Its step has begun, its clock stands still, and its ops wait for nothing. A
// request may take two milliseconds.
func newTimed(t *testing.T, sessions int, reply func() time.Duration) (*loop, *timed) {
	t.Helper()
	load := fmt.Sprintf("ops = { get = 1 }\nclosed {\n sessions = %d\n iterations = 1\n}", sessions)
	e := assigned(t, Config{Loops: 1}, nullPlan(t, 2, `timeout = "2ms"`, load))
	e.clock = &virtualClock{}
	_, err := e.Prepare(t.Context(), stepOf(e.plan.Phases[0], worker.Load))
	require.NoError(t, err)
	l := e.group.loops[0]
	l.begin(0, make(chan part, 1))
	l.programs.Program = unmoved{}
	tr := l.tr.(*timed)
	tr.driver = replying{reply: reply}
	return l, tr
}

// A request is answered when the driver says, or times out; a reply that comes later is one that nobody waits for.
func TestTimesOfATimedDriver(t *testing.T) {
	const timeout, began = int64(2 * time.Millisecond), int64(time.Hour)
	for _, takes := range []int64{0, 1, timeout - 1, timeout, timeout + 1, 5 * timeout} {
		l, tr := newTimed(t, 1, func() time.Duration { return time.Duration(takes) })
		l.clock.sleep(time.Duration(began))
		require.True(t, tr.send(l.sessions[0], inFlight(l, l.sessions[0]), &driver.Request{Verb: driver.Get}))
		require.Equal(t, began+min(takes, timeout), l.timers.next(), "%d", takes)
		tr.fire(l.timers.pop(), l.clock.now())
		ledger := l.rec.Request(0, driver.Get)
		if takes <= timeout {
			require.Equal(t, measure.Requests{Answered: 1}, *ledger, "%d", takes)
		} else {
			require.Equal(t, measure.Requests{Timeout: 1}, *ledger, "%d", takes)
			require.Equal(t, began+takes, l.timers.next())
			require.Equal(t, []int{1, 0}, tr.owed, "%d: it takes a place until it comes", takes)
			tr.fire(l.timers.pop(), l.clock.now())
			require.EqualValues(t, 1, l.rec.LateReplies, "%d", takes)
			require.Equal(t, measure.Requests{Timeout: 1}, *ledger, "%d", takes)
		}
		require.EqualValues(t, never, l.timers.next())
		require.Equal(t, []int{0, 0}, tr.owed, "%d", takes)
		require.True(t, tr.send(l.sessions[0], inFlight(l, l.sessions[0]), &driver.Request{Verb: driver.Get}))
		require.Len(t, tr.calls, 1, "%d: it takes the other's place", takes)
	}
}

// Each session may owe so many requests to each endpoint, whatever others owe.
func TestRoomOfATimedDriver(t *testing.T) {
	l, tr := newTimed(t, 2, func() time.Duration { return time.Millisecond })
	for _, s := range l.sessions {
		for endpoint, verb := range []driver.Verb{driver.Get, driver.Put} {
			st, n := inFlight(l, s), 0
			for tr.send(s, st, &driver.Request{Endpoint: endpoint, Verb: verb}) {
				n++
			}
			require.Equal(t, backlog+1, n)
		}
	}
	into := make([]measure.Requests, 2*driver.NumVerbs)
	tr.outstanding(into)
	want := make([]measure.Requests, 2*driver.NumVerbs)
	want[driver.Get].InFlight, want[driver.NumVerbs+int(driver.Put)].InFlight = 2*(backlog+1), 2*(backlog+1)
	require.Equal(t, want, into)
}

// A request in which the driver panics is not sent, and takes no room. After three panics within a minute, another one ends the step.
func TestPanicsOfATimedDriver(t *testing.T) {
	l, tr := newTimed(t, 1, func() time.Duration { panic("blown") })
	s := l.sessions[0]
	for range 4 {
		require.NoError(t, l.fault)
		require.False(t, tr.send(s, inFlight(l, s), &driver.Request{Verb: driver.Get}))
	}
	require.ErrorContains(t, l.fault, "4 panics within a minute")
	require.EqualValues(t, 4, l.rec.Errors.Total())
	require.Equal(t, []int{0, 0}, tr.owed)
	require.Len(t, tr.calls, 1)
	into := make([]measure.Requests, 2*driver.NumVerbs)
	tr.outstanding(into)
	require.Equal(t, make([]measure.Requests, len(into)), into)
}

// Without a transport, a loop sleeps for as long as it has nothing to do.
func TestWaitsWithoutATransport(t *testing.T) {
	for d := range time.Duration(3) {
		c := new(virtualClock)
		require.False(t, (&timed{l: &loop{clock: c}}).wait(d))
		require.EqualValues(t, d, c.t)
	}
}
