package experiment

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/stat"
	"github.com/loadgen/loadgen/internal/worker"
)

// The square of a draw has a mean of 1 and a variance of 2/k, and no draw is 0 or NaN: an estimate is divided by it.
func TestChiHasItsMoments(t *testing.T) {
	for _, k := range []int{1, 2, 5, 30} {
		random := rand.New(rand.NewPCG(1, 1))
		squares := make([]float64, 200_000)
		for i := range squares {
			c := chi(k, random)
			require.GreaterOrEqual(t, c, 0.001, "%d degrees of freedom", k)
			squares[i] = c * c
		}
		require.InDelta(t, 1, stat.Mean(squares), 0.03, "%d degrees of freedom", k)
		require.InEpsilon(t, 2/float64(k), stat.Variance(squares), 0.2, "%d degrees of freedom", k)
	}
}

// By hand: two repetitions each, whose means are 1 apart on one side and 3 on the other, have a pooled variance of (1/2 + 9/2)/2; the limit is
// Student's with two degrees of freedom.
func TestSpreadOfRestarts(t *testing.T) {
	s := spreadOf(Sample{{0, 2}, {2, 2}}, Sample{{10}, {13}})
	require.Equal(t, 2, s.freedom)
	require.InDelta(t, math.Sqrt(2.5), s.deviation, 1e-12)
	require.InDelta(t, math.Sqrt(2.5), s.error, 1e-12)
	require.InDelta(t, 4.302653, s.limit, 1e-5)

	one := spreadOf(Sample{{1, 2}}, Sample{{3}, {5}, {7}})
	require.Equal(t, 2, one.freedom, "one repetition says nothing of restarts")
	require.InDelta(t, 2, one.deviation, 1e-12)
	require.InDelta(t, 2*math.Sqrt(1+1.0/3), one.error, 1e-12)
	none := spreadOf(Sample{{1, 2}}, Sample{{3, 4}})
	require.Zero(t, none.freedom)
	require.Zero(t, none.deviation)

	two := spreadOf(Sample{{3}}, Sample{{1}, {3}})
	require.Equal(t, 1, two.freedom)
	require.InDelta(t, 12.7062047*math.Sqrt(1+1.0/2), two.limit, 1e-5, "Student's of one degree of freedom")

	many := spread{deviation: 1, freedom: 100}.over(make(Sample, 50), make(Sample, 50))
	require.Equal(t, 2.0, many.limit, "at the least")
	require.InDelta(t, 0.2, many.error, 1e-12)

	// One repetition each, of four blocks with the variance 4 and two with 2: the means have variances of 1 and of 1.
	within := spreadWithin([]float64{-1, -1, 1, 1, 3, 3, -3, -3}, []float64{0, 2}, make(Sample, 1), make(Sample, 1))
	require.Equal(t, 8, within.freedom)
	require.InDelta(t, math.Sqrt((40.0/7/8+2.0/2)/2), within.deviation, 1e-12)
}

// What is detectable grows with the interval if that decides, and with the spread if that does, and is a share.
func TestDetectableIsWhatDecides(t *testing.T) {
	of := func(half, deviation float64) float64 {
		s := spread{deviation: deviation, freedom: 1000}.over(make(Sample, 500), make(Sample, 502))
		return detectable(half, s, rand.New(rand.NewPCG(1, 1)))
	}
	require.InDelta(t, math.Expm1(0.1), of(0.1, 0.0001), 0.01)
	require.InDelta(t, math.Expm1(0.2), of(0.0001, 0.1), 0.03)
	require.InDelta(t, math.Expm1(0.2), of(0.05, 0.1), 0.03, "the larger of the two, not their sum")
	// The 95th of a hundred futures: normal noise around the difference, of one standard error.
	s := spread{deviation: 0, freedom: 100_000, error: 0.1, limit: 2}
	require.InDelta(t, math.Expm1(0.1+1.645*0.1), detectable(0.1, s, rand.New(rand.NewPCG(1, 1))), 0.015)
}

func value(v float64) *float64 { return &v }

