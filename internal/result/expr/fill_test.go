package expr

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestColumnsOfTextErrorAndBound has two variants: the second is the bound of both, and was run three times with different rates.
func TestColumnsOfTextErrorAndBound(t *testing.T) {
	p := testPlan()
	at := func(wall float64) *run.Run {
		r := testRun(p)
		takes := math.Abs(wall-1000) / 2000
		r.Phase["get"].Op["get"].RateWall, r.Phase["get"].Op["get"].Response.P99 = &wall, &takes
		return r
	}
	columns := []plan.Column{
		{Name: "model", Value: "phase.get.model"},
		{Name: "sessions", Value: "phase.get.load.sessions"},
		{Name: "score", Title: "score", Value: "phase.get.op.get.rate_wall", Unit: "/s", Confidence: 0.999},
		{Name: "share", Value: "score / bound.score", Unit: "%"},
		{Name: "takes", Title: "takes", Value: "phase.get.op.get.response.p99", Unit: "ms", Confidence: 0.95},
	}
	require.Empty(t, CheckTables(p, []plan.Table{{Name: "t", Columns: columns}}, nil))
	variants := []Variant{
		{Name: "a", Plan: p, Runs: []*run.Run{at(500)}, Bound: 1},
		{Name: "b", Plan: p, Runs: []*run.Run{at(990), at(1000), at(1010)}, Bound: 1},
		{Name: "c", Plan: p, Runs: []*run.Run{at(100)}, Bound: -1},
		{Name: "d", Plan: p, Runs: []*run.Run{at(100), at(110), at(120)}, Bound: -1},
	}
	none := variants[3].Runs[2].Phase["get"].Op["get"]
	none.RateWall, none.Response.P99 = nil, nil
	table := Fill(plan.Table{Name: "t", Columns: columns}, variants, 0)
	require.Equal(t, []string{"score /s ± 99.9 %", "takes ms ± 95 %"}, []string{table.Columns[2].Title, table.Columns[4].Title})
	rows := table.Rows
	require.Equal(t, []string{"closed", "1", "500", "50.0 %", "250"}, texts(rows[0]), "one run has no interval")
	// Student's table: t(0.9995; 2) = 31.599, and the standard error is 10/√3; t(0.975; 2) = 4.303, and it is 1.667 ms. No time is below zero.
	require.Equal(t, []string{"closed", "1", "1,000 ± 182", "100 %", "3.33 (0 to 10.5)"}, texts(rows[1]))
	require.Equal(t, []string{"closed", "1", "100", "", "450"}, texts(rows[2]))
	require.Contains(t, rows[2].Cells[3].Reason, "null")
	require.Equal(t, []string{"closed", "1", "", "", ""}, texts(rows[3]), "no interval without a mean")
	for _, wrong := range []plan.Column{{Name: "x", Value: "phase.get.model", Unit: "/s"}, {Name: "x", Value: "phase.get.model", Confidence: 0.95}, {Name: "x", Value: "bound.y"}} {
		require.NotEmpty(t, CheckTables(p, []plan.Table{{Name: "t", Columns: []plan.Column{wrong}}}, nil), wrong)
	}
}

// TestDoubtsInTables has a figure in doubt in one of a variant's runs, and columns that are computed from it.
func TestDoubtsInTables(t *testing.T) {
	p := testPlan()
	good, bad := testRun(p), testRun(p)
	rate := 500.0
	good.Phase["get"].Op["get"].RateWall, bad.Phase["get"].Op["get"].RateWall = &rate, &rate
	bad.Phase["get"].Reasons = []run.Reason{
		{Validity: run.Invalid, Touches: []string{"op.get.rate_wall"}}, {Validity: run.Suspect, Touches: []string{"op.get"}},
	}
	table := Fill(plan.Table{Name: "t", Columns: []plan.Column{
		{Name: "sessions", Value: "phase.get.load.sessions"},
		{Name: "due", Value: "phase.get.op.get.due"},
		{Name: "score", Value: "phase.get.op.get.rate_wall"},
		{Name: "share", Value: "score / baseline.score"},
		{Name: "other", Value: `variant["bad"].due`},
		{Name: "times", Value: "phase.get.op.get.rate_wall", Ratio: "bound"},
	}}, []Variant{{Name: "good", Plan: p, Runs: []*run.Run{good, good}, Bound: 1}, {Name: "bad", Plan: p, Runs: []*run.Run{good, bad}, Bound: -1}}, 0)
	due := texts(table.Rows[0])[1]
	require.Equal(t, []string{"1", due, "500", "1", due + "?", "1.00!"}, texts(table.Rows[0]))
	require.Equal(t, []string{"1", due + "?", "500!", "1!", due + "?", ""}, texts(table.Rows[1]))
	require.Equal(t, []string{"? suspect, ! invalid"}, table.Notes)
}

// TestOtherDurabilityHasNoShare has variants that wrote logs in two modes, and entries of two sizes: they are not comparable.
func TestTitlesHaveTheirUnitOnce(t *testing.T) {
	for _, c := range [...]struct{ title, unit, want string }{
		{"p99", "us", "p99 µs"},
		{"p99 in µs", "us", "p99 in µs"},
		{"p99, us", "us", "p99, us"},
		{"MB/s", "MB/s", "MB/s"},
		{"GET/s", "/s", "GET/s"},
		{"a day of gets", "s", "a day of gets s"},
		{"hits", "%", "hits"},
		{"size", "", "size"},
	} {
		require.Equal(t, c.want, titled(plan.Column{Title: c.title, Unit: c.unit}))
	}
}

func TestOtherDurabilityHasNoShare(t *testing.T) {
	p := testPlan()
	at := func(sync string, entry int) []*run.Run {
		r := testRun(p)
		r.Phase["get"].Log = &worker.Log{Log: localfile.Log{SyncUsed: sync}, EntryBytes: entry}
		return []*run.Run{r}
	}
	variants := []Variant{
		{Name: "raw", Plan: p, Runs: at("msync", 1024), Bound: 0},
		{Name: "same", Plan: p, Runs: at("msync", 1024), Bound: 0},
		{Name: "other", Plan: p, Runs: at("map_sync", 1024), Bound: 0},
		{Name: "alone", Plan: p, Runs: at("msync", 1024), Bound: 5},
		{Name: "large", Plan: p, Runs: at("msync", 4096), Bound: 0},
		{Name: "cut off", Plan: p},
	}
	rows := Fill(columns(`phase.get.op.get.ok`, `a / bound.a`, `a / baseline.a`, `a / variant.raw.a`, `a / variant["other"].a`, `a / 2`), variants, 0).Rows
	for _, row := range rows[:2] {
		require.Equal(t, []string{"900", "1", "1", "1", "", "450"}, texts(row))
		require.Equal(t, "not comparable, sync used is msync, and map_sync in other", row.Cells[4].Reason)
	}
	for _, cell := range rows[2].Cells[1:4] {
		require.Equal(t, run.Cell{Reason: "not comparable, sync used is map_sync, and msync in raw"}, cell)
	}
	require.Equal(t, []string{"900", "", "", "", "1", "450"}, texts(rows[2]))
	require.Equal(t, "bound.a is null", rows[3].Cells[1].Reason)
	require.Equal(t, []string{"900", "", "1", "1", "", "450"}, texts(rows[4]))
	require.Equal(t, "no bound, entries have 4096 bytes, and 1024 bytes in raw", rows[4].Cells[1].Reason)
}

// texts are those of a row's cells.
func texts(row run.TableRow) (all []string) {
	for _, c := range row.Cells {
		all = append(all, c.Text)
	}
	return all
}
