package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/servers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// mostAgain is how many of a gate's pairs may be run again.
const mostAgain = 5

// NewGate returns an experiment's gate before its first pair, with its metric, phase and op, by the plan of its baseline. The error says what to write
// instead of a metric that cannot be had.
func NewGate(e *plan.Experiment, p *plan.Plan) (*run.Gate, error) {
	g := &run.Gate{Metric: e.Gate.Metric, Phase: e.Gate.Phase, Op: e.Gate.Op, Worse: e.Gate.Worse, Why: []string{}}
	if len(e.Variants) != 2 || e.Sequential() {
		return nil, fmt.Errorf("it takes an experiment of a baseline and one variant, interleaved: this one has %d variants, %s", len(e.Variants), e.Order)
	}
	for _, t := range p.Targets {
		if t.Builtin == nil && e.Restart == "" {
			return nil, fmt.Errorf("target %s is not restarted between runs, and of servers that are not, one gate in eight fails by chance: write restart = hook.NAME", t.Name)
		}
	}
	var phases []string
	for _, ph := range p.Phases {
		if ph.Populate == nil && ph.Clear == nil && ph.Verify == nil {
			phases = append(phases, ph.Name)
		}
	}
	var err error
	if g.Phase, err = one("phase", g.Phase, phases); err != nil {
		return nil, err
	}
	ph := p.Phases[slices.IndexFunc(p.Phases, func(ph *plan.Phase) bool { return ph.Name == g.Phase })]
	noCPU := whyNoCPU(p, ph)
	switch {
	case g.Metric == plan.CPUPerOp && noCPU != "":
		return nil, fmt.Errorf("no %s in phase %s: %s", plan.CPUPerOp, g.Phase, noCPU)
	case g.Metric == "" && noCPU == "":
		g.Metric = plan.CPUPerOp
	case g.Metric == "":
		g.Metric = "response.p99"
	}
	if g.Metric == plan.CPUPerOp {
		if g.Op != "" {
			return nil, fmt.Errorf("%s is of all ops of a phase: leave op out", plan.CPUPerOp)
		}
		return g, nil
	}
	all := metric.Op(p.QuantileNames()...)
	i := slices.IndexFunc(all, func(m opMetric) bool { return m.Name == g.Metric && m.Compared != metric.NotCompared })
	switch {
	case i < 0:
		return nil, fmt.Errorf("no metric %q: write %s, rate, response.p99 or another that compare takes", g.Metric, plan.CPUPerOp)
	case all[i].Kind == metric.Rate && ph.Closed == nil:
		return nil, fmt.Errorf("%s is set by the load in phase %s: write another metric, or a closed load", g.Metric, g.Phase)
	}
	var ops []string
	for _, o := range ph.Ops {
		ops = append(ops, o.Op)
	}
	g.Op, err = one("op", g.Op, ops)
	return g, err
}

// one returns the chosen name of several, or the only one.
func one(kind, chosen string, names []string) (string, error) {
	switch {
	case slices.Contains(names, chosen):
		return chosen, nil
	case chosen != "":
		return "", fmt.Errorf("no %s %q: there are %s", kind, chosen, strings.Join(names, ", "))
	case len(names) == 1:
		return names[0], nil
	}
	return "", fmt.Errorf("of which %s? Write %s = one of %s", kind, kind, strings.Join(names, ", "))
}

// cpuFields returns the counters of processor time, by who reports them: the kernel, or a kind of server.
func cpuFields() [][]string {
	all := [][]string{{"cpu_seconds"}}
	for _, s := range servers.All() {
		if s.CPU != nil {
			all = append(all, s.CPU)
		}
	}
	return all
}

// whyNoCPU says why a phase has no processor time for an op; "" if it has one.
func whyNoCPU(p *plan.Plan, ph *plan.Phase) string {
	has := slices.ContainsFunc(p.Observes, func(o *plan.Observe) bool {
		return slices.ContainsFunc(cpuFields(), func(names []string) bool {
			return !slices.ContainsFunc(names, func(name string) bool {
				return !slices.ContainsFunc(o.Fields, func(f plan.Field) bool { return f.Name == name })
			})
		})
	})
	switch {
	case !has:
		return "nothing observes it: write observe \"cpu\" { process { target = target.NAME } }"
	case ph.Open == nil || ph.Open.Trace != nil || ph.Open.Pipeline != 1:
		return "an op costs less where a server has more to do at once: it takes open { … } with a fixed rate and pipeline = 1"
	}
	return ""
}

