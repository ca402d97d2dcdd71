package judge

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestShapeOfEachKindOfPhase is from the plan; for one step of several, from the step.
func TestShapeOfEachKindOfPhase(t *testing.T) {
	half := 0.5
	schedule := plan.Schedule{Arrivals: "poisson", Sessions: 3, Pipeline: 4, InFlight: 5, OnFull: "drop"}
	step := pace.Shape{Rate: 100, Ramp: time.Second, Duration: 7 * time.Second}
	due := run.Load{
		Sessions: 3, Pipeline: 4, DurationSeconds: 7, RampSeconds: 1, Rate: 100, Arrivals: "poisson", InFlight: 5, OnFull: "drop",
	}
	for name, c := range map[string]struct {
		ph    plan.Phase
		kind  worker.StepKind
		model run.Model
		want  run.Load
	}{
		"open":   {plan.Phase{Open: &plan.Open{Schedule: schedule}}, worker.Load, "open", due},
		"stages": {plan.Phase{Stages: &plan.Stages{Schedule: schedule}}, worker.Load, "stages", due},
		"search": {plan.Phase{Search: &plan.Search{Schedule: schedule}}, worker.Load, "search", due},
		"closed": {
			plan.Phase{Closed: &plan.Closed{Sessions: 3, Pipeline: 4, Iterations: 5, Duration: 7 * time.Second, Ramp: 2 * time.Second, Think: time.Second}},
			worker.Load, "closed",
			run.Load{Sessions: 3, Pipeline: 4, Iterations: 5, DurationSeconds: 7, RampSeconds: 2, ThinkSeconds: 1},
		},
		"populate": {plan.Phase{Populate: &plan.Populate{Sessions: 3, Pipeline: 4}}, worker.Populate, "closed", run.Load{Sessions: 3, Pipeline: 4}},
		"clear":    {plan.Phase{Clear: &plan.Clear{Sessions: 3, Pipeline: 4}}, worker.Clear, "closed", run.Load{Sessions: 3, Pipeline: 4}},
	} {
		kind, model, s := shape(&c.ph, step)
		require.Equal(t, []any{c.kind, c.model, c.want}, []any{kind, model, s}, name)
		c.ph.Batch, c.ph.HitRatio = 9, &half
		c.want.Batch, c.want.HitRatio = 9, half
		_, _, s = shape(&c.ph, step)
		require.Equal(t, c.want, s, name)
	}
}

// logs is what three workers report about their log files.
func logs() []*worker.Log {
	return []*worker.Log{
		{
			Log: localfile.Log{
				Layout: "append", SyncAsked: "auto", SyncUsed: "msync", Instruction: "CLWB", Durable: true, FileSystem: "ext4", Caveats: []string{"one", "both"},
				Clear: "reset", Files: 1, FileBytes: 10, Bytes: 100, Forces: 7, Resets: 2,
			},
			Threads: []measure.Thread{{Session: 1, Sessions: 1}},
			Proof:   &localfile.Proof{Acknowledged: 5, Verified: 4, Recovered: 6, Wrong: []string{"a"}},
		},
		{
			Log: localfile.Log{
				Layout: "append", SyncAsked: "auto", SyncUsed: "clwb", Durable: true, FileSystem: "xfs", Caveats: []string{"both", "two"},
				Clear: "reset", Files: 2, FileBytes: 30, Bytes: 200, Forces: 8, Resets: 3, Failure: "full",
			},
			Threads: []measure.Thread{{Session: 2, Sessions: 1}},
			Proof:   &localfile.Proof{Acknowledged: 50, Verified: 40, Recovered: 60, Wrong: []string{"b", "c"}},
		},
		{
			Log: localfile.Log{
				Layout: "append", SyncAsked: "auto", SyncUsed: "msync", Instruction: "CLWB", Durable: false, FileSystem: "ext4", Caveats: []string{"two"},
				Clear: "reset", Files: 4, FileBytes: 20, Bytes: 400, Forces: 9, Resets: 4,
			},
			Threads: []measure.Thread{{Session: 3, Sessions: 1}},
			Proof:   &localfile.Proof{Acknowledged: 500, Verified: 400, Recovered: 600},
		},
	}
}

