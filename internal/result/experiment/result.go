package experiment

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Codes of the findings of a comparison with a baseline, and of reasons why there is no test, besides those of package reason.
const (
	differs       reason.Code = "differs"           // it differs by at least what matters, even adjusted for all comparisons
	differsLittle reason.Code = "differs_little"    // it differs by less than matters
	differsMaybe  reason.Code = "differs_maybe"     // it differs, and whether by what matters is open
	differsAlone  reason.Code = "differs_alone"     // it differs on its own, but not among all comparisons
	unordered     reason.Code = "differs_unordered" // it differs, but the sides were not run in turn
	same          reason.Code = "same"              // it does not differ by what matters
	noValues      reason.Code = "no_values"         // there is nothing to compare
	undecided     reason.Code = "undecided"         // the effect of chance is unknown
	setByLoad     reason.Code = "set_by_load"       // the schedule of an open load sets it
	noVariation   reason.Code = "no_variation"      // all runs of a side have the same value
	ofShares      reason.Code = "of_shares"         // shares are compared by difference
)

// New returns an experiment before its first run. The plan is the baseline's. It begins in the second that is in its ID.
func New(id string, p *plan.Plan, e *plan.Experiment, at time.Time, version string) *run.Experiment {
	x := run.NewExperiment(id)
	x.Plan, x.StartedAt, x.Loadgen, x.Seed = p.Name, at.UTC().Truncate(time.Second), version, p.Seed
	x.Repeat, x.Order, x.Baseline, x.Fork, x.CapSeconds = e.Repeat, e.Order, e.Baseline, e.Fork, e.Cap.Seconds()
	x.Compare, x.Matters, x.LeftOut = e.Compare, e.Matters, e.LeftOut
	for _, v := range e.Variants {
		x.Variants = append(x.Variants, run.Variant{Name: v.Name, Values: v.Values, Stopped: run.StopFinished})
	}
	return x
}

// Conclude compares the variants of an experiment by the results of its runs, and makes the figures and tables. It skips runs that the experiment
// does not name, or that do not count. The same runs give the same figures.
func Conclude(x *run.Experiment, runs []*run.Run) {
	c := newComparer(x, runs)
	c.ordered = x.Order == "sequential"
	c.apart = c.ordered
	x.Figures, x.Tables = []run.Figure{}, []run.Table{}
	for _, s := range subjectsOf(runs) {
		c.compare(s)
	}
	c.conclude()
	x.Logs = c.logs()
	if x.Gate != nil {
		judge(x, runs)
	}
	x.Tables = append(x.Tables, tables(x)...)
}

// comparer makes the figures of an experiment.
type comparer struct {
	x       *run.Experiment
	runs    map[string][]*run.Run // by variant; only those that count
	apart   bool                  // the runs are not of rounds in which each side ran once
	ordered bool                  // the runs of one side came after those of another
}

func newComparer(x *run.Experiment, runs []*run.Run) *comparer {
	c := &comparer{x: x, runs: map[string][]*run.Run{}}
	for _, r := range runs {
		if i := slices.IndexFunc(x.Runs, func(named run.ExperimentRun) bool { return named.ID == r.ID }); i >= 0 && x.Runs[i].Counts() {
			c.runs[r.Variant] = append(c.runs[r.Variant], r)
		}
	}
	return c
}

// compare adds the figures of an op: of each metric that a run has, one for each variant.
func (c *comparer) compare(s subject) {
	for _, m := range metricsOf(c.x.Compare) {
		if !c.has(s, m) {
			continue
		}
		sides := map[string]values{}
		for _, v := range c.x.Variants {
			sides[v.Name] = c.values(s, m, v.Name)
		}
		for _, v := range c.x.Variants {
			f := run.Figure{
				Variant: v.Name, Phase: s.phase, Op: s.op, Metric: m.Name, Unit: unitOf(m),
				Nulls: map[string]string{}, NullCodes: map[string]reason.Code{},
				Validity: c.validity(s, v.Name),
			}
			own := sides[v.Name]
			if len(own.of) == 0 {
				nullAll(&f, c.whyNone(s, m, v.Name), append(relative, "score", "error", "median")...)
			} else {
				c.describe(&f, s, own.of)
				c.relate(&f, s, m, sides)
			}
			c.x.Figures = append(c.x.Figures, f)
		}
	}
}

