package expr

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

func lineOf(value string) plan.Column {
	return plan.Column{Name: "a", Title: "a", Value: value, File: "plan.hcl", Line: 12}
}

func TestCheckChartsAccepts(t *testing.T) {
	for _, c := range []plan.Chart{
		{Over: plan.OverTime, Unit: "/s", Lines: []plan.Column{lineOf(`phase.get.series.rate`), lineOf(`phase.put-warm.series.rate * 2`)}},
		{Over: plan.OverTime, Lines: []plan.Column{lineOf(`phase.get.series.miss / phase.get.series.due`), lineOf(`phase.get.series.in_flight`)}},
		{Over: plan.OverOps, Unit: "ms", Lines: []plan.Column{lineOf(`phase["get"].series.response["p99"]`)}},
		{Over: plan.OverTime, Unit: "x", Lines: []plan.Column{lineOf(`phase.get.series.rate / phase.get.op.get.rate`)}},
		{Over: plan.OverOps, Unit: "us", Lines: []plan.Column{lineOf(`phase.get.op.get.growth.course.p50`)}},
		{Over: "var.n", Unit: "s", Lines: []plan.Column{lineOf(`phase.get.seconds`), lineOf(`phase.get.seconds / 2`)}},
		{Over: plan.OverQuantile, Unit: "us", Lines: []plan.Column{lineOf(`phase.get.op.get.response`), lineOf(`phase.get.op.get.latency.bad.service`)}},
		{Over: plan.OverQuantile, Lines: []plan.Column{lineOf(`phase.get.op.get.acks[2]`), lineOf(`phase.get.op.get.lag`)}},
	} {
		require.Empty(t, CheckCharts(testPlan(), []plan.Chart{c}), c.Lines[0].Value)
	}
}

func TestCheckChartsRefuses(t *testing.T) {
	for _, c := range []struct {
		over                      plan.Over
		unit, value, want, remedy string
	}{
		{plan.OverTime, "", `phase.gett.series.rate`, `phase has no "gett"`, `Did you mean "get"?`},
		{plan.OverTime, "", `phase.get.series.rat`, `phase.get.series has no "rat"`, `Did you mean "rate"?`},
		{plan.OverTime, "ms", `phase.get.series.rate`, `a rate cannot be shown in "ms", which is for a time`, "Write another unit"},
		{plan.OverTime, "furlongs", `phase.get.series.rate`, `unknown unit "furlongs"`, `There are "x", "/s"`},
		{plan.OverTime, "", `phase.get.seconds`, `the value is the same all the time`, "phase.NAME.series.rate"},
		{plan.OverTime, "", `phase.get.series`, `the value is an object, not a number`, "phase.NAME.series.rate"},
		{plan.OverTime, "", `phase.get.series.ok > 1`, `the value is a bool, not a number`, "phase.NAME.series.rate"},
		{plan.OverOps, "", `phase.get.series.ok + phase.put-warm.series.ok`, `a line of several series`, "Write a line for each."},
		{plan.OverOps, "", `phase.get.series[0].ok`, `phase.get.series has no "0"`, ""},
		{plan.OverTime, "", `phase.get.op.get.growth.course.mean`, `a course has no time`, `Write over = "ops".`},
		{"var.n", "", `phase.get.ended`, `the value is a string, not a number`, "phase.NAME.seconds"},
		{"var.n", "", `phase.get.series`, `the value is a list of object, not a number`, "phase.NAME.seconds"},
		{plan.OverQuantile, "", `phase.get.op.get.response.p99`, `the value is not a latency of an op`, "phase.NAME.op.get.response"},
		{plan.OverQuantile, "", `phase.get.series`, `the value is not a latency of an op`, "phase.NAME.op.get.response"},
		{plan.OverQuantile, "", `phase.get.setup.op.put.response`, `the value is not a latency of an op`, "phase.NAME.op.get.response"},
		{plan.OverQuantile, "", `phase.get.op.put.response`, `phase.get.op has no "put"`, "There are get."},
		{plan.OverQuantile, "/s", `phase.get.op.get.response`, `a time cannot be shown in "/s", which is for a rate`, `Write "s", "ms" or "us"`},
	} {
		diags := CheckCharts(testPlan(), []plan.Chart{{Name: "c", Over: c.over, Unit: c.unit, Lines: []plan.Column{lineOf(c.value)}, File: "plan.hcl", Line: 3}})
		require.Len(t, diags, 1, c.value)
		require.Contains(t, diags[0].Summary, c.want, c.value)
		require.Contains(t, diags[0].Summary, `chart "c"`)
		require.Contains(t, diags[0].Detail, c.remedy, c.value)
		require.Equal(t, "plan.hcl", diags[0].Subject.Filename)
		require.Positive(t, diags[0].Subject.Start.Line)
	}
}