func TestWhatChangedIsShown(t *testing.T) {
	one, two, none := value(1), value(2), value(0)
	for _, c := range []struct {
		o    run.Observed
		want bool
	}{
		{run.Observed{Counter: true, Delta: one}, true},
		{run.Observed{Counter: true, Delta: none}, false},
		{run.Observed{Counter: true, Min: one, Max: two}, false},
		{run.Observed{Min: one, Max: two}, true},
		{run.Observed{Min: one, Max: value(1)}, false},
		{run.Observed{Min: one}, false},
		{run.Observed{Max: one}, false},
		{run.Observed{Delta: one}, false},
	} {
		require.Equal(t, c.want, changed(&c.o), "%+v", c.o)
	}
}

// compared is a comparer of runs with one load phase of gets, and the op in each.
func compared(variants ...string) (*comparer, map[string]*run.Op, map[string]*run.Phase) {
	c := &comparer{x: &run.Experiment{Baseline: variants[0]}, runs: map[string][]*run.Run{}}
	ops, phases := map[string]*run.Op{}, map[string]*run.Phase{}
	for _, v := range variants {
		c.x.Variants = append(c.x.Variants, run.Variant{Name: v})
		ops[v] = &run.Op{}
		phases[v] = &run.Phase{Kind: "load", Op: map[string]*run.Op{"get": ops[v]}}
		c.runs[v] = []*run.Run{{PhaseOrder: []string{"p"}, Phase: map[string]*run.Phase{"p": phases[v]}}}
	}
	return c, ops, phases
}

func named(name string) metric {
	for _, m := range metrics {
		if m.name == name {
			return m
		}
	}
	panic(name)
}

// A variant with one repetition that has no p99 because ops failed is not compared by the others: those would flatter it.
func TestCensoredRepetitionsTakeTheirVariantAlong(t *testing.T) {
	s := subject{"p", "get"}
	for _, test := range []struct {
		name   string
		metric string
		p99    *float64
		failed uint64
		want   bool // whether the variant has values
	}{
		{"a figure, and nothing failed", "response.p99", value(2), 0, true},
		{"a figure, though some failed", "response.p99", value(2), 3, true},
		{"none, because some failed", "response.p99", nil, 3, false},
		{"none, because one failed", "response.p99", nil, 1, false},
		{"none, but for another reason", "response.p99", nil, 0, true},
		{"another metric", "hit_ratio", nil, 3, true},
	} {
		c, ops, _ := compared("a", "b")
		second := &run.Op{}
		c.runs["b"] = append(c.runs["b"], &run.Run{Phase: map[string]*run.Phase{"p": {Kind: "load", Op: map[string]*run.Op{"get": second}}}})
		for _, o := range []*run.Op{ops["a"], ops["b"]} {
			o.Response.P99, o.HitRatio = value(1), value(1)
		}
		second.Response.P99, second.Response.Failed = test.p99, test.failed
		by := c.samples(s, named(test.metric)).by
		require.NotEmpty(t, by["a"], test.name)
		require.Equal(t, test.want, len(by["b"]) > 0, test.name)
	}
	require.False(t, censored(&run.Run{}, s, named("response.p99")), "a run without the phase")
	without := &run.Run{Phase: map[string]*run.Phase{"p": {}}}
	require.False(t, censored(without, s, named("response.p99")), "a phase without the op")
}

// One repetition without seconds is enough to compare all by their means.
func TestOneRepetitionWithoutSeconds(t *testing.T) {
	c, _, _ := compared("a", "b")
	answer := map[*run.Run][]float64{c.runs["a"][0]: {1, 2}, c.runs["b"][0]: {3}}
	by, all := c.collect(func(r *run.Run) []float64 { return answer[r] })
	require.True(t, all)
	require.Equal(t, map[string]Sample{"a": {{1, 2}}, "b": {{3}}}, by)

	delete(answer, c.runs["b"][0])
	by, all = c.collect(func(r *run.Run) []float64 { return answer[r] })
	require.False(t, all)
	require.Equal(t, map[string]Sample{"a": {{1, 2}}}, by)

	_, all = c.collect(func(*run.Run) []float64 { return nil })
	require.False(t, all)
}

func TestScoreCell(t *testing.T) {
	require.Equal(t, run.Cell{Value: value(2), Text: "2.00 ± 0.500"}, score(&run.Figure{Score: value(2), Error: value(0.5)}, "x"))
	require.Equal(t, run.Cell{Value: value(2), Text: "2.00"}, score(&run.Figure{Score: value(2)}, "x"))
	require.Equal(t, run.Cell{Reason: "why"}, score(&run.Figure{Error: value(0.5), Nulls: map[string]string{"score": "why"}}, "x"))
}

