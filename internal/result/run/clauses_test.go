package run

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// says compares an error with a text; "" means none.
func says(t *testing.T, want string, err error, name string) {
	t.Helper()
	if want == "" {
		require.NoError(t, err, name)
		return
	}
	require.ErrorContains(t, err, want, name)
}

// A result's verdict follows from what it holds: each clause is broken by itself.
func TestWhatAVerdictMaySay(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		change func(r *Run)
		want   string
	}{
		"as it is":               {func(*Run) {}, ""},
		"degraded, and complete": {func(r *Run) { r.Losses = []worker.Loss{{Worker: "w"}} }, "complete, though worker w was lost"},
		"degraded":               {func(r *Run) { r.Losses = []worker.Loss{{Worker: "w"}}; r.Conclude(Degraded) }, ""},
		"a loss that cannot be": {func(r *Run) {
			r.Losses = []worker.Loss{{Worker: "v"}, {Worker: "w", UnseenOps: 1}}
			r.Conclude(Degraded)
		}, "losses[1]: worker w may have sent at most 1 op"},
		"no completeness":         {func(r *Run) { r.Verdict.Completeness = "whole" }, `completeness is "whole"`},
		"another validity":        {func(r *Run) { r.Verdict.Validity = Suspect }, "verdict: suspect, but the worst phase is valid"},
		"other assertions":        {func(r *Run) { r.Verdict.Assertions = Pass }, "assertions are pass, but by the asserts they are none"},
		"asserts without them":    {func(r *Run) { r.Asserts = []AssertResult{{Name: "a", OK: &yes}} }, "assertions are none, but by the asserts they are pass"},
		"another exit code":       {func(r *Run) { r.ExitCode++ }, "exit code 1, but that of the verdict is 0"},
		"a count beyond":          {func(r *Run) { r.Phase["p"].Reconnects = mostCounted + 1 }, `phase "p": a count of 9007199254740993`},
		"a count that just is":    {func(r *Run) { r.Phase["p"].Reconnects = mostCounted }, ""},
		"a count in a map":        {func(r *Run) { r.Phase["p"].Scenario["s"].Shed = math.MaxUint64 }, `phase "p": a count of 18446744073709551615`},
		"a scenario out of order": {func(r *Run) { r.Phase["p"].Scenario["s"].Due++ }, `phase "p" is judged valid: scenario s: due 1`},
		"one that says so": {func(r *Run) {
			p := r.Phase["p"]
			p.Scenario["s"].Due++
			p.Validity, p.Reasons = Invalid, []Reason{{Validity: Invalid, Text: "why"}}
			r.Conclude(Complete)
		}, ""},
		"better than its reasons": {func(r *Run) { r.Phase["p"].Reasons = []Reason{{Validity: Suspect}} }, "judged valid, but the worst of its reasons is suspect"},
		"worse than its reasons":  {func(r *Run) { r.Phase["p"].Validity = Suspect }, "judged suspect, but the worst of its reasons is valid"},
		"another schema":          {func(r *Run) { r.Schema++ }, "result of schema"},
		"a phase too many":        {func(r *Run) { r.PhaseOrder = append(r.PhaseOrder, "p") }, "phase_order does not name each phase once"},
		"no phase":                {func(r *Run) { r.Phase["p"] = nil }, `phase "p" is null`},
	} {
		r := New(Header{}, machine.Environment{})
		p := &Phase{Kind: worker.Load, Validity: Valid, Nulls: map[string]string{}, Scenario: map[string]*Scenario{"s": {}}}
		r.Add("p", p)
		r.Conclude(Complete)
		c.change(r)
		says(t, c.want, r.CheckValid(), name)
	}
}

