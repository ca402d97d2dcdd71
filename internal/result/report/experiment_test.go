package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// compared is an experiment with one table of each kind.
func compared() *run.Experiment {
	x := run.NewExperiment("20261120T173430Z-hydra-m4-9b01")
	x.Plan, x.StartedAt, x.Loadgen, x.Seconds = "hydra-m4", time.Date(2026, 11, 20, 17, 34, 30, 0, time.UTC), "v1.2.3", 75
	x.Repeat, x.Order, x.Baseline, x.Finished = 3, "interleaved", "w2", true
	x.Variants = []run.Variant{{Name: "w2", Runs: 3, Stopped: run.StopFinished}, {Name: "w<3>|*", Runs: 1, Stopped: run.StopCap}}
	x.Runs = make([]run.ExperimentRun, 4)
	x.ExitCode = exit.Aborted
	x.Verdict.Completeness, x.Verdict.Validity = run.Aborted, run.Suspect
	for range tables.MaxReasons + 2 {
		x.Verdict.Reasons = append(x.Verdict.Reasons, "w<3>|*, repetition 1: ended by the cap of 10s on the runs of a variant")
	}
	rate, other := 12345.0, 816.7
	x.Tables = []run.Table{
		{
			Title: "sideways", Transpose: true,
			Columns: []run.Column{{Name: "get", Title: "GET /s", Unit: "/s"}, {Name: "miss", Title: "misses"}},
			Rows: []run.TableRow{
				{Name: "w2", Cells: []run.Cell{{Value: &rate, Text: "12,345"}, {Reason: "none missed"}}},
				{Name: "2009", Elsewhere: true, Cells: []run.Cell{{Value: &other, Text: "817"}, {Reason: "not given"}}},
			},
			Notes: []string{"* not measured here: a laptop"},
		},
		{
			Title:   "phase put, put: rate, /s",
			Columns: []run.Column{{Name: "score", Title: "mean ± 95 %"}, {Name: "finding", Title: "finding"}},
			Rows: []run.TableRow{
				{Name: "w2", Cells: []run.Cell{{Value: &rate, Text: "12,345 ± 678"}, {Text: "baseline"}}},
				{Name: "w<3>|*", Cells: []run.Cell{
					{Value: &rate, Text: "12,345"},
					{Text: "cannot tell, SUSPECT"},
				}},
			},
		},
	}
	return x
}

func TestExperiment(t *testing.T) {
	unfinished := compared()
	unfinished.Finished = false
	for name, x := range map[string]*run.Experiment{"experiment": compared(), "experiment-unfinished": unfinished} {
		var b strings.Builder
		require.NoError(t, Experiment(&b, x, Options{Dir: "/var/lib/loadgen/runs/" + x.ID}))
		for line := range strings.Lines(b.String()) {
			require.LessOrEqual(t, columns(strings.TrimSuffix(line, "\n")), mostWide, line)
		}
		golden(t, name+".txt", b.String())
	}
}

// Markdown has the texts of the terminal, and no name is taken for markup.
func TestMarkdown(t *testing.T) {
	var b strings.Builder
	require.NoError(t, Markdown(&b, []timeline.Source{{Study: timeline.NewStudy(compared())}}))
	golden(t, "experiment.md", b.String())
	require.NotContains(t, b.String(), "<3>")
	for _, table := range compared().Tables {
		for _, row := range table.Rows {
			for _, cell := range row.Cells {
				require.Contains(t, b.String(), "| "+tables.Text(cell)+" |")
			}
		}
	}
}

// TestAnswerOfAnExperiment: what differs and by how much comes first, not the rate that an open load sets; every reason stands once, and what says
// nothing only in full.
func TestAnswerOfAnExperiment(t *testing.T) {
	x := run.NewExperiment("x")
	x.Baseline, x.Finished, x.Repeat = "aof=no", true, 3
	x.Variants = []run.Variant{{Name: "aof=no"}, {Name: "aof=always"}}
	x.Verdict.Completeness, x.Verdict.Validity = run.Complete, run.Suspect
	one, at, lo, hi := 1.0, 8.9, 2.9, 17.5
	figure := func(variant, metric, unit, code string) run.Figure {
		return run.Figure{Variant: variant, Phase: "put", Op: "put", Metric: metric, Unit: unit, Score: &one, Code: reason.Code(code)}
	}
	slower := figure("aof=always", "response.p50", "s", "differs")
	slower.Ratio, slower.RatioLo, slower.RatioHi, slower.Differs = &at, &lo, &hi, true
	x.Figures = []run.Figure{
		figure("aof=no", "rate", "/s", "baseline"), figure("aof=always", "rate", "/s", "set_by_load"),
		figure("aof=no", "response.p50", "s", "baseline"), slower,
		figure("aof=no", "response.p99", "s", "baseline"), figure("aof=always", "response.p99", "s", "undecided"),
	}
	x.Figures[5].Nulls = map[string]string{"p": "1 and 1 runs are too few"}
	table := func(title, finding string) run.Table {
		two := 2.0
		columns := []run.Column{{Name: "score", Title: "mean ± 95 %"}, {Name: "spread", Title: "spread"}, {Name: "finding", Title: "finding"}}
		return run.Table{Title: title, Columns: columns, Rows: []run.TableRow{
			{Name: "aof=no", Cells: []run.Cell{{Value: &one, Text: "1"}, {}, {Text: "baseline"}}},
			{Name: "aof=always", Cells: []run.Cell{{Value: &two, Text: "2"}, {}, {Text: finding}}},
		}}
	}
	x.Tables = []run.Table{table("put: rate", "no finding: the open load sets it, and both kept up"), table("put: response.p50", "differs"), table("put: response.p99", "cannot tell")}
	for i, variant := range []string{"aof=no", "aof=always"} {
		x.Runs = append(x.Runs, run.ExperimentRun{ID: variant, Variant: variant, Repetition: 1, Verdict: run.Verdict{
			Reasons: []string{fmt.Sprintf("phase put: the loop waited %d %% of the time", i+2)}, Codes: []reason.Code{reason.RunQueue},
		}})
		x.Verdict.Reasons = append(x.Verdict.Reasons, variant+": "+x.Runs[i].Verdict.Reasons[0])
		x.ReasonRuns = append(x.ReasonRuns, i+1)
	}
	var b strings.Builder
	require.NoError(t, Experiment(&b, x, Options{}))
	require.True(t, strings.HasPrefix(b.String(), `aof=always: put median 8.90 × slower, 95 % CI 2.90 to 17.5
Different from the baseline aof=no? Yes, in 1 of 2 comparisons.
Cannot tell of aof=always, in 1 comparison: 1 and 1 runs are too few.
All runs are complete. Some figures are SUSPECT: quote none of those without the reasons.
  - The figures include time in which loadgen itself waited for a processor: all 2 runs, put: the loop waited 2 or 3 % of the time [run_queue]
What to do: loadgen explain run_queue
`), b.String())
	require.Contains(t, b.String(), "Only with --full: put: rate (the load sets it)\n")
	require.NotContains(t, b.String(), "spread")
	b.Reset()
	require.NoError(t, Experiment(&b, x, Options{Full: true}))
	require.Contains(t, b.String(), "── put: rate\n")
	require.Contains(t, b.String(), "spread")
	b.Reset()
	require.NoError(t, Markdown(&b, []timeline.Source{{Study: timeline.NewStudy(x)}}))
	require.Contains(t, b.String(), "waited for a processor: all 2 runs, put: the loop waited 2 or 3 % of the time \\[run\\_queue\\]\n")
	require.Equal(t, 1, strings.Count(b.String(), "runs are too few"))
}
