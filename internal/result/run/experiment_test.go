package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/machine"
)

func comparedRun(variant string, c Completeness) *Run {
	r := New(Header{ID: variant, Variant: variant, Repetition: 1}, machine.Environment{})
	r.Conclude(c, reason.Why{Code: reason.NotCarriedOut, Text: "because"})
	return r
}

// The exit code is the first that applies over the runs, whatever their order.
func TestExperimentIsAsGoodAsItsWorstRun(t *testing.T) {
	for _, c := range []struct {
		runs []Completeness
		want int
	}{
		{[]Completeness{Complete}, exit.OK},
		{[]Completeness{Complete, Capped}, exit.OK},
		{[]Completeness{Capped, Degraded}, exit.Degraded},
		{[]Completeness{Degraded, Complete}, exit.Degraded},
		{[]Completeness{Degraded, Aborted}, exit.Aborted},
		{[]Completeness{Failed, Aborted, Complete}, exit.Failed},
	} {
		x := NewExperiment("x")
		x.Baseline, x.Repeat, x.Variants = "a", 3, []Variant{{Name: "a", Stopped: StopFinished}}
		worst := Complete
		for _, one := range c.runs {
			x.Add(comparedRun("a", one))
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

// A question without an answer outweighs success, and nothing else.
func TestCannotTell(t *testing.T) {
	x := NewExperiment("x")
	x.Variants = []Variant{{Name: "a"}}
	no := false
	for _, c := range []struct {
		asserts []AssertResult
		want    int
	}{{nil, exit.Undecided}, {[]AssertResult{{Name: "n", OK: &no}}, exit.Assert}} {
		r := comparedRun("a", Complete)
		r.Add("p", &Phase{Validity: Suspect, Reasons: []Reason{{Validity: Suspect, Code: reason.CannotTell}}})
		r.SetAsserts(c.asserts)
		require.Equal(t, c.want, r.ExitCode)
		x.Add(r)
		require.Equal(t, c.want, x.ExitCode)
	}
}

func TestInvalidOutweighsAssertsOnly(t *testing.T) {
	x := NewExperiment("x")
	x.Variants = []Variant{{Name: "a"}}
	no := false
	r := comparedRun("a", Complete)
	r.SetAsserts([]AssertResult{{Name: "n", OK: &no}})
	x.Add(r)
	require.Equal(t, exit.Assert, x.ExitCode)
	bad := comparedRun("a", Complete)
	bad.Add("p", &Phase{Validity: Invalid})
	x.Add(bad)
	require.Equal(t, exit.Invalid, x.ExitCode)
	require.Equal(t, Verdict{
		Completeness: Complete, Validity: Invalid, Assertions: Fail,
		Reasons: []string{"a, repetition 1: because", `a, repetition 1: assert "n" does not hold: , with `, "a, repetition 1: because"},
		Codes:   []reason.Code{reason.NotCarriedOut, assertFailed, reason.NotCarriedOut},
	}, x.Verdict)
	require.Equal(t, []int{1, 1, 2}, x.ReasonRuns)
	require.Empty(t, x.Own())
	x.Cap("a")
	x.Abort(reason.User)
	require.Equal(t, []int{0, 1, 1, 2, 0}, x.ReasonRuns)
	require.Equal(t, []string{"stopped by the user after 2 runs", "a: not run as often as planned: its cap is used up"}, x.Own())
	x.ReasonRuns = nil
	require.Len(t, x.Own(), 5, "a result of an older form does not tell them apart")
}

func TestInconsistentExperiments(t *testing.T) {
	for want, spoil := range map[string]func(x *Experiment){
		"experiment of schema 9, this loadgen reads 2 and 3":          func(x *Experiment) { x.Schema = 9 },
		`baseline "b" is not a variant of the experiment`:             func(x *Experiment) { x.Baseline = "b" },
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
