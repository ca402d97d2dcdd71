package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Digest identifies what an experiment runs: the SHA-256, in hex, of how its runs are ordered and repeated and of each variant's plan, whose
// digests are given in the order of the variants.
func Digest(e *plan.Experiment, plans []string) (string, error) {
	b, err := json.Marshal(struct {
		Experiment *plan.Experiment
		Plans      []string
	}{e, plans})
	if err != nil {
		return "", fmt.Errorf("digest of the experiment: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// ChangedError says that an experiment cannot go on, because the plan is another one than it was begun with.
type ChangedError struct{ ID, Was, Is string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("experiment %s was begun with a plan of digest %s, and this one's is %s: "+
		"resume it with the plan, variables and files it was begun with, or leave --resume out to begin another", e.ID, e.Was, e.Is)
}

// Resume returns the runs of an experiment that was cut off which its resumption keeps, by their turns: those that count and were seen to their end, of the plans with the given
// digests, in the order of the variants. The rest is to be run. Both experiments have their digests; x is the one that goes on. The error is a
// *[ChangedError] when they are not of one plan.
func Resume(x, was *run.Experiment, plans []string, runs []*run.Run) (map[Turn]*run.Run, error) {
	if x.PlanDigest != was.PlanDigest {
		return nil, &ChangedError{ID: was.ID, Was: orNone(was.PlanDigest), Is: x.PlanDigest}
	}
	kept := map[Turn]*run.Run{}
	for _, r := range runs {
		v := slices.IndexFunc(x.Variants, func(v run.Variant) bool { return v.Name == r.Variant })
		if r.Experiment != was.ID || v < 0 || r.Repetition < 1 || r.Repetition > x.Repeat || r.Recovered || !r.Ended(Capped(r)).Counts() {
			continue
		}
		if r.PlanDigest != plans[v] {
			return nil, &ChangedError{ID: was.ID, Was: r.PlanDigest + " in run " + r.ID, Is: plans[v]}
		}
		if turn := (Turn{v, r.Repetition}); kept[turn] == nil {
			kept[turn] = r
		}
	}
	return kept, nil
}

// Capped says whether a run was ended by the cap on its variant's time.
func Capped(r *run.Run) bool { return r.Verdict.Completeness == run.Capped }

func orNone(digest string) string {
	if digest == "" {
		return "(none: it is of an older loadgen)"
	}
	return digest
}
