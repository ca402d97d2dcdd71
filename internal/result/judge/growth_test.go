package judge

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// growing is a closed load of one session; cost gives the time of its n-th op, which fails if that is negative. The phase pauses as long as its ops
// take.
func growing(n int, took func(n int) time.Duration) *measure.Totals {
	t := measure.NewTotals(origin, len(endpoints))
	at := origin
	for i := range n {
		d := int64(took(i + 1))
		s := measure.Sample{Verb: driver.Get, Due: at, Start: at, End: at + max(d, 0)}
		if d < 0 {
			s.Outcome, s.Cause = driver.Error, measure.Cause(op.Replied)
		}
		record(t, s)
		t.Grow(&s, uint64(i+1))
		at = s.End + max(d, 0)
	}
	t.Span.Session(origin, at)
	return t
}

func growthPhase(to int64) *plan.Phase {
	ph := closedPhase()
	ph.Growth = &plan.Growth{To: to}
	return ph
}

func linear(n int) time.Duration { return time.Duration(n) * time.Microsecond }

// TestGrowthOfALinearCost has figures by hand: 2,000 ops, the n-th taking n µs.
func TestGrowthOfALinearCost(t *testing.T) {
	load := growing(2000, linear)
	p := newPhase(growthPhase(1000), load)
	g := p.Op["get"].Growth
	require.EqualValues(t, 2000, g.Ops)
	require.InEpsilon(t, 1, *g.Order, 0.02)
	require.LessOrEqual(t, *g.OrderLo, 1.0)
	require.GreaterOrEqual(t, *g.OrderHi, 1.0)
	require.Equal(t, "grows", g.Shown)
	require.InEpsilon(t, (1901+2000)/2.0/50.5, *g.Drift, 0.005)
	require.InEpsilon(t, 2*500500e-6, *g.SecondsTo, 0.005, "with a pause behind each, as long as it")
	require.Equal(t, []float64{*g.SecondsTo, *g.SecondsTo}, []float64{*g.SecondsToLo, *g.SecondsToHi}, "it is known")
	require.Len(t, g.Course, 125)
	require.EqualValues(t, 2000, g.Course[124].N)
	require.EqualValues(t, 16, g.Course[0].N)
	require.EqualValues(t, 16, g.Course[0].Ended)
	require.InEpsilon(t, 8.5e-6, *g.Course[0].Mean, 1e-9)
	require.Nil(t, g.Course[0].P50, "of 16 ops")
	wide := newPhase(growthPhase(0), growing(4000, linear)).Op["get"].Growth.Course[0]
	require.InEpsilon(t, 16e-6, *wide.P50, 0.01)
	require.Nil(t, wide.P99, "of 32 ops")
	require.Contains(t, p.Nulls["op.get.growth.course"], "fewer than 10")

	last := newPhase(growthPhase(2000), load).Op["get"].Growth
	require.InEpsilon(t, p.Seconds, *last.SecondsTo, 1e-9, "all of them")
	require.Equal(t, *last.SecondsTo, *last.SecondsToLo)
	next := newPhase(growthPhase(2001), load).Op["get"].Growth
	require.InEpsilon(t, p.Seconds+2*2001e-6, *next.SecondsTo, 1e-3)
	require.Less(t, *next.SecondsToLo, *next.SecondsToHi, "it is estimated")
	require.InEpsilon(t, *next.SecondsTo, *next.SecondsToLo, 0.01)
	require.InEpsilon(t, *next.SecondsTo, *next.SecondsToHi, 0.01)
	far := newPhase(growthPhase(6000), load).Op["get"].Growth
	require.InEpsilon(t, 2*6000*6001/2*1e-6, *far.SecondsTo, 0.05)
	require.Nil(t, newPhase(growthPhase(6001), load).Op["get"].Growth.SecondsTo)
}

// TestNoGrowthIsShown if all ops take equally long.
func TestNoGrowthIsShown(t *testing.T) {
	g := newPhase(growthPhase(0), growing(2000, func(n int) time.Duration { return time.Millisecond + time.Duration(n%7)*time.Microsecond })).Op["get"].Growth
	require.Equal(t, "none", g.Shown)
	require.InEpsilon(t, 1, *g.Drift, 0.01)
	require.InDelta(t, 0, *g.Order, 0.05)
	require.InDelta(t, 2*resolution/math.Ln2, *g.OrderHi-*g.OrderLo, 0.05, "no narrower than buckets allow")
	require.GreaterOrEqual(t, *g.OrderHi-*g.OrderLo, 2*resolution/math.Log(1999/1001.0))
}

