package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/chart"
	"github.com/loadgen/loadgen/internal/result/report/words"
)

// growthChart draws the cost of ops by ordinal, for a verb or for a scenario.
func growthChart(d words.Done) (figure, *chart.Chart) {
	g := d.Growth
	if g == nil || len(g.Course) < fewPoints {
		return figure{}, nil
	}
	mean := chart.Line{Name: "mean", Class: "c0 thin"}
	median := chart.Line{Name: "median", Class: "c1"}
	tail := chart.Line{Name: "p99", Class: "c2 thin"}
	c := &chart.Chart{}
	var r extent
	from := 0.0
	for _, row := range g.Course {
		to := float64(row.N)
		text := fmt.Sprintf("%s to %s", quantity.Thousands(int64(from)+1), quantity.Thousands(row.N))
		if row.Failed > 0 {
			text += "\n" + quantity.Thousands(row.Failed) + " failed"
		}
		for _, l := range []struct {
			line *chart.Line
			v    *float64
		}{{&mean, row.Mean}, {&median, row.P50}, {&tail, row.P99}} {
			y := math.NaN()
			if l.v != nil {
				y = *l.v
				r.add(y)
				text += "\n" + l.line.Name + " " + quantity.Duration(y)
			}
			l.line.Points = append(l.line.Points, chart.Point{X: (from + to) / 2, Y: y})
		}
		c.Hits = append(c.Hits, chart.Hit{X0: from, X1: to, Text: text})
		from = to
	}
	if r.least == 0 {
		return figure{}, nil
	}
	for _, l := range []chart.Line{mean, median, tail} {
		if slices.ContainsFunc(l.Points, func(p chart.Point) bool { return !math.IsNaN(p.Y) }) {
			c.Lines = append(c.Lines, l)
		}
	}
	c.X = chart.Span("number of the "+map[bool]string{true: "op", false: "scenario"}[d.Sequence == ""], from, chart.Step(from, 6), tickSI)
	c.Y = r.log("service (log)")
	width := g.Course[0].N
	return figure{Title: "Cost of " + d.Name + " by how many there are", Note: "each point is " + quantity.Count(width, "op")}, c
}