// describe sets the figures that need no baseline. A quantile is known to the bucket that it is the upper end of. A share is no surer than all gets of
// all runs make it, also if it was the same in each.
func (c *comparer) describe(f *run.Figure, s subject, values []float64) {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	f.Values, f.Median = n, number((sorted[(n-1)/2]+sorted[n/2])/2)
	if n < leastRuns {
		f.Score = number(stat.Mean(values))
		f.Null("error", reason.Why{Code: reason.TooFew, Text: fmt.Sprintf("it takes %d runs", leastRuns)})
		return
	}
	mean, half := stat.MeanWithin(values, mistaken)
	if f.Share() {
		if low, high := c.shares(s, f.Variant); !math.IsNaN(low) {
			half = max(half, mean-low, high-mean)
		}
	}
	within := mean * blur(f.Metric) / 2
	f.Score, f.Error = number(mean-within), number(half+within)
}

// relate sets the figures that compare a variant's values with the baseline's.
func (c *comparer) relate(f *run.Figure, s subject, m opMetric, sides map[string]values) {
	var why reason.Why
	switch {
	case f.Variant == c.x.Baseline:
		why = reason.Why{Code: reason.Baseline, Text: "it is the baseline"}
	case len(sides[c.x.Baseline].of) == 0:
		why = reason.Why{Code: noValues, Text: fmt.Sprintf("the baseline %s has no values", c.x.Baseline)}
	case c.fixed(s, m, f.Variant, c.x.Baseline):
		why = reason.Why{Code: setByLoad, Text: "the open load sets it, and both kept up"}
	default:
		why = c.otherSync(f.Phase, f.Variant)
	}
	if why.Text == "" && m.Kind != metric.Share {
		sides = logs(sides)
		if slices.Contains(slices.Concat(sides[c.x.Baseline].of, sides[f.Variant].of), math.Inf(-1)) {
			why = reason.Why{Code: reason.NoTime, Text: "a ratio needs values above 0"}
		}
	}
	if why.Text != "" {
		nullAll(f, why, relative...)
		return
	}
	t := c.test(f.Variant, sides, blur(m.Name))
	lo, hi := t.Interval(mistaken)
	if m.Kind == metric.Share {
		f.Difference, f.DifferenceLo, f.DifferenceHi = number(t.At), number(lo), number(hi)
	} else {
		f.Ratio, f.RatioLo, f.RatioHi = number(math.Exp(t.At)), number(math.Exp(lo)), number(math.Exp(hi))
	}
	f.Spread, f.P = number(t.spread), number(t.P())
	switch {
	case t.rounds < t.least:
		why = c.tooFew(s, m, f.Variant, t)
	case t.SE() == 0 && t.At == 0:
		why = reason.Why{Code: noVariation, Text: "all runs have the same value"}
	case t.SE() == 0:
		why = reason.Why{Code: noVariation, Text: "the runs of a side do not differ from each other, so nothing tells what chance does"}
	}
	if why.Text != "" {
		f.RatioLo, f.RatioHi, f.DifferenceLo, f.DifferenceHi, f.P = nil, nil, nil, nil, nil
		nullAll(f, why, "ratio_lo", "ratio_hi", "p", "p_holm", "mde")
	}
	if f.Spread == nil {
		f.Null("spread", why)
	}
	if m.Kind == metric.Share {
		nullAll(f, reason.Why{Code: ofShares, Text: "shares are compared by difference"}, "ratio", "ratio_lo", "ratio_hi")
	}
}

// tooFew says why there are too few values: too few runs, unless they are runs without the figure, such as a quantile of too few ops.
func (c *comparer) tooFew(s subject, metric opMetric, variant string, t test) reason.Why {
	for _, v := range []string{variant, c.x.Baseline} {
		if len(c.runs[v]) < t.least || len(c.values(s, metric, v).of) >= t.least {
			continue
		}
		if why := c.whyNone(s, metric, v); why.Code != noValues {
			return reason.Why{Code: why.Code, Text: "not every run has it: " + why.Text}
		}
	}
	n, m := len(c.values(s, metric, c.x.Baseline).of), len(c.values(s, metric, variant).of)
	text := fmt.Sprintf("%d and %d runs are too few to tell what chance does: it takes %d of each", n, m, t.least)
	if min(n, m) >= t.least {
		text = fmt.Sprintf("too few rounds have a run of both: %d, and it takes %d", t.rounds, t.least)
	}
	return reason.Why{Code: reason.TooFew, Text: text}
}

