package report

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/exit"
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
					{Text: "cannot tell: 3 and 1 runs are too few to tell what chance does: repeat at least 3 times, SUSPECT"},
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
