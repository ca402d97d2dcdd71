package experiment

import (
	"slices"

	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// GateKept gates kept runs of side B by those of A, whose plan is p: by the processor time for an op of each load where that was observed, else by the
// given metric of each op, or response.p99. Runs that were made in turn, A B B A …, are pairs, and the gates together err as one does. Of others it
// decides only a share, which counts gets exactly, if it differs by the same in all of them.
func GateKept(a, b []comparison.Kept, p *plan.Plan, metric string, worse float64) (all []*run.Gate, err error) {
	for _, ph := range p.Phases {
		e := &plan.Experiment{Restart: "kept", Variants: make([]plan.Variant, 2), Gate: &plan.Gate{Metric: metric, Phase: ph.Name, Worse: worse}}
		ops := []string{""}
		switch {
		case ph.Populate != nil || ph.Clear != nil || ph.Verify != nil:
			continue
		case metric == plan.CPUPerOp, metric == "" && whyNoCPU(p, ph) == "":
		default:
			ops = nil
			for _, o := range ph.Ops {
				ops = append(ops, o.Op)
			}
		}
		for _, op := range ops {
			e.Gate.Op = op
			g, err := NewGate(e, p)
			if err != nil {
				return nil, err
			}
			all = append(all, g)
		}
	}
	runs, inPairs := inTurn(a, b)
	x := &run.Experiment{Baseline: "A"}
	for _, g := range all {
		of := pairs(x, g, runs)
		exact := of.share && len(of.worse) > 1 && !slices.ContainsFunc(of.worse, func(by float64) bool { return by != of.worse[0] })
		switch {
		case exact && of.worse[0] >= of.limit:
			of.settle(g, run.GateFailed, mistaken)
		case exact:
			of.settle(g, run.GatePassed, mistaken)
		case inPairs && len(of.worse) > 0:
			p := mistaken / float64(len(all))
			of.settle(g, decideBy(of.worse, of.limit, p), p)
		default:
			g.Decision, g.Pairs = run.GateUndecided, len(of.worse)
		}
		if say(g, "A", "B", 0); !inPairs && g.Decision == run.GateUndecided {
			g.Text = "Cannot tell: the runs were not made in turn, A B B A …, and as many of each."
		}
	}
	return all, nil
}

// inTurn numbers the runs of two sides as those of pairs, by when they began. It says whether the sides took turns: each pair has a run of both.
func inTurn(a, b []comparison.Kept) (runs []*run.Run, taken bool) {
	for side, kept := range [...][]comparison.Kept{a, b} {
		for _, k := range kept {
			r := *k.Run
			r.Variant = string(rune('A' + side))
			runs = append(runs, &r)
		}
	}
	slices.SortStableFunc(runs, func(a, b *run.Run) int { return a.StartedAt.Compare(b.StartedAt) })
	taken = len(a) == len(b)
	done := map[string]int{}
	for i, r := range runs {
		done[r.Variant]++
		r.Repetition = done[r.Variant]
		taken = taken && r.Repetition == i/2+1
	}
	return runs, taken
}
