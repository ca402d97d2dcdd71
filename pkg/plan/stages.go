package plan

import (
	"fmt"
	"time"
)

// Stages is a load of arrivals at one rate after another.
type Stages struct {
	Schedule
	Stages []Stage `json:"stages"` // in their order
}

// Stage is one step of Stages. It begins when the previous stage's ops have ended.
type Stage struct {
	Rate     float64       `json:"rate"`        // arrivals per second after Ramp
	Duration time.Duration `json:"duration_ns"` // Ramp included
	Ramp     time.Duration `json:"ramp_ns"`     // time in which the rate changes linearly from the previous stage's, in the first stage from 0
}

// Shapes returns the rate over time of each stage. A ramp begins at the previous stage's rate, the first one at 0.
func (s *Stages) Shapes() []Shape {
	var shapes []Shape
	from := 0.0
	for _, stage := range s.Stages {
		shapes = append(shapes, Shape{Rate: stage.Rate, From: from, Ramp: stage.Ramp, Duration: stage.Duration})
		from = stage.Rate
	}
	return shapes
}

// stages reads a load of one stage after another.
func (b *block) stages() *Stages {
	b.Expect(scheduleWords, nil, "stage")
	s := &Stages{Schedule: b.schedule(5 * time.Second), Stages: []Stage{}}
	for _, inner := range b.each("stage") {
		inner.Expect([]string{"rate", "duration", "ramp", "sessions"}, nil)
		if _, ok := inner.Value("sessions"); ok {
			inner.Bad("sessions", "other stages have a rate", "Write rate in all stages, or sessions in all.")
		}
		var stage Stage
		inner.level(&stage.Rate, &stage.Duration, &stage.Ramp)
		s.Stages = append(s.Stages, stage)
	}
	return s
}

// stages checks a load of one stage after another.
func (v *validator) stages(s *Stages, at part) {
	v.schedule(&s.Schedule, at)
	if n := len(s.Stages); n < 1 || n > maxStages {
		v.fault(fmt.Sprintf("%s: %d stages", at.where, n), fmt.Sprintf("Write 1 to %d blocks stage { … }.", maxStages), at.path)
		return
	}
	for i, stage := range s.Stages {
		n := i + 1
		v.level(stage.Rate, stage.Duration, stage.Ramp, part{fmt.Sprintf("%s.stage.%d", at.path, n), fmt.Sprintf("%s, stage %d", at.where, n)})
	}
}
