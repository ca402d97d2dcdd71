package run

import "github.com/loadgen/loadgen/internal/run/conditions"

// Level is one step of a phase whose load has several: a stage, or a rate that a search tried. Its figures are judged like those of an open phase.
type Level struct {
	Rate            float64 `json:"rate"`         // arrivals per second asked for, after the ramp
	RateFrom        float64 `json:"rate_from"`    // where the ramp begins
	RampSeconds     float64 `json:"ramp_seconds"` //
	DurationSeconds float64 `json:"duration_seconds"`
	StartSeconds    float64 `json:"start_seconds"` // since the start of the phase's first level

	OfferedRate  *float64 `json:"offered_rate"`
	AchievedRate *float64 `json:"achieved_rate"`

	Validity Validity             `json:"validity"`
	Reasons  []Reason             `json:"reasons"`
	Outcome  string               `json:"outcome"` // of a search: "held", "failed", "overloaded" or "client-bound"
	Why      string               `json:"why"`     // why it did not hold
	Busy     float64              `json:"busy"`    // as in the generator's figures
	Op       map[string]*Op       `json:"op"`
	Scenario map[string]*Scenario `json:"scenario"`
}

// Search is the result of a search.
type Search struct {
	Rate        *float64 `json:"rate"`         // the highest rate asked for at which every objective held
	Level       *int     `json:"level"`        // its index in levels; the phase's own figures are those of this level
	FirstFailed *float64 `json:"first_failed"` // the lowest rate above it at which one did not
	ClientBound *float64 `json:"client_bound"` // the lowest rate above it that the generator could not offer
	Knee        *float64 `json:"knee"`         // where throughput divided by mean response is greatest
	KneeLevel   *int     `json:"knee_level"`
	End         string   `json:"end"`   // code for why no more rates were tried
	Ended       string   `json:"ended"` // the same in words

	From        float64                `json:"from"` // what was asked for
	To          float64                `json:"to"`
	StepSeconds float64                `json:"step_seconds"`
	Precision   float64                `json:"precision"`
	Budget      float64                `json:"budget_seconds"`
	Objectives  []conditions.Objective `json:"objectives"`
}
