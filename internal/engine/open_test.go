package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

const ms = int64(time.Millisecond)

// newOpenFeed is the feed of a schedule of 10 ms and a drain of 5 ms, whose ops are in so many streams.
func newOpenFeed(t *testing.T, streams, rate int, load string) (*openFeed, *starter) {
	b := newBench(t, redisPlan(t, 1, "", fmt.Sprintf("ops = { get = 1 }\nopen {\n rate = %d\n duration = \"10ms\"\n drain = \"5ms\"\n %s\n}", rate, load)), "load", 0)
	b.g.phase.Open.Streams = streams
	w := b.onlyStart()
	f := b.l.feed.(*openFeed)
	f.begin()
	return f, w
}

// shed returns how many gets have been shed.
func (w *starter) shed() int {
	get := w.l.rec.Ops[driver.Get]
	if get == nil {
		return 0
	}
	return int(get.Outcomes[driver.Shed])
}

// Each op of a schedule starts when it is due, and one that finds the loop late starts in its turn.
func TestOpsOfAScheduleStartInTurn(t *testing.T) {
	for _, late := range []bool{false, true} {
		f, w := newOpenFeed(t, 4, 1000, "sessions = 2\n pipeline = 9")
		var all, want []begun
		for k := range int64(10) {
			due := startsAt + k*ms
			now := due
			if late {
				now = startsAt + 9*ms
			}
			want = append(want, begun{int(k % 2), 1, due, now})
			if late {
				continue
			}
			require.Equal(t, due, f.next())
			f.due(due - 1)
			f.due(due)
			all = append(all, w.took()...)
			w.end(int(k%2), 1, due+1, false)
		}
		if late {
			f.due(startsAt + 9*ms)
			all = w.took()
		}
		require.Equal(t, want, all)
		require.True(t, f.done())
		require.EqualValues(t, never, f.next())
	}
}

// The streams of a session take turns by when their ops are due.
func TestStreamsOfASessionTakeTurns(t *testing.T) {
	f, w := newOpenFeed(t, 64, 20_000, "sessions = 2\n pipeline = 1000\n arrivals = \"poisson\"")
	f.due(startsAt + 10*ms)
	all := w.took()
	require.InDelta(t, 200, len(all), 50)
	require.True(t, slices.IsSortedFunc(all, func(a, b begun) int { return int(a.due - b.due) }))
	require.True(t, f.done())
}

// An op that finds its session's slots taken starts when one becomes free, and counts as having waited for it.
func TestOpsWaitForASlot(t *testing.T) {
	f, w := newOpenFeed(t, 4, 1000, "sessions = 2\n pipeline = 1")
	for k := range int64(3) {
		f.due(startsAt + k*ms)
	}
	require.Equal(t, []begun{{0, 1, startsAt, startsAt}, {1, 1, startsAt + ms, startsAt + ms}}, w.took())
	require.Equal(t, startsAt+15*ms, f.next(), "until the drain is over, only a free slot is of use")
	for _, tt := range []struct{ now, due int64 }{{3500, 2000}, {4000, 4000}} {
		w.end(0, 1, startsAt+tt.now*1000, false)
		require.Equal(t, []begun{{0, 1, startsAt + tt.due*1000, startsAt + tt.now*1000}}, w.took())
	}
	waited := &w.l.rec.Waited
	require.Equal(t, []int64{1, 1500}, []int64{int64(waited.Count()), waited.Max() / 1000}, "the op due at 2 ms, for 1.5 ms")
	w.end(0, 1, startsAt+5*ms, false)
	require.Empty(t, w.took(), "its next op is not due yet")
	require.Equal(t, startsAt+6*ms, f.next())
}

// No more ops run than may be in flight, whatever slots are free.
func TestOpsWaitForOthers(t *testing.T) {
	f, w := newOpenFeed(t, 4, 1000, "sessions = 2\n pipeline = 4\n in_flight = 2")
	for k := range int64(5) {
		f.due(startsAt + k*ms)
	}
	require.Len(t, w.took(), 2)
	require.Equal(t, startsAt+15*ms, f.next())
	w.end(1, 1, startsAt+5*ms, false)
	require.Equal(t, []begun{{0, 1, startsAt + 2*ms, startsAt + 5*ms}}, w.took())
	require.EqualValues(t, 1, w.l.rec.Waited.Count())
}

// An op that finds no room is shed if the plan says so, be it its session's or that of all.
func TestOpsThatFindNoRoomAreShed(t *testing.T) {
	for load, want := range map[string]struct{ started, shed int }{
		"pipeline = 1":                  {2, 4},
		"pipeline = 2":                  {4, 2},
		"pipeline = 2\n in_flight = 3":  {3, 3},
		"pipeline = 4\n in_flight = 1":  {1, 5},
		"pipeline = 4\n in_flight = 8":  {6, 0},
		"pipeline = 3\n in_flight = 6":  {6, 0},
		"pipeline = 1\n in_flight = 2":  {2, 4},
		"pipeline = 10\n in_flight = 5": {5, 1},
	} {
		f, w := newOpenFeed(t, 4, 1000, "sessions = 2\n on_full = \"shed\"\n "+load)
		f.due(startsAt + 5*ms)
		require.Len(t, w.took(), want.started, load)
		require.Equal(t, want.shed, w.shed(), load)
		require.Equal(t, startsAt+6*ms, f.next(), "%s: the next op is due, room or no room", load)
	}
	f, w := newOpenFeed(t, 4, 1000, "sessions = 2\n pipeline = 1\n on_full = \"shed\"")
	f.due(startsAt + ms)
	w.end(1, 1, startsAt+ms+1, false)
	f.due(startsAt + 2*ms)
	require.Equal(t, []int{2, 1}, []int{len(w.took()), w.shed()}, "another session's slot is of no use")
}