// repeated is a run of testPlan whose get phase has as many gets in each second as counts says.
func repeated(p *plan.Plan, counts ...int) *run.Run {
	r := run.New(run.Header{ID: "x", Plan: p.Name}, machine.Environment{})
	var rows []*measure.Totals
	sum := &measure.Totals{}
	for _, n := range counts {
		second := load(driver.Get, n)
		rows = append(rows, second)
		sum.Merge(second)
	}
	r.Add("get", judge.NewPhase(p, p.Phases[0], judge.Measured{
		Endpoints: []string{"127.0.0.1:7001"}, Load: sum, Series: series(rows...), Generators: []measure.Generator{{Executor: "event loop"}},
	}))
	r.Phase["get"].Finer = nil // the ops of all these seconds ended in the first
	return r
}

// brief is a run of testPlan whose get phase has ops that end in rows of a length, as counts says.
func brief(p *plan.Plan, length float64, counts ...uint64) *run.Run {
	r := repeated(p, 100)
	for i, n := range counts {
		r.Phase["get"].Finer = append(r.Phase["get"].Finer, run.FinerRow{T: length * float64(i+1), OK: n, Miss: 1})
	}
	return r
}

// TestDrawShortLoads draws rows shorter than a second, joined to one length for all repetitions.
func TestDrawShortLoads(t *testing.T) {
	p := testPlan()
	v := Variant{Name: "v", Plan: p, Runs: []*run.Run{brief(p, 0.25, 10, 20, 30, 40), brief(p, 0.5, 50, 90)}}
	lines := draw(t, plan.OverTime, `phase.get.series.rate`, v)
	require.Equal(t, [][2]float64{{0.5, 80}, {1, 160}}, lines[0].points)
	lines = draw(t, plan.OverTime, `phase.get.series.miss / (phase.get.series.ok + phase.get.series.miss)`, Variant{Plan: p, Runs: v.Runs[1:]})
	require.Equal(t, [][2]float64{{0.5, 1.0 / 51}, {1, 1.0 / 91}}, lines[0].points)
	for value, over := range map[string]plan.Over{`phase.get.series.due`: plan.OverTime, `phase.get.series.rate`: plan.OverOps} {
		require.Len(t, draw(t, over, value, v)[0].points, 1, "by the second")
	}
	hostile := Variant{Plan: p, Runs: []*run.Run{brief(p, 1e-300, 1, 2, 3), brief(p, 1e300, 50, 90)}}
	require.NotPanics(t, func() { draw(t, plan.OverTime, `phase.get.series.rate`, hostile) })
	v.Runs = append(v.Runs, repeated(p, 100))
	require.Len(t, draw(t, plan.OverTime, `phase.get.series.rate`, v)[0].points, 1, "one has no finer rows")
}

// drawn is a line that was drawn.
type drawn struct {
	points [][2]float64 // -1: none
	reason string
}

func draw(t *testing.T, over plan.Over, value string, variants ...Variant) (lines []drawn) {
	t.Helper()
	c := plan.Chart{Name: "c", Title: "title", Over: over, Unit: "ms", Lines: []plan.Column{lineOf(value)}}
	require.Empty(t, CheckCharts(variants[0].Plan, []plan.Chart{{Over: over, Lines: c.Lines}}))
	x := run.NewExperiment("x")
	Draw(x, c, variants)
	out := x.Charts[0]
	require.Equal(t, []string{"title", string(over), "ms"}, []string{out.Title, out.Over, out.Unit})
	require.Len(t, out.Lines, len(variants))
	for _, l := range out.Lines {
		one := drawn{reason: l.Reason}
		for i, x := range l.X {
			y := -1.0
			if l.Y[i] != nil {
				y = *l.Y[i]
			}
			one.points = append(one.points, [2]float64{x, y})
		}
		lines = append(lines, one)
	}
	return lines
}

