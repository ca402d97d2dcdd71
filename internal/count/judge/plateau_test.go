package judge

import (
	"cmp"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// The plateau lies between two events, which depend on the kind of load; if they are not in order, the reason says so.
func TestPlateauOfEachKindOfLoad(t *testing.T) {
	const (
		s       = int64(time.Second)
		ramp    = "no plateau: the ramp lasted to the end of the phase"
		long    = "no plateau: the ramp is longer than the work of a session"
		done    = "no plateau: the first session was done before the last one began"
		unknown = "no plateau: the sessions that loaded were those of lost workers"
	)
	span := measure.Span{Sessions: 2, First: origin, LastFirst: origin + s, FirstLast: origin + 3*s, Last: origin + 4*s, FirstOut: origin + 2*s}
	timed := func(ramp, lasts int64) pace.Shape {
		return pace.Shape{Rate: 1, Ramp: time.Duration(ramp), Duration: time.Duration(lasts)}
	}
	open := &plan.Phase{Open: &plan.Open{}}
	closed := func(c plan.Closed) *plan.Phase { return &plan.Phase{Closed: &c} }
	replayed := func(ramp int64) *plan.Phase {
		return closed(plan.Closed{Trace: &plan.Trace{}, Ramp: time.Duration(ramp)})
	}
	for name, c := range map[string]struct {
		ph    *plan.Phase
		shape pace.Shape
		cut   bool
		span  func(*measure.Span)
		want  window
		why   string
	}{
		"open":                                {ph: open, shape: timed(s, 6*s), want: window{s, 6 * s}},
		"open, without a ramp":                {ph: open, shape: timed(0, 6*s), want: window{0, 6 * s}},
		"open, all ramp":                      {ph: open, shape: timed(6*s, 6*s), why: ramp},
		"open, all ramp but for a nanosecond": {ph: open, shape: timed(6*s-1, 6*s), want: window{6*s - 1, 6 * s}},
		"open, cut":                           {ph: open, shape: timed(s, 6*s), cut: true, want: window{s, 2 * s}},
		"open, cut at its end":                {ph: open, shape: timed(s, 2*s), cut: true, want: window{s, 2 * s}},
		"open, cut in the ramp":               {ph: open, shape: timed(4*s, 6*s), cut: true, why: ramp},
		"open, of several rates":              {ph: open, why: "the rate differs from level to level"},
		"open, of no session":                 {ph: open, shape: timed(s, 6*s), span: func(s *measure.Span) { *s = measure.Span{} }, why: unknown},
		"sessions":                            {ph: closed(plan.Closed{}), want: window{s, 3 * s}},
		"sessions, cut":                       {ph: closed(plan.Closed{}), cut: true, want: window{s, 3 * s}},
		"sessions that never met":             {ph: closed(plan.Closed{}), span: func(s *measure.Span) { s.FirstLast = s.LastFirst }, why: done},
		"sessions that met":                   {ph: closed(plan.Closed{}), span: func(s *measure.Span) { s.FirstLast = s.LastFirst + 1 }, want: window{s, s + 1}},
		"sessions of a ramp":                  {ph: closed(plan.Closed{Ramp: 1}), want: window{s, 3 * s}},
		"sessions of a ramp that never met":   {ph: closed(plan.Closed{Ramp: 1}), span: func(s *measure.Span) { s.FirstLast = s.LastFirst }, why: long},
		"keys":                                {ph: &plan.Phase{Populate: &plan.Populate{}}, want: window{s, 3 * s}},
		"keys of sessions that never met":     {ph: &plan.Phase{Populate: &plan.Populate{}}, span: func(s *measure.Span) { s.FirstLast = s.LastFirst }, why: done},
		"a trace":                             {ph: replayed(0), want: window{0, 4 * s}},
		"a trace, after a ramp":               {ph: replayed(2 * s), want: window{2 * s, 4 * s}},
		"a trace, all ramp":                   {ph: replayed(4 * s), why: ramp},
		"a trace, all but a nanosecond":       {ph: replayed(4*s - 1), want: window{4*s - 1, 4 * s}},
	} {
		load := measure.NewTotals(origin, 1)
		load.AddDue(driver.Get)
		load.Span = span
		if c.span != nil {
			c.span(&load.Span)
		}
		w, why := plateau(c.ph, c.shape, load, c.cut)
		require.Equal(t, c.want, w, name)
		require.Equal(t, c.why, why, name)
	}
}

// A rate covers the bins that lie wholly in the window.
func TestRateOfAWindow(t *testing.T) {
	const width = 1 << 16
	var b measure.Bins
	b.AddN(0, 1)
	b.AddN(width, 10)
	b.AddN(2*width, 100)
	for _, c := range []struct {
		w    window
		n    float64
		bins float64 // 0: none
	}{
		{window{0, width}, 1, 1},
		{window{1, 2 * width}, 10, 1},
		{window{width, 3 * width}, 110, 2},
		{window{width, 4 * width}, 110, 3},
		{window{width, 2*width - 1}, 0, 0},
		{window{width + 1, 3*width - 1}, 0, 0},
	} {
		rate, why := c.w.rate(&b)
		if c.bins == 0 {
			require.Zero(t, rate)
			require.Equal(t, "no plateau: it lasted "+time.Duration(c.w.to-c.w.from).String()+", less than a time bin", why)
			continue
		}
		require.Empty(t, why)
		require.InEpsilon(t, c.n/(c.bins*width/1e9), rate, 1e-12)
	}
}

// opened is an open phase in the making with a thousand ops in each of the four seconds of its window, which begins somewhere.
func opened(from time.Duration) (b builder, a arrivals) {
	load := measure.NewTotals(origin, 1)
	for i := range int64(4000) {
		at := origin + int64(from) + i*ms
		record(load, measure.Sample{Verb: driver.Get, Due: at, Start: at, End: at})
	}
	offered := 1000.0
	b = builder{phase: &phase{Phase: &run.Phase{OfferedRate: &offered}}, totals: load, window: window{int64(from), int64(from + 4*time.Second)}}
	return b, arrived(load.Ops[:])
}

// The achieved rate covers what is left after the slowest ops of the beginning, if that is half of the plateau, or else all of it; this checks that,
// and how far chance may have moved the rate.
func TestWhatTheAchievedRateIsOf(t *testing.T) {
	const s = int64(time.Second)
	for _, c := range []struct {
		from, ramp time.Duration
		slow       int64
		varied     float64
		poisson    bool
		full       float64 // seconds of the load; 0: five
		plateau    float64
		variance   float64 // of a count
	}{
		{plateau: 4},
		{slow: s, plateau: 3},
		{slow: s, varied: 1e7, plateau: 3, variance: 2 / math.Sqrt(3) * 1000 * 0.01},
		{slow: 2 * s, varied: 1e7, plateau: 2, variance: 2 / math.Sqrt(3) * 1000 * 0.01},
		{slow: 2*s + 1, plateau: 4},
		{from: 2 * time.Second, ramp: 2 * time.Second, slow: s, plateau: 3},
		{from: 3 * time.Second, ramp: 2 * time.Second, slow: s / 2, plateau: 4},
		{from: 3 * time.Second, ramp: 2 * time.Second, slow: 3 * s, plateau: 2},
		{from: 3 * time.Second, ramp: 2 * time.Second, slow: 3*s + 1, plateau: 4},
		{poisson: true, plateau: 4, variance: 1000 * 4 * (1 - 4.0/5)},
		{slow: s, poisson: true, plateau: 3, variance: 1000 * 3 * (1 - 3.0/5)},
		{slow: s, varied: 1e7, poisson: true, plateau: 3, variance: 1000*3*(1-3.0/5) + 2/math.Sqrt(3)*1000*0.01},
		{slow: s, poisson: true, full: 2, plateau: 3}, // no more than everything, whatever chance does
	} {
		b, a := opened(c.from)
		a.slow, a.varied = c.slow, c.varied
		ph := openPhase()
		if c.poisson {
			ph.Open.Arrivals = "poisson"
		}
		rate, why := b.achieved(ph, pace.Shape{Rate: 1000, Ramp: c.ramp, Duration: 4*time.Second + c.from}, &a, cmp.Or(c.full, 5))
		require.Empty(t, why)
		require.InEpsilon(t, 1000, rate, 0.004, "%+v", c)
		require.InDelta(t, c.plateau, b.phase.plateau, 1e-8, "%+v", c)
		require.InDelta(t, math.Sqrt(c.variance)/c.plateau, b.phase.chance, 1e-10*math.Sqrt(c.variance), "%+v", c)
	}
}

// A pause that is made up for is looked for at the end of the plateau: in its last 50 ms, or in a twentieth of a plateau shorter than a second.
func TestHowLongAPauseMayBe(t *testing.T) {
	for _, from := range []time.Duration{0, 2 * time.Second} {
		for lasts, pause := range map[time.Duration]time.Duration{
			400 * time.Millisecond:  20 * time.Millisecond,
			1000 * time.Millisecond: 50 * time.Millisecond,
			3000 * time.Millisecond: 50 * time.Millisecond,
		} {
			load := measure.NewTotals(origin, 1)
			for at := from; at < from+lasts; at += 100 * time.Microsecond {
				ended := at
				if at >= from+lasts-pause {
					ended = from + lasts
				}
				record(load, measure.Sample{Verb: driver.Get, Due: origin + int64(at), Start: origin + int64(at), End: origin + int64(ended)})
			}
			offered := 10_000.0
			b := builder{phase: &phase{Phase: &run.Phase{OfferedRate: &offered}}, totals: load, window: window{int64(from), int64(from + lasts)}}
			a := arrivals{ops: load.Ops[:]}
			rate, why := b.achieved(openPhase(), pace.Shape{Rate: offered, Duration: from + lasts}, &a, (from + lasts).Seconds())
			require.Empty(t, why)
			require.InEpsilon(t, offered, rate, 0.01, "%v from %v on", lasts, from)
			require.InDelta(t, (lasts - pause).Seconds(), b.phase.plateau, 1e-9, "%v from %v on", lasts, from)
		}
	}
}

// The ops of a trace are counted from the first to a median service time after the last, or 1/200 of its time if that is more, and divided by its
// time.
func TestAchievedRateOfATrace(t *testing.T) {
	for name, c := range map[string]struct {
		median int64
		behind time.Duration // after the end, when more ops ended
		more   bool          // whether these count
	}{
		"at the end":                     {0, 0, true},
		"a little behind it":             {0, 15 * time.Millisecond, true},
		"further behind":                 {0, 30 * time.Millisecond, false},
		"further, and they take as long": {int64(50 * time.Millisecond), 30 * time.Millisecond, true},
		"further than that":              {int64(50 * time.Millisecond), 60 * time.Millisecond, false},
	} {
		b, a := opened(0)
		b.window.from = int64(time.Second) // what came in a ramp counts, too
		b.totals.Ops[driver.Get].Bins[driver.OK].AddN(int64(4*time.Second+c.behind), 400)
		a.median = c.median
		ph := openPhase()
		ph.Open.Trace = &plan.Trace{}
		rate, why := b.achieved(ph, pace.Shape{}, &a, 4)
		require.Empty(t, why)
		require.InEpsilon(t, map[bool]float64{true: 1100, false: 1000}[c.more], rate, 0.006, name)
		require.Equal(t, 4.0, b.phase.plateau, name)
	}
}

// A plateau shorter than a bin still has an offered rate, but no known achieved one.
func TestAchievedInLessThanABin(t *testing.T) {
	b, a := opened(0)
	b.window = window{5, 15}
	rate, why := b.achieved(openPhase(), pace.Shape{Rate: 1000, Duration: 15}, &a, 4)
	require.Zero(t, rate)
	require.Equal(t, "no plateau: it lasted 10ns, less than a time bin", why)

	b.phase.Nulls, b.phase.NullCodes = map[string]string{}, map[string]reason.Code{}
	b.openRates(openPhase(), pace.Shape{Rate: 1000, Duration: 15})
	require.NotNil(t, b.phase.OfferedRate)
	require.Nil(t, b.phase.AchievedRate)
	require.Equal(t, map[string]string{"achieved_rate": why}, b.phase.Nulls)
	require.Equal(t, reason.NoPlateau, b.phase.NullCodes["achieved_rate"])
}

// The rate of a schedule counts arrivals in the plateau, and the time from its first whole bin to its end.
func TestNoRateOfASchedule(t *testing.T) {
	const bin = int64(1 << 16)
	for _, c := range []struct {
		w   window
		at  int64 // when an op was due
		why string
	}{
		{window{bin, 3 * bin}, 2 * bin, ""},
		{window{bin, 3 * bin}, 0, "no plateau: it lasted 131.072µs, less than a time bin"},
		{window{1, bin}, 2 * bin, "no plateau: it lasted 65.535µs, less than a time bin"},
		{window{bin + 1, bin + 2}, 3 * bin, "no plateau: it lasted 1ns, less than a time bin"},
	} {
		load := measure.NewTotals(origin, 1)
		record(load, measure.Sample{Verb: driver.Get, Due: origin + c.at, Start: origin + c.at, End: origin + c.at})
		b := builder{phase: &phase{Phase: &run.Phase{}}, totals: load, window: c.w}
		ph := openPhase()
		ph.Open.Arrivals = "poisson"
		got := b.ofSchedule(ph, Measured{Load: load, Shape: pace.Shape{Rate: 1, Duration: time.Second}})
		require.Equal(t, c.why, got.why.Text, "%+v", c)
		require.Equal(t, c.why == "", got.scale > 0, "%+v", c)
	}
}
