package page

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/run"
)

// TestAnswer says whether variants differ, and counts only trustworthy figures.
func TestAnswer(t *testing.T) {
	one := 1.0
	alike := run.Figure{Ratio: &one, RatioHi: &one, Spread: &one}
	differs, unknown, invalid, base := alike, run.Figure{}, alike, run.Figure{Variant: "a", Score: &one}
	differs.Differs, invalid.Differs, invalid.Validity = true, true, run.Invalid
	for _, tt := range []struct {
		want    string
		figures []run.Figure
	}{
		{"There is nothing to compare yet.", nil},
		{"There is nothing to compare yet.", []run.Figure{base}},
		{"No difference was shown.", []run.Figure{base, alike, unknown}},
		{"That cannot be told: there are too few values.", []run.Figure{base, unknown}},
		{"Yes, in every figure.", []run.Figure{base, differs}},
		{"Yes, in 1 of 3 comparisons; 2 others INVALID.", []run.Figure{differs, alike, unknown, invalid, invalid}},
		{"No difference was shown; 1 other INVALID.", []run.Figure{alike, invalid}},
		{"That cannot be told: the figures are INVALID.", []run.Figure{base, invalid}},
	} {
		require.Equal(t, tt.want, tables.AnswerOf("a", []tables.Comparison{{Figures: tt.figures}}), tt.want)
	}
}

// A difference that only counts on its own is not among those shown, nor among those with an MDE.
func TestDifferencesByThemselves(t *testing.T) {
	one := 1.0
	x := run.NewExperiment("x")
	x.Baseline, x.Variants = "a", []run.Variant{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	shown := func(variant string, code reason.Code, finding string) run.Figure {
		return run.Figure{Code: code, Variant: variant, Metric: "rate", Unit: "/s", Ratio: &one, RatioHi: &one, Spread: &one, Finding: finding}
	}
	c := tables.Comparison{Figures: []run.Figure{
		shown("a", reason.Baseline, "baseline"), shown("b", "differs_alone", "differs by itself, not among 62 comparisons"), shown("c", reason.NoDifference, "no difference shown (MDE 3.0 %)"),
	}}
	require.Equal(t, []string{
		"by themselves, not among all comparisons: b (– ×, spread –)", "no difference shown: c (MDE 3.0 %)",
	}, newDifferenceView(x, &c).Text)
}