// TestDrawSeries: gets are 90 % hits, and those of a second are the mean of the repetitions'.
func TestDrawSeries(t *testing.T) {
	p := testPlan()
	v := Variant{Name: "v", Plan: p, Runs: []*run.Run{repeated(p, 100, 200, 0), repeated(p, 300, 400)}}
	none := Variant{Name: "none", Plan: p}
	lines := draw(t, plan.OverTime, `phase.get.series.rate`, v, none)
	require.Equal(t, [][2]float64{{1, 180}, {2, 270}, {3, 0}}, lines[0].points)
	require.Equal(t, "no run of this variant counts", lines[1].reason)

	lines = draw(t, plan.OverOps, `phase.get.series.miss / phase.get.series.due`, v)
	require.Equal(t, [][2]float64{{200, 0.1}, {500, 0.1}, {300, -1}}, lines[0].points, "the third second is the first run's alone")
	require.Empty(t, lines[0].reason)

	lines = draw(t, plan.OverTime, `phase.get.series.response.p99`, v)
	require.Contains(t, lines[0].reason, "fewer than 10 lie beyond that quantile")
	lines = draw(t, plan.OverTime, `phase.put-warm.series.rate`, v)
	require.Equal(t, "phase put-warm has not run", lines[0].reason)

	long := make([]int, 3*maxPoints)
	for i := range long {
		long[i] = i % 3 * 10
	}
	lines = draw(t, plan.OverTime, `phase.get.series.due`, Variant{Plan: p, Runs: []*run.Run{repeated(p, long...)}})
	require.Len(t, lines[0].points, maxPoints)
	require.Equal(t, [2]float64{2, 10}, lines[0].points[0])
}

// TestDrawCurve goes as far as the samples do.
func TestDrawCurve(t *testing.T) {
	p := testPlan()
	var h measure.Times
	for i := range int64(1000) {
		h.Answered.Record((i + 1) * ms)
	}
	v := Variant{Name: "v", Plan: p, Runs: []*run.Run{repeated(p, 10)}, Latencies: func(_, phase, verb string, path ...string) *measure.Times {
		if len(path) == 2 && path[0] == "acks" {
			return nil
		}
		require.Equal(t, []string{"get", "get", "response"}, append([]string{phase, verb}, path...))
		return &h
	}}
	got := draw(t, plan.OverQuantile, `phase.get.op.get.response`, v)[0].points
	require.Len(t, got, 61, "to p99, beyond which there are 10")
	require.InDelta(t, 0.9, got[30][0], 1e-9)
	require.InEpsilon(t, 0.9, got[30][1], 0.01)
	require.InEpsilon(t, 0.99, got[60][1], 0.01)
	require.Contains(t, draw(t, plan.OverQuantile, `phase.get.op.get.acks[5]`, v)[0].reason, "no samples of it")
	h = measure.Times{}
	h.Answered.Record(1)
	require.Equal(t, "fewer than 10 samples", draw(t, plan.OverQuantile, `phase.get.op.get.response`, v)[0].reason)
}

// watched is testPlan with an observation of a field in each unit.
func watched() *plan.Plan {
	p := testPlan()
	p.Observes = []*plan.Observe{{Name: "redis", Kind: plan.ObserveServer, Target: "space", Fields: []plan.Field{
		{Name: "memory", Unit: "bytes"}, {Name: "cpu", Unit: "s", Counter: true}, {Name: "hits", Counter: true}, {Name: "spent", Unit: "us", Counter: true},
	}}}
	return p
}

// TestUnitsOfObservations are those of their fields.
func TestUnitsOfObservations(t *testing.T) {
	for _, c := range []struct{ value, unit, want string }{
		{`phase.get.observe.redis.memory.max`, "MiB", ""},
		{`phase.get.observe.redis.memory.max`, "ms", "a number of bytes cannot be shown in \"ms\""},
		{`phase.get.observe.redis.cpu.delta`, "s", ""},
		{`phase.get.observe.redis.cpu.rate`, "%", ""},
		{`phase.get.observe.redis.cpu.rate`, "MiB", "a share cannot be shown in \"MiB\""},
		{`phase.get.observe.redis.hits.rate`, "/min", ""},
		{`phase.get.observe.redis.hits.delta`, "", ""},
		{`phase.get.observe.redis.spent.delta`, "ms", "a number of microseconds cannot be shown in \"ms\""},
		{`phase.get.observe.redis.spent.delta / 1000000`, "ms", ""},
	} {
		column := lineOf(c.value)
		column.Unit = c.unit
		diags := CheckTables(watched(), []plan.Table{{Name: "t", Columns: []plan.Column{column}}}, nil)
		if c.want == "" {
			require.Empty(t, diags, c.value)
			continue
		}
		require.Len(t, diags, 1, c.value)
		require.Contains(t, diags[0].Summary, c.want)
	}
	memory := plan.Chart{Over: plan.OverTime, Unit: "MiB", Lines: []plan.Column{lineOf(`phase.get.probes.redis.series.value.memory`)}}
	require.Empty(t, CheckCharts(watched(), []plan.Chart{memory}))
	memory.Unit = "/s"
	require.Contains(t, CheckCharts(watched(), []plan.Chart{memory})[0].Summary, `a number of bytes cannot be shown in "/s"`)
}

