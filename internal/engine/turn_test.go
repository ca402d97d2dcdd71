package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/pkg/driver"
)

// stillFeed is a feed that starts nothing and notes what it is told.
type stillFeed struct {
	feed
	at      int64 // of its next op
	over    bool
	looked  int
	fired   []int64 // for when its timers were set
	stopped []int64
}

func (f *stillFeed) begin()                {}
func (f *stillFeed) fire(t timer, _ int64) { f.fired = append(f.fired, t.at) }
func (f *stillFeed) due(int64)             { f.looked++ }
func (f *stillFeed) next() int64           { return f.at }
func (f *stillFeed) stop(now int64)        { f.stopped = append(f.stopped, now) }
func (f *stillFeed) done() bool            { return f.over }

// stillWire is a transport on which nothing happens. It notes what it is told.
type stillWire struct {
	transport
	feed    *stillFeed
	found   bool // whether waits find something
	waited  []time.Duration
	flushed []int // how many timers of the feed had fired
	fired   []int64
	swept   int
	again   int64 // when to sweep again
}

func (w *stillWire) flush()                         { w.flushed = append(w.flushed, len(w.feed.fired)) }
func (w *stillWire) fire(t timer, _ int64)          { w.fired = append(w.fired, t.at) }
func (w *stillWire) wait(d time.Duration) bool      { w.waited = append(w.waited, d); return w.found }
func (w *stillWire) sweep(int64) int64              { w.swept++; return w.again }
func (w *stillWire) outstanding([]measure.Requests) {}

// stillWay is a way without ops. It tells when to sweep it again.
type stillWay struct {
	way
	again int64
}

func (w stillWay) sweep(int64) int64                 { return w.again }
func (stillWay) census(_, _ *[driver.NumVerbs]int64) {}

// newStillLoop returns a loop that has nothing to do. Its clock stands still.
func newStillLoop() (*loop, *stillFeed, *stillWire) {
	f := &stillFeed{at: never}
	w := &stillWire{feed: f, again: never}
	l := &loop{
		clock: &virtualClock{t: startsAt}, feed: f, tr: w, way: stillWay{again: never}, rec: measure.NewTotals(0, 1), last: startsAt, sweepAt: never, sealAt: never,
		halt: new(atomic.Int32), retired: new(atomic.Int64), everyone: 2, lease: &lease{suspended: func() time.Duration { return 0 }},
	}
	l.lease.until.Store(never)
	return l, f, w
}

// A cycle that took more than 200 µs longer than planned was late, and one of more than 250 ms stood still.
func TestCyclesThatTakeTooLong(t *testing.T) {
	for _, tt := range []struct {
		longer, excess int64
		stalls         uint64
	}{
		{-50_000, 0, 0}, {0, 0, 0}, {200_000, 0, 0}, {200_001, 200_001, 0}, {250e6, 250e6, 0}, {250e6 + 1, 250e6 + 1, 1},
	} {
		l, _, _ := newStillLoop()
		l.planned, l.excess = 60_000, 9
		l.last -= l.planned + tt.longer
		require.True(t, l.cycle())
		require.Equal(t, tt.excess, l.excess, "%+v", tt)
		require.Equal(t, tt.stalls, l.rec.Stalls, "%+v", tt)
		require.Equal(t, tt.longer*int64(tt.stalls), l.rec.MaxStall, "%+v", tt)
		require.Equal(t, startsAt, l.last)
	}
	l := &loop{rec: measure.NewTotals(0, 1)}
	for _, excess := range []int64{300e6, 400e6, 260e6} {
		l.overran(excess)
	}
	require.Equal(t, []int64{3, 400e6}, []int64{int64(l.rec.Stalls), l.rec.MaxStall})
}

// An idle cycle of less than 5 µs looked at the clock, and did nothing else.
func TestTimeSpentLooking(t *testing.T) {
	for _, tt := range []struct {
		idle       bool
		took, spun int64
	}{
		{true, 4999, 4999}, {true, 5000, 0}, {false, 4999, 0}, {false, 5000, 0},
	} {
		l, _, _ := newStillLoop()
		l.looked, l.spun = tt.idle, 7
		l.last -= tt.took
		l.cycle()
		require.Equal(t, 7+tt.spun, l.spun, "%+v", tt)
	}
}

