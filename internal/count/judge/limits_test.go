package judge

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// above is the next number.
func above(f float64) *float64 {
	f = math.Nextafter(f, math.Inf(1))
	return &f
}

// said returns the codes of a phase's reasons, each with its validity.
func said(p *run.Phase) []string {
	all := []string{}
	for _, r := range p.Reasons {
		all = append(all, string(r.Code)+" "+string(r.Validity))
	}
	return all
}

// modelled is a phase of a model with 1,000 gets answered in ten seconds, and no doubts.
func modelled(model run.Model, g measure.Generator) *phase {
	return &phase{Phase: &run.Phase{
		Model: model, Seconds: 10, Validity: run.Valid, Load: run.Load{Sessions: 4, Pipeline: 1, DurationSeconds: 10}, Generator: g,
		Op: map[string]*run.Op{"get": {Figures: run.Figures{Ledger: run.Ledger{OK: 600, Miss: 400}}}},
	}}
}

// TestLimitsOfTheGenerator takes each figure of the generator at its limit, where there is no doubt, and just above it.
func TestLimitsOfTheGenerator(t *testing.T) {
	const open, closed, search = "open", "closed", "search"
	quota := func(n uint64) measure.Generator { return measure.Generator{Throttled: &measure.Throttled{Periods: n}} }
	resent := func(sent, again uint64) measure.Generator {
		return measure.Generator{TCP: &measure.TCP{BytesSent: sent, BytesRetransmitted: again}}
	}
	gaps := func(times uint64, seconds, most, others float64) measure.Generator {
		return measure.Generator{Loops: 1, Interrupted: &measure.Interrupted{Times: times, Seconds: seconds, MaxSeconds: most, OthersSeconds: others}}
	}
	limit := func(f float64) *float64 { return &f }
	long := measure.LongGap.Seconds()
	for name, c := range map[string]struct {
		model run.Model
		g     measure.Generator
		want  []string
	}{
		"busy, closed":                  {closed, measure.Generator{Busy: invalidBusy}, nil},
		"too busy, closed":              {closed, measure.Generator{Busy: *above(invalidBusy)}, []string{"client_bound suspect"}},
		"busy, open":                    {open, measure.Generator{Busy: suspectBusy}, nil},
		"rather busy, open":             {open, measure.Generator{Busy: *above(suspectBusy)}, []string{"generator_busy suspect"}},
		"very busy, open":               {open, measure.Generator{Busy: invalidBusy}, []string{"generator_busy suspect"}},
		"too busy, open":                {open, measure.Generator{Busy: *above(invalidBusy)}, []string{"client_bound invalid"}},
		"rather busy, search":           {search, measure.Generator{Busy: *above(suspectBusy)}, []string{"generator_busy suspect"}},
		"too busy, search":              {search, measure.Generator{Busy: *above(invalidBusy)}, []string{"client_bound suspect"}},
		"no collection":                 {closed, measure.Generator{GCPauseMaxSeconds: 1}, nil},
		"a collection":                  {closed, measure.Generator{GCCycles: 1}, []string{"garbage_collection suspect"}},
		"a pause of clients":            {closed, measure.Generator{Executor: plan.Blocking, GCCycles: 1, GCPauseMaxSeconds: suspectPause}, nil},
		"a long pause of clients":       {closed, measure.Generator{Executor: plan.Blocking, GCCycles: 1, GCPauseMaxSeconds: *above(suspectPause)}, []string{"garbage_collection suspect"}},
		"a long pause in no collection": {closed, measure.Generator{Executor: plan.Blocking, GCPauseMaxSeconds: *above(suspectPause)}, nil},
		"goroutines wait":               {closed, measure.Generator{Executor: plan.Blocking, SchedLatencyP99Seconds: suspectSched}, nil},
		"goroutines wait for long":      {closed, measure.Generator{Executor: plan.Blocking, SchedLatencyP99Seconds: *above(suspectSched)}, []string{"go_scheduler suspect"}},
		"loops do not wait like that":   {closed, measure.Generator{Executor: plan.EventLoop, SchedLatencyP99Seconds: *above(suspectSched)}, nil},
		"queued, closed":                {closed, measure.Generator{RunQueueWait: limit(suspectQueued)}, nil},
		"queued for longer, closed":     {closed, measure.Generator{RunQueueWait: above(suspectQueued)}, []string{"run_queue suspect"}},
		"queued for long, closed":       {closed, measure.Generator{RunQueueWait: above(invalidQueued)}, []string{"run_queue suspect"}},
		"queued, open":                  {open, measure.Generator{RunQueueWait: limit(suspectQueued)}, nil},
		"queued for longer, open":       {open, measure.Generator{RunQueueWait: limit(invalidQueued)}, []string{"run_queue suspect"}},
		"queued for long, open":         {open, measure.Generator{RunQueueWait: above(invalidQueued)}, []string{"run_queue invalid"}},
		"queued for long, search":       {search, measure.Generator{RunQueueWait: above(invalidQueued)}, []string{"run_queue suspect"}},
		"a quota that was kept":         {closed, quota(0), nil},
		"a quota":                       {closed, quota(1), []string{"cpu_quota invalid"}},
		"sent again":                    {closed, resent(1/suspectResent, 1), nil},
		"sent again more":               {closed, resent(1/suspectResent-1, 1), []string{"retransmits suspect"}},
		"nothing sent":                  {closed, resent(0, 1), nil},
		"one byte, and again":           {closed, resent(1, 1), []string{"retransmits suspect"}},
		"gaps":                          {closed, gaps(1e6, suspectGaps*10, 0.001, 0), nil},
		"more gaps":                     {closed, gaps(1e6, *above(suspectGaps * 10), 0.001, 0), []string{"interrupted suspect"}},
		"gaps of an open phase":         {open, gaps(1e6, *above(suspectGaps * 10), 0.001, 0), nil},
		"a short gap":                   {closed, gaps(1, 0.09, math.Nextafter(long, 0), 0), nil},
		"a long gap":                    {closed, gaps(1, 0.09, long, 0), []string{"interrupted suspect"}},
		"no gap":                        {closed, gaps(0, 1, 1, 0), nil},
	} {
		p := modelled(c.model, c.g)
		p.judgeGenerator()
		p.judgeMachine()
		require.Equal(t, append([]string{}, c.want...), said(p.Phase), name)
	}
}

