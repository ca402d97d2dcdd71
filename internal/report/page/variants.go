package page

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/run"
)

// drawnVariants lists the variants that a plan's chart has lines of, by name.
func drawnVariants(x *run.Experiment, named []string) (names []string) {
	for _, v := range x.Variants {
		if slices.Contains(named, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// placeOf is the place by which a variant is drawn in a chart that has lines of some: the one it has everywhere, as long as each variant of the experiment has a
// colour; else that among the chart's own, so that neighbours there are told apart.
func placeOf(variant string, drawn []string, x *run.Experiment) int {
	if len(x.Variants) > colours {
		return max(slices.Index(drawn, variant), 0)
	}
	return max(slices.IndexFunc(x.Variants, func(v run.Variant) bool { return v.Name == variant }), 0)
}

// briefly returns what a variant is called beside the others of a chart: what its name has that not all of theirs have.
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
