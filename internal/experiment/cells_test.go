package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// A resumption keeps the runs that count, ended normally, and belong to one of its turns; of two for a turn, the first. A run with another plan is an
// error.
func TestWhichRunsAResumptionKeeps(t *testing.T) {
	was := &run.Experiment{ID: "x", PlanDigest: "d"}
	x := &run.Experiment{ID: "y", PlanDigest: "d", Repeat: 3, Variants: []run.Variant{{Name: "a"}, {Name: "b"}}}
	plans := []string{"pa", "pb"}
	for name, c := range map[string]struct {
		change func(r *run.Run)
		kept   bool
		err    string
	}{
		"one that counts":        {func(*run.Run) {}, true, ""},
		"the last repetition":    {func(r *run.Run) { r.Repetition = 3 }, true, ""},
		"the first":              {func(r *run.Run) { r.Repetition = 1 }, true, ""},
		"one too many":           {func(r *run.Run) { r.Repetition = 4 }, false, ""},
		"none":                   {func(r *run.Run) { r.Repetition = 0 }, false, ""},
		"another experiment":     {func(r *run.Run) { r.Experiment = "y" }, false, ""},
		"another variant":        {func(r *run.Run) { r.Variant = "c" }, false, ""},
		"recovered":              {func(r *run.Run) { r.Recovered = true }, false, ""},
		"stopped":                {func(r *run.Run) { r.Verdict.Completeness = run.Aborted }, false, ""},
		"failed":                 {func(r *run.Run) { r.Verdict.Completeness = run.Failed }, false, ""},
		"capped":                 {func(r *run.Run) { r.Verdict.Completeness = run.Capped }, true, ""},
		"of another plan":        {func(r *run.Run) { r.PlanDigest = "pa" }, false, "begun with a plan of digest pa in run 1, and this one's is pb"},
		"of no plan, and failed": {func(r *run.Run) { r.PlanDigest, r.Verdict.Completeness = "", run.Failed }, false, ""},
	} {
		r := &run.Run{Verdict: run.Verdict{Completeness: run.Complete}}
		r.ID, r.Experiment, r.Variant, r.Repetition, r.PlanDigest = "1", "x", "b", 2, "pb"
		c.change(r)
		again := *r
		again.ID = "2"
		kept, err := Resume(x, was, plans, []*run.Run{r, &again})
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
			require.Nil(t, kept, name)
			continue
		}
		require.NoError(t, err, name)
		want := map[Turn]*run.Run{}
		if c.kept {
			want[Turn{1, r.Repetition}] = r
		}
		require.Equal(t, want, kept, name)
		require.Equal(t, name == "capped", Capped(r), name)
	}
	was.PlanDigest = "e"
	_, err := Resume(x, was, plans, nil)
	require.ErrorContains(t, err, "experiment x was begun with a plan of digest e, and this one's is d")
	was.PlanDigest = ""
	_, err = Resume(x, was, plans, nil)
	require.ErrorContains(t, err, "a plan of digest (none: it is of an older loadgen), and")
}

// A digest covers everything that an experiment runs, and the order of its plans.
func TestDigestIsOfPlanAndOrder(t *testing.T) {
	digest := func(e *plan.Experiment, plans ...string) string {
		d, err := Digest(e, plans)
		require.NoError(t, err)
		require.Len(t, d, 64)
		return d
	}
	e := &plan.Experiment{Repeat: 3}
	is := digest(e, "a", "b")
	require.Equal(t, is, digest(&plan.Experiment{Repeat: 3}, "a", "b"))
	require.NotEqual(t, is, digest(e, "b", "a"))
	require.NotEqual(t, is, digest(e, "a"))
	require.NotEqual(t, is, digest(&plan.Experiment{Repeat: 4}, "a", "b"))
}

// Observations are shown in units for people; counters, per second.
func TestUnitsOfObservations(t *testing.T) {
	for _, c := range []struct {
		unit        string
		field, rate string
	}{
		{"bytes", "MiB", "MB/s"}, {"s", "ms", "%"}, {"us", "us", "us/s"}, {"", "", "/s"}, {"%", "%", "/s"}, {"C", "C", "/s"},
	} {
		require.Equal(t, c.field, shownIn(&run.Observed{Unit: c.unit}), "%q", c.unit)
		require.Equal(t, c.rate, shownIn(&run.Observed{Unit: c.unit, Counter: true}), "%q", c.unit)
	}
}