// TestOneGapAmongManyOps affects the tail only if the ops that it delayed are at least a thousandth of all.
func TestOneGapAmongManyOps(t *testing.T) {
	long := measure.LongGap.Seconds()
	for _, c := range []struct {
		loops, sessions, pipeline int
		times                     uint64
		seconds                   float64
		met                       float64 // ops that may have been in flight
	}{
		{1, 4, 1, 1, long, 4},
		{1, 4, 2, 1, long, 8},
		{2, 4, 2, 1, long, 4},
		{1, 4, 1, 9, 2.5 * long, 8}, // no more than two of them were long
		{1, 4, 1, 2, 2.5 * long, 8},
		{0, 4, 1, 1, long, 4}, // from a worker that does not report it
		{1, 0, 0, 1, long, 1}, // nor does the plan say
	} {
		for _, more := range []uint64{0, 1} {
			p := modelled("closed", measure.Generator{Loops: c.loops, Interrupted: &measure.Interrupted{Times: c.times, Seconds: c.seconds, MaxSeconds: long}})
			p.Seconds = 1e6
			p.Load.Sessions, p.Load.Pipeline = c.sessions, c.pipeline
			p.Op["get"].OK, p.Op["get"].Miss = uint64(c.met/suspectMet)+more-400, 400
			p.judgeGaps()
			require.Equal(t, more == 0, len(p.Reasons) == 1, "%+v, %d ops more", c, more)
		}
	}
}

// TestGapsThatTheQueueExplains are reported once.
func TestGapsThatTheQueueExplains(t *testing.T) {
	for name, c := range map[string]struct {
		queued *float64
		others float64 // of a second of gaps
		want   bool    // gaps are a reason of their own
	}{
		"others had more than half":          {above(suspectQueued), *above(0.5), false},
		"others had half":                    {above(suspectQueued), 0.5, true},
		"it was queued for so short":         {func() *float64 { f := suspectQueued; return &f }(), 1, true},
		"it is not known how long it was so": {nil, 1, true},
	} {
		p := modelled("closed", measure.Generator{Loops: 1, RunQueueWait: c.queued, Interrupted: &measure.Interrupted{Times: 100, Seconds: 1, MaxSeconds: 0.01, OthersSeconds: c.others}})
		p.judgeGaps()
		require.Equal(t, c.want, len(p.Reasons) == 1, name)
	}
}

