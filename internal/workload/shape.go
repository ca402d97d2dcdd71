package workload

import (
	"github.com/loadgen/loadgen/internal/pace"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Shape returns the rate over time of an open load.
func Shape(o *plan.Open) pace.Shape {
	return pace.Shape{Rate: o.Rate, Ramp: o.Ramp, Duration: o.Duration}
}

// Shapes returns the rate over time of each stage: its ramp begins at the rate of the one before, that of the first at 0.
func Shapes(s *plan.Stages) []pace.Shape {
	var shapes []pace.Shape
	from := 0.0
	for _, stage := range s.Stages {
		shapes = append(shapes, pace.Shape{Rate: stage.Rate, From: from, Ramp: stage.Ramp, Duration: stage.Duration})
		from = stage.Rate
	}
	return shapes
}

// Try returns the rate over time of a step of a search that tries a rate.
func Try(s *plan.Search, rate float64) pace.Shape {
	return pace.Shape{Rate: rate, Duration: s.StepDuration}
}
