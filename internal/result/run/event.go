package run

import "fmt"

// Event describes an event on a target during a phase, and how the load went before, during and after it. Times are seconds since the phase's origin;
// figures are of whole seconds in which all of the load was on.
type Event struct {
	Do               string   `json:"do"`
	Target           string   `json:"target"`
	Node             *int     `json:"node,omitempty"`    // index among the built-in nodes, from 0; absent for all
	AtSeconds        float64  `json:"at_seconds"`        // when the plan asked for it
	HappenedSeconds  *float64 `json:"happened_seconds"`  // null if the load had ended
	UndoneSeconds    *float64 `json:"undone_seconds"`    // null if it was not undone
	TookSeconds      float64  `json:"took_seconds"`      //
	Failed           string   `json:"failed,omitempty"`  // why it did not happen, or only in part
	RecoveredSeconds *float64 `json:"recovered_seconds"` // time from the event until the load had recovered
	Before           Window   `json:"before"`            // up to 5 s before the event
	During           Window   `json:"during"`            // until the load had recovered
	After            Window   `json:"after"`             // until the next event, or the end of the load
}

// Window holds the figures of some seconds of a phase, over all its ops.
type Window struct {
	FromSeconds float64  `json:"from_seconds"`
	ToSeconds   float64  `json:"to_seconds"` // equal to FromSeconds if there is no such time, and then all figures are null
	Rate        *float64 `json:"rate"`       // ops that ended ok per second
	BadRatio    *float64 `json:"bad_ratio"`  // share of the ops that ended or were shed that were neither ok nor a miss
	P50         *float64 `json:"p50"`        // response, seconds
	P95         *float64 `json:"p95"`
	P99         *float64 `json:"p99"`
}

func (e *Event) check() error {
	last := 0.0
	for _, w := range []*Window{&e.Before, &e.During, &e.After} {
		if w.ToSeconds < w.FromSeconds {
			return fmt.Errorf("figures from %v s to %v s", w.FromSeconds, w.ToSeconds)
		}
		if w.ToSeconds == w.FromSeconds {
			continue
		}
		if w.FromSeconds < last {
			return fmt.Errorf("figures from %v s on, and of the time before up to %v s", w.FromSeconds, last)
		}
		last = w.ToSeconds
	}
	if e.HappenedSeconds == nil && (last > 0 || e.RecoveredSeconds != nil) {
		return fmt.Errorf("what came of an event that did not happen")
	}
	return nil
}