// TestLimitsOfLag takes lags at each limit, where there is no doubt, and just above it.
func TestLimitsOfLag(t *testing.T) {
	queue := func(p *phase, expected float64) { p.ExpectedLagP99, p.OpCostSeconds = &expected, &expected }
	long, cost := 1.0, 2e-4
	queued := freeLagQueue * cost
	for name, c := range map[string]struct {
		lag      float64  // p99
		service  *float64 // p99
		expected float64
		want     []string
	}{
		"free":                               {freeLag, above(0), 0, nil},
		"more than free":                     {*above(freeLag), above(0), 0, []string{"started_late suspect"}},
		"more than free, of unknown service": {*above(freeLag), nil, 0, nil},
		"a share of the service":             {0.5e-3, func() *float64 { f := 5e-3; return &f }(), 0, nil},
		"more than a share of it":            {*above(0.5e-3), func() *float64 { f := 5e-3; return &f }(), 0, []string{"started_late suspect"}},
		"suspect beside long service":        {suspectLag, &long, 0, nil},
		"more than suspect":                  {*above(suspectLag), &long, 0, []string{"started_late suspect"}}, // from ops without room: no op of the histogram was late
		"as a queue has it":                  {queued, above(0), cost, nil},
		"more than a queue has it":           {*above(queued), above(0), cost, []string{"started_late suspect"}},
		"free, though the queue has less":    {freeLag, above(0), 1e-6, nil},
		"above free, and the queue has less": {*above(freeLag), above(0), 1e-6, []string{"started_late suspect"}},
	} {
		p := modelled("open", measure.Generator{})
		p.Op["get"].Lag.P99, p.Op["get"].Service.P99 = &c.lag, c.service
		if c.expected > 0 {
			queue(p, c.expected)
		}
		p.judgeLag()
		require.Equal(t, append([]string{}, c.want...), said(p.Phase), name)
	}
}

// TestLimitsOfTheTail does the same for the slowest thousandth.
func TestLimitsOfTheTail(t *testing.T) {
	zero, long := 0.0, 1.0
	for name, c := range map[string]struct {
		lag     float64
		service *float64
		want    []string
	}{
		"suspect":                       {suspectLag, nil, nil},
		"more":                          {*above(suspectLag), nil, []string{"started_late suspect"}},
		"beside as long service":        {suspectLagShare, &long, nil},
		"beside not quite so long":      {*above(suspectLagShare), &long, []string{"started_late suspect"}},
		"beside no service":             {*above(suspectLag), &zero, []string{"started_late suspect"}},
		"not more than what is suspect": {suspectLag, &zero, nil},
	} {
		p := modelled("open", measure.Generator{})
		p.Op["get"].Lag.P99, p.Op["get"].Lag.P999, p.Op["get"].Service.P999 = &zero, &c.lag, c.service
		p.judgeLag()
		require.Equal(t, append([]string{}, c.want...), said(p.Phase), name)
	}
}

// TestGeneratorLag treats ops that waited for a slot as on time, and returns the lag that all but a share of the ops had at most.
func TestGeneratorLag(t *testing.T) {
	var p phase
	require.Zero(t, p.generatorLag(0.01), "of no ops")
	require.Zero(t, p.roomless())
	p.lags.Record(0)
	p.waited.Record(0)
	require.Equal(t, 1.0, p.roomless())
	p = phase{}
	p.lags.RecordN(0, 980)
	p.lags.RecordN(int64(3*time.Millisecond), 10)
	p.lags.RecordN(int64(time.Second), 10)
	require.Zero(t, p.generatorLag(0.02))
	require.InEpsilon(t, 0.003, p.generatorLag(0.0199), 0.01)
	require.InEpsilon(t, 0.003, p.generatorLag(0.01), 0.01)
	require.InEpsilon(t, 1, p.generatorLag(0.0099), 0.01)
	require.LessOrEqual(t, p.generatorLag(0), 1.0, "no more than the latest")
	p.waited.RecordN(int64(time.Second), 10)
	require.Zero(t, p.generatorLag(0.01))
	require.InEpsilon(t, 0.003, p.generatorLag(0.0099), 0.01)
	require.InDelta(t, 0.01, p.roomless(), 1e-12)
}

