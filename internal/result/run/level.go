package run

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

// Offered returns the rate that the level offered, or the one asked for if nothing was.
func (l *Level) Offered() float64 {
	if l.OfferedRate == nil {
		return l.Rate
	}
	return *l.OfferedRate
}

// Search is the result of a search. Rates are those that the levels offered, which differ from those asked for by chance if arrivals are random.
type Search struct {
	Rate        *float64 `json:"rate"`         // of the highest asked for at which every objective held
	Level       *int     `json:"level"`        // its index in levels; the phase's own figures are those of this level
	FirstFailed *float64 `json:"first_failed"` // of the lowest asked for above it at which one did not
	ClientBound *float64 `json:"client_bound"` // the lowest asked for above it that the generator could not offer
	Knee        *float64 `json:"knee"`         // where throughput divided by mean response is greatest
	KneeLevel   *int     `json:"knee_level"`
	End         string   `json:"end"`   // code for why no more rates were tried
	Ended       string   `json:"ended"` // the same in words

	From        float64     `json:"from"` // what was asked for
	To          float64     `json:"to"`
	StepSeconds float64     `json:"step_seconds"`
	Precision   float64     `json:"precision"`
	Budget      float64     `json:"budget_seconds"`
	Objectives  []Objective `json:"objectives"`
}
