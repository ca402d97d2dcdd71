package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// A resumption keeps the runs that count, ended normally, and belong to one of its turns; of two for a turn, the first.
func TestWhichRunsAResumptionKeeps(t *testing.T) {
	was := &run.Experiment{ID: "x", PlanDigest: "d"}
	x := &run.Experiment{ID: "y", PlanDigest: "d", Repeat: 3, Variants: []run.Variant{{Name: "a"}, {Name: "b"}}}
	for name, c := range map[string]struct {
		change func(r *run.Run)
		kept   bool
	}{
		"one that counts":     {func(*run.Run) {}, true},
		"the last repetition": {func(r *run.Run) { r.Repetition = 3 }, true},
		"the first":           {func(r *run.Run) { r.Repetition = 1 }, true},
		"one too many":        {func(r *run.Run) { r.Repetition = 4 }, false},
		"none":                {func(r *run.Run) { r.Repetition = 0 }, false},
		"another experiment":  {func(r *run.Run) { r.Experiment = "y" }, false},
		"another variant":     {func(r *run.Run) { r.Variant = "c" }, false},
		"recovered":           {func(r *run.Run) { r.Recovered = true }, false},
		"stopped":             {func(r *run.Run) { r.Verdict.Completeness = run.Aborted }, false},
		"failed":              {func(r *run.Run) { r.Verdict.Completeness = run.Failed }, false},
		"capped":              {func(r *run.Run) { r.Verdict.Completeness = run.Capped }, true},
		"of other settings":   {func(r *run.Run) { r.ExperimentDigest = "e" }, false},
	} {
		r := &run.Run{Verdict: run.Verdict{Completeness: run.Complete}}
		r.ID, r.Experiment, r.ExperimentDigest, r.Variant, r.Repetition = "1", "x", "d", "b", 2
		c.change(r)
		again := *r
		again.ID = "2"
		kept, err := Resume(x, was, []*run.Run{r, &again})
		require.NoError(t, err, name)
		want := map[Turn]*run.Run{}
		if c.kept {
			want[Turn{1, r.Repetition}] = r
		}
		require.Equal(t, want, kept, name)
	}
	was.PlanDigest = "e"
	_, err := Resume(x, was, nil)
	require.ErrorContains(t, err, "experiment x was begun with a plan of digest e, and this one's is d")
}
