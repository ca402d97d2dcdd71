package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/reason"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Codes for what a comparison with a baseline showed, besides those of package reason.
const (
	differs   reason.Code = "differs"   // even adjusted for all comparisons
	noValues  reason.Code = "no_values" // nothing to compare
	undecided reason.Code = "undecided" // too few values to tell
)

// New returns an experiment before its first run. The plan is the baseline's.
func New(id string, p *plan.Plan, e *plan.Experiment, at time.Time, version string) *run.Experiment {
	x := run.NewExperiment(id)
	x.Plan, x.StartedAt, x.Loadgen, x.Seed = p.Name, at.UTC(), version, p.Seed
	x.Repeat, x.Order, x.Baseline, x.Fork, x.CapSeconds = e.Repeat, e.Order, e.Baseline, e.Fork, e.Cap.Seconds()
	for _, v := range e.Variants {
		x.Variants = append(x.Variants, run.Variant{Name: v.Name, Values: v.Values, Stopped: run.StopFinished})
	}
	return x
}

// Conclude compares the variants of an experiment by the results of its runs, and makes the figures and tables. It skips runs that the experiment
// does not name, or that do not count. The same runs give the same figures.
func Conclude(x *run.Experiment, runs []*run.Run) {
	c := newComparer(x, runs)
	x.Figures, x.Tables = []run.Figure{}, []run.Table{}
	for _, s := range subjectsOf(runs) {
		for _, m := range metrics {
			c.compare(s, m)
		}
	}
	c.conclude()
	x.Logs = c.logs()
	x.Tables = append(x.Tables, tables(x)...)
}

// conclude says what the figures show, once they are complete.
func (c *comparer) conclude() {
	comparisons := adjust(c.x.Figures)
	for i := range c.x.Figures {
		f := &c.x.Figures[i]
		found := finding(f, c.x.Baseline)
		if f.Differs && *f.PHolm >= mistaken {
			f.Differs = false
			found = reason.Why{Code: reason.DiffersAlone, Text: fmt.Sprintf("differs by itself, not among %d comparisons", comparisons)}
		}
		f.Code, f.Finding = found.Code, found.Text+doubtful(f)
	}
}