// TestWhyThereIsNoGrowth says each reason, in its place and in no other.
func TestWhyThereIsNoGrowth(t *testing.T) {
	oneFails := func(n int) time.Duration {
		if n == 7 {
			return -1
		}
		return linear(n)
	}
	allFail := func(int) time.Duration { return -1 }
	atOnce := func(int) time.Duration { return 0 }
	firstAtOnce := func(n int) time.Duration {
		if n > 1000 {
			return linear(n)
		}
		return 0
	}
	lastAtOnce := func(n int) time.Duration { return firstAtOnce(2001 - n) }
	lastFail := func(n int) time.Duration {
		if n > 1000 {
			return -1
		}
		return linear(n)
	}
	const failed = "1 of 2,000 ops failed, and how long they would have taken is not known"
	for name, c := range map[string]struct {
		load   *measure.Totals
		to     int64
		change func(*plan.Phase)
		want   map[string]string // by figure; "": it is there
	}{
		"nobody asked":                      {growing(2000, linear), 0, func(ph *plan.Phase) { ph.Growth = nil }, map[string]string{"": "the phase has no growth block"}},
		"few ops":                           {growing(99, linear), 50, nil, map[string]string{".drift": "99 ops; at least 100 are needed", ".order": "99 ops; at least 100 are needed", ".seconds_to": ""}},
		"few ops, and more are asked about": {growing(99, linear), 100, nil, map[string]string{".seconds_to": "99 ops; at least 100 are needed"}},
		"enough ops":                        {growing(100, linear), 0, nil, map[string]string{".drift": "", ".order": "", ".seconds_to": "growth has no attribute to"}},
		"one failed":                        {growing(2000, oneFails), 100, nil, map[string]string{".drift": failed, ".order": "", ".seconds_to": failed}},
		"all failed": {growing(2000, allFail), 100, nil, map[string]string{
			".drift": "2,000 of 2,000 ops failed, and how long they would have taken is not known",
			".order": "fewer than 24 groups of the second half of the ops have a median that did not fail",
		}},
		"the second half failed": {growing(2000, lastFail), 100, nil, map[string]string{".order": "fewer than 24 groups of the second half of the ops have a median that did not fail"}},
		"no time at first":       {growing(2000, firstAtOnce), 0, nil, map[string]string{".drift": "no op of the first or of the last twentieth took any time"}},
		"no time at last":        {growing(2000, lastAtOnce), 0, nil, map[string]string{".drift": ""}},
		"no time":                {growing(2000, atOnce), 100, nil, map[string]string{".drift": "no op of the first or of the last twentieth took any time", ".seconds_to": "no op took any time"}},
		"too far":                {growing(2000, linear), 6001, nil, map[string]string{".seconds_to": "6,001 ops are more than 3 times the 2,000 that were run"}},
		"several kinds": {growing(2000, linear), 100, func(ph *plan.Phase) { ph.Ops = append(ph.Ops, plan.Weight{Op: "put", Weight: 1}) }, map[string]string{
			".order": "", ".drift": "", ".seconds_to": "several kinds of op share the phase's time",
		}},
	} {
		ph := growthPhase(c.to)
		if c.change != nil {
			c.change(ph)
		}
		p := newPhase(ph, c.load)
		for figure, why := range c.want {
			require.Equal(t, why, p.Nulls["op.get.growth"+figure], "%s: %s", name, figure)
			for of, ends := range map[string][]string{".order": {"_lo", "_hi"}, ".seconds_to": {"_lo", "_hi"}} {
				for _, end := range ends {
					if figure == of {
						require.Equal(t, why, p.Nulls["op.get.growth"+figure+end], "%s: %s%s", name, figure, end)
					}
				}
			}
		}
		if g := p.Op["get"].Growth; g != nil {
			require.Equal(t, p.Nulls["op.get.growth.order"] == "", g.Order != nil, name)
			require.Equal(t, p.Nulls["op.get.growth.order"] == "", g.Shown != "", name)
			require.Equal(t, p.Nulls["op.get.growth.drift"] == "", g.Drift != nil, name)
			require.Equal(t, p.Nulls["op.get.growth.seconds_to"] == "", g.SecondsTo != nil, name)
		}
	}
}

// TestGrowthIsOfScenarios where a phase has some, and not of their ops and steps.
func TestGrowthIsOfScenarios(t *testing.T) {
	load := growing(2000, linear)
	scenario := *load.Ops[driver.Get]
	scenario.Steps = []*measure.Op{load.Ops[driver.Get]}
	load.Scenarios = []*measure.Op{&scenario}
	ph := growthPhase(0)
	ph.Scenarios = []plan.Scenario{{Name: "visit", Weight: 1, Steps: []plan.ScenarioStep{{Op: "get", Key: "new"}}}}
	p := newPhase(ph, load)
	require.NotNil(t, p.Scenario["visit"].Growth)
	require.Nil(t, p.Op["get"].Growth)
	require.Equal(t, "growth is measured for the scenarios of the phase", p.Nulls["op.get.growth"])
	for name, step := range p.Scenario["visit"].Step {
		require.Nil(t, step.Growth)
		require.NotEmpty(t, p.Nulls["scenario.visit.step."+name+".growth"])
	}
}

