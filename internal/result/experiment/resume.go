package experiment

import (
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/result/run"
)

// ChangedError says that an experiment cannot be resumed because its plan is not the one that it began with.
type ChangedError struct{ ID, Was, Is string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("experiment %s was begun with a plan of digest %s, and this one's is %s: "+
		"resume it with the plan, variables and files it was begun with, or leave --resume out to begin another", e.ID, e.Was, e.Is)
}

// Resume returns the runs of an interrupted experiment that its resumption keeps, by turn: those that count and ended normally. The rest must be run. x
// is the experiment that continues was; both have their digests. The error is a *[ChangedError] if these differ.
func Resume(x, was *run.Experiment, runs []*run.Run) (map[Turn]*run.Run, error) {
	if x.PlanDigest != was.PlanDigest {
		return nil, &ChangedError{ID: was.ID, Was: was.PlanDigest, Is: x.PlanDigest}
	}
	kept, rounds := map[Turn]*run.Run{}, x.Repeat
	if x.Gate != nil {
		rounds += mostAgain
	}
	for _, r := range runs {
		v := slices.IndexFunc(x.Variants, func(v run.Variant) bool { return v.Name == r.Variant })
		if r.Experiment != was.ID || r.ExperimentDigest != x.PlanDigest || v < 0 || r.Repetition < 1 || r.Repetition > rounds || r.Recovered || !r.Ended().Counts() {
			continue
		}
		if turn := (Turn{v, r.Repetition}); kept[turn] == nil {
			kept[turn] = r
		}
	}
	return kept, nil
}