// comparer makes the figures of an experiment.
type comparer struct {
	x    *run.Experiment
	runs map[string][]*run.Run // by variant; only those that count
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

// compare adds the figures of one metric of one op, one for each variant; none if no run has the metric.
func (c *comparer) compare(s subject, m metric) {
	if !c.has(s, m) {
		return
	}
	samples := c.samples(s, m)
	if len(samples.by) == 0 {
		return
	}
	for _, v := range c.x.Variants {
		f := run.Figure{
			Variant: v.Name, Phase: s.phase, Op: s.op, Metric: m.name, Unit: m.unit, PerSecond: samples.perSecond,
			Nulls: map[string]string{}, NullCodes: map[string]reason.Code{},
			Validity: c.validity(s, v.Name),
		}
		sample := samples.by[v.Name]
		if len(sample) == 0 {
			missing(&f, c.whyNone(s, m, v.Name))
		} else {
			describe(&f, sample)
			c.relate(&f, samples.by[c.x.Baseline], sample)
		}
		c.x.Figures = append(c.x.Figures, f)
	}
}

// describe sets what a sample says on its own.
func describe(f *run.Figure, s Sample) {
	f.Values = s.Len()
	f.Effective = number(s.EffectiveLen())
	score, median := s.Score(), s.Median()
	f.Score, f.Error = number(score.Value), number(score.Hi-score.Value)
	f.Median, f.MedianLo, f.MedianHi = number(median.Value), number(median.Lo), number(median.Hi)
	if f.Error == nil {
		f.Null("error", reason.Why{Code: reason.TooFew, Text: "it takes two independent values"})
	}
	if f.MedianLo == nil {
		f.MedianHi = nil
		six := reason.Why{Code: reason.TooFew, Text: "it takes six independent values"}
		f.Null("median_lo", six)
		f.Null("median_hi", six)
	}
}

// relate sets how a sample compares with the baseline's.
func (c *comparer) relate(f *run.Figure, baseline, s Sample) {
	var why reason.Why
	switch {
	case f.Variant == c.x.Baseline:
		why = reason.Why{Code: reason.Baseline, Text: "it is the baseline"}
	case len(baseline) == 0:
		why = reason.Why{Code: noValues, Text: fmt.Sprintf("the baseline %s has no values", c.x.Baseline)}
	default:
		why = c.otherSync(f.Phase, f.Variant)
	}
	if why.Text != "" {
		for _, name := range relative {
			f.Null(name, why)
		}
		return
	}
	r := Compare(baseline, s, c.x.Seed+uint64(len(c.x.Figures)))
	f.Ratio, f.RatioLo, f.RatioHi = number(r.Ratio.Value), number(r.Ratio.Lo), number(r.Ratio.Hi)
	f.P, f.Spread, f.MDE, f.Differs = number(r.P), number(r.Spread), number(r.MDE), r.Differs
	if f.RatioHi == nil {
		f.RatioLo = nil
	}
	for name, value := range map[string]*float64{"ratio": f.Ratio, "ratio_lo": f.RatioLo, "ratio_hi": f.RatioHi, "spread": f.Spread, "mde": f.MDE} {
		if value == nil {
			f.Null(name, r.Doubt)
		}
	}
}

// otherSync says why a phase that wrote logs cannot be compared with the baseline's: their durability differs. It returns nothing if it does not.
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
var relative = [...]string{"ratio", "ratio_lo", "ratio_hi", "p", "p_holm", "spread", "mde"}

// missing records why there is no number at all.
func missing(f *run.Figure, why reason.Why) {
	for _, name := range append([]string{"effective", "score", "error", "median", "median_lo", "median_hi"}, relative[:]...) {
		f.Null(name, why)
	}
}

// whyNone says why a variant has no values of a metric.
func (c *comparer) whyNone(s subject, m metric, variant string) reason.Why {
	for _, r := range c.runs[variant] {
		if why := r.Why(append([]string{"phase", s.phase, "op", s.op}, m.path...)...); why.Text != "" {
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
		if p := r.Phase[s.phase]; p != nil && (p.Validity == run.Invalid || worst == run.Valid) {
			worst = p.Validity
		}
	}
	return worst
}

// adjust corrects the p-values for their number, which it returns.
func adjust(figures []run.Figure) (comparisons int) {
	var p []float64
	var of []int
	for i, f := range figures {
		if f.P != nil {
			p, of = append(p, *f.P), append(of, i)
		}
	}
	for i, adjusted := range Holm(p) {
		figures[of[i]].PHolm = number(adjusted)
	}
	return len(p)
}

// finding says what a comparison with the baseline showed.
func finding(f *run.Figure, baseline string) reason.Why {
	switch {
	case f.Score == nil:
		return reason.Why{Code: noValues, Text: "no values: " + f.Nulls["score"]}
	case f.Variant == baseline:
		return reason.Why{Code: reason.Baseline, Text: "baseline"}
	case f.Differs:
		return reason.Why{Code: differs, Text: "differs"}
	case f.Ratio == nil || f.RatioHi == nil || f.Spread == nil:
		why := ""
		for _, name := range []string{"ratio", "ratio_hi", "spread"} {
			if why == "" {
				why = f.Nulls[name]
			}
		}
		return reason.Why{Code: undecided, Text: "cannot tell: " + why}
	case f.MDE == nil || *f.MDE > mostMDE:
		return reason.Why{Code: reason.NoDifference, Text: "no difference shown (MDE above " + share(mostMDE) + ")"}
	}
	return reason.Why{Code: reason.NoDifference, Text: fmt.Sprintf("no difference shown (MDE %s)", share(*f.MDE))}
}

// doubtful returns the suffix of a finding whose figures are doubtful.
func doubtful(f *run.Figure) string {
	switch {
	case f.Score == nil:
	case f.Validity == run.Suspect:
		return ", SUSPECT"
	case f.Validity == run.Invalid:
		return ", INVALID"
	}
	return ""
}

// mostMDE is the largest difference, as a share, that is worth naming as one that would have been shown.
const mostMDE = 10

// Foresee returns the smallest difference, as a share of the baseline, that an experiment will at best show nine times in ten. It takes the first
// repetitions of each variant to stand for all repeat: the noise within them averages out as their number grows, but one repetition does not show
// what restarts add. ok is false if the repetitions are too short, or too few, to tell.
func Foresee(baseline, variant Sample, repeat int) (mde float64, ok bool) {
	if len(baseline.blocks()) < minBlocks || len(variant.blocks()) < minBlocks {
		return 0, false
	}
	var a, b Sample
	for i := range repeat {
		a, b = append(a, baseline[i%len(baseline)]), append(b, variant[i%len(variant)])
	}
	mde = Compare(a, b, 1).MDE
	return mde, !math.IsInf(mde, 0)
}

// number returns f as a figure; nil if it is NaN or infinite.
func number(f float64) *float64 {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

// Outlook says, once each variant has run, how large a difference in the rate of each op must at least be for the experiment to show it. all is false
// if more repetitions would say more.
func Outlook(x *run.Experiment, runs []*run.Run) (lines []string, all bool) {
	c := newComparer(x, runs)
	all = true
	for _, s := range subjectsOf(runs) {
		found := c.samples(s, metrics[0])
		baseline := found.by[x.Baseline]
		least, of, unknown := 0.0, "", false
		for _, v := range x.Variants {
			if v.Name == x.Baseline || len(found.by[v.Name]) == 0 || len(baseline) == 0 {
				continue
			}
			mde, ok := Foresee(baseline, found.by[v.Name], x.Repeat)
			unknown = unknown || !ok
			if ok && mde > least {
				least, of = mde, v.Name
			}
		}
		all = all && !unknown
		switch {
		case of != "":
			lines = append(lines, fmt.Sprintf("phase %s: to be shown, a difference in the rate of %s has to be at least %s (%s), more if restarts differ",
				s.phase, s.op, share(least), of))
		case unknown:
			lines = append(lines, fmt.Sprintf("phase %s: too short for telling what difference in the rate of %s could be shown: more repetitions will tell", s.phase, s.op))
		}
	}
	return lines, all
}
