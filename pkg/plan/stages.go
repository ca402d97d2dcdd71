package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/plan/dialect"
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

// Users is one stage of a closed load whose sessions come and go. It begins where the one before it ends, and stops nobody: a session that leaves
// finishes its op or scenario first.
type Users struct {
	Sessions int           `json:"sessions"`    // after Ramp
	Duration time.Duration `json:"duration_ns"` // Ramp included
	Ramp     time.Duration `json:"ramp_ns"`     // time in which their number changes linearly from the previous stage's, in the first stage from 0
}

// Present returns when session id is first there, from a time after the start of the load on, and until when; from is Duration if it does not come.
// While n sessions are there, they are those numbered from 0 to n − 1.
func (c *Closed) Present(id int, after time.Duration) (from, to time.Duration) {
	begins, before, here := time.Duration(0), 0, false
	for _, s := range c.Stages {
		at, is := begins, s.Sessions > id
		if is != (before > id) {
			at += time.Duration(float64(s.Ramp) * float64(id-before) / float64(s.Sessions-before))
		}
		switch {
		case is && !here && begins+s.Duration > after:
			from, here = max(at, after), true
		case !is && here:
			return from, at
		}
		begins, before = begins+s.Duration, s.Sessions
	}
	if !here {
		return begins, begins
	}
	return from, begins
}

// Whole returns from when until when all of a closed load's sessions are there, for the first time; to is 0 if they stay until the end.
func (c *Closed) Whole() (from, to time.Duration) {
	if len(c.Stages) == 0 {
		return c.Ramp, 0
	}
	return c.Present(c.Sessions-1, 0)
}

// Ends returns when each stage ends, in nanoseconds after the start of the load; nil without stages.
func (c *Closed) Ends() (ends []int64) {
	at := time.Duration(0)
	for _, s := range c.Stages {
		at += s.Duration
		ends = append(ends, int64(at))
	}
	return ends
}

// ofSessions says whether stages have sessions in place of rates.
func (b *block) ofSessions() bool {
	have := func(name string) bool {
		return slices.ContainsFunc(b.Block.Each("stage"), func(in *dialect.Block) bool { return in.Has(name) })
	}
	return have("sessions") && !have("rate")
}

// users reads stages of sessions.
func (b *block) users() *Closed {
	b.Expect([]string{"think", "pipeline"}, nil, "stage")
	c := &Closed{Clients: Clients{Pipeline: 1}, Stages: []Users{}}
	dialect.Integer(b.Block, "pipeline", &c.Pipeline)
	b.think(&c.Think, &c.Thinks)
	for _, inner := range b.each("stage") {
		inner.Expect([]string{"sessions", "duration", "ramp"}, nil)
		var s Users
		inner.Require("sessions", "Write sessions = 100, or how many there are after the ramp.")
		dialect.Integer(inner.Block, "sessions", &s.Sessions)
		inner.Require("duration", `Write duration = "30s", or how long.`)
		inner.Duration("duration", &s.Duration)
		inner.Duration("ramp", &s.Ramp)
		c.Stages = append(c.Stages, s)
		c.Sessions, c.Duration = max(c.Sessions, s.Sessions), c.Duration+s.Duration
	}
	return c
}

// users checks the stages of a closed load.
func (v *validator) users(c *Closed, at part) {
	if len(c.Stages) == 0 {
		return
	}
	if n := len(c.Stages); n > maxStages {
		v.fault(fmt.Sprintf("%s: %d stages", at.where, n), fmt.Sprintf("Write 1 to %d blocks stage { … }.", maxStages), at.path)
		return
	}
	most, lasts := 0, time.Duration(0)
	for i, s := range c.Stages {
		in := part{fmt.Sprintf("%s.stage.%d", at.path, i+1), fmt.Sprintf("%s, stage %d", at.where, i+1)}
		v.within(in, "sessions", int64(s.Sessions), 0, maxSessions)
		v.lasts(in, "duration", s.Duration, time.Nanosecond)
		v.lasts(in, "ramp", s.Ramp, 0)
		if s.Ramp > s.Duration {
			v.fault(in.where+": ramp is longer than duration", "Write a shorter ramp: duration includes it.", in.path+".ramp", in.path+".duration")
		}
		most, lasts = max(most, s.Sessions), lasts+s.Duration
	}
	if c.Sessions != most || c.Duration != lasts || c.Iterations != 0 || c.Ramp != 0 || c.WarmUp != 0 || c.Trace != nil {
		v.fault(at.where+": stages that do not make up the load", "Write the most sessions, the whole duration and nothing else.", at.path)
	}
}