// Seconds are values only if at least ten measure the same of one op under one load.
func TestWhoHasSeconds(t *testing.T) {
	rate := named("rate")
	s := subject{"p", "get"}
	build := func(change func(p *run.Phase)) []float64 {
		p := &run.Phase{Kind: "load", Op: map[string]*run.Op{"get": {}}}
		p.Load.RampSeconds, p.Steady.Seconds = 2, 10
		for i := range 14 {
			p.Series = append(p.Series, run.Row{T: float64(i + 1), OK: uint64(100 + i)})
		}
		change(p)
		return seconds(&run.Run{Phase: map[string]*run.Phase{"p": p}}, s, rate)
	}
	all := []float64{102, 103, 104, 105, 106, 107, 108, 109, 110, 111}
	require.Equal(t, all, build(func(*run.Phase) {}), "behind the ramp, as long as the load is even")
	for name, change := range map[string]func(p *run.Phase){
		"nine seconds":     func(p *run.Phase) { p.Steady.Seconds = 9 },
		"another op, too":  func(p *run.Phase) { p.Op["put"] = &run.Op{} },
		"no such op":       func(p *run.Phase) { p.Op = map[string]*run.Op{"put": {}} },
		"none of it":       func(p *run.Phase) { p.Op["get"] = nil },
		"a level":          func(p *run.Phase) { p.Levels = make([]run.Level, 1) },
		"levels":           func(p *run.Phase) { p.Levels = make([]run.Level, 2) },
		"a row too short":  func(p *run.Phase) { p.Series[5].T -= 0.2 }, // and one too long: what comes after the steady load is absent instead
		"warm-up for long": func(p *run.Phase) { p.WarmUp.Seconds = 5 },
	} {
		require.Empty(t, build(change), name)
	}
	require.Nil(t, seconds(&run.Run{}, s, rate), "no such phase")
	require.Nil(t, seconds(&run.Run{Phase: map[string]*run.Phase{"p": {Op: map[string]*run.Op{"get": {}}}}}, s, named("hit_ratio")), "rows have none of it")
}

// A second is a value if its row has the usual length, to within a tenth, and begins before the middle of the last second of steady load.
func TestWhichRowsAreSeconds(t *testing.T) {
	rows := func(n int, width float64) []float64 { return slices.Repeat([]float64{width}, n) }
	for name, test := range map[string]struct {
		widths []float64
		steady int
		want   int
	}{
		"all":                      {rows(14, 1), 14, 14},
		"a tenth too short":        {append(rows(1, 0.9), rows(13, 1)...), 14, 13},
		"a little too short":       {append(rows(1, 0.91), rows(13, 1)...), 14, 14},
		"far too short":            {append(rows(1, 0.25), rows(13, 1)...), 14, 13},
		"a tenth too long":         {append(rows(1, 1.1), rows(13, 1)...), 14, 13},
		"a little too long":        {append(rows(1, 1.09), rows(13, 1)...), 14, 14},
		"far too long":             {append(rows(1, 1.75), rows(13, 1)...), 15, 13},
		"begins before the half":   {rows(14, 0.94), 10, 11},
		"begins at the half":       {append(rows(8, 0.9375), rows(6, 1)...), 10, 10},
		"begins behind the half":   {rows(14, 0.96), 10, 10},
		"as many as there must be": {rows(10, 1), 10, 10},
	} {
		p := &run.Phase{Kind: "load", Op: map[string]*run.Op{"get": {}}}
		p.Steady.Seconds = test.steady
		at := 0.0
		for _, width := range test.widths {
			at += width
			p.Series = append(p.Series, run.Row{T: at, OK: 100})
		}
		require.Len(t, seconds(&run.Run{Phase: map[string]*run.Phase{"p": p}}, subject{"p", "get"}, named("rate")), test.want, name)
	}
}

// The worst validity of either side is that of the comparison, whatever the order.
func TestValidityIsTheWorst(t *testing.T) {
	s := subject{"p", "get"}
	for _, test := range []struct{ a, b, want run.Validity }{
		{run.Valid, run.Valid, run.Valid},
		{run.Suspect, run.Valid, run.Suspect},
		{run.Valid, run.Suspect, run.Suspect},
		{run.Invalid, run.Suspect, run.Invalid},
		{run.Suspect, run.Invalid, run.Invalid},
		{run.Invalid, run.Valid, run.Invalid},
	} {
		c, _, phases := compared("a", "b")
		phases["a"].Validity, phases["b"].Validity = test.a, test.b
		require.Equal(t, test.want, c.validity(s, "b"), "%+v", test)
	}
	c, _, _ := compared("a", "b")
	require.Equal(t, run.Valid, c.validity(subject{"q", "get"}, "b"), "nobody ran it")
}

