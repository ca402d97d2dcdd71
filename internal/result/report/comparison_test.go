package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/experiment/comparison"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Differences come before the figures, in text and in Markdown; only Markdown has long values in full.
func TestComparison(t *testing.T) {
	long := strings.Repeat("x", 40)
	ok := run.Verdict{Completeness: run.Complete, Validity: run.Suspect}
	c := &comparison.Result{Sides: []comparison.Side{
		{Name: "A", Runs: []run.ExperimentRun{{ID: "a1", Verdict: ok}, {ID: "a2", Verdict: ok}}},
		{Name: "B", Runs: []run.ExperimentRun{{ID: "b", Verdict: ok}}},
	}}
	c.Differences = []comparison.Difference{{Of: "environment", Path: "kernel", Values: []string{"6.1", long}}}
	c.Notes = []string{"A note."}
	c.Tables = []run.Table{{
		Title: "rate", Columns: []run.Column{{Name: "score", Title: "mean"}}, Rows: []run.TableRow{{Name: "A", Cells: []run.Cell{{Text: "1,000"}}}},
	}}
	var text, md strings.Builder
	require.NoError(t, Comparison(&text, []*comparison.Result{c}, Options{}))
	require.Equal(t, `A  a1  complete, suspect
   a2  complete, suspect
B  b  complete, suspect

── plan: the same

── environment: not the same
          A    B
  kernel  6.1  `+long[:31]+`…

A note.

── rate
      mean
  A  1,000
`, text.String())
	require.NoError(t, ComparisonMarkdown(&md, []*comparison.Result{c}))
	require.Contains(t, md.String(), "The plan is the same.\n\n## Not the same: environment\n\n| | A | B |\n|---|---|---|\n| kernel | 6.1 | "+long+" |\n")
	require.Contains(t, md.String(), "| A | 1,000 |\n")

	c.Tables = nil
	text.Reset()
	require.NoError(t, Comparison(&text, []*comparison.Result{c}, Options{}))
	require.Contains(t, text.String(), "no phase and op in common that could be compared")
}