// TestLogsAreSummed over workers: counts add up, shared texts appear once, and one worker that did not verify its files, or make them durable,
// decides for all.
func TestLogsAreSummed(t *testing.T) {
	require.Nil(t, mergeLogs(nil))
	require.Nil(t, mergeLogs([]*worker.Log{nil, nil}))
	all := logs()
	sum := mergeLogs([]*worker.Log{nil, all[0], nil, all[1]})
	require.Equal(t, &worker.Log{
		Log: localfile.Log{
			Layout: "append", SyncAsked: "auto", SyncUsed: "msync, clwb", Instruction: "CLWB", Durable: true, FileSystem: "ext4, xfs", Caveats: []string{"one", "both", "two"},
			Clear: "reset", Files: 3, FileBytes: 30, Bytes: 300, Forces: 15, Resets: 5, Failure: "full",
		},
		Threads: []measure.Thread{{Session: 1, Sessions: 1}, {Session: 2, Sessions: 1}},
		Proof:   &localfile.Proof{Acknowledged: 55, Verified: 44, Recovered: 66, Wrong: []string{"a", "b", "c"}},
	}, sum)
	require.Equal(t, logs(), all, "what workers said stays as it is")
	require.False(t, mergeLogs(all).Durable)
	require.False(t, mergeLogs([]*worker.Log{all[2], all[0]}).Durable)
	require.Equal(t, 30, int(mergeLogs([]*worker.Log{all[1], all[0]}).FileBytes))

	for i := range 3 {
		all := logs()
		all[i].Proof, all[i].Unproven = nil, "why"
		sum := mergeLogs(all)
		require.Nil(t, sum.Proof)
		require.Equal(t, "why", sum.Unproven)
	}
	for _, c := range [][3]string{{"", "", ""}, {"a", "", "a"}, {"", "a", "a"}, {"a", "a", "a"}, {"a", "b", "a, b"}} {
		require.Equal(t, c[2], joint(c[0], c[1]))
	}
}

// TestDoubtsOfLogs checks each of them alone, and those that occur together.
func TestDoubtsOfLogs(t *testing.T) {
	good := func() *localfile.Proof { return &localfile.Proof{Acknowledged: 3, Verified: 3, Recovered: 4} }
	for name, c := range map[string]struct {
		l       *worker.Log
		aborted bool
		want    []string
	}{
		"no log":                           {nil, false, nil},
		"good":                             {&worker.Log{Log: localfile.Log{SyncUsed: "msync"}, Proof: good()}, false, nil},
		"failed":                           {&worker.Log{Log: localfile.Log{Failure: "full"}, Proof: good()}, false, []string{"log_failed invalid"}},
		"failed, and not verified":         {&worker.Log{Log: localfile.Log{Failure: "full"}}, false, []string{"log_failed invalid"}},
		"of two kinds":                     {&worker.Log{Log: localfile.Log{SyncUsed: "msync, clwb"}, Proof: good()}, false, []string{"durability invalid"}},
		"not verified":                     {&worker.Log{Unproven: "why"}, false, []string{"unverified invalid"}},
		"not verified, for it was ended":   {&worker.Log{Unproven: "why"}, true, nil},
		"of two kinds, and not verified":   {&worker.Log{Log: localfile.Log{SyncUsed: "msync, clwb"}}, false, []string{"durability invalid", "unverified invalid"}},
		"one is missing":                   {&worker.Log{Proof: &localfile.Proof{Acknowledged: 3, Verified: 2}}, false, []string{"lost_entries invalid"}},
		"one is missing, and it was ended": {&worker.Log{Proof: &localfile.Proof{Acknowledged: 3, Verified: 2}}, true, []string{"lost_entries invalid"}},
		"one too many":                     {&worker.Log{Proof: &localfile.Proof{Acknowledged: 2, Verified: 3}}, false, []string{"lost_entries invalid"}},
		"one that is wrong":                {&worker.Log{Proof: &localfile.Proof{Wrong: []string{"entry 7"}}}, false, []string{"lost_entries invalid"}},
	} {
		p := modelled("closed", measure.Generator{})
		p.Log = c.l
		all := []*worker.Log{nil, c.l}
		if strings.HasPrefix(name, "of two kinds") {
			all = append(all, &worker.Log{Log: localfile.Log{SyncUsed: "clwb"}})
		}
		p.judgeLog(Measured{Aborted: c.aborted, Logs: all})
		require.Equal(t, append([]string{}, c.want...), said(p.Phase), name)
	}
}