// TestDrawObservations have the times of their probes, and the number of the op at each.
func TestDrawObservations(t *testing.T) {
	p := watched()
	series := repeated(p, 100, 200).Phase["get"].Series
	seen := &judge.Observation{Of: "127.0.0.1:7001"}
	probe := func(at, bytes float64) *run.Probe {
		return &run.Probe{At: at, Value: map[string]float64{"memory": bytes}}
	}
	seen.Begin(probe(0, 1000))
	seen.Add(probe(1, 3000))
	seen.Add(&run.Probe{At: 1.5, Missing: map[string]string{"": "no answer"}})
	seen.End(probe(2, 5000))
	r := run.New(run.Header{ID: "x", Plan: p.Name}, machine.Environment{})
	r.Add("get", judge.NewPhase(p, p.Phases[0], judge.Measured{
		Endpoints: []string{"127.0.0.1:7001"}, Load: load(driver.Get, 300), Series: series, Generators: []measure.Generator{{Executor: "event loop"}},
		Observed: map[string]*judge.Observation{"redis": seen},
	}))
	v := Variant{Name: "v", Plan: p, Runs: []*run.Run{r}}
	const value = `phase.get.probes.redis.series.value.memory`
	require.Equal(t, [][2]float64{{0, 1000}, {1, 3000}, {1.5, -1}, {2, 5000}}, draw(t, plan.OverTime, value, v)[0].points)
	require.Equal(t, [][2]float64{{0, 1000}, {100, 3000}, {100, -1}, {300, 5000}}, draw(t, plan.OverOps, value, v)[0].points)
	none := draw(t, plan.OverTime, `phase.get.probes.redis.series.value.cpu`, v)[0]
	require.Empty(t, none.points)
	require.NotEmpty(t, none.reason)
}

// TestDrawOverVariable has a line for each combination of the other variables, with a point for each value of the one.
func TestDrawOverVariable(t *testing.T) {
	p := testPlan()
	x := run.NewExperiment("x")
	var variants []Variant
	add := func(name string, values map[string]string, runs ...*run.Run) {
		x.Variants = append(x.Variants, run.Variant{Name: name, Values: values})
		variants = append(variants, Variant{Name: name, Plan: p, Runs: runs})
	}
	add("n=100,w=1", map[string]string{"n": "100", "w": "1"}, repeated(p, 300, 400))
	add("n=10,w=1", map[string]string{"n": "10", "w": "1"}, repeated(p, 100), repeated(p, 300))
	add("n=10,w=2", map[string]string{"n": "10", "w": "2"}, repeated(p, 50))
	add("n=5,w=2", map[string]string{"n": "5", "w": "2"})
	add("n=10,w=3", map[string]string{"n": "10", "w": "3"})
	add("other", map[string]string{"w": "1"}, repeated(p, 1))
	Draw(x, plan.Chart{Title: "c", Over: "var.n", Lines: []plan.Column{lineOf(`phase.get.series[0].due + phase.get.max_stall_seconds`)}}, variants)
	lines := x.Charts[0].Lines
	require.Len(t, lines, 3)
	require.Equal(t, "w=1", lines[0].Name)
	require.Equal(t, []float64{10, 100}, lines[0].X)
	require.Equal(t, []float64{200, 300}, []float64{*lines[0].Y[0], *lines[0].Y[1]})
	require.Equal(t, "w=2", lines[1].Name)
	require.Equal(t, []float64{5, 10}, lines[1].X)
	require.Nil(t, lines[1].Y[0])
	require.InDelta(t, 50, *lines[1].Y[1], 0)
	require.Equal(t, "no run of these variants counts", lines[2].Reason)
	require.Equal(t, []string{"n=100,w=1", "n=10,w=2", "n=10,w=3"}, []string{lines[0].Variant, lines[1].Variant, lines[2].Variant})

	Draw(x, plan.Chart{Title: "c", Over: "var.n", Of: map[string]string{"w": "2"}, Lines: []plan.Column{lineOf(`phase.get.seconds`)}}, variants)
	require.Len(t, x.Charts[1].Lines, 1, "of those that have the value alone")
	require.Equal(t, "n=10,w=2", x.Charts[1].Lines[0].Variant)
	require.Equal(t, "a", x.Charts[1].Lines[0].Name, "which needs no value that all have")

	Draw(x, plan.Chart{Title: "c", Over: "var.n", Variants: []string{"n=10,w=2", "n=5,w=2"}, Lines: []plan.Column{lineOf(`phase.get.seconds`)}}, variants)
	require.Len(t, x.Charts[2].Lines, 1, "of those that are named")
	require.Equal(t, []float64{5, 10}, x.Charts[2].Lines[0].X)
}