// valueOf returns the gate's figure in a run, or why it does not count.
func valueOf(g *run.Gate, r *run.Run) (v float64, why string) {
	ph := r.Phase[g.Phase]
	switch {
	case ph == nil || !r.Ended().Counts() || r.Verdict.Completeness != run.Complete:
		return 0, strings.Join(append([]string{string(r.Verdict.Completeness)}, r.Verdict.Reasons...)[:min(2, 1+len(r.Verdict.Reasons))], ": ")
	case g.Metric == plan.CPUPerOp:
		return cpuPerOp(ph)
	case ph.Validity == run.Invalid:
		i := slices.IndexFunc(ph.Reasons, func(why run.Reason) bool { return why.Validity == run.Invalid })
		return 0, "INVALID: " + ph.Reasons[max(i, 0)].Text
	case ph.Op[g.Op] == nil:
		return 0, "the phase has no " + g.Op
	}
	m, _ := metric.Named(g.Metric)
	of := m.Value(ph.Op[g.Op])
	if of == nil {
		if why := r.Why(append([]string{"phase", g.Phase, "op", g.Op}, strings.Split(g.Metric, ".")...)...).Text; why != "" {
			return 0, why
		}
		return 0, "no " + g.Metric
	}
	return *of, ""
}

// cpuPerOp returns the processor time of the observed servers for an op, or why there is none.
func cpuPerOp(ph *run.Phase) (v float64, why string) {
	done := uint64(0)
	for verb, o := range ph.Op {
		if o.OK+o.Miss < o.Due {
			return 0, fmt.Sprintf("%s failed: what they cost is unknown", quantity.Count(o.Due-o.OK-o.Miss, verb))
		}
		done += o.OK + o.Miss
	}
	for _, names := range cpuFields() {
		seconds, all := 0.0, 0
		for _, of := range ph.Observe {
			for _, name := range names {
				if f, has := of[name]; has && f.Delta == nil {
					return 0, "the counter of processor time was lost: a server was restarted, or did not answer"
				} else if has {
					seconds, all = seconds+*f.Delta, all+1
				}
			}
		}
		if all > 0 && done > 0 && seconds > 0 {
			return seconds / float64(done), ""
		}
	}
	return 0, "no processor time was counted"
}

// paired are the pairs of a gate's runs that count.
type paired struct {
	worse []float64 // by how much worse the variant was, as a logarithm or, of a share, a difference
	limit float64
	share bool
	lower bool // lower is worse
}

// pairs takes the pairs of an experiment that count, and says in the gate which do not.
func pairs(x *run.Experiment, g *run.Gate, runs []*run.Run) paired {
	p := paired{limit: math.Log1p(g.Worse)}
	if m, known := metric.Named(g.Metric); known {
		p.share, p.lower = m.Kind == metric.Share, m.Kind != metric.Time
	}
	switch {
	case p.share:
		p.limit = g.Worse
	case p.lower:
		p.limit = -math.Log1p(-g.Worse)
	}
	g.Why, g.Again = []string{}, 0
	sides := map[int][2]*run.Run{}
	last := 0
	for _, r := range runs {
		pair := sides[r.Repetition]
		if r.Variant == x.Baseline {
			pair[0] = r
		} else {
			pair[1] = r
		}
		sides[r.Repetition], last = pair, max(last, r.Repetition)
	}
	for round := 1; round <= last; round++ {
		pair := sides[round]
		if pair[0] == nil || pair[1] == nil {
			continue
		}
		a, whyA := valueOf(g, pair[0])
		b, whyB := valueOf(g, pair[1])
		for i, why := range []string{whyA, whyB} {
			if why != "" {
				g.Why = append(g.Why, fmt.Sprintf("%s, repetition %d: %s", pair[i].Variant, round, why))
			}
		}
		if whyA != "" || whyB != "" {
			g.Again++
			continue
		}
		by := b - a
		if !p.share {
			by = math.Log(b / a)
		}
		if p.lower {
			by = -by
		}
		p.worse = append(p.worse, by)
	}
	return p
}

// looks are the numbers of pairs at which a gate of at most some pairs looks: each half as many again as the one before.
func looks(most int) (all []int) {
	for n := plan.LeastPairs; n < most; n = (3*n + 1) / 2 {
		all = append(all, n)
	}
	return append(all, most)
}

// Decide decides a gate by some values of how much worse a variant was, at the last look that they have reached of at most some pairs. The variant has
// failed if it is worse than the baseline and estimated as worse by the limit, and passed if it is not worse by the limit, each by a signed rank test
// whose looks together err in 5 %.
func Decide(worse []float64, limit float64, most int) run.Decision {
	all := looks(most)
	for _, n := range all {
		if n > len(worse) {
			break
		}
		if d := decideBy(worse[:n], limit, mistaken/float64(len(all))); d != run.GateUndecided {
			return d
		}
	}
	return run.GateUndecided
}