// Ops are listed in the order of verbs, phases in the order they ran, and only loads.
func TestSubjects(t *testing.T) {
	of := func(kind worker.StepKind, ops ...string) *run.Phase {
		p := &run.Phase{Kind: kind, Op: map[string]*run.Op{}}
		for _, o := range ops {
			p.Op[o] = &run.Op{}
		}
		return p
	}
	first := &run.Run{PhaseOrder: []string{"fill", "z", "a"}, Phase: map[string]*run.Phase{
		"fill": of("populate", "put"), "z": of("load", "put"), "a": of("load", "delete", "get"),
	}}
	second := &run.Run{PhaseOrder: []string{"z", "b"}, Phase: map[string]*run.Phase{"z": of("load", "get", "put"), "b": of("load", "put")}}
	require.Equal(t, []subject{{"z", "get"}, {"z", "put"}, {"a", "get"}, {"a", "delete"}, {"b", "put"}}, subjectsOf([]*run.Run{first, second}))
}

// Each figure that is missing has its reason, and those that are there have none.
func TestFindings(t *testing.T) {
	figure := func(change func(f *run.Figure)) *run.Figure {
		f := &run.Figure{Score: value(1), Ratio: value(1), RatioLo: value(1), RatioHi: value(1), Spread: value(0.1), MDE: value(0.05), Nulls: map[string]string{}}
		change(f)
		return f
	}
	for want, f := range map[string]*run.Figure{
		"no values: why":                          figure(func(f *run.Figure) { f.Score, f.Nulls["score"] = nil, "why" }),
		"baseline":                                figure(func(f *run.Figure) { f.Ratio, f.Variant = nil, "a" }),
		"differs":                                 figure(func(f *run.Figure) { f.Differs = true }),
		"cannot tell: ratio":                      figure(func(f *run.Figure) { f.Ratio, f.Nulls["ratio"], f.Nulls["spread"] = nil, "ratio", "spread" }),
		"cannot tell: high":                       figure(func(f *run.Figure) { f.RatioHi, f.Nulls["ratio_hi"] = nil, "high" }),
		"cannot tell: spread":                     figure(func(f *run.Figure) { f.Spread, f.Nulls["spread"] = nil, "spread" }),
		"no difference shown (MDE 5.00 %)":        figure(func(f *run.Figure) {}),
		"no difference shown (MDE above 1,000 %)": figure(func(f *run.Figure) { f.MDE = value(10.01) }),
	} {
		found := finding(f, "a")
		require.Equal(t, want, found.Text)
		begin, _, _ := strings.Cut(want, " (")
		begin, _, _ = strings.Cut(begin, ":")
		require.Equal(t, map[string]reason.Code{
			"no values": noValues, "baseline": reason.Baseline, "differs": differs, "cannot tell": undecided,
			"no difference shown": reason.NoDifference,
		}[begin], found.Code)
	}
	require.Equal(t, finding(figure(func(f *run.Figure) { f.MDE = nil }), "a"), finding(figure(func(f *run.Figure) { f.MDE = value(11) }), "a"))
	require.NotContains(t, finding(figure(func(f *run.Figure) { f.MDE = value(10) }), "a").Text, "above", "the bound itself is named")

	for validity, want := range map[run.Validity]string{run.Valid: "", run.Suspect: ", SUSPECT", run.Invalid: ", INVALID"} {
		require.Equal(t, want, doubtful(&run.Figure{Score: value(1), Validity: validity}))
		require.Empty(t, doubtful(&run.Figure{Validity: validity}), "there is no figure to doubt")
	}
}

