package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// matrix is an experiment with more variants than a terminal shows in full, in two metrics of one op.
func matrix() *run.Experiment {
	x := compared()
	x.Baseline, x.Variants = "w=1,r=1", nil
	for w := range mostVariants + 2 {
		x.Variants = append(x.Variants, run.Variant{Name: fmt.Sprintf("w=%d,r=1", w+1), Runs: 3, Stopped: run.StopFinished})
	}
	x.Variants[3].Stopped = run.StopCap
	x.Tables = x.Tables[:1]
	units := map[string]string{"rate": "/s", "response.p99": "s"}
	for _, metric := range []string{"rate", "response.p99"} {
		t := run.Table{
			Title:   "phase put, put: " + metric + "; one value per repetition",
			Columns: []run.Column{{Name: "score", Title: "mean ± 99.9 %"}, {Name: "ratio", Title: "× w=1,r=1"}, {Name: "finding", Title: "finding"}},
		}
		for i, v := range x.Variants {
			score, ratio := 1234.5*float64(i+1), float64(i+1)
			f := run.Figure{Variant: v.Name, Phase: "put", Op: "put", Metric: metric, Unit: units[metric], Score: &score, Ratio: &ratio, Differs: i > 2}
			switch i {
			case 0:
				f.Ratio, f.Nulls = nil, map[string]string{"ratio": "it is the baseline"}
			case 1:
				f.Score, f.Ratio, f.Nulls = nil, nil, map[string]string{"ratio": "no run of it counts", "score": "no run of it counts"}
			case 2:
				f.Validity = run.Suspect
			case 3:
				f.Validity = run.Invalid
			}
			x.Figures = append(x.Figures, f)
			t.Rows = append(t.Rows, run.TableRow{Name: v.Name, Cells: []run.Cell{
				{Text: quantity.Whole(score) + " ± 5"}, {Text: fmt.Sprint(ratio)}, {Text: "a finding that takes a line of its own"},
			}})
		}
		x.Tables = append(x.Tables, t)
	}
	return x
}

// A variant among many has one line for all of its metrics, and a note says where the rest is.
func TestExperimentOfManyVariants(t *testing.T) {
	x := matrix()
	var b strings.Builder
	require.NoError(t, Experiment(&b, x, Options{}))
	fits(t, b.String(), mostWide)
	golden(t, "experiment-many.txt", b.String())

	for _, v := range x.Variants {
		require.LessOrEqual(t, strings.Count(b.String(), "\n  "+v.Name+" "), 2, "in the table, and with what became of it")
	}
	var all strings.Builder
	require.NoError(t, Markdown(&all, []timeline.Source{{Study: timeline.NewStudy(x)}}))
	for _, v := range x.Variants {
		require.Equal(t, len(x.Tables)-1, strings.Count(all.String(), "\n| "+v.Name+" "), v.Name)
	}
}