// TestFiguresOfALog are per op that changed something, and per second of those that stored something.
func TestFiguresOfALog(t *testing.T) {
	load := closedLoad(1000, ms, 0, always(driver.OK)) // gets
	for i := range int64(500) {
		at := origin + i*2*ms
		record(load, measure.Sample{Verb: driver.Append, Due: at, Start: at, End: at + 2*ms})
	}
	ph := closedPhase()
	ph.Ops = []plan.Weight{{Op: "get", Weight: 1}, {Op: "append", Weight: 1}}
	m := Measured{Endpoints: endpoints, Load: load, Logs: logs()[:1]}
	p := NewPhase(testPlan(), ph, m)
	require.Equal(t, 200, p.Log.EntryBytes)
	require.InEpsilon(t, 7.0/500, *p.Log.ForcesPerOp, 1e-12)
	require.InEpsilon(t, 200**p.Op["append"].Rate, *p.Log.BytesPerSecond, 1e-12)

	ph.Ops = ph.Ops[:1]
	m.Load = closedLoad(1000, ms, 0, always(driver.OK))
	p = NewPhase(testPlan(), ph, m)
	require.Nil(t, p.Log.ForcesPerOp)
	require.Equal(t, "no op changed anything", p.Nulls["log.forces_per_op"])
	require.Equal(t, "there is no rate of entries", p.Nulls["log.bytes_per_second"])

	m.Unread = []string{"w1", "w2"}
	p = NewPhase(testPlan(), ph, m)
	require.Nil(t, p.Log.Proof)
	require.Equal(t, "worker w1 was lost, worker w2 was lost", p.Nulls["log.proof"])
	require.NotNil(t, m.Logs[0].Proof)
	require.Equal(t, "the target is no log", newPhase(closedPhase(), closedLoad(10, ms, 0, always(driver.OK))).Nulls["log"])
}

// TestWhenSlotsHadNoMoreWork: at the end of the duration if all sessions lasted that long, otherwise when the first had nothing more to start.
func TestWhenSlotsHadNoMoreWork(t *testing.T) {
	const s = int64(time.Second)
	span := measure.Span{Sessions: 2, FirstOut: origin + 3*s, FirstLast: origin + 4*s}
	for name, c := range map[string]struct {
		closed *plan.Closed // nil: another kind
		last   int64        // FirstLast, from the origin
		want   int64
	}{
		"iterations":                      {&plan.Closed{Iterations: 5}, 4 * s, 3 * s},
		"no closed load":                  {nil, 4 * s, 3 * s},
		"as long as was asked":            {&plan.Closed{Duration: 4 * time.Second}, 4 * s, 4 * s},
		"ended early":                     {&plan.Closed{Duration: 5 * time.Second}, 4 * s, 4 * s},
		"in a last pause":                 {&plan.Closed{Duration: 5 * time.Second, Think: time.Second}, 4 * s, 5 * s},
		"before it":                       {&plan.Closed{Duration: 5 * time.Second, Think: time.Second}, 4*s - 1, 4*s - 1},
		"one, within the duration":        {&plan.Closed{Duration: 5 * time.Second, Iterations: 1}, 4 * s, 3 * s},
		"iterations, within the duration": {&plan.Closed{Duration: 5 * time.Second, Iterations: 5}, 4 * s, 3 * s},
		"a trace, within the duration":    {&plan.Closed{Duration: 5 * time.Second, Trace: &plan.Trace{}}, 4 * s, 3 * s},
		"iterations that last longer":     {&plan.Closed{Duration: 4 * time.Second, Iterations: 5}, 4 * s, 4 * s},
	} {
		load := measure.NewTotals(origin, 1)
		load.Span = span
		load.Span.FirstLast = origin + c.last
		b := builder{totals: load}
		require.Equal(t, c.want, b.out(&plan.Phase{Closed: c.closed}), name)
	}
}

// TestWholeBins are those of the widest width; the last of them is where the last turn began.
func TestWholeBins(t *testing.T) {
	require.Equal(t, window{0, 8}, window{0, 15}.aligned(3))
	require.Equal(t, window{8, 16}, window{1, 16}.aligned(3))
	require.Equal(t, window{8, 16}, window{8, 23}.aligned(3))
	require.Equal(t, window{0, 8}, window{-9, 8}.aligned(3), "nothing begins before the origin")

	shift, last := binShift(nil, &measure.Totals{Time: new(measure.Bins)})
	require.Zero(t, shift)
	require.Zero(t, last)
	load := measure.NewTotals(origin, 1)
	for _, at := range []int64{0, 5 * ms, 900 * ms} {
		record(load, measure.Sample{Verb: driver.Get, Due: origin + at, Start: origin + at, End: origin + at + ms})
	}
	fine := load.Ops[driver.Get]
	shift, last = binShift([]*measure.Op{nil, fine, nil}, load)
	require.LessOrEqual(t, last, 900*ms)
	require.Greater(t, last+1<<shift, 900*ms)
	require.EqualValues(t, 3, turns([]*measure.Op{nil, fine}, window{0, math.MaxInt64}))
	require.EqualValues(t, 2, turns([]*measure.Op{fine, nil}, window{0, last}))

	for at := int64(0); at < 100_000*ms; at += 1000 * ms { // which needs wider bins
		record(load, measure.Sample{Verb: driver.Put, Due: origin + at, Start: origin + at, End: origin + at + ms})
	}
	wide, _ := binShift([]*measure.Op{fine, load.Ops[driver.Put]}, &measure.Totals{Time: new(measure.Bins)})
	other, _ := binShift([]*measure.Op{load.Ops[driver.Put], fine}, &measure.Totals{Time: new(measure.Bins)})
	require.Equal(t, wide, other, "whichever comes first")
	alone, _ := binShift([]*measure.Op{fine}, &measure.Totals{Time: new(measure.Bins)})
	require.Greater(t, wide, alone)
}