// A cycle is idle if it came before its time, and its wait found nothing either.
func TestIdleCycles(t *testing.T) {
	for _, tt := range []struct {
		early int64
		found bool
		idle  bool
	}{
		{1, false, true}, {0, false, false}, {-1, false, false}, {1, true, false},
	} {
		l, _, w := newStillLoop()
		l.woken, w.found = startsAt+tt.early, tt.found
		l.cycle()
		require.Equal(t, tt.idle, l.looked, "%+v", tt)
		expected := startsAt + maxSleep
		if tt.found {
			expected = 0
		}
		require.Equal(t, expected, l.woken, "%+v", tt)
	}
}

// A loop waits until there is something to do. It does not wait for the last 50 µs before an op of its feed is due.
func TestHowLongALoopWaits(t *testing.T) {
	for _, tt := range []struct{ feed, timer, planned, waits int64 }{
		{never, never, 50e6, 50e6},
		{200_000, never, 200_000, 150_000},
		{30_000, never, 30_000, 0},
		{-1000, never, 0, 0},
		{never, 200_000, 200_000, 200_000},
		{300_000, 200_000, 200_000, 200_000},
		{200_000, 200_000, 200_000, 150_000},
	} {
		l, f, w := newStillLoop()
		l.spin = int64(DefaultSpin)
		if tt.feed != never {
			f.at = startsAt + tt.feed
		}
		if tt.timer != never {
			l.timers.set(startsAt+tt.timer, startSlots, 0, 1)
		}
		l.cycle()
		require.Equal(t, []time.Duration{time.Duration(tt.waits)}, w.waited, "%+v", tt)
		require.Equal(t, tt.planned, l.planned, "%+v", tt)
		require.Equal(t, 1, f.looked)
	}
}

// A loop that may be held is held before a short wait.
func TestALoopIsHeldBeforeShortWaits(t *testing.T) {
	for _, wait := range []int64{0, int64(time.Hour)} {
		l, f, w := newStillLoop()
		l.hold.may, f.at = true, startsAt+wait
		held := false
		l.tr = &watched{w, func() { held = l.hold.held }}
		l.cycle()
		l.hold.release() // a held test must not fail
		require.Equal(t, wait == 0, held)
	}
}

// A loop is let go when its step is over.
func TestALoopIsLetGoAtTheEnd(t *testing.T) {
	l, f, w := newStillLoop()
	l.hold.may, f.at, l.parts = true, startsAt, make(chan part, 1)
	held := false
	l.tr = &watched{w, func() { held, f.over = l.hold.held, true }}
	l.run()
	require.Equal(t, []bool{true, false}, []bool{held, l.hold.held})
}

// A step is over when nothing more starts and all that was started has ended, or earlier if nobody waits for that.
func TestWhenAStepIsOver(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(l *loop, f *stillFeed)
		over   bool
	}{
		"more is to start":          {func(*loop, *stillFeed) {}, false},
		"nothing more":              {func(_ *loop, f *stillFeed) { f.over = true }, true},
		"an op runs":                {func(l *loop, f *stillFeed) { f.over, l.running = true, 1 }, false},
		"a request is awaited":      {func(l *loop, f *stillFeed) { f.over, l.used = true, 1 }, false},
		"abandoned":                 {func(l *loop, _ *stillFeed) { l.halt.Store(abandon) }, true},
		"drained":                   {func(l *loop, _ *stillFeed) { l.halt.Store(drain) }, false},
		"drained 300 ms ago":        {func(l *loop, _ *stillFeed) { l.stopped, l.stoppedAt = true, startsAt-300e6 }, false},
		"drained long ago":          {func(l *loop, _ *stillFeed) { l.stopped, l.stoppedAt = true, startsAt-300e6-1 }, true},
		"an answer 300 ms ago":      {func(l *loop, _ *stillFeed) { l.stopped, l.answers = true, startsAt-300e6 }, false},
		"no answer for a long time": {func(l *loop, _ *stillFeed) { l.stopped, l.answers = true, startsAt-300e6-1 }, true},
		"within the lease":          {func(l *loop, _ *stillFeed) { l.lease.set(time.Duration(startsAt + 1)) }, false},
		"at the end of the lease":   {func(l *loop, _ *stillFeed) { l.lease.set(time.Duration(startsAt)) }, true},
	} {
		l, f, _ := newStillLoop()
		tt.change(l, f)
		require.Equal(t, !tt.over, l.cycle(), name)
		lapsed := name == "at the end of the lease"
		require.Equal(t, lapsed, l.lapsed, name)
		require.Equal(t, lapsed, f.looked == 0, "%s: nothing starts after the lease", name)
	}
}