// TestAbsence is reported if loops were away for at least half as long as the late ops' share of the load.
func TestAbsence(t *testing.T) {
	gaps := func(times uint64, seconds float64) *measure.Interrupted {
		return &measure.Interrupted{Times: times, Seconds: seconds, MaxSeconds: seconds}
	}
	for name, c := range map[string]struct {
		i    *measure.Interrupted
		told bool
	}{
		"not counted": {nil, false},
		"none":        {gaps(0, 1), false},
		"short":       {gaps(1, math.Nextafter(0.05, 0)), false},
		"long enough": {gaps(1, 0.05), true},
	} {
		p := modelled("open", measure.Generator{Interrupted: c.i})
		require.Equal(t, c.told, p.absence(0.01) != "", name) // of ten seconds
	}
	require.NotContains(t, kept(&measure.Interrupted{Seconds: 1, OthersSeconds: 0.5}, "rest"), "rest")
	require.Contains(t, kept(&measure.Interrupted{Seconds: 1, OthersSeconds: 0.49}, "rest"), "rest")
}

// TestStoodStill is worse the more ops it made late, whichever quantile shows that.
func TestStoodStill(t *testing.T) {
	late, early := *above(suspectLag), suspectLag
	for name, c := range map[string]struct {
		lag  run.Latency
		ops  int64 // of a hundred, were late
		want run.Validity
	}{
		"nobody knows":      {run.Latency{}, 50, run.Suspect},
		"p99":               {run.Latency{P99: &late}, 50, run.Invalid},
		"p99 that is not":   {run.Latency{P99: &early}, 50, run.Suspect},
		"p90":               {run.Latency{P90: &late}, 50, run.Invalid},
		"p50":               {run.Latency{P50: &late}, 60, run.Invalid},
		"for want of room":  {run.Latency{P99: &late}, 0, run.Suspect},
		"only one in ten":   {run.Latency{P50: &late}, 10, run.Suspect},
		"one beyond in ten": {run.Latency{P90: &late}, 11, run.Invalid},
	} {
		p := modelled("open", measure.Generator{})
		p.Op["get"].Lag = c.lag
		p.lags.RecordN(0, uint64(100-c.ops))
		if c.ops > 0 {
			p.lags.RecordN(int64(time.Second), uint64(c.ops))
		}
		require.Equal(t, c.want, p.stalled(), name)
	}
	p := modelled("open", measure.Generator{})
	p.Op["get"].Lag.P99 = &late
	p.lags.RecordN(int64(time.Millisecond), 100)
	require.Equal(t, run.Suspect, p.stalled(), "as late as may be")
}

