package experiment_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/run"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shown is everything that an experiment reports, in six digits: processors may round the last ones differently.
func shown(x *run.Experiment, outlook []string) string {
	var b strings.Builder
	for _, f := range x.Figures {
		fmt.Fprintf(&b, "%s %s %s %s: %d values, differs %t, %s: %s\n",
			f.Variant, f.Phase, f.Op, f.Metric, f.Values, f.Differs, f.Validity, f.Finding)
		for _, v := range []struct {
			name string
			is   *float64
		}{
			{"score", f.Score},
			{"error", f.Error},
			{"median", f.Median},
			{"ratio", f.Ratio},
			{"ratio_lo", f.RatioLo},
			{"ratio_hi", f.RatioHi},
			{"p", f.P},
			{"p_holm", f.PHolm},
			{"spread", f.Spread},
			{"mde", f.MDE},
		} {
			if v.is != nil {
				fmt.Fprintf(&b, "  %s %.6g\n", v.name, *v.is)
			} else {
				fmt.Fprintf(&b, "  %s null: %s\n", v.name, f.Nulls[v.name])
			}
		}
	}
	for _, t := range x.Tables {
		fmt.Fprintf(&b, "\n%s\n", t.Title)
		for _, c := range t.Columns {
			fmt.Fprintf(&b, "| %s (%s) ", c.Title, c.Unit)
		}
		b.WriteString("|\n")
		for _, r := range t.Rows {
			b.WriteString(r.Name)
			for _, c := range r.Cells {
				fmt.Fprintf(&b, " | %s%s", c.Text, c.Reason)
			}
			b.WriteString("\n")
		}
		for _, n := range t.Notes {
			fmt.Fprintf(&b, "note: %s\n", n)
		}
	}
	for _, line := range outlook {
		fmt.Fprintf(&b, "\noutlook: %s\n", line)
	}
	return b.String()
}

// TestWhatExperimentsShow pins every figure, table and sentence of experiments of known runs: with several variants, few repetitions, and equal
// values.
func TestWhatExperimentsShow(t *testing.T) {
	for _, c := range []struct {
		name    string
		repeat  int
		scatter float64 // of runs, as a share
		rates   []float64
	}{
		{"several", 5, 0.01, []float64{1000, 1300, 1005, 970}},
		{"once", 1, 0.01, []float64{1000, 1300, 990}},
		{"even", 6, 0, []float64{1000, 1000, 1100}},
		{"scattered", 5, 0.4, []float64{1000, 1500}},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(11, 3))
			names := []string{"base", "b", "c", "d"}[:len(c.rates)]
			x := begun(described(c.repeat, names...))
			var runs []*run.Run
			for i := range c.repeat {
				for v, name := range names {
					r := measured(x, name, i+1, c.rates[v]*(1+c.scatter*random.NormFloat64()))
					x.Add(r)
					runs = append(runs, r)
				}
			}
			outlook, all := experiment.Outlook(x, runs)
			experiment.Conclude(x, runs)
			got := shown(x, append(slices.Clip(outlook), fmt.Sprint("all ", all)))
			golden := filepath.Join("testdata", c.name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)
		})
	}
}

func TestHolmIsAProbability(t *testing.T) {
	require.Equal(t, []float64{0.5}, experiment.Holm([]float64{0.5}), "of one nothing is adjusted")
	require.Equal(t, []float64{1, 1}, experiment.Holm([]float64{0.6, 0.7}), "never above 1")
	require.Equal(t, []float64{0.75, 0.75, 0.75}, experiment.Holm([]float64{0.25, 0.25, 0.25}), "equal ones stay equal")
	require.Equal(t, []float64{0.5, 0.25, 0.5}, experiment.Holm([]float64{0.25, 0.0625 / 0.75, 0.375}), "in the order they came in, and never falling")
}

// TestForeseenDifferenceIsThatOfTheWorst variant: the smallest difference that the outlook promises holds for all of them.
func TestForeseenDifferenceIsThatOfTheWorst(t *testing.T) {
	for _, order := range [][]string{{"base", "calm", "wild"}, {"base", "wild", "calm"}, {"calm", "base", "wild"}} {
		e := described(5, order...)
		e.Baseline = "base"
		x := begun(e)
		var runs []*run.Run
		for i := range 4 {
			for _, name := range order {
				scatter := map[string]float64{"base": 0.005, "calm": 0.005, "wild": 0.2}[name]
				r := measured(x, name, i+1, 1000*(1+scatter*[]float64{-1, 1, -0.5, 0.5}[i]))
				x.Add(r)
				runs = append(runs, r)
			}
		}
		lines, all := experiment.Outlook(x, runs)
		require.True(t, all)
		require.Len(t, lines, 1)
		require.Contains(t, lines[0], "% (wild), if runs scatter")
	}
}
