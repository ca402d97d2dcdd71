package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Digest identifies what an experiment runs. It is the SHA-256, in hex, of the order and repetition of its runs and of the digests of the variants'
// plans, in the order of the variants.
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

// ChangedError says that an experiment cannot be resumed because its plan is not the one that it began with.
type ChangedError struct{ ID, Was, Is string }

func (e *ChangedError) Error() string {
	return fmt.Sprintf("experiment %s was begun with a plan of digest %s, and this one's is %s: "+
		"resume it with the plan, variables and files it was begun with, or leave --resume out to begin another", e.ID, e.Was, e.Is)
}

// Resume returns the runs of an interrupted experiment that its resumption keeps, by turn: those that count and ended normally, that drew as their
// own repetition, and whose plans have the given digests, in the order of the variants. The rest must be run. x is the experiment that continues was;
// both have their digests. The error is a *[ChangedError] if their plans differ.
func Resume(x, was *run.Experiment, plans []string, runs []*run.Run) (map[Turn]*run.Run, error) {
	if x.PlanDigest != was.PlanDigest {
		return nil, &ChangedError{ID: was.ID, Was: orNone(was.PlanDigest), Is: x.PlanDigest}
	}
	kept, rounds := map[Turn]*run.Run{}, x.Repeat
	if x.Gate != nil {
		rounds += mostAgain
	}
	for _, r := range runs {
		v := slices.IndexFunc(x.Variants, func(v run.Variant) bool { return v.Name == r.Variant })
		if r.Experiment != was.ID || v < 0 || r.Repetition < 1 || r.Repetition > rounds || r.Recovered || !r.Ended(Capped(r)).Counts() {
			continue
		}
		if max(r.DrawsAs, 1) != r.Repetition { // in an older loadgen, every run drew as the first
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

// Capped says whether the cap on its variant's time ended a run.
func Capped(r *run.Run) bool { return r.Verdict.Completeness == run.Capped }

func orNone(digest string) string {
	if digest == "" {
		return "(none: it is of an older loadgen)"
	}
	return digest
}
