package run

// Level is one step of a phase whose load has several: a stage, or a rate that a search tried. Its figures are judged like those of an open phase. A
// stage of sessions is judged with its phase, and its ops are those that were due in it.
type Level struct {
	Rate            float64 `json:"rate"`         // arrivals per second asked for, after the ramp
	Sessions        int     `json:"sessions"`     // in place of a rate: how many there are after the ramp
	RateFrom        float64 `json:"rate_from"`    // where the ramp begins
	RampSeconds     float64 `json:"ramp_seconds"` //
	DurationSeconds float64 `json:"duration_seconds"`
	StartSeconds    float64 `json:"start_seconds"` // since the start of the phase's first level

	OfferedRate  *float64 `json:"offered_rate"`
	AchievedRate *float64 `json:"achieved_rate"`

	Validity Validity             `json:"validity"`
	Reasons  []Reason             `json:"reasons"`
	Outcome  string               `json:"outcome"` // in a search: "held", "failed", "overloaded", "client-bound", "unanswered" or "closed"
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

// Search is the result of a search. Rates are those that its levels asked for; the offered rates differ by chance if arrivals are random.
type Search struct {
	Rate        *float64 `json:"rate"`            // the highest rate at which every objective held
	Level       *int     `json:"level"`           // its index in levels; the phase's own figures are those of this level
	FirstFailed *float64 `json:"first_failed"`    // the lowest rate above it at which an objective did not hold
	ClientBound *float64 `json:"client_bound"`    // the lowest rate above it that the generator could not offer
	Low         *float64 `json:"low,omitempty"`   // the largest rate that holds lies between these with a probability of 95 %; nil if nothing is known
	High        *float64 `json:"high,omitempty"`  // nil if the generator was the bound
	Noise       *float64 `json:"noise,omitempty"` // relative standard deviation of what a level says about that rate
	Held        int      `json:"held,omitempty"`  // in older results: tries at the level's rate that held
	Tries       int      `json:"tries,omitempty"` // and those that the generator did not spoil
	Knee        *float64 `json:"knee"`            // the rate at which throughput divided by mean response is greatest
	KneeLevel   *int     `json:"knee_level"`
	Cause       string   `json:"cause,omitempty"`    // code of what gave out first, as far as the target's servers were observed
	Evidence    string   `json:"evidence,omitempty"` // the same in words
	End         string   `json:"end"`                // code for why no more rates were tried
	Ended       string   `json:"ended"`              // the same in words

	From        float64     `json:"from"` // what was asked for
	To          float64     `json:"to"`
	StepSeconds float64     `json:"step_seconds"`
	Precision   float64     `json:"precision"`
	Budget      float64     `json:"budget_seconds"`
	Objectives  []Objective `json:"objectives"`
}
