package page

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/result/run"
)

// drawnVariants lists the variants that have lines in a plan's chart, by name.
func drawnVariants(x *run.Experiment, named []string) (names []string) {
	for _, v := range x.Variants {
		if slices.Contains(named, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// placeOf returns the index that determines how a variant is drawn in a chart. It is the same in all charts, as long as there is a colour for each
// variant of the experiment; otherwise it is the index within the chart, so that neighbours there are distinct.
func placeOf(variant string, drawn []string, x *run.Experiment) int {
	if len(x.Variants) > colours {
		return max(slices.Index(drawn, variant), 0)
	}
	return max(slices.IndexFunc(x.Variants, func(v run.Variant) bool { return v.Name == variant }), 0)
}

// briefly returns a function that shortens a variant's name to the parts that not all variants of a chart share.
func briefly(variants []string) func(variant string) string {
	return func(variant string) string {
		var own []string
		for _, part := range strings.Split(variant, ",") {
			if slices.ContainsFunc(variants, func(other string) bool { return !slices.Contains(strings.Split(other, ","), part) }) {
				own = append(own, part)
			}
		}
		if own == nil {
			return variant
		}
		return strings.Join(own, ",")
	}
}