// Others may use a machine, but that makes a load doubtful.
func TestWhatAMachineMayBe(t *testing.T) {
	for name, c := range map[string]struct {
		others, idle float64
		change       func(p *Phase)
		want         string
	}{
		"all used":            {0.02, 0, nil, ""},
		"all of it":           {0.05, 0.95, nil, ""},
		"by rounding":         {0.05, 0.95 + 1e-10, nil, ""},
		"more than all":       {0.05, 0.95 + 1e-8, nil, "others had 0.05 of the machine's"},
		"others less":         {-0.01, 0.5, nil, "others had -0.01"},
		"idle less":           {0.01, -0.5, nil, "others had 0.01"},
		"both less":           {-0.01, -0.5, nil, "others had -0.01"},
		"no number":           {math.NaN(), 0.5, nil, "others had NaN"},
		"no number idle":      {0.01, math.NaN(), nil, "others had 0.01"},
		"doubtful":            {0.06, 0.09, nil, "judged valid, but others had 0.06"},
		"doubtful, and said":  {0.06, 0.09, func(p *Phase) { p.Validity, p.Reasons = Suspect, []Reason{{Validity: Suspect}} }, ""},
		"doubtful of a setup": {0.06, 0.09, func(p *Phase) { p.Kind = worker.Setup }, ""},
	} {
		p := &Phase{Kind: worker.Load, Validity: Valid, Generator: measure.Generator{Machine: &measure.Machine{OthersShare: c.others, IdleShare: c.idle}}}
		if c.change != nil {
			c.change(p)
		}
		says(t, c.want, p.checkJudgement(), name)
	}
	require.NoError(t, (&Phase{Validity: Valid}).checkJudgement())
	of := func(v Validity, reasons ...Validity) error {
		l := Level{Validity: v}
		for _, is := range reasons {
			l.Reasons = append(l.Reasons, Reason{Validity: is})
		}
		return (&Phase{Validity: Valid, Levels: []Level{{Validity: Valid}, l}}).checkJudgement()
	}
	require.NoError(t, of(Invalid, Suspect, Invalid, Suspect))
	require.EqualError(t, of(Suspect, Suspect, Invalid), "level 1: judged suspect, but the worst of its reasons is invalid")
	require.EqualError(t, of(Valid, Valid, "good"), `level 1: a reason is judged "good"`)
	for v, known := range map[Validity]bool{Valid: true, Suspect: true, Invalid: true, "": false, "good": false} {
		require.Equal(t, known, v.known(), v)
	}
}

// The results of a search are levels of it that held, with these rates.
func TestWhatASearchMayHaveFound(t *testing.T) {
	at := func(i int) *int { return &i }
	rate := func(f float64) *float64 { return &f }
	for name, c := range map[string]struct {
		s    Search
		want string
	}{
		"nothing":                 {Search{}, ""},
		"both":                    {Search{Rate: rate(10), Level: at(0), Knee: rate(20), KneeLevel: at(1)}, ""},
		"a rate alone":            {Search{Rate: rate(20), Level: at(1)}, ""},
		"a knee alone":            {Search{Knee: rate(10), KneeLevel: at(0)}, ""},
		"half an interval":        {Search{Low: rate(10)}, "the ends of its interval do not go together"},
		"an interval upside down": {Search{Low: rate(20), High: rate(10)}, "the ends of its interval do not go together"},
		"more held than tries":    {Search{Held: 2, Tries: 1}, "2 of 1 tries held"},
		"a rate without level":    {Search{Rate: rate(10)}, "a rate without its level"},
		"a level without rate":    {Search{Level: at(0)}, "a rate without its level"},
		"a knee without level":    {Search{Knee: rate(10)}, "a knee without its level"},
		"a level without knee":    {Search{KneeLevel: at(0)}, "a knee without its level"},
		"a level beyond":          {Search{Rate: rate(10), Level: at(3)}, "search: level 3 of 3"},
		"a level before":          {Search{Rate: rate(10), Level: at(-1)}, "search: level -1 of 3"},
		"a knee's level beyond":   {Search{Knee: rate(10), KneeLevel: at(3)}, "search: level 3 of 3"},
		"another rate":            {Search{Rate: rate(11), Level: at(0)}, "search: rate 11, but its level offered 10"},
		"another knee":            {Search{Knee: rate(10), KneeLevel: at(1)}, "search: knee 10, but its level offered 20"},
		"a level that failed":     {Search{Rate: rate(30), Level: at(2)}, `the level of its rate is "failed"`},
		"a knee at one that did":  {Search{Knee: rate(30), KneeLevel: at(2)}, `the level of its knee is "failed"`},
		"the knee of a good rate": {Search{Rate: rate(10), Level: at(0), Knee: rate(30), KneeLevel: at(2)}, `the level of its knee is "failed"`},
	} {
		p := &Phase{Search: &c.s, Levels: []Level{{Rate: 10, Outcome: held}, {Rate: 20, Outcome: held}, {Rate: 30, Outcome: "failed"}}}
		says(t, c.want, p.checkSearch(), name)
	}
	require.NoError(t, (&Phase{}).checkSearch())
}