// An op that ends as it begins makes room for those that come after it.
func TestOpsThatEndAtOnce(t *testing.T) {
	f, w := newOpenFeed(t, 4, 1000, "sessions = 2\n pipeline = 1")
	w.meanwhile = func(s *session) { w.end(s.index, 1, startsAt+4*ms, true) }
	f.due(startsAt + 4*ms)
	var due []int64
	for _, one := range w.took() {
		due = append(due, (one.due-startsAt)/ms)
	}
	require.Equal(t, []int64{0, 1, 2, 3, 4}, due)
}

// What has not started when the drain is over is shed.
func TestTheEndOfADrain(t *testing.T) {
	f, w := newOpenFeed(t, 1, 1000, "sessions = 2\n pipeline = 1") // of which one has the stream
	f.due(startsAt + 15*ms - 1)
	require.Len(t, w.took(), 1)
	require.Equal(t, startsAt+15*ms, f.next())
	require.Zero(t, w.shed())
	require.False(t, f.done())
	f.due(startsAt + 15*ms)
	require.Equal(t, 9, w.shed())
	require.True(t, f.done())
	require.EqualValues(t, never, f.next())
}

// A schedule that is stopped sheds what was due by then, a part in each turn, and nothing that would have been due later.
func TestAStoppedScheduleIsShedInParts(t *testing.T) {
	f, w := newOpenFeed(t, 4, 1_000_000, "sessions = 2\n pipeline = 1")
	f.due(startsAt)
	require.Len(t, w.took(), 1)
	f.stop(startsAt + 5*ms)
	w.end(0, 1, startsAt+5*ms, false)
	require.Empty(t, w.took())
	require.Equal(t, shedEach, w.shed())
	require.False(t, f.done())
	require.Zero(t, f.next(), "at once")
	f.due(startsAt + 15*ms)
	require.Equal(t, 5000, w.shed(), "one each microsecond, without the first")
	require.True(t, f.done())
}

// A session, or the loop, has room again when a slot becomes free after all were taken.
func TestWhenThereIsRoomAgain(t *testing.T) {
	const now = 77
	for _, tt := range []struct {
		active, running, n int // ops that go on, and how many have ended
		session, loop      int64
	}{
		{3, 5, 1, now, now}, {2, 4, 2, now, now}, {2, 5, 1, 0, now}, {3, 4, 1, now, 0}, {2, 4, 1, 0, 0}, {0, 0, 4, now, 0}, {0, 0, 7, now, now}, {1, 2, 2, 0, 0},
	} {
		f, s := &openFeed{l: &loop{running: tt.running}, pipeline: 4, inFlight: 6}, &session{active: tt.active}
		f.freed(s, tt.n, now, false)
		require.Equal(t, []int64{tt.session, tt.loop}, []int64{s.roomAt, f.roomAt}, "%+v", tt)
	}
}

// An op waited if it had no room when it was due, unless the loop was late then, or is to blame for half of the wait.
func TestWhichOpsWaited(t *testing.T) {
	const due = 1_000_000
	for name, tt := range map[string]struct {
		late    int64
		session int64 // when it had room again, after the op was due
		loop    int64
		away    stretch
		excess  int64
		waited  bool
	}{
		"room":                        {late: 100},
		"none in its session":         {late: 100, session: 1, waited: true},
		"none in the loop":            {late: 100, loop: 1, waited: true},
		"a loop a little late":        {late: 100, session: 1, excess: 49, waited: true},
		"a loop as late as the other": {late: 100, session: 1, excess: 50},
		"just before the loop was":    {late: 100, session: 1, away: stretch{due + 1, due + 9}, waited: true},
		"while the loop was late":     {late: 100, session: 1, away: stretch{due, due + 9}},
	} {
		f := &openFeed{l: &loop{excess: tt.excess}, away: tt.away, roomAt: due + tt.loop}
		require.Equal(t, tt.waited, f.waited(&session{roomAt: due + tt.session}, due, due+tt.late), name)
	}
	for late, away := range map[int64]stretch{leastGap: {}, leastGap + 1: {due, due + leastGap + 1}} {
		f := &openFeed{l: new(loop)}
		require.False(t, f.waited(new(session), due, due+late))
		require.Equal(t, away, f.away, "an op that had room started %v late", late)
	}
}

// Of two ops that are due at the same time, that of the stream with the lower number is first.
func TestTheOrderOfStreams(t *testing.T) {
	for _, tt := range []struct {
		due, id, otherDue, otherID int
		earlier                    bool
	}{
		{1, 5, 2, 3, true}, {2, 3, 1, 5, false}, {1, 2, 1, 3, true}, {1, 3, 1, 2, false},
	} {
		stream := func(due, id int) *openStream { return &openStream{due: int64(due), id: id} }
		require.Equal(t, tt.earlier, earlierStream(stream(tt.due, tt.id), stream(tt.otherDue, tt.otherID)), "%+v", tt)
		require.Equal(t, tt.earlier, earlierTurn(turn{due: int64(tt.due), id: tt.id}, turn{due: int64(tt.otherDue), id: tt.otherID}), "%+v", tt)
	}
}