// TestRateOfALoadCutShort counts until the last turn began, not until the plan's end.
func TestRateOfALoadCutShort(t *testing.T) {
	ph := openPhase()
	ph.Open.Duration = 40 * time.Second
	for _, m := range []Measured{{Aborted: true}, {Losses: []worker.Loss{{Worker: "w1"}}}, {Logs: []*worker.Log{{Log: localfile.Log{Failure: "full"}}}}} {
		m.Endpoints, m.Load = endpoints, openLoad(ms, 0)
		p := NewPhase(testPlan(), ph, m)
		require.InEpsilon(t, 1000, *p.Op["get"].Rate, 0.003)
	}
	whole := newPhase(ph, openLoad(ms, 0))
	require.InEpsilon(t, 100, *whole.Op["get"].Rate, 0.003, "four seconds of forty, where it is said to have gone on")
}

// TestNoTurnBeganInTheWindow: two sessions have one op each, and the second begins just before a bin.
func TestNoTurnBeganInTheWindow(t *testing.T) {
	p := newPhase(closedPhase(), closedLoad(1, 500*ms, 100*ms+300*µs, always(driver.OK)))
	require.Nil(t, p.Op["get"].Rate)
	require.Equal(t, "no plateau: it lasted 399.7ms, in which no session began another op", p.Nulls["op.get.rate"])
}

// TestCostOfAnOp is the generator's time divided by the ops that ended, without those shed or in flight.
func TestCostOfAnOp(t *testing.T) {
	for name, c := range map[string]struct {
		model            run.Model
		productive       float64
		due              uint64
		shed             uint64
		inFlight         int64
		cost             float64 // 0: null
		expected, reason bool    // of the lag
	}{
		"open":                   {"open", 2, 10, 4, 2, 0.5, true, false},
		"closed":                 {"closed", 2, 10, 4, 2, 0.5, false, true},
		"one op":                 {"open", 2, 1, 0, 0, 2, true, false},
		"none that ended":        {"open", 2, 3, 1, 2, 0, false, true},
		"none of a thread's own": {"open", 0, 10, 0, 0, 0, false, true},
	} {
		load := measure.NewTotals(origin, 1)
		load.AddDueN(driver.Get, c.due)
		load.Shed(driver.Get, c.shed)
		load.AddInFlight(driver.Get, c.inFlight)
		p := modelled(c.model, measure.Generator{Busy: 0.5, ProductiveSeconds: c.productive})
		p.Nulls, p.NullCodes = map[string]string{}, map[string]reason.Code{}
		b := builder{phase: p, totals: load}
		b.queue()
		require.Equal(t, c.cost != 0, p.OpCostSeconds != nil, name)
		if c.cost != 0 {
			require.InDelta(t, c.cost, *p.OpCostSeconds, 1e-12, name)
		}
		require.Equal(t, c.cost == 0, p.Nulls["op_cost_seconds"] != "", name)
		require.Equal(t, c.expected, p.ExpectedLagP99 != nil, name)
		require.Equal(t, c.reason, p.Nulls["expected_lag_p99"] != "", name)
	}
}

// TestSecondsOfASearch are those from the first op of its levels to the last.
func TestSecondsOfASearch(t *testing.T) {
	ph := searchPhase()
	var m Measured
	for i := range 2 {
		m.AddLevel(testPlan(), ph, Measured{
			Endpoints: endpoints, Load: openLoad(ms, 0), Shape: pace.Shape{Rate: 1000, Duration: 4 * time.Second}, Generators: make([]measure.Generator, 1),
		}, time.Duration(i)*5*time.Second)
	}
	p := NewPhase(testPlan(), ph, m)
	require.Equal(t, m.Levels[0].phase.Seconds, p.Seconds, "both are of the same seconds here")
	require.InDelta(t, 4, p.Seconds, 0.01)
}

