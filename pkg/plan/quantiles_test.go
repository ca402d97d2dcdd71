package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/plan"
)

func TestQuantiles(t *testing.T) {
	p := &plan.Plan{Quantiles: []float64{0.999, 0.5, 0.05}}
	require.Equal(t, []string{"p05", "p50", "p999"}, p.QuantileNames())
	f, diags := plan.Parse([]byte("plan \"q\" { quantiles = [0.5, 0.9999] }\n"), "plan.hcl", nil)
	require.Empty(t, diags)
	_, diags = f.Resolve(plan.Vars{})
	require.Len(t, diags, 1, "it has no phase")
	require.Equal(t, []string{"p50", "p9999"}, f.Draft().QuantileNames(), "asserts are checked against the draft")
	for list, want := range map[string]string{
		"[0.5, 1]":         "quantiles: 1 is the largest sample",
		"[0]":              "quantiles: 0 is the smallest sample",
		"[99]":             "quantiles: 99",
		"[0.5, 0.9, 0.50]": "quantiles: 0.5 twice",
		"[0.9999999]":      "has too many decimals",
		"[]":               "quantiles: ",
		"0.5":              "quantiles: ",
		`["p99"]`:          "quantiles: ",
		"[" + strings.Repeat("0.5, ", 16) + "0.9]": "17 quantiles",
	} {
		f, diags := plan.Parse([]byte(fmt.Sprintf("plan \"q\" { quantiles = %s }\n", list)), "plan.hcl", nil)
		if f != nil {
			_, more := f.Resolve(plan.Vars{})
			diags = append(diags, more...)
		}
		require.Contains(t, fmt.Sprint(diags.Errs()), want, list)
	}
}