// What was done was asked for and answered, by each of its targets, in the load and its setup.
func TestOpsTakeTheirRequests(t *testing.T) {
	done := func(ok, miss uint64) map[string]*Op {
		o := &Op{}
		o.OK, o.Miss = ok, miss
		return map[string]*Op{"get": o}
	}
	asked := func(target string, n ...uint64) (all []Requests) {
		for _, n := range n {
			all = append(all, Requests{Target: target, Verb: "get", Requests: measure.Requests{Answered: n}}, Requests{Target: target, Verb: "put", Requests: measure.Requests{Answered: 100}})
		}
		return all
	}
	step := func(target string, ok, miss uint64) *Step {
		s := &Step{Target: target, Op: "get"}
		s.OK, s.Miss = ok, miss
		return s
	}
	three := &Replication{Coordinate: "client", N: 3, W: 2, R: 2}
	two := []Target{{Name: "b"}}
	for name, c := range map[string]struct {
		p    Phase
		want string
	}{
		"none":                    {Phase{Op: done(0, 0)}, ""},
		"as many":                 {Phase{Op: done(3, 2), Requests: asked("", 4, 1)}, ""},
		"one less":                {Phase{Op: done(3, 2), Requests: asked("", 4)}, "get: 5 ops ended ok or miss, which takes 5 answered requests, and 4 were"},
		"two for each":            {Phase{Kind: worker.Load, Target: Target{Replication: three}, Op: done(3, 2), Requests: asked("", 10)}, ""},
		"one less than that":      {Phase{Kind: worker.Load, Target: Target{Replication: three}, Op: done(3, 2), Requests: asked("", 9)}, "which takes 10 answered requests, and 9 were"},
		"coordinated by the node": {Phase{Kind: worker.Load, Target: Target{Replication: &Replication{Coordinate: "server", N: 3, R: 2}}, Op: done(3, 2), Requests: asked("", 5)}, ""},
		"a setup":                 {Phase{Setup: &Ledgers{Op: done(2, 0), Requests: asked("", 2)}}, ""},
		"a setup to all":          {Phase{Target: Target{Replication: three}, Setup: &Ledgers{Op: done(2, 0), Requests: asked("", 6)}}, ""},
		"a setup to fewer":        {Phase{Target: Target{Replication: three}, Setup: &Ledgers{Op: done(2, 0), Requests: asked("", 5)}}, "setup: get: 2 ops ended ok or miss, which takes 6"},
		"two targets": {Phase{
			Target: Target{Name: "a"}, Others: two, Scenario: map[string]*Scenario{"s": {Step: map[string]*Step{"1": step("a", 1, 1), "2": step("b", 2, 2), "3": step("b", 1, 0)}}},
			Op: done(99, 0), Requests: append(asked("a", 2), asked("b", 5)...),
		}, ""},
		"two targets, one less": {Phase{
			Target: Target{Name: "a"}, Others: two, Scenario: map[string]*Scenario{"s": {Step: map[string]*Step{"1": step("a", 1, 1), "2": step("b", 2, 2), "3": step("b", 1, 0)}}},
			Requests: append(asked("a", 9), asked("b", 4)...),
		}, "target b: get: 5 ops ended ok or miss, which takes 5 answered requests, and 4 were"},
	} {
		says(t, c.want, c.p.CheckRequests(), name)
	}
}

// What a worker used is summed over its steps; memory is the maximum.
func TestWhatAWorkerSpent(t *testing.T) {
	var w Worker
	one, two := measure.Generator{CPUSeconds: 1, MaxRSSBytes: 30}, measure.Generator{CPUSeconds: 2, MaxRSSBytes: 20}
	one.ElapsedSeconds, two.ElapsedSeconds = 4, 8
	one.MinorFaults, two.MinorFaults = 16, 32
	w.AddSpent(&one)
	w.AddSpent(&two)
	require.Equal(t, []any{3.0, 12.0, int64(30), uint64(48)}, []any{w.CPUSeconds, w.ElapsedSeconds, w.MaxRSSBytes, w.MinorFaults})
}

