package run

import (
	"errors"
	"fmt"
)

// Growth is what an op costs the more there are: its service times by ordinal, which says as the how-manieth of its phase it was due. It is of all ops, those of
// the warm-up included.
type Growth struct {
	Ops   uint64   `json:"ops"`   // that have ended
	Drift *float64 `json:"drift"` // mean of the last twentieth by that of the first

	// Service time goes as the ordinal to the power of Order in the second half of the ops, with its 95 % confidence interval.
	Order   *float64 `json:"order"`
	OrderLo *float64 `json:"order_lo"`
	OrderHi *float64 `json:"order_hi"`
	Shown   string   `json:"shown"` // what the interval shows: "grows", "falls" or "none"; "" without one

	// The phase would take so long until To ops have ended, or took, with its 95 % confidence interval.
	To          int64    `json:"to"` // asked about; 0: none are
	SecondsTo   *float64 `json:"seconds_to"`
	SecondsToLo *float64 `json:"seconds_to_lo"`
	SecondsToHi *float64 `json:"seconds_to_hi"`

	Course []GrowthRow `json:"course"` // up to 128 rows, each of as many ordinals but the last
}

// GrowthRow is the ops of neighbouring ordinals that have ended. Service times are in seconds; of a row in which ops failed there is no mean.
type GrowthRow struct {
	N      uint64   `json:"n"` // the largest ordinal
	Ended  uint64   `json:"ended"`
	Failed uint64   `json:"failed"` // of them
	Mean   *float64 `json:"mean"`
	P50    *float64 `json:"p50"`
	P99    *float64 `json:"p99"`
}

// check holds that intervals hold what they are of, and that rows are of the ops.
func (g *Growth) check() error {
	if g == nil {
		return nil
	}
	for _, e := range []struct {
		name           string
		value, low, hi *float64
	}{{"order", g.Order, g.OrderLo, g.OrderHi}, {"seconds_to", g.SecondsTo, g.SecondsToLo, g.SecondsToHi}} {
		switch {
		case (e.value == nil) != (e.low == nil) || (e.value == nil) != (e.hi == nil):
			return fmt.Errorf("growth: %s without its interval, or the other way round", e.name)
		case e.value != nil && !(*e.low <= *e.value && *e.value <= *e.hi):
			return fmt.Errorf("growth: %s of %v, in an interval of %v to %v", e.name, *e.value, *e.low, *e.hi)
		}
	}
	if g.Shown != g.shows() {
		return fmt.Errorf("growth: shown is %q", g.Shown)
	}
	last, ended := uint64(0), uint64(0)
	for _, row := range g.Course {
		if row.N <= last || row.Failed > row.Ended {
			return errors.New("growth: rows whose ordinals do not rise, or of which more failed than ended")
		}
		last = row.N
		ended += row.Ended
	}
	if ended != g.Ops {
		return fmt.Errorf("growth: rows of %d ops, not %d", ended, g.Ops)
	}
	return nil
}

// shows says what the interval of the order shows.
func (g *Growth) shows() string {
	switch {
	case g.Order == nil || g.OrderLo == nil || g.OrderHi == nil:
		return ""
	case *g.OrderLo > 0:
		return "grows"
	case *g.OrderHi < 0:
		return "falls"
	}
	return "none"
}

// Judge sets Shown.
func (g *Growth) Judge() { g.Shown = g.shows() }