// TestLimitsOfDrift: a trend counts if it exceeds its limit and is not due to chance.
func TestLimitsOfDrift(t *testing.T) {
	figure := func(f float64) *float64 { return &f }
	below := figure(math.Nextafter(chanceOfDrift, 0))
	rate := func(drift, p *float64) (rate, response run.Trend) {
		return run.Trend{Drift: drift, DriftP: p}, run.Trend{}
	}
	response := func(drift, p *float64) (rate, response run.Trend) {
		return run.Trend{}, run.Trend{Drift: drift, DriftP: p}
	}
	type trends = [2]run.Trend
	both := func(rate, response run.Trend) trends { return trends{rate, response} }
	for name, c := range map[string]struct {
		model run.Model
		s     trends
		want  string
	}{
		"no trend":                  {"open", trends{}, ""},
		"the rate rose little":      {"open", both(rate(figure(suspectDrift), below)), ""},
		"the rate rose":             {"open", both(rate(above(suspectDrift), below)), "rose"},
		"the rate fell little":      {"open", both(rate(figure(-suspectDrift), below)), ""},
		"the rate fell":             {"open", both(rate(figure(-*above(suspectDrift)), below)), "fell"},
		"by chance":                 {"open", both(rate(above(suspectDrift), figure(chanceOfDrift))), ""},
		"the rate rose, closed":     {"closed", both(rate(above(suspectDrift), below)), "rose"},
		"the response rose little":  {"open", both(response(figure(suspectSlope), below)), ""},
		"the response rose":         {"open", both(response(above(suspectSlope), below)), "rose"},
		"the response fell":         {"open", both(response(figure(-*above(suspectSlope)), below)), "fell"},
		"the response rose, closed": {"closed", both(response(above(suspectSlope), below)), ""},
	} {
		p := modelled(c.model, measure.Generator{})
		p.Steady.Rate, p.Steady.Response = c.s[0], c.s[1]
		p.judgeSteady()
		if c.want == "" {
			require.Empty(t, p.Reasons, name)
			continue
		}
		require.Len(t, p.Reasons, 1, name)
		require.Contains(t, p.Reasons[0].Text, " "+c.want+" by ", name)
	}
	p := modelled("open", measure.Generator{})
	p.WarmUp.Code, p.WarmUp.Reason = reason.NeverSettled, "never settled"
	p.Steady.Rate, _ = rate(above(suspectDrift), below)
	p.judgeSteady()
	require.Equal(t, []string{"never_settled suspect"}, said(p.Phase), "which says it all")
}

// TestLimitsOfClocks takes the clocks' difference at its share of the plateau, and just above it.
func TestLimitsOfClocks(t *testing.T) {
	for _, c := range []struct {
		even  float64
		apart time.Duration
		want  int
	}{{10, 100 * time.Millisecond, 0}, {10, 100*time.Millisecond + 1, 1}, {0, time.Second, 0}} {
		p := modelled("open", measure.Generator{})
		p.even = c.even
		p.judgeClocks(Measured{Apart: c.apart})
		require.Len(t, p.Reasons, c.want, "%v", c)
	}
	p := modelled("open", measure.Generator{})
	p.even = 4
	p.judgeClocks(Measured{Apart: time.Second})
	require.Equal(t, []string{"the clocks of workers may be 1.00 s apart, which is 25 % of the plateau: for so long some may have loaded without the others"}, texts(p.Phase))
}

// TestShortOfWhatWasOffered allows a share, an op at either end, and chance: each alone.
func TestShortOfWhatWasOffered(t *testing.T) {
	figure := func(f float64) *float64 { return &f }
	for name, c := range map[string]struct {
		offered, achieved *float64
		plateau, chance   float64
		want              []string
	}{
		"not known":             {nil, figure(1), 1000, 0, nil},
		"not achieved":          {figure(1), nil, 1000, 0, nil},
		"the share":             {figure(1000), figure(suspectAchieved * 1000), 1000, 0, nil},
		"less":                  {figure(1000), figure(math.Nextafter(suspectAchieved*1000, 0)), 1000, 0, []string{"overloaded suspect"}},
		"as little as may be":   {figure(1000), figure(invalidAchieved * 1000), 1000, 0, []string{"overloaded suspect"}},
		"far less":              {figure(1000), figure(math.Nextafter(invalidAchieved*1000, 0)), 1000, 0, []string{"overloaded invalid"}},
		"two ops":               {figure(4), figure(2), 1, 0, nil},
		"more than two ops":     {figure(4), figure(1.999), 1, 0, []string{"overloaded invalid"}},
		"what chance explains":  {figure(1000), figure(800), 1000, 50, nil},
		"what it does not":      {figure(1000), figure(math.Nextafter(800, 0)), 1000, 50, []string{"overloaded invalid"}},
		"more than was offered": {figure(1000), figure(1100), 1000, 0, nil},
	} {
		p := modelled("open", measure.Generator{})
		p.OfferedRate, p.AchievedRate, p.plateau, p.chance = c.offered, c.achieved, c.plateau, c.chance
		p.judgeOffered()
		require.Equal(t, append([]string{}, c.want...), said(p.Phase), name)
	}
}