// A run of an experiment counts if it was carried out, or if its variant's time was used up.
func TestWhichRunsCount(t *testing.T) {
	for _, c := range []struct {
		is     Completeness
		want   Stop
		counts bool
	}{
		{Complete, StopFinished, true},
		{Degraded, StopFinished, true},
		{Capped, StopCap, true},
		{Aborted, StopAborted, false},
		{Failed, StopFailed, false},
	} {
		one := comparedRun("a", c.is).Ended()
		require.Equal(t, c.want, one.Stopped, "%+v", c)
		require.Equal(t, c.counts, one.Counts(), "%+v", c)
	}
}

// A null has the reason at its path, or that of an object containing it; a path that leads nowhere has none.
func TestWhyANullIs(t *testing.T) {
	r := New(Header{}, machine.Environment{Nulls: map[string]string{"cpu": "no cpu"}})
	r.Add("p", &Phase{Validity: Valid, Nulls: map[string]string{"op.get": "none asked", "op.get.rate": "no plateau"}})
	for want, paths := range map[string][][]string{
		"no cpu":              {{"environment", "cpu"}, {"environment", "cpu", "model"}},
		"no plateau":          {{"phase", "p", "op", "get", "rate"}},
		"none asked":          {{"phase", "p", "op", "get"}, {"phase", "p", "op", "get", "p99"}},
		"":                    {{}, {"environment"}, {"phase"}, {"phase", "p"}, {"phase", "p", "op"}, {"environment", "ram"}, {"other", "cpu"}, {"cpu"}},
		"phase q has not run": {{"phase", "q", "op"}, {"phase", "q"}},
	} {
		for _, path := range paths {
			require.Equal(t, want, r.Why(path...).Text, "%q", path)
		}
	}
}

// Ops have several keys if more keys than ops were due.
func TestWhichOpsAreBatches(t *testing.T) {
	for _, c := range []struct {
		ops, keys uint64
		want      bool
	}{{0, 0, false}, {3, 0, false}, {3, 3, false}, {3, 4, true}, {1, 16, true}} {
		o := &Op{}
		o.Due, o.Keys.Due = c.ops, c.keys
		require.Equal(t, c.want, o.Batched(), "%+v", c)
	}
}

// How many good answers an op needs depends on the phase's purpose, the verb and the replication: at least one.
func TestAnswersThatAnOpTakes(t *testing.T) {
	of := func(n, w, r int) *Replication {
		return &Replication{Coordinate: "client", N: n, W: w, R: r}
	}
	for name, c := range map[string]struct {
		r                                 *Replication
		get, put, remove, setup, populate uint64
	}{
		"none":                    {nil, 1, 1, 1, 1, 1},
		"the server's own":        {&Replication{Coordinate: "server", N: 5, W: 4, R: 3}, 1, 1, 1, 1, 1},
		"of one":                  {of(1, 1, 1), 1, 1, 1, 1, 1},
		"of which nothing is set": {of(0, 0, 0), 1, 1, 1, 1, 1},
		"of five":                 {of(5, 4, 2), 2, 4, 4, 5, 5},
		"that reads all":          {of(3, 1, 3), 3, 1, 1, 3, 3},
	} {
		require.Equal(t, c.get, answers(c.r, worker.Load, "get"), name)
		require.Equal(t, c.put, answers(c.r, worker.Load, "put"), name)
		require.Equal(t, c.remove, answers(c.r, worker.Load, "delete"), name)
		require.Equal(t, c.setup, answers(c.r, worker.Setup, "get"), name)
		require.Equal(t, c.populate, answers(c.r, worker.Populate, "put"), name)
	}
}