// TestBucketsAreAsWideAsGrowthTakesThemToBe: resolution is the width of the widest bucket, relative to its values.
func TestBucketsAreAsWideAsGrowthTakesThemToBe(t *testing.T) {
	widest := 0.0
	for at := int64(1 << 20); at < 1<<22; {
		var one hist.Hist
		one.Record(at)
		upper := at
		for bucket := range one.Buckets() {
			upper = bucket
		}
		widest = max(widest, float64(upper+1-at)/float64(at))
		at = upper + 1
	}
	require.InDelta(t, resolution, widest, 1e-12)
}

// TestRowsOfTwoSeconds are counted as such where a warm-up is looked for.
func TestRowsOfTwoSeconds(t *testing.T) {
	load, _ := longLoad(120, even, quickly)
	var rows []run.Row
	for i := range 60 {
		ok := uint64(2 * neverEven(i))
		rows = append(rows, run.Row{T: 2 * float64(i+1), Due: ok, Sent: ok, OK: ok})
	}
	w := FindWarmUp(longPhase(120), load, rows)
	require.Equal(t, "never settled: MSER-5 would cut 60 s of 120 s", w.Reason)
	for i := range rows {
		rows[i].OK = uint64(2 * slowStart(i))
	}
	w = FindWarmUp(longPhase(120), load, rows)
	require.Equal(t, run.WarmUp{Seconds: 20, By: "mser-5", Reason: "MSER-5 cuts 20 s of 120 s"}, w)
}

// TestWhatARowCounts distinguishes outcomes by their counts.
func TestWhatARowCounts(t *testing.T) {
	delta := measure.NewTotals(origin, 1)
	n := uint64(1)
	for o := range driver.NumOutcomes {
		for _, verb := range []driver.Verb{driver.Get, driver.Put} {
			delta.AddDueN(verb, n)
			if driver.Outcome(o) == driver.Shed {
				delta.Shed(verb, n)
			} else {
				delta.RecordN(&measure.Sample{Verb: verb, Outcome: driver.Outcome(o), Due: origin, Start: origin, End: origin + ms}, n)
			}
		}
		n *= 10
	}
	each := map[driver.Outcome]uint64{}
	n = 2
	var due uint64
	for o := range driver.NumOutcomes {
		each[driver.Outcome(o)] = n
		due, n = due+n, n*10
	}
	want := run.Row{
		T: 1, Due: due, Sent: due - each[driver.Shed], OK: each[driver.OK], Miss: each[driver.Miss],
		Bad: each[driver.Conflict] + each[driver.QuorumFailed] + each[driver.Timeout] + each[driver.Error],
	}
	var s Series
	s.Add(1, delta)
	got := s.Rows()[0]
	got.Response = run.Row{}.Response
	require.Equal(t, want, got)
	var answered Series
	two := measure.NewTotals(origin, 1)
	record(two, measure.Sample{Verb: driver.Get, Due: origin, Start: origin, End: origin + ms})
	record(two, measure.Sample{Verb: driver.Get, Outcome: driver.Miss, Due: origin, Start: origin, End: origin + 3*ms})
	answered.Add(1, two)
	require.InEpsilon(t, 0.002, *answered.Rows()[0].Response.Mean, 1e-12, "of what ended ok or missed")
	s = Series{Most: 2}
	for i := range 4 {
		s.Add(float64(i+1), delta)
	}
	rows := s.Rows()
	require.Len(t, rows, 2)
	for i, row := range rows {
		require.Equal(t, []uint64{2 * want.Due, 2 * want.Sent, 2 * want.OK, 2 * want.Miss, 2 * want.Bad}, []uint64{row.Due, row.Sent, row.OK, row.Miss, row.Bad}, "row %d", i)
	}
}

// The plateau of a constant schedule lasts as long as its arrivals take; that of any other is as long as it is.
func TestHowLongAPlateauOfASchedule(t *testing.T) {
	shape := pace.Shape{Rate: 100, Duration: 4 * time.Second}
	for _, c := range []struct {
		arrivals string
		trace    bool
		lattice  bool
	}{{"constant", false, true}, {"poisson", false, false}, {"constant", true, false}, {"poisson", true, false}} {
		ph := scheduled(shape, c.arrivals)
		if c.trace {
			ph.Open.Trace = &plan.Trace{}
		}
		load := served(shape, "constant", 1, 0, quick)
		b := builder{phase: &phase{Phase: &run.Phase{}}, totals: load, window: window{1_234_567_890, 2_345_678_901}}
		through := b.ofSchedule(ph, Measured{Shape: shape, Load: load})
		require.Empty(t, through.why.Text)
		lasts := seconds(b.window.to - through.window.from)
		if c.lattice {
			lasts = float64(shape.Until(b.window.to)-shape.Until(through.window.from)) / shape.Rate
			require.NotEqual(t, seconds(b.window.to-through.window.from), lasts)
		}
		require.InEpsilon(t, 1/lasts, through.scale, 1e-12, "%+v", c)
	}
}