// decideBy decides by all values, each way wrongly with probability p.
func decideBy(worse []float64, limit, p float64) run.Decision {
	at, _, _ := stat.Centre(worse, p)
	less := make([]float64, len(worse))
	for i, v := range worse {
		less[i] = limit - v
	}
	switch {
	case at >= limit && stat.SignedRank(worse) < p:
		return run.GateFailed
	case at < limit && stat.SignedRank(less) < p:
		return run.GatePassed
	}
	return run.GateUndecided
}

// Look updates an experiment's gate by its runs so far. It says whether no further pair is needed.
func Look(x *run.Experiment, runs []*run.Run) (done bool) {
	g := x.Gate
	p := pairs(x, g, runs)
	p.settle(g, Decide(p.worse, p.limit, x.Repeat), mistaken/float64(len(looks(x.Repeat))))
	return g.Decision != run.GateUndecided || g.Pairs >= x.Repeat || g.Again > mostAgain
}

// settle enters a decision in the gate, and by how much worse the variant is, with an interval that errs on either side with a probability.
func (p paired) settle(g *run.Gate, d run.Decision, probability float64) {
	if g.Decision, g.Pairs, g.Needed = d, len(p.worse), 0; g.Pairs == 0 {
		return
	}
	at, lo, hi := stat.Centre(p.worse, probability)
	sd := math.NaN() // of one pair
	if g.Pairs > 1 {
		sd = math.Sqrt(stat.Variance(p.worse) / 2)
	}
	if g.Spread = number(sd); d == run.GateUndecided {
		away := max(p.limit, at, p.limit-at) // from what has to be excluded: 0 if it fails, the limit if it passes
		g.Needed = max(g.Pairs+1, plan.LeastPairs, int(math.Ceil(26*sd*sd/(away*away))))
	}
	g.By, g.Lo, g.Hi = p.back(at), p.back(lo), p.back(hi)
}

// back returns a share of how much worse the variant is.
func (p paired) back(v float64) *float64 {
	switch {
	case p.share:
		return number(v)
	case p.lower:
		return number(-math.Expm1(-v))
	}
	return number(math.Expm1(v))
}

// judge decides an experiment's gate when no further pair is run.
func judge(x *run.Experiment, runs []*run.Run) {
	g := x.Gate
	Look(x, runs)
	pair := time.Duration(2e9 * x.Seconds / float64(max(len(x.Runs), 1)))
	other := slices.IndexFunc(x.Variants, func(v run.Variant) bool { return v.Name != x.Baseline })
	say(g, x.Baseline, x.Variants[other].Name, pair)
	if g.Metric == plan.CPUPerOp && g.By != nil && x.Verdict.Validity != run.Valid {
		g.Text += " The doubts about time do not touch that."
	}
	if g.Again > 0 {
		g.Text += fmt.Sprintf(" %s did not count.", quantity.Count(g.Again, "more pair"))
	}
	x.Decide()
}

// say puts a decision into words. pair is how long a pair of runs takes; 0 if that is unknown.
func say(g *run.Gate, baseline, other string, pair time.Duration) {
	of := "cpu per op"
	if g.Metric != plan.CPUPerOp {
		of = g.Metric + " of " + g.Op
	}
	limit := quantity.Percent(g.Worse)
	switch n := quantity.Count(g.Pairs, "pair"); g.Decision {
	case run.GateFailed:
		g.Text = fmt.Sprintf("%s is worse than %s: %s by %s, after %s of runs. That it is worse is shown, not that it is by %s.", other, baseline, of, by(g), n, limit)
	case run.GatePassed:
		g.Text = fmt.Sprintf("%s is not worse than %s by %s: %s by %s, after %s of runs.", other, baseline, limit, of, by(g), n)
	default:
		g.Text = fmt.Sprintf("Cannot tell after %s of runs whether %s is worse than %s by %s", n, other, baseline, limit)
		if g.By != nil {
			g.Text += ": " + of + " by " + by(g)
		}
		if g.Spread != nil {
			g.Text += fmt.Sprintf(", and runs deviate by %s. About %s would tell", quantity.Percent(*g.Spread), quantity.Count(g.Needed, "pair"))
			if pair > 0 {
				g.Text += fmt.Sprintf(", in %s", (time.Duration(g.Needed) * pair).Round(time.Minute/2))
			}
		}
		g.Text += "."
	}
}

// by says how much worse a variant is, and within which interval.
func by(g *run.Gate) string {
	text := signed(*g.By)
	if g.Lo != nil && g.Hi != nil {
		text += " (" + signed(*g.Lo) + " to " + signed(*g.Hi) + ")"
	}
	return text
}

func signed(share float64) string {
	sign := "+"
	if share < 0 {
		sign = "−"
	}
	return sign + quantity.Percent(math.Abs(share))
}