// The feed is stopped once, when the step is to end early or when every session has failed for good.
func TestFeedsAreStoppedOnce(t *testing.T) {
	for name, stop := range map[string]func(l *loop){
		"drained":    func(l *loop) { l.halt.Store(drain) },
		"all failed": func(l *loop) { l.retire(new(session)); l.retire(new(session)) },
		"one failed": func(l *loop) { l.retire(new(session)) },
		"none did":   func(*loop) {},
	} {
		l, f, _ := newStillLoop()
		stop(l)
		l.turn(startsAt + 1)
		l.turn(startsAt + 2)
		if name == "one failed" || name == "none did" {
			require.Empty(t, f.stopped, name)
			require.False(t, l.stopped, name)
			continue
		}
		require.Equal(t, []int64{startsAt + 1}, f.stopped, name)
		require.Equal(t, startsAt+1, l.stoppedAt, name)
	}
	s := new(session)
	l, _, _ := newStillLoop()
	l.retire(s)
	require.True(t, s.retired)
}

// A turn fires the timers that are due, each where it belongs.
func TestTimersOfATurn(t *testing.T) {
	l, f, w := newStillLoop()
	l.timers.set(startsAt, startSlots, 0, 1)
	l.timers.set(startsAt, reconnect, 0, 1)
	l.timers.set(startsAt+1, startSlots, 0, 1)
	l.turn(startsAt)
	require.Equal(t, [][]int64{{startsAt}, {startsAt}}, [][]int64{f.fired, w.fired})
	require.Equal(t, startsAt+1, l.timers.next())
	require.Equal(t, 1, f.looked)
}

// When many sessions start at the same time, the requests of the first ones leave before all are gathered.
func TestRequestsOfManySessionsLeaveInParts(t *testing.T) {
	l, f, w := newStillLoop()
	for range 200 {
		l.timers.set(startsAt, startSlots, 0, 1)
	}
	l.turn(startsAt)
	require.Len(t, f.fired, 200)
	require.Equal(t, []int{63, 127, 191, 200}, w.flushed, "how many had started")
}

// Timeouts are looked for when the transport or the way says, at most once a millisecond.
func TestWhenTimeoutsAreLookedFor(t *testing.T) {
	for _, tt := range []struct{ in, wire, way, next int64 }{
		{0, never, never, never},
		{-1, startsAt + 10e6, never, startsAt + 10e6},
		{0, never, startsAt + 7e6, startsAt + 7e6},
		{0, startsAt + 10e6, startsAt + 5000, startsAt + 1e6},
		{1, never, never, startsAt + 1},
	} {
		l, _, w := newStillLoop()
		l.sweepAt, w.again, l.way = startsAt+tt.in, tt.wire, stillWay{again: tt.way}
		l.turn(startsAt)
		require.Equal(t, tt.in <= 0, w.swept == 1, "%+v", tt)
		require.Equal(t, tt.next, l.sweepAt, "%+v", tt)
	}
}

// A loop wakes for whatever comes first. It looks every 50 ms whether it is to stop, and a closed load's, whose gaps count, every 10 ms during ops.
func TestWhenALoopWakes(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(l *loop, f *stillFeed)
		in     int64
	}{
		"nothing":          {func(*loop, *stillFeed) {}, 50e6},
		"a timer":          {func(l *loop, _ *stillFeed) { l.timers.set(startsAt+5, reconnect, 0, 1) }, 5},
		"an op":            {func(_ *loop, f *stillFeed) { f.at = startsAt + 5 }, 5},
		"a timeout":        {func(l *loop, _ *stillFeed) { l.sweepAt = startsAt + 5 }, 5},
		"an interval":      {func(l *loop, _ *stillFeed) { l.sealAt = startsAt + 5 }, 5},
		"an op that runs":  {func(l *loop, _ *stillFeed) { l.running = 1 }, 50e6},
		"a closed load's":  {func(l *loop, _ *stillFeed) { l.running, l.closed = 1, true }, 10e6},
		"between its ops":  {func(l *loop, _ *stillFeed) { l.closed = true }, 50e6},
		"several at times": {func(l *loop, f *stillFeed) { f.at, l.sealAt = startsAt+9, startsAt+8 }, 8},
	} {
		l, f, _ := newStillLoop()
		tt.change(l, f)
		require.Equal(t, startsAt+tt.in, l.wake(startsAt), name)
	}
}

