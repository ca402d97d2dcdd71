package expr

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

func columns(values ...string) plan.Table {
	t := plan.Table{Name: "t"}
	for i, v := range values {
		t.Columns = append(t.Columns, plan.Column{Name: string(rune('a' + i)), Value: v, File: "plan.hcl", Line: 7})
	}
	return t
}

// A column sees the columns before it, also those of the baseline and of any named variant.
func TestColumnsOfOtherVariants(t *testing.T) {
	p := testPlan()
	variants := []Variant{{Name: "w1", Plan: p, Runs: []*run.Run{testRun(p)}}, {Name: "w=2,r=1", Plan: p, Runs: []*run.Run{testRun(p)}}, {Name: "later"}}
	variants[1].Runs[0].Phase["get"].Op["get"].OK = 1800
	table := Fill(columns(`phase.get.op.get.ok`, `a / baseline.a`, `a / variant["w=2,r=1"].a`, `variant.w1.b + variant.w1.c`, `a / variant.later.a`), variants, 0)
	value := func(row, column int) float64 { return *table.Rows[row].Cells[column].Value }
	require.Equal(t, []float64{900, 1, 0.5, 1.5}, []float64{value(0, 0), value(0, 1), value(0, 2), value(0, 3)})
	require.Equal(t, []float64{1800, 2, 1, 1.5}, []float64{value(1, 0), value(1, 1), value(1, 2), value(1, 3)})
	require.Equal(t, "variant.later.a is null", table.Rows[0].Cells[4].Reason)
	for _, cell := range table.Rows[2].Cells {
		require.Equal(t, run.Cell{Reason: "no run of this variant counts"}, cell)
	}
}

func TestCheckColumnsOfOtherVariants(t *testing.T) {
	variants := []plan.Variant{{Name: "w1"}, {Name: "w2"}}
	require.Empty(t, CheckTables(testPlan(), []plan.Table{columns(`phase.get.op.get.ok`, `a / variant.w2.a`)}, variants))
	for value, want := range map[string]string{
		"a / variant.w3.a": `table "t", column "b": variant has no "w3". Did you mean "w1"? There are w1, w2.`,
		"a / variant.w2.b": `table "t", column "b": variant.w2 has no "b". There are a.`,
		"variant.w2":       `table "t", column "b": the value is an object, not a number. Write a figure, such as phase.NAME.op.get.rate.`,
	} {
		diags := CheckTables(testPlan(), []plan.Table{columns(`phase.get.op.get.ok`, value)}, variants)
		require.Len(t, diags, 1, value)
		require.Equal(t, want, diags[0].Summary+". "+diags[0].Detail)
	}
}

// A ratio is of geometric means, with the interval of Welch's test on logarithms. Each run's own figures count, those of other columns included.
func TestRatioColumns(t *testing.T) {
	p := testPlan()
	runs := func(ok ...uint64) (all []*run.Run) {
		for _, n := range ok {
			r := testRun(p)
			r.Phase["get"].Op["get"].OK = n
			all = append(all, r)
		}
		return all
	}
	variants := []Variant{
		{Name: "base", Plan: p, Runs: runs(1000, 1100, 1210, 1100), Bound: -1},
		{Name: "twice", Plan: p, Runs: runs(2000, 2200, 2420, 2200), Bound: 0},
		{Name: "once", Plan: p, Runs: runs(1100), Bound: 1},
		{Name: "none", Plan: p, Runs: runs(0, 0, 0), Bound: 0},
		{Name: "later", Bound: 0},
	}
	table := columns(`phase.get.op.get.ok`, `a * 3`, `b`)
	table.Columns[1].Ratio, table.Columns[2].Ratio = plan.RatioToBaseline, plan.RatioToBound
	table.Columns[2].Value = `a`
	table.Variants = []string{"base", "twice", "once", "none"}
	got := Fill(table, variants, 0)
	require.Len(t, got.Rows, 4)
	twice, once := got.Rows[1].Cells[1], got.Rows[2].Cells
	require.InDelta(t, 2, *twice.Value, 1e-9)
	// sd of the logs is ln 1.1 × √(2/3) on both sides: t(0.975, 6) × sd × √(2/4) = 2.4469 × 0.077820 × 0.70711
	require.InDelta(t, 2*0.87402, *twice.Lo, 1e-4)
	require.InDelta(t, 2*1.14413, *twice.Hi, 1e-4)
	require.Equal(t, "2.00 (1.75 to 2.29)", twice.Text)
	require.InDelta(t, 1, *once[1].Value, 1e-9)
	require.InDelta(t, 0.5, *once[2].Value, 1e-9)
	require.Nil(t, once[1].Lo, "of one run")
	require.Equal(t, []string{"it is the baseline", "this variant has no bound"}, []string{got.Rows[0].Cells[1].Reason, got.Rows[0].Cells[2].Reason})
	require.Equal(t, "a ratio needs values above 0", got.Rows[3].Cells[1].Reason)
	require.Equal(t, "no run of this variant counts", Fill(plan.Table{Columns: table.Columns}, variants, 0).Rows[4].Cells[1].Reason)

	table.Columns[2].Value = `a / baseline.a`
	diags := CheckTables(p, []plan.Table{table}, []plan.Variant{{Name: "base"}})
	require.Len(t, diags, 1)
	require.Equal(t, `table "t", column "c": the value of a ratio refers to baseline`, diags[0].Summary)
	table.Columns[2].Value = `b`
	require.Equal(t, `table "t", column "c": the value of a ratio refers to b`, CheckTables(p, []plan.Table{table}, nil)[0].Summary)
}

// Observations are checked against the plan's names, and their figures can be used in columns like all others.
func TestObservationsInExpressions(t *testing.T) {
	p := testPlan(
		`phase.get.observe.server.calls.delta > 1`,
		`phase.put-warm.probes.server.failed == 0 && max([for row in phase.get.probes.server.series : row.value.calls]...) > 1`,
		`phase.get.observe.server.call.delta > 1`,
		`phase.get.observe.serve.calls.delta > 1`,
	)
	p.Observes = []*plan.Observe{{Name: "server", Kind: plan.ObserveServer, Fields: []plan.Field{{Name: "calls", Counter: true}}}}
	diags := Check(p)
	require.Len(t, diags, 2)
	require.Equal(t, `assert "a": phase.get.observe.server has no "call"`, diags[0].Summary)
	require.Equal(t, `assert "a": phase.get.observe has no "serve"`, diags[1].Summary)

	o := &judge.Observation{Of: "x"}
	o.Begin(&run.Probe{At: 1, Value: map[string]float64{"calls": 100}})
	o.End(&run.Probe{At: 2, Value: map[string]float64{"calls": 1000}})
	r := run.New(run.Header{}, machine.Environment{})
	r.Add("get", judge.NewPhase(p, p.Phases[0], judge.Measured{Endpoints: []string{"x"}, Load: load(0, 1000), Observed: map[string]*judge.Observation{"server": o}}))
	table := Fill(columns(`phase.get.observe.server.calls.delta / phase.get.op.get.ok`, `phase.put-warm.observe.server.calls.max`), []Variant{{Name: "v", Plan: p, Runs: []*run.Run{r}}}, 0)
	require.InDelta(t, 1, *table.Rows[0].Cells[0].Value, 0)
	require.Contains(t, table.Rows[0].Cells[1].Reason, "phase put-warm has not run")
}