// test is a variant's test beside the baseline.
type test struct {
	stat.Difference
	rounds, least int     // how many runs of each side it compares, and how many it takes
	spread        float64 // standard deviation between runs, without what a round does to all of them; NaN if there is one run of each
}

// test compares a variant with the baseline by rounds: those that both have, and of the other variants those that have all of these, too. Sides that
// were not run in rounds are compared by Welch's test.
func (c *comparer) test(variant string, sides map[string]values, blur float64) test {
	a, b := sides[c.x.Baseline], sides[variant]
	others := func(fit func(values) bool) (all []values) {
		for _, v := range c.x.Variants {
			if v.Name != variant && v.Name != c.x.Baseline && fit(sides[v.Name]) {
				all = append(all, sides[v.Name])
			}
		}
		return all
	}
	var rounds [][]float64
	if !c.apart {
		both := slices.DeleteFunc(slices.Clone(a.rounds), func(round int) bool { return !slices.Contains(b.rounds, round) })
		in := append([]values{a, b}, others(func(v values) bool {
			return !slices.ContainsFunc(both, func(round int) bool { return !slices.Contains(v.rounds, round) || math.IsInf(v.at(round), 0) })
		})...)
		for _, round := range both {
			var row []float64
			for _, v := range in {
				row = append(row, v.at(round))
			}
			rounds = append(rounds, row)
		}
	}
	if n := len(rounds); n > 1 {
		t := test{Difference: stat.NewRounds(rounds, blur), rounds: n, least: stat.LeastRounds(len(rounds[0]))}
		t.spread = t.SE() * math.Sqrt(float64(n)/2)
		return t
	}
	var rest [][]float64
	for _, v := range others(func(v values) bool { return len(v.of) > 0 && !slices.Contains(v.of, math.Inf(-1)) }) {
		rest = append(rest, v.of)
	}
	t := test{Difference: stat.NewWelch(a.of, b.of, blur, rest...), rounds: min(len(a.of), len(b.of)), least: stat.LeastRounds(2 + len(rest))}
	t.spread = t.SE() / math.Sqrt(1/float64(len(a.of))+1/float64(len(b.of)))
	return t
}

// logs returns the logarithms of all values.
func logs(sides map[string]values) map[string]values {
	all := map[string]values{}
	for name, v := range sides {
		of := make([]float64, len(v.of))
		for i := range of {
			of[i] = math.Log(v.of[i])
		}
		all[name] = values{of, v.rounds}
	}
	return all
}

func nullAll(f *run.Figure, why reason.Why, names ...string) {
	for _, name := range names {
		f.Null(name, why)
	}
}

// otherSync says why a phase that wrote logs cannot be compared with the baseline's: their durability differs. It returns nothing if it does not
// differ.
func (c *comparer) otherSync(phase, variant string) (why reason.Why) {
	own, base := c.syncs(phase, variant), c.syncs(phase, c.x.Baseline)
	if slices.Equal(own, base) {
		return reason.Why{}
	}
	return reason.Why{Code: reason.NotAlike, Text: fmt.Sprintf("not comparable, sync used is %s, and %s by the baseline", strings.Join(own, " or "), strings.Join(base, " or "))}
}

// syncs lists the durabilities that a phase's logs used in the runs of a variant, sorted.
func (c *comparer) syncs(phase, variant string) (used []string) {
	for _, r := range c.runs[variant] {
		sync := "none at all"
		p := r.Phase[phase]
		switch {
		case p == nil:
			continue
		case p.Log != nil:
			sync = p.Log.SyncUsed
		}
		if !slices.Contains(used, sync) {
			used = append(used, sync)
		}
	}
	slices.Sort(used)
	return used
}

// relative are the numbers that need a baseline.
var relative = []string{"ratio", "ratio_lo", "ratio_hi", "p", "p_holm", "spread", "mde"}