// sleeper is a clock that notes how long it slept.
type sleeper struct {
	virtualClock
	slept []time.Duration
}

func (c *sleeper) sleep(d time.Duration) {
	c.slept = append(c.slept, d)
	c.virtualClock.sleep(d)
}

// A loop sleeps until its step begins, and looks every 50 ms whether it still does.
func TestALoopAwaitsItsStep(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		begins, lease time.Duration // from now
		halted        int32
		slept         []time.Duration
	}{
		{120 * ms, time.Hour, goOn, []time.Duration{50 * ms, 50 * ms, 20 * ms}},
		{120 * ms, time.Hour, drain, []time.Duration{50 * ms, 50 * ms, 20 * ms}},
		{0, time.Hour, goOn, nil},
		{-ms, time.Hour, goOn, nil},
		{120 * ms, 60 * ms, goOn, []time.Duration{50 * ms, 50 * ms}},
		{120 * ms, time.Hour, abandon, nil},
	} {
		l, _, _ := newStillLoop()
		c := &sleeper{virtualClock: virtualClock{t: startsAt}}
		l.clock, l.origin = c, startsAt+int64(tt.begins)
		l.lease.set(time.Duration(startsAt) + tt.lease)
		l.halt.Store(tt.halted)
		l.await()
		require.Equal(t, tt.slept, c.slept, "%+v", tt)
	}
}

// What a loop was told in a step, and what it measured, is not the next step's.
func TestStepsBeginAnew(t *testing.T) {
	l, _, _ := newStillLoop()
	l.stopped, l.lapsed, l.looked, l.closed = true, true, true, true
	l.last, l.planned, l.woken, l.spun, l.gaps, l.meter = 1, 2, 3, 4, new(gaps), idleMeter(t)
	l.enter()
	require.False(t, l.stopped || l.lapsed || l.looked || l.closed)
	require.Equal(t, []int64{startsAt, startsAt, startsAt, startsAt + 1e9}, []int64{l.last, l.entered, l.sweepAt, l.sealAt})
	require.Equal(t, make([]int64, 3), []int64{l.planned, l.woken, l.spun})
	require.Nil(t, l.gaps)
	require.True(t, l.meter.queued.known, "the meter counts from now")
}

// A loop counts gaps if the kernel tells how long its thread waited: of an open load, and of a closed one over sockets.
func TestWhichLoopsCountGaps(t *testing.T) {
	known, unknown := idleMeter(t), &meter{schedstat: -1}
	known.begin()
	wired, unwired := &lane{tr: new(wire)}, &lane{tr: new(stillWire)}
	for name, tt := range map[string]struct {
		meter          *meter
		feed           feed
		lanes          []*lane
		counts, closed bool
	}{
		"open":                     {known, new(openFeed), []*lane{unwired}, true, false},
		"open, nothing known":      {unknown, new(openFeed), []*lane{wired}, false, false},
		"open, no meter":           {nil, new(openFeed), []*lane{wired}, false, false},
		"closed":                   {known, new(closedFeed), []*lane{wired, wired}, true, true},
		"closed, not over sockets": {known, new(closedFeed), []*lane{wired, unwired}, false, false},
		"closed, nothing known":    {unknown, new(closedFeed), []*lane{wired}, false, false},
		"a trace":                  {known, new(rerunFeed), []*lane{wired}, false, false},
	} {
		l := &loop{meter: tt.meter, feed: tt.feed, lanes: tt.lanes, gaps: new(gaps), closed: true}
		l.countGaps()
		require.Equal(t, []bool{tt.counts, tt.closed}, []bool{l.gaps != nil, l.closed}, name)
	}
}