// The outlook skips a variant without values, and is empty if the baseline has none.
func TestOutlookOfWhatIsNotThere(t *testing.T) {
	c, ops, _ := compared("a", "b", "c")
	var runs []*run.Run
	for v := range ops {
		for i, r := range c.runs[v] {
			r.ID, r.Variant = v, v
			c.x.Runs = append(c.x.Runs, run.ExperimentRun{ID: v, Variant: v, Repetition: i + 1, Stopped: run.StopFinished})
			runs = append(runs, r)
		}
	}
	c.x.Repeat = 5
	lines, all := Outlook(c.x, runs)
	require.Empty(t, lines, "nobody has a rate")
	require.True(t, all)
	ops["b"].Rate = value(1)
	lines, all = Outlook(c.x, runs)
	require.Empty(t, lines, "the baseline has none")
	require.True(t, all)
	ops["a"].Rate = value(1)
	lines, all = Outlook(c.x, runs)
	require.Len(t, lines, 1)
	require.Contains(t, lines[0], "too short for telling")
	require.False(t, all)
}

func TestNumbers(t *testing.T) {
	require.Nil(t, number(math.NaN()))
	require.Nil(t, number(math.Inf(1)))
	require.Nil(t, number(math.Inf(-1)))
	require.Equal(t, 0.0, *number(0))
}

// A run that the experiment does not name is ignored.
func TestStrangersHaveNoPart(t *testing.T) {
	x := &run.Experiment{Runs: []run.ExperimentRun{{ID: "known", Stopped: run.StopFinished}, {ID: "failed"}}}
	of := func(id string) *run.Run {
		r := &run.Run{}
		r.ID, r.Variant = id, id
		return r
	}
	c := newComparer(x, []*run.Run{of("known"), of("failed"), of("strange")})
	require.Len(t, c.runs, 1)
	require.Len(t, c.runs["known"], 1)
	require.Empty(t, newComparer(&run.Experiment{}, []*run.Run{of("strange")}).runs)
}

// The first is that of t = -2.93 and 9.776 degrees of freedom.
func TestWelchHasKnownValues(t *testing.T) {
	a, b := []float64{10.1, 11.2, 9.7, 10.4, 12.3}, []float64{12.9, 11.8, 14.1, 13.3, 12.2, 16.4, 11.1}
	require.InDelta(t, 0.015138091586907709, welch(a, b), 1e-9)
	require.InDelta(t, 0.015138091586907709, welch(b, a), 1e-9)
	require.Equal(t, 1.0, welch([]float64{0.1, 0.1, 0.1}, []float64{0.1, 0.1}), "all are the same")
	require.Zero(t, welch([]float64{0.1, 0.1, 0.1}, []float64{0.2, 0.2}), "none varies, and they differ")
	require.Zero(t, welch([]float64{1e-200, 2e-200}, []float64{0.2, 0.2}), "what varies has no square")
	require.Equal(t, 1.0, welch([]float64{1}, []float64{2, 3}), "too few")
}

// The interval of the median leaves out as many of the smallest values as are all below it with at most 2.5 % probability. Hundreds of thousands of
// values work like a few.
func TestMedianLeavesOut(t *testing.T) {
	for n, k := range map[int]int{6: 1, 8: 1, 9: 2, 20: 6, 100: 40, 101: 41, 997: 468, 5000: 2431, 200_000: 99562} {
		var s Sample
		for i := range n {
			s = append(s, []float64{float64(i + 1)})
		}
		m := s.Median()
		require.Equal(t, float64(k), m.Lo, "%d", n)
		require.Equal(t, float64(n-k+1), m.Hi, "%d", n)
	}
}

// One block has no variance, and so no probability, on either side.
func TestOneBlockShowsNothing(t *testing.T) {
	for name, c := range map[string][2][]float64{
		"of the baseline": {{1}, {2, 3}}, "of the variant": {{1, 2}, {5}}, "of both": {{1}, {2}}, "none": {{1, 2}, nil},
	} {
		require.InDelta(t, 1, welch(c[0], c[1]), 0, name)
	}
	require.Less(t, welch([]float64{1, 1.1}, []float64{9, 9.1}), 0.01)
}

// Where no run counts, not every run has values.
func TestNothingToCollect(t *testing.T) {
	values := func(*run.Run) []float64 { return []float64{1} }
	for name, c := range map[string]struct {
		runs map[string][]*run.Run
		all  bool
	}{
		"no variant": {nil, false}, "no run": {map[string][]*run.Run{"a": nil}, false}, "one": {map[string][]*run.Run{"a": {{}}}, true},
	} {
		by, all := (&comparer{runs: c.runs}).collect(values)
		require.Equal(t, c.all, all, name)
		require.Equal(t, c.all, len(by) > 0, name)
	}
}