// A load without a median, a response or a window has no figures that need them.
func TestArrivalsOfNothing(t *testing.T) {
	require.Equal(t, arrivals{ops: []*measure.Op{nil, {Due: 3}}, due: 3}, arrived([]*measure.Op{nil, {Due: 3}}))
}

// In a load with long ops, what ended is what was due, unless some were shed, nothing began at one end, or a few took much longer than most and one
// end has more of these than chance explains.
func TestWhatWasKeptUp(t *testing.T) {
	shape := pace.Shape{Rate: 1000, Duration: 3 * time.Second}
	rising := int64(0)
	slower := func(*rand.Rand) time.Duration { rising++; return time.Duration(rising) * 100 * time.Microsecond }
	b := builder{totals: served(shape, "constant", 1, 0, slower)}
	w := window{0, int64(3 * time.Second)}
	deviation := 0.0
	kept := func(change func(a *arrivals, w *window)) float64 {
		a, in := arrivals{ops: b.totals.Ops[:], median: 1000}, w
		if change != nil {
			change(&a, &in)
		}
		perSecond, sd := b.keptUp(&a, in, 1000)
		if perSecond == 0 {
			require.Zero(t, sd)
		}
		deviation = sd
		return perSecond
	}
	// Between the middles of the first and the last third, two seconds apart, ops got slower by 200 ms; by 300 ms over the whole.
	require.InEpsilon(t, 1000/(1+0.3/3), kept(nil), 0.002)
	require.Zero(t, deviation, "all take as long")
	require.InEpsilon(t, 1000/(1+0.2/2), kept(func(_ *arrivals, w *window) { w.from = int64(time.Second) }), 0.002, "and by 200 ms over the last two seconds")
	require.InEpsilon(t, 1000/(1+0.1/1), kept(func(_ *arrivals, w *window) { *w = window{int64(time.Second), int64(2 * time.Second)} }), 0.004)
	explains := 0.2e9 / 3 / math.Sqrt(2.0/1000) // three standard deviations of the difference of two means of a thousand ops each
	require.NotZero(t, kept(func(a *arrivals, _ *window) { a.varied = 1.01 * explains }))
	require.InEpsilon(t, 1000*1.5*1.01*(0.2e9/3)/3e9, deviation, 0.005)
	require.Zero(t, kept(func(a *arrivals, _ *window) { a.varied = 0.99 * explains }))
	require.NotZero(t, kept(func(a *arrivals, _ *window) { a.varied = 2 * 1000 }), "no more than twice as long as most")
	require.Zero(t, kept(func(a *arrivals, _ *window) { a.varied = 2*1000 + 1 }))
	require.NotZero(t, kept(func(a *arrivals, _ *window) { a.varied = 1e11 }), "chance explains it")
	require.Zero(t, kept(func(_ *arrivals, w *window) { w.to = int64(time.Minute) }), "nothing began at the end")
	require.Zero(t, kept(func(_ *arrivals, w *window) { w.from = -int64(time.Minute) }), "nor at the beginning")
	shed := &measure.Op{}
	shed.Outcomes[driver.Shed] = 1
	require.Zero(t, kept(func(a *arrivals, _ *window) { a.ops = append(append([]*measure.Op{}, a.ops...), shed) }))
}

