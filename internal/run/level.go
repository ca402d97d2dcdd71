package run

import "github.com/loadgen/loadgen/internal/run/conditions"

// Level is one step of a phase whose load has several: a stage, or a rate that a search has tried. Its figures are judged as those of an
// open phase are.
type Level struct {
	Rate            float64 `json:"rate"`         // arrivals per second asked for, after the ramp
	RateFrom        float64 `json:"rate_from"`    // and where the ramp begins
	RampSeconds     float64 `json:"ramp_seconds"` //
	DurationSeconds float64 `json:"duration_seconds"`
	StartSeconds    float64 `json:"start_seconds"` // since the start of the phase's first level

	OfferedRate  *float64 `json:"offered_rate"`
	AchievedRate *float64 `json:"achieved_rate"`

	Validity Validity             `json:"validity"`
	Reasons  []Reason             `json:"reasons"`
	Outcome  string               `json:"outcome"` // of a search: "held", "failed", "overloaded" or "client-bound"
	Why      string               `json:"why"`     // why it did not hold
	Busy     float64              `json:"busy"`    // as of the generator
	Op       map[string]*Op       `json:"op"`
	Scenario map[string]*Scenario `json:"scenario"`
}

// Search is what a search has found.
type Search struct {
	Rate        *float64 `json:"rate"`         // the largest asked for at which every objective held
	Level       *int     `json:"level"`        // its index in levels; the phase's own figures are those of this level
	FirstFailed *float64 `json:"first_failed"` // the lowest above it at which one did not
	ClientBound *float64 `json:"client_bound"` // the lowest above it that the generator could not offer
	Knee        *float64 `json:"knee"`         // where throughput divided by mean response is greatest
	KneeLevel   *int     `json:"knee_level"`
	End         string   `json:"end"`   // why no more rates were tried: a code, and
	Ended       string   `json:"ended"` // in words

	From        float64                `json:"from"` // what was asked for
	To          float64                `json:"to"`
	StepSeconds float64                `json:"step_seconds"`
	Precision   float64                `json:"precision"`
	Budget      float64                `json:"budget_seconds"`
	Objectives  []conditions.Objective `json:"objectives"`
}
