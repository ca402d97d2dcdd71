package experiment

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Again makes an experiment again, but for the plan's tables and charts, from its settings and the results of the runs that it names. What these cannot
// tell it takes from x, and names as unproven.
func Again(x *run.Experiment, s *Settings, runs []*run.Run) (again *run.Experiment, unproven []string, err error) {
	again = New(x.ID, &plan.Plan{Name: s.Plan, Seed: s.Seed}, s.Experiment, x.StartedAt, x.Loadgen)
	again.PlanDigest, again.Labels, again.Finished, again.Gate = x.PlanDigest, x.Labels, x.Finished, s.Gate
	if len(runs) == 0 {
		unproven = append(unproven, "all that it says, since it has no runs")
	}
	named := map[Turn]*run.Run{}
	for _, r := range runs {
		v := slices.IndexFunc(again.Variants, func(v run.Variant) bool { return v.Name == r.Variant })
		if v < 0 || r.Experiment != x.ID || r.ExperimentDigest != x.PlanDigest || r.PlanDigest != s.Digests[v] || !maps.Equal(r.Labels, x.Labels) {
			return nil, nil, fmt.Errorf("run %s is of another experiment, or has another plan or labels", r.ID)
		}
		named[Turn{v, r.Repetition}] = r
	}
	var had []*run.Run
	over, early, capped := false, -1, map[string]bool{}
turns:
	for i, t := range Schedule(s.Experiment, s.Seed) {
		r, variant := named[t], again.Variants[t.Variant].Name
		if again.Gate != nil && i > 0 && i%2 == 0 && (r != nil || x.Finished) && Look(again, had) {
			break
		}
		switch {
		case r != nil && !capped[variant]:
			again.Add(r)
			had = append(had, r)
			if why := Hopeless(again, had); why != nil && x.Finished {
				over = true
				again.Abort(*why)
				break turns
			}
		case capped[variant]:
		case s.Experiment.Cap > 0 && slices.Contains(x.Own(), run.CapUsed(variant).Text):
			capped[variant] = true
			again.Cap(variant)
			unproven = append(unproven, variant+": its cap is used up")
		default:
			early = i
			break turns
		}
	}
	if !x.Finished {
		return again, unproven, nil
	}
	switch v := x.Verdict; {
	case over:
	case len(v.Reasons) > 0 && len(v.Codes) > 0 && (v.Codes[0] == reason.User.Code || v.Codes[0] == reason.TimedOut):
		text := strings.TrimSuffix(v.Reasons[0], " after "+quantity.Count(len(had), "run"))
		again.Abort(reason.Why{Code: v.Codes[0], Text: text})
		unproven = append(unproven, text)
	case early >= 0 && (again.Gate == nil || early%2 != 0):
		return nil, nil, fmt.Errorf("it has finished with %s, and does not say why", quantity.Count(len(had), "run"))
	case early >= 0:
		unproven = append(unproven, "no time for another pair")
	}
	Conclude(again, runs)
	return again, unproven, nil
}

// Hopeless returns why further runs are pointless: the first three failed for the same reason, such as a server that is not there, or the first two of
// a gate's side did. Otherwise it returns nil.
func Hopeless(x *run.Experiment, runs []*run.Run) *reason.Why {
	tries := 3
	if x.Gate != nil {
		last := runs[len(runs)-1].Variant
		tries, runs = 2, slices.DeleteFunc(slices.Clone(runs), func(r *run.Run) bool { return r.Variant != last })
	}
	if len(runs) != tries || len(runs[0].Verdict.Codes) == 0 {
		return nil
	}
	first := runs[0].Verdict
	for _, r := range runs {
		if r.Verdict.Completeness != run.Failed || !slices.Equal(r.Verdict.Reasons, first.Reasons) {
			return nil
		}
	}
	return &reason.Why{Code: first.Codes[0], Text: "given up, since all runs failed by the same cause,"}
}