// TestWhatHadNotEnded is reported for each verb and each row of requests, less what lost workers had in flight.
func TestWhatHadNotEnded(t *testing.T) {
	var unfinished measure.Counters
	lost := measure.NewTotals(origin, 1)
	lost.AddDue(driver.Get)
	lost.AddInFlight(driver.Get, 1)
	*lost.Request(0, driver.Get) = measure.Requests{Sent: 1, InFlight: 1}
	of := lost.Counters()
	unfinished.Merge(&of)
	for name, c := range map[string]struct {
		op, requests int64 // in flight
		unfinished   measure.Counters
		want         []string
	}{
		"nothing":                  {0, 0, measure.Counters{}, nil},
		"an op":                    {1, 0, measure.Counters{}, []string{"unended invalid"}},
		"a request":                {0, 1, measure.Counters{}, []string{"unended suspect"}},
		"of a lost worker":         {1, 1, unfinished, []string{"worker_lost suspect"}},
		"an op beside it":          {2, 1, unfinished, []string{"unended invalid"}},
		"a request beside it":      {1, 2, unfinished, []string{"worker_lost suspect", "unended suspect"}},
		"another that was counted": {0, 0, unfinished, []string{"unended invalid", "unended suspect"}},
	} {
		p := modelled("open", measure.Generator{})
		p.Op["get"].InFlight = c.op
		p.Target.Endpoints = []string{"a:1"}
		load := measure.NewTotals(origin, 1)
		load.Request(0, driver.Get).InFlight = c.requests
		p.judgeEnded(Measured{Load: load, Unfinished: c.unfinished})
		require.Equal(t, append([]string{}, c.want...), said(p.Phase), name)
	}
}

// Some ops are late through loadgen's fault, and some had no room: the reason says how many these are, even a single one.
func TestLateBesideSomeWithoutRoom(t *testing.T) {
	const late = "get: started late: p99 lag 1.00 s"
	for n, want := range map[uint64]string{
		0: late,
		1: late + " (0.1 % of all ops had no room; without these, 1.00 s)",
		2: late + " (0.2 % of all ops had no room; without these, 1.00 s)",
	} {
		p := modelled("open", measure.Generator{})
		lag := 1.0
		p.Op["get"].Lag.P99 = &lag
		p.lags.RecordN(0, 900)
		p.lags.RecordN(int64(time.Second), 100)
		p.waited.RecordN(int64(time.Second), n)
		p.judgeLag()
		require.Equal(t, []string{want}, texts(p.Phase))
	}
	// A lag at its limit is not late, whoever caused it.
	p := modelled("open", measure.Generator{})
	lag := suspectLag
	p.Op["get"].Lag.P99 = &lag
	p.lags.RecordN(int64(time.Second), 1000)
	p.judgeLag()
	require.Empty(t, texts(p.Phase))
}

// Ops whose end is unknown, and ops that had not ended, are reported independently.
func TestHowManyHadNotEnded(t *testing.T) {
	of := func(inFlight, lost int64) []string {
		var unfinished measure.Counters
		unfinished.Ops[driver.Get].InFlight = lost
		p := modelled("open", measure.Generator{})
		p.Op["get"].InFlight = inFlight
		p.judgeEnded(Measured{Load: measure.NewTotals(origin, 1), Unfinished: unfinished})
		return texts(p.Phase)
	}
	require.Equal(t, []string{"get: 5 ops had not ended when the phase had"}, of(5, 0))
	require.Equal(t, []string{"get: 3 ops had not ended when the phase had"}, of(5, 2))
	require.Equal(t, []string{"get: how 5 ops of lost workers ended is not known"}, of(5, 5))
	require.Empty(t, of(0, 0))
}

// The built-in nodes may be what uses the processors.
func TestBuiltinNodesMayHaveTheProcessors(t *testing.T) {
	for builtin, want := range map[bool]string{false: "others had", true: "others (such as the built-in nodes) had"} {
		p := modelled("closed", measure.Generator{RunQueueWait: above(suspectQueued)})
		p.Target.Builtin = builtin
		p.judgeMachine()
		require.Equal(t, []string{"the generator's loop waited 1 % of the time for a processor, which " + want}, texts(p.Phase))
	}
}