// An observation's cell is the mean over the runs that have it; for a counter, of its rate.
func TestMeansOfObservations(t *testing.T) {
	runs := func(all ...run.Observed) (list []*run.Run) {
		for _, o := range all {
			list = append(list, &run.Run{Phase: map[string]*run.Phase{"p": {Observe: map[string]map[string]run.Observed{"disk": {"used": o}}}}})
		}
		return append(list, &run.Run{Phase: map[string]*run.Phase{}}, &run.Run{Phase: map[string]*run.Phase{"p": {}}})
	}
	for name, c := range map[string]struct {
		runs []*run.Run
		unit string
		want run.Cell
	}{
		"a field":        {runs(run.Observed{Mean: value(3), Rate: value(100)}, run.Observed{Mean: value(5)}, run.Observed{}), "", run.Cell{Value: value(4), Text: "4.00"}},
		"a counter":      {runs(run.Observed{Counter: true, Mean: value(100), Rate: value(3)}, run.Observed{Counter: true, Rate: value(5)}), "", run.Cell{Value: value(4), Text: "4.00"}},
		"microseconds":   {runs(run.Observed{Mean: value(4)}), "us", run.Cell{Value: value(4), Text: "4.00"}},
		"mebibytes":      {runs(run.Observed{Mean: value(3 << 20)}), "MiB", run.Cell{Value: value(3 << 20), Text: "3.00"}},
		"nothing":        {runs(), "", run.Cell{Text: "–", Reason: "not observed in any run"}},
		"nothing, again": {runs(run.Observed{Counter: true, Mean: value(4)}), "", run.Cell{Text: "–", Reason: "not observed in any run"}},
	} {
		require.Equal(t, c.want, meanOf(c.runs, "p", "disk", "used", c.unit), name)
	}
}

// Observations are shown for each phase and name that any run has, of fields that changed in any.
func TestTablesOfObservations(t *testing.T) {
	c, _, phases := compared("a", "b")
	moved := run.Observed{Unit: "bytes", Min: value(1), Max: value(2), Mean: value(1 << 20)}
	still := run.Observed{Min: value(1), Max: value(1), Mean: value(1)}
	phases["a"].Observe = map[string]map[string]run.Observed{"disk": {"used": moved, "still": still}, "net": {"still": still}}
	phases["b"].Observe = map[string]map[string]run.Observed{"disk": {"used": still, "busy": {Unit: "s", Counter: true, Delta: value(1), Rate: value(0.5)}}}
	tables := c.observed()
	require.Len(t, tables, 1)
	is := tables[0]
	require.Equal(t, "phase p, observed: disk; means of the runs, of counters per second", is.Title)
	require.True(t, is.Transpose)
	require.Equal(t, []run.Column{{Name: "busy", Title: "busy", Unit: "%"}, {Name: "used", Title: "used, MiB", Unit: "MiB"}}, is.Columns)
	require.Equal(t, []string{"a", "b"}, []string{is.Rows[0].Name, is.Rows[1].Name})
	require.Equal(t, "–", is.Rows[0].Cells[0].Text)
	require.Equal(t, value(0.5), is.Rows[1].Cells[0].Value)
	require.Equal(t, "1.00", is.Rows[0].Cells[1].Text)
	phases["a"].Observe = nil
	require.Len(t, c.observed()[0].Columns, 1, "one field that changed is enough")
	phases["b"].Observe = nil
	require.Empty(t, c.observed())
}

// Cells without a value say why; an interval has both of its ends or none; a difference too large to be worth naming is only said to be large.
func TestCellsOfFigures(t *testing.T) {
	why := map[string]string{"ratio_lo": "low", "mde": "few"}
	require.Equal(t, run.Cell{Reason: "low"}, interval95(&run.Figure{RatioHi: value(1), Nulls: why}))
	require.Equal(t, run.Cell{Reason: "low"}, interval95(&run.Figure{RatioLo: value(1), Nulls: why}))
	require.Equal(t, run.Cell{Text: "0.500 to 2.00"}, interval95(&run.Figure{RatioLo: value(0.5), RatioHi: value(2)}))
	require.Equal(t, run.Cell{Reason: "few"}, mdeCell(&run.Figure{Nulls: why}))
	require.Equal(t, run.Cell{Value: value(10), Text: "1,000 %"}, mdeCell(&run.Figure{MDE: value(10)}))
	require.Equal(t, run.Cell{Value: value(10.5), Text: "> 1,000 %"}, mdeCell(&run.Figure{MDE: value(10.5)}))
	require.Equal(t, "s", timeUnit([]run.Figure{{}, {}}))
	require.Equal(t, "ms", timeUnit([]run.Figure{{}, {Score: value(0.005)}, {Score: value(5)}}))
}

// Figures are divided into tables by metric, whatever its unit.
func TestTablesOfFigures(t *testing.T) {
	x := &run.Experiment{Baseline: "a", Repeat: 3, Variants: []run.Variant{{Name: "a"}, {Name: "b"}}}
	of := func(variant, metric, unit string, perSecond bool) run.Figure {
		return run.Figure{Phase: "p", Op: "get", Variant: variant, Metric: metric, Unit: unit, PerSecond: perSecond, Score: value(0.5), Finding: metric + " of " + variant}
	}
	x.Figures = []run.Figure{
		of("a", "rate", "/s", true), of("b", "rate", "/s", true), of("a", "response.p99", "s", false), of("b", "response.p99", "s", false),
		of("a", "hit_ratio", "", false), of("b", "hit_ratio", "", false),
	}
	all := tables(x)
	require.Len(t, all, 3)
	for i, want := range []string{"rate, /s; values of single seconds", "response.p99, ms; one value per repetition, 3 at most", "hit_ratio, %; one value per repetition, 3 at most"} {
		require.Equal(t, "phase p, get: "+want, all[i].Title)
		require.Equal(t, "× a", all[i].Columns[2].Title)
		require.Len(t, all[i].Rows, 2)
		for j, v := range []string{"a", "b"} {
			require.Equal(t, v, all[i].Rows[j].Name)
			require.Equal(t, x.Figures[2*i+j].Finding, all[i].Rows[j].Cells[7].Text)
			require.Len(t, all[i].Rows[j].Cells, len(all[i].Columns))
		}
	}
	x.Figures = x.Figures[:5]
	require.Len(t, tables(x), 2, "the last has not all variants")
}