// whyNone says why a variant has no values of a metric.
func (c *comparer) whyNone(s subject, m opMetric, variant string) reason.Why {
	for _, r := range c.runs[variant] {
		if why := r.Why(append([]string{"phase", s.phase, "op", s.op}, strings.Split(m.Name, ".")...)...); why.Text != "" {
			return why
		}
	}
	if len(c.runs[variant]) == 0 {
		return reason.Why{Code: noValues, Text: "no run of this variant counts"}
	}
	return reason.Why{Code: noValues, Text: "not every run of this variant has it"}
}

// validity returns the worst validity of the phase in the runs of the variant and of the baseline.
func (c *comparer) validity(s subject, variant string) run.Validity {
	worst := run.Valid
	for _, r := range slices.Concat(c.runs[variant], c.runs[c.x.Baseline]) {
		if p := r.Phase[s.phase]; p != nil {
			worst = worst.And(p.Validity)
		}
	}
	return worst
}

// conclude says what the figures show, once they are complete.
func (c *comparer) conclude() {
	all, p := c.x.Figures, c.tested()
	adjusted := Holm(p)
	c.foretell(len(p), func(f, baseline *run.Figure) int { return min(baseline.Values, f.Values) })
	for i := range all {
		f := &all[i]
		if f.P != nil {
			f.PHolm, adjusted = &adjusted[0], adjusted[1:]
		}
		found := c.finding(f, len(p))
		f.Differs = found.Code == differs || found.Code == unordered
		f.Code, f.Finding = found.Code, found.Text+doubtful(f)
	}
}

// tested returns the p of the figures that have one.
func (c *comparer) tested() (p []float64) {
	for _, f := range c.x.Figures {
		if f.P != nil {
			p = append(p, *f.P)
		}
	}
	return p
}

// foretell sets the smallest differences that would be found among a family of comparisons, if each side of one has a number of runs.
func (c *comparer) foretell(family int, runs func(f, baseline *run.Figure) int) {
	variants := len(c.x.Variants)
	at := slices.IndexFunc(c.x.Variants, func(v run.Variant) bool { return v.Name == c.x.Baseline })
	sides := func(of []run.Figure) (n int) {
		for _, f := range of {
			n += min(f.Values, 1)
		}
		return n
	}
	known := map[[3]int]float64{}
	detectable := func(n, sides, family int) float64 {
		k := [3]int{n, sides, family}
		if known[k] == 0 {
			known[k] = Detectable(n, sides, family)
		}
		return known[k]
	}
	for i := range c.x.Figures {
		f := &c.x.Figures[i]
		if f.P == nil {
			continue
		}
		first := i - i%variants
		n, m := runs(f, &c.x.Figures[first+at]), sides(c.x.Figures[first:first+variants])
		matters, back := math.Log1p(c.x.Matters), math.Expm1
		if f.Share() {
			matters, back = c.x.Matters, func(d float64) float64 { return d }
		}
		// It must show among the family, and its own interval must exclude what does not matter.
		f.MDE = number(back(max(detectable(n, m, family)**f.Spread, matters+detectable(n, m, 1)**f.Spread) + blur(f.Metric)))
	}
}