// A log's share of its bound is a figure of the phase, or a null with its reason.
func TestAPhaseSaysWhatItsLogGotOfTheBound(t *testing.T) {
	r, fast, slow := New(Header{}, machine.Environment{}), 400.0, 300.0
	add := func(name string, l *worker.Log) {
		r.Add(name, &Phase{Validity: Valid, Log: l, Nulls: map[string]string{}, NullCodes: map[string]reason.Code{}})
	}
	add("raw", &worker.Log{BytesPerSecond: &fast})
	add("log", &worker.Log{BytesPerSecond: &slow, Bound: "raw"})
	add("lost", &worker.Log{BytesPerSecond: &slow, Bound: "none"})
	add("puts", nil)
	require.Equal(t, 0.75, *r.Phase["log"].Log.BoundShare)
	require.Empty(t, r.Phase["log"].Nulls)
	require.Equal(t, "phase none was not run", r.Why("phase", "lost", "log", "bound_share").Text)
	require.Empty(t, r.Phase["puts"].Nulls)
}

// Runs are named in the order in which they ended, and each counts only for its own variant.
func TestRunsOfAnExperiment(t *testing.T) {
	x := NewExperiment("x")
	x.Variants = []Variant{{Name: "a", Stopped: StopFinished}, {Name: "b", Stopped: StopFinished}, {Name: "c", Stopped: StopFinished}}
	for _, one := range []struct {
		variant string
		is      Completeness
	}{{"b", Complete}, {"a", Complete}, {"b", Aborted}, {"a", Capped}, {"b", Complete}} {
		r := comparedRun(one.variant, one.is)
		x.Add(r)
		require.Equal(t, r.Ended(), x.Runs[len(x.Runs)-1])
	}
	require.Len(t, x.Runs, 5)
	require.Equal(t, []Variant{{Name: "a", Runs: 2, Stopped: StopCap}, {Name: "b", Runs: 2, Stopped: StopAborted}, {Name: "c", Stopped: StopFinished}}, x.Variants)
}

// An experiment is consistent: each clause is broken alone, in the last place where it can be.
func TestWhatAnExperimentMaySay(t *testing.T) {
	for name, c := range map[string]struct {
		change func(x *Experiment)
		want   string
	}{
		"as it is":             {func(*Experiment) {}, ""},
		"another schema":       {func(x *Experiment) { x.Schema++ }, "experiment of schema"},
		"an older schema":      {func(x *Experiment) { x.Schema-- }, ""},
		"too old a schema":     {func(x *Experiment) { x.Schema -= 2 }, "experiment of schema"},
		"no such baseline":     {func(x *Experiment) { x.Baseline = "z" }, `baseline "z" is not a variant`},
		"no variants":          {func(x *Experiment) { x.Variants = nil }, `baseline "a" is not a variant`},
		"a run of no variant":  {func(x *Experiment) { x.Runs[1].Variant = "z" }, `run 2 is of variant "z"`},
		"more x than y":        {func(x *Experiment) { l := &x.Charts[0].Lines[1]; l.X = append(l.X, 2) }, `chart "c": 2 x and 1 y in line "m" of variant "b"`},
		"more y than x":        {func(x *Experiment) { l := &x.Charts[0].Lines[1]; l.Y = append(l.Y, nil) }, `chart "c": 1 x and 2 y in line "m" of variant "b"`},
		"a cell too many":      {func(x *Experiment) { r := x.Tables[0].Rows; r[1].Cells = append(r[1].Cells, Cell{}) }, `table "t": 2 cells in row "second", 1 columns`},
		"a cell too few":       {func(x *Experiment) { x.Tables[0].Rows[1].Cells = nil }, `table "t": 0 cells in row "second", 1 columns`},
		"a column without any": {func(x *Experiment) { x.Tables[0].Columns = nil }, `table "t": 1 cells in row "first", 0 columns`},
	} {
		x := NewExperiment("x")
		x.Variants, x.Baseline = []Variant{{Name: "a"}, {Name: "b"}}, "a"
		x.Runs = []ExperimentRun{{ID: "1", Variant: "a"}, {ID: "2", Variant: "b"}}
		x.Tables = []Table{{Title: "t", Columns: []Column{{Name: "m"}}, Rows: []TableRow{{Name: "first", Cells: make([]Cell, 1)}, {Name: "second", Cells: make([]Cell, 1)}}}}
		x.Charts = []Chart{{Title: "c", Lines: []ChartLine{{Name: "m", Variant: "a"}, {Name: "m", Variant: "b", X: []float64{1}, Y: make([]*float64, 1)}}}}
		c.change(x)
		says(t, c.want, x.CheckValid(), name)
	}
}