// What a variant lacks is explained in the words of a run that has them, or by what its runs lack.
func TestWhyAVariantHasNoValues(t *testing.T) {
	c, ops, phases := compared("a", "b")
	s, rate := subject{"p", "get"}, named("rate")
	ops["a"].Rate = value(1)
	require.Equal(t, "not every run of this variant has it", c.whyNone(s, rate, "b").Text)
	phases["b"].Nulls = map[string]string{"op.get.rate": "no plateau"}
	phases["b"].NullCodes = map[string]reason.Code{"op.get.rate": reason.NoPlateau}
	require.Equal(t, reason.Why{Code: reason.NoPlateau, Text: "no plateau"}, c.whyNone(s, rate, "b"))
	c.runs["b"] = nil
	require.Equal(t, "no run of this variant counts", c.whyNone(s, rate, "b").Text)
}

// The location of logs is reported with the durability asked for and the one obtained.
func TestDurabilityInWords(t *testing.T) {
	for want, l := range map[string]localfile.Log{
		"sync msync used on ext4":                                    {SyncAsked: "msync", SyncUsed: "msync", FileSystem: "ext4", Durable: true},
		"sync msync used where auto was asked, on ext4":              {SyncAsked: "auto", SyncUsed: "msync", FileSystem: "ext4", Durable: true},
		"sync none used where auto was asked, on tmpfs, NOT durable": {SyncAsked: "auto", SyncUsed: "none", FileSystem: "tmpfs"},
	} {
		require.Equal(t, want, durability(&run.Phase{Log: &worker.Log{Log: l}}))
	}
}

// A difference needs three things at once: an interval without 0, a small probability, and more than restarts scatter; upwards and downwards.
func TestADifferenceTakesAllThree(t *testing.T) {
	s := spread{deviation: 0.01, limit: 2}
	for _, c := range []struct {
		at, lo, hi, p float64
		want          bool
	}{
		{0.1, 0.05, 0.15, 0.01, true},
		{-0.1, -0.15, -0.05, 0.01, true},
		{0.1, 0, 0.2, 0.01, false},
		{-0.1, -0.2, 0, 0.01, false},
		{0.1, -0.05, 0.25, 0.01, false},
		{0.1, 0.05, 0.15, mistaken, false},
		{0.1, 0.05, 0.15, 0.9, false},
		{0.02, 0.01, 0.03, 0.01, false},
		{-0.02, -0.03, -0.01, 0.01, false},
		{0.021, 0.01, 0.03, 0.01, true},
		{-0.021, -0.03, -0.01, 0.01, true},
	} {
		require.Equal(t, c.want, s.shows(c.at, c.lo, c.hi, c.p), "%+v", c)
	}
}

// A metric that only some ops have is compared as soon as one run has such an op, even if the others lack it.
func TestWhoHasAMetric(t *testing.T) {
	s := subject{"p", "get"}
	batch := &run.Op{}
	batch.Due, batch.Keys.Due = 1, 16
	of := func(phases map[string]*run.Phase) *run.Run { return &run.Run{Phase: phases} }
	for name, c := range map[string]struct {
		runs []*run.Run
		want bool
	}{
		"none":             {nil, false},
		"no phase":         {[]*run.Run{of(nil)}, false},
		"no such op":       {[]*run.Run{of(map[string]*run.Phase{"p": {Op: map[string]*run.Op{"put": batch}}})}, false},
		"another op":       {[]*run.Run{of(map[string]*run.Phase{"p": {Op: map[string]*run.Op{"get": {}}}})}, false},
		"the op":           {[]*run.Run{of(map[string]*run.Phase{"p": {Op: map[string]*run.Op{"get": batch}}})}, true},
		"one of several":   {[]*run.Run{of(nil), of(map[string]*run.Phase{"p": {}}), of(map[string]*run.Phase{"p": {Op: map[string]*run.Op{"get": batch}}})}, true},
		"in another phase": {[]*run.Run{of(map[string]*run.Phase{"q": {Op: map[string]*run.Op{"get": batch}}})}, false},
	} {
		c1 := &comparer{runs: map[string][]*run.Run{"a": c.runs}}
		require.Equal(t, c.want, c1.has(s, named("keys.rate")), name)
		require.True(t, c1.has(s, named("rate")), "all have it")
	}
}