// finding says what a comparison with the baseline showed, among all comparisons.
func (c *comparer) finding(f *run.Figure, comparisons int) reason.Why {
	at, lo, hi := f.Ratio, f.RatioLo, f.RatioHi
	hundreds := strconv.FormatFloat(100*c.x.Matters, 'g', 4, 64)
	equal, limit := 1.0, hundreds+" %"
	if f.Difference != nil {
		at, lo, hi = f.Difference, f.DifferenceLo, f.DifferenceHi
		equal, limit = 0, hundreds+" points"
	}
	little := lo != nil && *lo > equal-c.x.Matters && *hi < equal+c.x.Matters
	enough := lo != nil && (*lo >= equal+c.x.Matters || *hi <= equal-c.x.Matters)
	order := ""
	if c.ordered {
		order = "; order not randomised"
	}
	why := f.Nulls["p"]
	switch {
	case f.Score == nil:
		return reason.Why{Code: noValues, Text: "no values: " + f.Nulls["score"]}
	case f.Variant == c.x.Baseline:
		return reason.Why{Code: reason.Baseline, Text: "baseline"}
	case f.NullCodes["p"] == setByLoad:
		return reason.Why{Code: setByLoad, Text: "no finding: " + why}
	case f.NullCodes["p"] == noVariation && *at == equal:
		return reason.Why{Code: reason.NoDifference, Text: "no difference shown: " + why}
	case f.P == nil:
		return reason.Why{Code: undecided, Text: "cannot tell"} // the reason is given once, for all
	case *f.PHolm < mistaken && enough && c.ordered:
		return reason.Why{Code: unordered, Text: "differs" + order}
	case *f.PHolm < mistaken && enough:
		return reason.Why{Code: differs, Text: "differs"}
	case *f.PHolm < mistaken && little:
		return reason.Why{Code: differsLittle, Text: "differs, by less than matters: same within " + limit + order}
	case *f.PHolm < mistaken:
		return reason.Why{Code: differsMaybe, Text: "differs, perhaps by less than matters" + order}
	case little:
		return reason.Why{Code: same, Text: "same within " + limit}
	case *f.P < mistaken:
		return reason.Why{Code: differsAlone, Text: fmt.Sprintf("differs by itself, not among %d comparisons", comparisons)}
	}
	if *f.MDE > 1 {
		return reason.Why{Code: undecided, Text: "cannot tell (MDE " + mde(f) + ")"}
	}
	return reason.Why{Code: reason.NoDifference, Text: "no difference shown (MDE " + mde(f) + ")"}
}

// doubtful returns the suffix of a finding whose figures are doubtful.
func doubtful(f *run.Figure) string {
	if f.Score == nil || f.Validity == run.Valid {
		return ""
	}
	return ", " + strings.ToUpper(string(f.Validity))
}

// mostMDE is the largest difference, as a share, that is worth naming as one that would have been shown.
const mostMDE = 10

// number returns f as a figure; nil if it is NaN or infinite.
func number(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// DetectableBy returns how large a difference must be for an experiment to find it nine times in ten, in standard deviations between runs, and the number
// of comparisons at most among which that is. The plan is the baseline's. A comparison that only the runs can rule out counts.
func DetectableBy(e *plan.Experiment, p *plan.Plan) (deviations float64, family int) {
	for _, ph := range p.Phases {
		for _, m := range metricsOf(e.Compare) {
			for _, o := range ph.Ops {
				if foreseen(ph, o.Op, m) {
					family += len(e.Variants) - 1
				}
			}
		}
	}
	return Detectable(e.Repeat, len(e.Variants), family), family
}

// foreseen says whether a plan's phase may have a finding about a metric of an op.
func foreseen(ph *plan.Phase, verb string, m opMetric) bool {
	switch {
	case ph.Populate != nil || ph.Clear != nil || ph.Verify != nil:
		return false
	case m.Kind == metric.Rate && (ph.Open != nil || ph.Stages != nil):
		return false // the schedule sets it
	case m.Only != nil:
		return ph.Batch > 1
	}
	return m.Kind != metric.Share || verb == "get" || verb == "read"
}

// Outlook says how large a difference must be for the experiment to find it nine times in ten, once each variant has the runs that a comparison takes, for the first metric
// of each op. It returns false if it is too early to say.
func Outlook(x *run.Experiment, runs []*run.Run) (lines []string, known bool) {
	soFar := *x
	soFar.Figures = nil
	c := newComparer(&soFar, runs)
	for _, v := range x.Variants {
		if len(c.runs[v.Name]) < min(stat.LeastRounds(len(x.Variants)), x.Repeat) {
			return nil, false
		}
	}
	for _, s := range subjectsOf(runs) {
		c.compare(s)
	}
	c.foretell(len(c.tested()), func(*run.Figure, *run.Figure) int { return x.Repeat })
	for _, s := range subjectsOf(runs) {
		var worst *run.Figure
		for i := range soFar.Figures {
			f := &soFar.Figures[i]
			if f.MDE != nil && f.Phase == s.phase && f.Op == s.op && (worst == nil || f.Metric == worst.Metric && *f.MDE > *worst.MDE) {
				worst = f
			}
		}
		if worst != nil {
			lines = append(lines, fmt.Sprintf("phase %s: the smallest difference in %s of %s that is shown nine times in ten is %s (%s), if runs scatter as those so far",
				s.phase, worst.Metric, s.op, mde(worst), worst.Variant))
		}
	}
	return lines, true
}
