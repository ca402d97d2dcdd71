package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newClosedFeed is the feed of two sessions of three slots each, the third and the fourth of four.
func newClosedFeed(t *testing.T) (*closedFeed, *starter) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 4\n pipeline = 3\n duration = \"10s\"\n}"), "load", 0)
	b.part(2, 2)
	w := b.onlyStart()
	return b.l.feed.(*closedFeed), w
}

// Sessions begin one after another over the ramp, each with all its slots.
func TestClosedSessionsBeginOverTheRamp(t *testing.T) {
	f, w := newClosedFeed(t)
	f.ramp = 8 * time.Second
	f.begin()
	for session, due := range []int64{startsAt + 4e9, startsAt + 6e9} {
		require.Equal(t, due, w.l.timers.next())
		f.fire(w.l.timers.pop(), due+7)
		require.Equal(t, []begun{{session, 3, due, due + 7}}, w.took())
	}
	require.EqualValues(t, never, w.l.timers.next())
}

// A free slot starts its next op after the think time, but not before 10 ms if nothing of its op could be sent, and not once the step is over.
func TestWhenAFreeSlotStartsItsNextOp(t *testing.T) {
	const since, gone = int64(5e9), -1
	f, w := newClosedFeed(t)
	for _, tt := range []struct {
		think int64
		held  bool
		lasts int64 // of the step; 0: without end
		after int64
	}{
		{0, false, 0, 0},
		{0, false, 10e9, 0},
		{0, true, 10e9, 10e6},
		{1, false, 10e9, 1},
		{4e6, false, 10e9, 4e6},
		{4e6, true, 10e9, 10e6},
		{20e6, true, 10e9, 20e6},
		{0, false, since + 1, 0},
		{0, false, since, gone},
		{4e6, false, since + 4e6 + 1, 4e6},
		{4e6, false, since + 4e6, gone},
	} {
		f.think, f.lasts = tt.think, tt.lasts
		f.begin()
		w.l.timers.drop(startSlots)
		w.l.occupy(w.l.sessions[1], 2, startsAt)
		now := startsAt + since
		w.end(1, 2, now, tt.held)
		var want []begun
		next, live := int64(never), 6
		switch tt.after {
		case gone:
			live -= 2
		case 0:
			want = []begun{{1, 2, now, now}}
		default:
			next = now + tt.after
		}
		require.Equal(t, want, w.took(), "%+v", tt)
		require.Equal(t, next, w.l.timers.next(), "%+v", tt)
		require.Equal(t, live, f.live, "%+v", tt)
		if next != never {
			f.fire(w.l.timers.pop(), next)
			require.Equal(t, []begun{{1, 2, next, next}}, w.took(), "%+v", tt)
		}
	}
}

// A session starts no more ops than its stream has, and none once the step is over for it.
func TestSessionsThatStartNoMore(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(f *closedFeed, w *starter)
		started int
	}{
		"as it is":              {func(*closedFeed, *starter) {}, 3},
		"a stream that ends":    {func(_ *closedFeed, w *starter) { w.left = 2 }, 2},
		"a step that ends":      {func(_ *closedFeed, w *starter) { w.l.stopped = true }, 0},
		"a session that failed": {func(_ *closedFeed, w *starter) { w.l.sessions[0].retired = true }, 0},
		"another that failed":   {func(_ *closedFeed, w *starter) { w.l.sessions[1].retired = true }, 3},
		"just before the end":   {func(f *closedFeed, _ *starter) { f.stopAt = startsAt + 1 }, 3},
		"at the end":            {func(f *closedFeed, _ *starter) { f.stopAt = startsAt }, 0},
	} {
		f, w := newClosedFeed(t)
		f.begin()
		tt.change(f, w)
		f.fire(w.l.timers.pop(), startsAt)
		require.Equal(t, tt.started, w.l.running, name)
		require.Equal(t, 3+tt.started, f.live, name)
	}
}

// Once a closed load is stopped, it is over when the ops that have begun are.
func TestAStoppedClosedLoadEndsWithItsOps(t *testing.T) {
	f, w := newClosedFeed(t)
	f.begin()
	f.fire(w.l.timers.pop(), startsAt)
	w.l.stopped = true
	f.stop(startsAt + 1)
	require.EqualValues(t, never, w.l.timers.next(), "the other session does not begin")
	for ended := range 3 {
		require.False(t, f.done(), "%d have ended", ended)
		w.end(0, 1, startsAt+2, false)
	}
	require.True(t, f.done())
}
