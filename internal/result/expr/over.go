package expr

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// group holds the variants that differ only in the variable that a chart goes over: the points of one line.
type group struct {
	name  string // values of the other variables, or "" if there are none
	first string // variant
	at    []placed
}

// placed is a variant and its value of the variable.
type placed struct {
	x float64
	v Variant
}

// groupsBy groups variants by the values of all variables but one, which is a number. It leaves out variants that do not set it to a number.
func groupsBy(x *run.Experiment, variants []Variant, c plan.Chart) (groups []*group) {
	variable := c.Over.Variable()
	for _, v := range variants {
		values := valuesOf(x, v.Name)
		at, err := strconv.ParseFloat(values[variable], 64)
		if err != nil {
			continue
		}
		var others []string
		for name, value := range values {
			if _, same := c.Of[name]; !same && name != variable {
				others = append(others, name+"="+strings.Trim(value, `"`))
			}
		}
		slices.Sort(others)
		name := strings.Join(others, ", ")
		j := slices.IndexFunc(groups, func(g *group) bool { return g.name == name })
		if j < 0 {
			j = len(groups)
			groups = append(groups, &group{name: name, first: v.Name})
		}
		groups[j].at = append(groups[j].at, placed{at, v})
	}
	for _, g := range groups {
		slices.SortFunc(g.at, func(a, b placed) int { return cmp.Compare(a.x, b.x) })
	}
	return groups
}

// valuesOf returns the values that a variant sets variables to, as HCL literals; nil for an unknown variant.
func valuesOf(x *run.Experiment, variant string) map[string]string {
	i := slices.IndexFunc(x.Variants, func(v run.Variant) bool { return v.Name == variant })
	if i < 0 {
		return nil
	}
	return x.Variants[i].Values
}

// points returns a figure of each variant, the mean over its runs. why is an empty cell with the reason of the first missing one.
func (g *group) points(l plan.Column) (points []point, why run.Cell) {
	expr, diags := parseColumn(l)
	if diags.HasErrors() {
		return nil, run.Cell{Reason: explain(diags)}
	}
	for _, p := range g.at {
		var some []point
		for _, r := range p.v.Runs {
			result, err := valueOf(p.v.Plan, r)
			if err != nil {
				return nil, run.Cell{Reason: err.Error()}
			}
			cell := valueAt(expr, columnContext(result.GetAttr("phase"), nil, nil, nil), r)
			if cell.Value == nil && why.Reason == "" {
				why = cell
			}
			some = append(some, point{p.x, cell.Value})
		}
		points = append(points, point{p.x, meanPoint(some).y})
	}
	return orWhy(points, why, "no run of these variants counts")
}