// TestWhyALoadWasOver: the first applicable reason counts.
func TestWhyALoadWasOver(t *testing.T) {
	closed := func(c plan.Closed) *plan.Phase { return &plan.Phase{Closed: &c} }
	gets := func(n uint64) *measure.Totals {
		t := measure.NewTotals(origin, 1)
		t.AddDueN(driver.Get, n)
		return t
	}
	full := []*worker.Log{nil, {Log: localfile.Log{Failure: "full"}}}
	for name, c := range map[string]struct {
		ph      *plan.Phase
		m       Measured
		planned uint64
		want    run.End
	}{
		"errors":                {closed(plan.Closed{}), Measured{StoppedOn: "x", Aborted: true, Losses: make([]worker.Loss, 1), Logs: full}, 0, "errors"},
		"stopped":               {closed(plan.Closed{}), Measured{Aborted: true, Losses: make([]worker.Loss, 1), Logs: full}, 0, "stopped"},
		"lost":                  {closed(plan.Closed{}), Measured{Losses: make([]worker.Loss, 1), Logs: full}, 0, "lost"},
		"log":                   {closed(plan.Closed{}), Measured{Logs: full}, 0, "log"},
		"a log that did not":    {closed(plan.Closed{}), Measured{Logs: []*worker.Log{nil, {}}}, 0, "keys"},
		"populate":              {&plan.Phase{Populate: &plan.Clients{}}, Measured{}, 0, "keys"},
		"clear":                 {&plan.Phase{Clear: &plan.Clients{}}, Measured{}, 0, "keys"},
		"search":                {&plan.Phase{Search: &plan.Search{}}, Measured{}, 0, "search"},
		"open":                  {&plan.Phase{Open: &plan.Open{}}, Measured{}, 0, "schedule"},
		"open trace":            {&plan.Phase{Open: &plan.Open{Trace: &plan.Trace{}}}, Measured{}, 0, "trace"},
		"duration":              {closed(plan.Closed{Duration: 1}), Measured{}, 0, "duration"},
		"duration first":        {closed(plan.Closed{Duration: 1, Iterations: 1}), Measured{}, 11, "duration"},
		"iterations first":      {closed(plan.Closed{Duration: 1, Iterations: 1}), Measured{}, 10, "iterations"},
		"iterations":            {closed(plan.Closed{Iterations: 1}), Measured{}, 10, "iterations"},
		"trace":                 {closed(plan.Closed{Trace: &plan.Trace{}}), Measured{}, 0, "trace"},
		"iterations of a trace": {closed(plan.Closed{Iterations: 1, Trace: &plan.Trace{}}), Measured{}, 0, "iterations"},
		"keys":                  {closed(plan.Closed{}), Measured{}, 0, "keys"},
		"keys first":            {closed(plan.Closed{Duration: 1}), Measured{}, 10, "keys"},
	} {
		c.m.Load = gets(10)
		require.Equal(t, c.want, c.m.ended(c.ph, c.planned), name)
		c.ph.Scenarios = make([]plan.Scenario, 2)
		c.m.Load.Scenarios, c.m.Load.Ops[driver.Get] = []*measure.Op{c.m.Load.Ops[driver.Get], nil}, nil
		require.Equal(t, c.want, c.m.ended(c.ph, c.planned), "%s, of scenarios", name)
	}
}

// TestTurnsThatArePlanned: a closed load's are from its iterations, or the keys that it walks through.
func TestTurnsThatArePlanned(t *testing.T) {
	for name, c := range map[string]struct {
		ph          *plan.Phase
		pick, scope string
		want        uint64
	}{
		"one iteration":          {&plan.Phase{Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}, Iterations: 1}}, "uniform", "shared", 3},
		"one, of a walk":         {&plan.Phase{Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}, Iterations: 1}}, "sequence", "session", 3},
		"iterations":             {&plan.Phase{Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}, Iterations: 4}}, "uniform", "shared", 12},
		"iterations of a walk":   {&plan.Phase{Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}, Iterations: 4}}, "sequence", "shared", 12},
		"a walk of each session": {&plan.Phase{Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}}}, "sequence", "session", 150},
		"a walk of all":          {&plan.Phase{Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}}}, "sequence", "shared", 50},
		"no walk":                {&plan.Phase{Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}}}, "uniform", "session", 0},
		"a trace":                {&plan.Phase{Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}, Iterations: 4, Trace: &plan.Trace{}}}, "sequence", "shared", 0},
		"an open load":           {&plan.Phase{Open: &plan.Open{}}, "sequence", "shared", 0},
	} {
		p := testPlan()
		p.Datasets[0].Keys.Pick, p.Datasets[0].Keys.Scope = c.pick, c.scope
		c.ph.Dataset = "items"
		require.Equal(t, c.want, planned(p, c.ph), name)
	}
}