// A search continues while there is a rate to try and time for it. When it ends it says why, and gives no rate.
func TestWhenASearchEnds(t *testing.T) {
	ph := &plan.Phase{Ops: []plan.Weight{{Op: "get", Weight: 1}}, Search: &plan.Search{
		From: 1000, To: 2000, Precision: 0.05, StepDuration: 4 * time.Second, Schedule: plan.Schedule{Drain: time.Second}, Budget: 20 * time.Second,
	}}
	held := func(rates ...float64) (levels []*Level) {
		for _, rate := range rates {
			levels = append(levels, &Level{Level: run.Level{Rate: rate}, outcome: Held})
		}
		return levels
	}
	failed := func(rate float64) *Level { return &Level{Level: run.Level{Rate: rate}, outcome: Overloaded} }
	lost := []worker.Loss{{Worker: "w"}}
	for name, c := range map[string]struct {
		m     Measured
		spent time.Duration
		more  bool
		ended End
	}{
		"the first":                         {Measured{}, 0, true, GoOn},
		"the first, though all is spent":    {Measured{}, time.Hour, true, GoOn},
		"the first, with a worker less":     {Measured{Losses: lost}, 0, true, GoOn},
		"the next":                          {Measured{Levels: held(1000)}, 5 * time.Second, true, GoOn},
		"just in time":                      {Measured{Levels: held(1000)}, 15 * time.Second, true, GoOn},
		"a nanosecond too late":             {Measured{Levels: held(1000)}, 15*time.Second + 1, false, Spent},
		"a worker less":                     {Measured{Levels: held(1000), Losses: lost}, 0, false, Shrunk},
		"the highest holds":                 {Measured{Levels: held(1000, 1500, 2000, 2000)}, 0, false, AtTo},
		"the highest holds, and no time":    {Measured{Levels: held(1000, 2000, 2000)}, time.Hour, false, AtTo},
		"the lowest fails, time after time": {Measured{Levels: []*Level{failed(1000), failed(1000)}}, 0, false, BelowFrom},
	} {
		shape, more := c.m.NextTry(ph, c.spent)
		require.Equal(t, c.more, more, name)
		require.Equal(t, c.ended, c.m.Ended, name)
		require.Equal(t, c.more, shape.Duration > 0, name)
		require.Equal(t, c.more && len(c.m.Levels) > 0, shape.Rate > 0, "%s: the first is a closed load", name)
	}
}

// If turns differ much in length, a rate needs five in the window; the reason for fewer says how many there were.
func TestTurnsThatARateTakes(t *testing.T) {
	ph := closedPhase()
	ph.Closed.Sessions, ph.Closed.Pipeline, ph.Closed.Duration = 1, 1, 0
	began := map[uint64]bool{}                      // how many turns began, and whether there was a rate
	for _, last := range []int64{9 * ms, 10 * ms} { // the last turn that began, or the last but one
		load := measure.NewTotals(origin, len(endpoints))
		at, long := origin, []int64{}
		for i := range int64(40) {
			end := at + (1+8*(i%2))*ms
			record(load, measure.Sample{Verb: driver.Get, Due: at, Start: at, End: end})
			if i%2 == 1 {
				long = append(long, at-origin)
			}
			at = end
		}
		load.Span.Busy(origin, at-last, at, 5*ms)
		for _, from := range long[14:] {
			b := builder{phase: &phase{Phase: &run.Phase{}}, totals: load, window: window{from - 300*µs, at - origin}}
			through := b.ofSlots(ph)
			_, said, short := strings.Cut(through.why.Text, "only, in which ")
			if short {
				n, _ := strconv.ParseUint(strings.Fields(said)[0], 10, 64)
				began[n] = false
			} else if through.why.Text == "" {
				began[turns(slots(ph, load), through.window)] = true
			}
		}
	}
	require.Equal(t, []any{false, true, true}, []any{began[4], began[5], began[6]}, "%v", began)
	require.Contains(t, began, uint64(4))
	for n, rate := range began {
		require.Equal(t, n >= 5, rate, "%d", n)
	}
}

// A rate over a time that is itself a sum of turns is corrected for their spread; over a time set by the plan it is not.
func TestRateOverATimeThatTurnsMake(t *testing.T) {
	load := measure.NewTotals(origin, len(endpoints))
	at := origin
	for i := range int64(400) {
		end := at + (1+8*(i%2))*ms
		record(load, measure.Sample{Verb: driver.Get, Due: at, Start: at, End: end})
		at = end
	}
	load.Span.Busy(origin, at, at, 5*ms)
	of := func(lasts time.Duration, change func(*plan.Phase)) throughput {
		ph := closedPhase()
		ph.Closed.Sessions, ph.Closed.Pipeline, ph.Closed.Iterations, ph.Closed.Duration = 1, 1, 400, lasts
		change(ph)
		b := builder{phase: &phase{Phase: &run.Phase{}}, totals: load, window: window{0, at - origin}}
		through := b.ofSlots(ph)
		require.Empty(t, through.why.Text)
		return through
	}
	asItIs := func(*plan.Phase) {}
	turned, timed := of(0, asItIs), of(time.Duration(at-origin), asItIs)
	require.Equal(t, turned, of(0, func(ph *plan.Phase) {
		ph.Closed, ph.Populate = nil, &plan.Populate{Sessions: 1, Pipeline: 1}
	}), "of a phase that ends when all keys are written")
	require.Equal(t, timed.window, turned.window)
	n := float64(turns(load.Ops[:], timed.window))
	require.InDelta(t, 1+0.64/n, timed.scale/turned.scale, 1e-4, "turns of 5 ms, with a standard deviation of 4 ms")
	require.NotEqual(t, timed.scale, turned.scale)
}

