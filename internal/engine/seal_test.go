package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/pkg/driver"
)

// underWay is a way with gets in flight, and keys of gets.
type underWay struct {
	way
	ops, keys int64
}

func (w *underWay) census(ops, keys *[driver.NumVerbs]int64) {
	ops[driver.Get] += w.ops
	keys[driver.Get] += w.keys
}

// owing is a transport with gets outstanding at its second endpoint. It has had the processor for a tenth of the time, and can take back a get.
type owing struct {
	transport
	n int64
}

func (t *owing) outstanding(into []measure.Requests) {
	into[driver.NumVerbs+int(driver.Get)].InFlight += t.n
}

func (t *owing) own(wall int64) int64 { return wall / 10 }
func (t *owing) recall()              { t.n-- }

// counting is a loop that counts what a way and a transport have under way, and seals that into one part at a time.
func counting() (l *loop, w *underWay, tr *owing, parts chan part) {
	w = new(underWay)
	tr, parts = new(owing), make(chan part, 1)
	rows := make([]measure.Requests, 4*driver.NumVerbs)
	l = &loop{index: 3, tr: tr, way: w, reqNow: rows[:2*driver.NumVerbs], reqBefore: rows[2*driver.NumVerbs:], spare: make(chan *measure.Totals, 1), pipeline: 2}
	l.begin(100, parts)
	return l, w, tr, parts
}

// What is in flight is counted as the change since the last census, of ops, of keys and of requests.
func TestCensus(t *testing.T) {
	l, w, tr, _ := counting()
	l.census()
	require.Equal(t, [driver.NumVerbs]*measure.Op{}, l.rec.Ops, "nothing has happened")
	for _, now := range [][3]int64{{1, 0, 2}, {2, 8, 1}, {5, 9, 1}, {4, 8, 3}, {4, 3, 3}, {0, 0, 0}} {
		w.ops, w.keys, tr.n = now[0], now[1], now[2]
		l.census()
		get := l.rec.Ops[driver.Get]
		require.Equal(t, now, [3]int64{get.InFlight, get.Keys.InFlight, l.rec.Request(1, driver.Get).InFlight})
		require.Zero(t, l.rec.Request(0, driver.Get).InFlight)
		require.Nil(t, l.rec.Ops[driver.Put])
	}
}

// An interval is sealed once its end has come, with what is in flight, and the next ends at the next full second. If nobody has taken the one before,
// it goes on.
func TestSealedIntervals(t *testing.T) {
	for _, tt := range []struct {
		now    int64
		full   bool
		sealed bool
		still  int64
		sealAt int64
	}{
		{now: 5*interval - 1, sealAt: 5 * interval},
		{now: 5 * interval, sealed: true, still: 5 * interval, sealAt: 6 * interval},
		{now: 7*interval + 3, sealed: true, still: 7 * interval, sealAt: 8 * interval},
		{now: 5 * interval, full: true, sealAt: 6 * interval},
	} {
		l, w, _, parts := counting()
		l.sealAt, w.ops = 5*interval, 7
		rec := l.rec
		if tt.full {
			parts <- part{}
		}
		l.seal(tt.now)
		require.Equal(t, tt.sealAt, l.sealAt, "%+v", tt)
		if !tt.sealed {
			require.Same(t, rec, l.rec)
			require.Equal(t, tt.full, len(parts) > 0, "%+v", tt)
			continue
		}
		require.Equal(t, part{loop: 3, upTo: 5 * interval, still: tt.still, totals: rec}, <-parts, "%+v", tt)
		require.EqualValues(t, 7, rec.Ops[driver.Get].InFlight)
		require.NotSame(t, rec, l.rec)
	}
}

// The recorder of the next interval may be one that was used before, in a step with another origin. Its ledger has all rows.
func TestRecordersOfIntervals(t *testing.T) {
	l, _, _, _ := counting()
	used := measure.NewTotals(7, 2)
	l.spare <- used
	require.Same(t, used, l.fresh())
	require.Equal(t, l.origin, used.Origin)
	require.Equal(t, measure.NewTotals(l.origin, 2), l.fresh())
}

// Waits for the processor that are too short to be gaps are not added up over several intervals.
func TestShortWaitsAreForgottenWithTheirInterval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schedstat")
	waited := func(ns int64) { require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "0 %d 0\n", ns), 0o600)) }
	waited(0)
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	l, _, _, _ := counting()
	l.meter, l.gaps, l.sealAt = &meter{schedstat: fd}, new(gaps), interval
	defer l.meter.close()
	l.meter.begin()
	waited(150_000)
	l.seal(interval)
	waited(200_000)
	others, known := l.meter.kept()
	require.True(t, known)
	require.EqualValues(t, 50_000, others)
}

// A step ends with what is in flight, and with what each session and the loop did. Only what the lease has ended takes requests back. Then nothing is
// counted until the next step begins.
func TestFinishedSteps(t *testing.T) {
	for _, lapsed := range []bool{false, true} {
		l, w, tr, parts := counting()
		l.lapsed, l.entered, l.sealAt, l.gaps = lapsed, 3*interval, 5*interval, nil
		w.ops, w.keys, tr.n = 4, 0, 2
		l.sessions = []*session{
			{},
			{begun: true, first: 10, out: 70, last: 90, started: 6},
			{begun: true, first: 30, out: 50, last: 20, started: 1},
		}
		l.finish(5*interval - 1)
		got := <-parts
		totals := got.totals
		require.Equal(t, loopUse{wall: 2*interval - 1, productive: (2*interval - 1) / 10}, got.use)
		got.totals, got.use = nil, loopUse{}
		require.Equal(t, part{loop: 3, upTo: 5*interval - 1, final: true}, got)
		var span measure.Span
		span.Busy(10, 70, 90, 30)
		span.Busy(30, 30, 30, 0)
		require.Equal(t, span, totals.Span)
		require.EqualValues(t, 4, totals.Ops[driver.Get].InFlight)
		left := int64(2)
		if lapsed {
			left = 1
		}
		require.Equal(t, left, totals.Request(1, driver.Get).InFlight)
		require.Nil(t, l.rec, "it is the collector's")
		l.seal(100 * interval)
		require.Empty(t, parts)
	}

	l, w, _, _ := counting()
	parts := make(chan part, 2)
	l.parts, l.gaps, l.meter, l.sealAt, w.ops = parts, new(gaps), &meter{schedstat: -1}, 5*interval, 4
	l.meter.begin()
	l.finish(5*interval + 2)
	require.Equal(t, 5*interval, (<-parts).upTo, "an interval that has ended is one of its own")
	last := <-parts
	require.Same(t, l.gaps, last.use.gaps)
	require.Nil(t, last.totals.Ops[driver.Get], "as many are in flight as before")
}

// The time of a turn is how long a session took from its first start to its last, for each start in one of its slots but the first. If it has filled
// its slots only once, it is the time that it was busy.
func TestTurnsOfASession(t *testing.T) {
	for started, want := range map[int64]int64{1: 80, 4: 80, 5: 240, 6: 120, 10: 40} {
		s := &session{first: 10, out: 70, last: 90, started: started}
		require.Equal(t, want, s.turn(4), "%d ops", started)
	}
	require.Zero(t, (&session{first: 10, out: 10, last: 10, started: 1}).turn(4))
	require.Zero(t, (&session{first: 10, out: 10, last: 2, started: 1}).turn(4))
}
