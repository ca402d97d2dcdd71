package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// A resumption keeps the runs that count, ended normally, and belong to one of its turns; of two for a turn, the first. A run with another plan is an
// error.
func TestWhichRunsAResumptionKeeps(t *testing.T) {
	was := &run.Experiment{ID: "x", PlanDigest: "d"}
	x := &run.Experiment{ID: "y", PlanDigest: "d", Repeat: 3, Variants: []run.Variant{{Name: "a"}, {Name: "b"}}}
	plans := []string{"pa", "pb"}
	for name, c := range map[string]struct {
		change func(r *run.Run)
		kept   bool
		err    string
	}{
		"one that counts":        {func(*run.Run) {}, true, ""},
		"the last repetition":    {func(r *run.Run) { r.Repetition = 3 }, true, ""},
		"the first":              {func(r *run.Run) { r.Repetition = 1 }, true, ""},
		"one too many":           {func(r *run.Run) { r.Repetition = 4 }, false, ""},
		"none":                   {func(r *run.Run) { r.Repetition = 0 }, false, ""},
		"another experiment":     {func(r *run.Run) { r.Experiment = "y" }, false, ""},
		"another variant":        {func(r *run.Run) { r.Variant = "c" }, false, ""},
		"drawn as another":       {func(r *run.Run) { r.DrawsAs = 1 }, false, ""},
		"recovered":              {func(r *run.Run) { r.Recovered = true }, false, ""},
		"stopped":                {func(r *run.Run) { r.Verdict.Completeness = run.Aborted }, false, ""},
		"failed":                 {func(r *run.Run) { r.Verdict.Completeness = run.Failed }, false, ""},
		"capped":                 {func(r *run.Run) { r.Verdict.Completeness = run.Capped }, true, ""},
		"of another plan":        {func(r *run.Run) { r.PlanDigest = "pa" }, false, "begun with a plan of digest pa in run 1, and this one's is pb"},
		"of no plan, and failed": {func(r *run.Run) { r.PlanDigest, r.Verdict.Completeness = "", run.Failed }, false, ""},
	} {
		r := &run.Run{Verdict: run.Verdict{Completeness: run.Complete}}
		r.ID, r.Experiment, r.Variant, r.Repetition, r.PlanDigest = "1", "x", "b", 2, "pb"
		if c.change(r); r.DrawsAs == 0 {
			r.DrawsAs = r.Repetition
		}
		again := *r
		again.ID = "2"
		kept, err := Resume(x, was, plans, []*run.Run{r, &again})
		if c.err != "" {
			require.ErrorContains(t, err, c.err, name)
			require.Nil(t, kept, name)
			continue
		}
		require.NoError(t, err, name)
		want := map[Turn]*run.Run{}
		if c.kept {
			want[Turn{1, r.Repetition}] = r
		}
		require.Equal(t, want, kept, name)
		require.Equal(t, name == "capped", Capped(r), name)
	}
	was.PlanDigest = "e"
	_, err := Resume(x, was, plans, nil)
	require.ErrorContains(t, err, "experiment x was begun with a plan of digest e, and this one's is d")
	was.PlanDigest = ""
	_, err = Resume(x, was, plans, nil)
	require.ErrorContains(t, err, "a plan of digest (none: it is of an older loadgen), and")
}

// A digest covers everything that an experiment runs, and the order of its plans.
func TestDigestIsOfPlanAndOrder(t *testing.T) {
	digest := func(e *plan.Experiment, plans ...string) string {
		d, err := Digest(e, plans)
		require.NoError(t, err)
		require.Len(t, d, 64)
		return d
	}
	e := &plan.Experiment{Repeat: 3}
	is := digest(e, "a", "b")
	require.Equal(t, is, digest(&plan.Experiment{Repeat: 3}, "a", "b"))
	require.NotEqual(t, is, digest(e, "b", "a"))
	require.NotEqual(t, is, digest(e, "a"))
	require.NotEqual(t, is, digest(&plan.Experiment{Repeat: 4}, "a", "b"))
}