// The last bin counts even if only one turn began in it.
func TestTheLastBinOfTurns(t *testing.T) {
	load := measure.NewTotals(origin, 1)
	for _, began := range []int64{0, 0, 10 * ms} {
		record(load, measure.Sample{Verb: driver.Get, Due: origin + began, Start: origin + began, End: origin + began})
	}
	load.Time = nil
	shift, last := binShift(load.Ops[:], load)
	require.EqualValues(t, 16, shift)
	require.Equal(t, 10*ms>>16<<16, last)
}

// Turns of equal length make a rate if each slot had two, others if it had ten; those that began at once are among them.
func TestTurnsOfASlotThatARateTakes(t *testing.T) {
	const unit = int64(1 << 24) // as many whole bins
	for _, c := range []struct {
		turns    int
		long     int64 // of the first, third, … turn, in units
		sessions uint64
		why      string
	}{
		{1, 1, 1, "no plateau: sessions had an op each, and no second one behind it"},
		{2, 1, 1, ""},
		{3, 1, 1, ""},
		{1, 1, 2, "no plateau: sessions had an op each, and no second one behind it"},
		{2, 1, 2, ""},
		{9, 3, 1, "9 ops, fewer than 10 a slot: they took different times, and what a rate of so few is off by is not known"},
		{10, 3, 1, ""},
		{9, 3, 2, "18 ops, fewer than 10 a slot: they took different times, and what a rate of so few is off by is not known"},
		{10, 3, 2, ""},
		{8, 3, 17, "136 ops, fewer than 10 a slot: they took different times, and what a rate of so few is off by is not known"},
		{8, 3, 20, ""}, // enough sessions for a small error
	} {
		load := measure.NewTotals(origin, len(endpoints))
		for range c.sessions {
			at, sum := origin, int64(0)
			for i := range c.turns {
				took := unit
				if i%2 == 0 {
					took *= c.long
				}
				record(load, measure.Sample{Verb: driver.Get, Due: at, Start: at, End: at + took})
				at, sum = at+took, sum+took
			}
			load.Span.Busy(origin, at, at, sum/int64(c.turns))
		}
		ph := closedPhase()
		ph.Closed.Sessions, ph.Closed.Pipeline, ph.Closed.Iterations, ph.Closed.Duration = int(c.sessions), 1, int64(c.turns), 0
		b := builder{phase: &phase{Phase: &run.Phase{}}, totals: load, window: window{0, load.Span.Last - origin}}
		through := b.ofSlots(ph)
		require.Equal(t, c.why, through.why.Text, "%+v", c)
		if c.why != "" {
			continue
		}
		rate := through.of(&load.Ops[driver.Get].Bins, &load.Ops[driver.Get].Turns, driver.OK)
		require.InEpsilon(t, float64(c.sessions)*2/float64(1+c.long)/seconds(unit), rate, 0.08, "%+v", c)
	}
}

// Counts are of the given outcomes, by when turns began or, if there are no turns to use, by when they ended.
func TestWhatARateCounts(t *testing.T) {
	const bin = int64(1 << 16)
	var bins, begun [driver.NumOutcomes]*measure.Bins
	for i, o := range []driver.Outcome{driver.OK, driver.Miss, driver.Error} {
		bins[o], begun[o] = new(measure.Bins), new(measure.Bins)
		bins[o].AddN(2*bin, []uint64{1, 10, 100}[i])
		begun[o].AddN(2*bin, []uint64{1000, 10_000, 100_000}[i])
		bins[o].AddN(4*bin, 7) // after the window
		begun[o].AddN(4*bin, 7)
		bins[o].AddN(0, 7) // before it
		begun[o].AddN(0, 7)
	}
	for _, c := range []struct {
		ends     bool
		outcomes []driver.Outcome
		want     float64
	}{
		{false, nil, 0},
		{true, nil, 0},
		{false, []driver.Outcome{driver.OK}, 500},
		{true, []driver.Outcome{driver.OK}, 0.5},
		{false, []driver.Outcome{driver.OK, driver.Miss}, 5500},
		{true, []driver.Outcome{driver.OK, driver.Miss}, 5.5},
		{true, []driver.Outcome{driver.Error, driver.Conflict}, 50},
	} {
		through := throughput{window: window{bin, 4 * bin}, ends: c.ends, scale: 0.5}
		require.Equal(t, c.want, through.of(&bins, &begun, c.outcomes...), "%+v", c)
	}
}
