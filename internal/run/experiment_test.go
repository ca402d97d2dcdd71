package run

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func comparedRun(variant string, c Completeness) *Run {
	r := New(Header{ID: variant, Variant: variant, Repetition: 1}, Environment{})
	r.Conclude(c, "because")
	return r
}

// The exit code is the first that applies over the runs, whatever their order.
func TestExperimentIsAsGoodAsItsWorstRun(t *testing.T) {
	for _, c := range []struct {
		runs []Completeness
		want int
	}{
		{[]Completeness{Complete}, ExitOK},
		{[]Completeness{Complete, Capped}, ExitOK},
		{[]Completeness{Capped, Degraded}, ExitDegraded},
		{[]Completeness{Degraded, Complete}, ExitDegraded},
		{[]Completeness{Degraded, Aborted}, ExitAborted},
		{[]Completeness{Failed, Aborted, Complete}, ExitFailed},
	} {
		x := NewExperiment("x")
		x.Baseline, x.Repeat, x.Variants = "a", 3, []Variant{{Name: "a", Stopped: StopFinished}}
		worst := Complete
		for _, one := range c.runs {
			x.Add(comparedRun("a", one), false)
			if completenessRank(one) > completenessRank(worst) {
				worst = one
			}
		}
		require.Equal(t, c.want, x.ExitCode)
		require.Equal(t, worst, x.Verdict.Completeness)
		require.NoError(t, x.CheckValid())
	}
}

func completenessRank(c Completeness) int {
	return map[Completeness]int{Complete: 0, Capped: 1, Degraded: 2, Aborted: 3, Failed: 4}[c]
}

func TestInvalidOutweighsAssertsOnly(t *testing.T) {
	x := NewExperiment("x")
	x.Variants = []Variant{{Name: "a"}}
	no := false
	r := comparedRun("a", Complete)
	r.SetAsserts([]AssertResult{{Name: "n", OK: &no}})
	x.Add(r, false)
	require.Equal(t, ExitAssert, x.ExitCode)
	bad := comparedRun("a", Complete)
	bad.Add("p", &Phase{Validity: Invalid})
	x.Add(bad, false)
	require.Equal(t, ExitInvalid, x.ExitCode)
	require.Equal(t, Verdict{
		Completeness: Complete, Validity: Invalid, Assertions: Fail,
		Reasons: []string{"a, repetition 1: because", `a, repetition 1: assert "n" does not hold: , with `, "a, repetition 1: because"},
	}, x.Verdict)
}

func TestInconsistentExperiments(t *testing.T) {
	for want, spoil := range map[string]func(x *Experiment){
		"experiment of schema 9, this loadgen reads 2":                func(x *Experiment) { x.Schema = 9 },
		`baseline "b" is no variant of the experiment`:                func(x *Experiment) { x.Baseline = "b" },
		`run r is of variant "b", which the experiment does not have`: func(x *Experiment) { x.Runs = []ExperimentRun{{ID: "r", Variant: "b"}} },
		`table "t": 1 cells in row "r", 0 columns`: func(x *Experiment) {
			x.Tables = []Table{{Title: "t", Rows: []TableRow{{Name: "r", Cells: []Cell{{}}}}}}
		},
	} {
		x := NewExperiment("x")
		x.Baseline, x.Variants = "a", []Variant{{Name: "a"}}
		require.NoError(t, x.CheckValid())
		spoil(x)
		require.EqualError(t, x.CheckValid(), want)
	}
}
