package run

import (
	"errors"
	"fmt"
)

// Growth says how an op's cost changes with the number of ops: service times by ordinal, which is an op's position in the schedule of its phase. It
// covers all ops, including those of the warm-up.
type Growth struct {
	Ops   uint64   `json:"ops"`   // ops that have ended
	Drift *float64 `json:"drift"` // mean of the last twentieth divided by that of the first

	// Over the second half of the ops, service time is proportional to the ordinal to the power of Order, with its 95 % confidence interval.
	Order   *float64 `json:"order"`
	OrderLo *float64 `json:"order_lo"`
	OrderHi *float64 `json:"order_hi"`
	Shown   string   `json:"shown"` // the conclusion from order and drift: "grows", "falls", "none" or "unclear"; "" without an order

	// How long the phase took, or would take, until To ops have ended, with its 95 % confidence interval.
	To          int64    `json:"to"` // the number of ops that the plan asks about; 0 for none
	SecondsTo   *float64 `json:"seconds_to"`
	SecondsToLo *float64 `json:"seconds_to_lo"`
	SecondsToHi *float64 `json:"seconds_to_hi"`

	Course []GrowthRow `json:"course"` // up to 128 rows, all of equally many ordinals but the last
}

// GrowthRow holds the ended ops of neighbouring ordinals. Service times are in seconds; a row with failed ops has no mean.
type GrowthRow struct {
	N      uint64   `json:"n"` // the largest ordinal
	Ended  uint64   `json:"ended"`
	Failed uint64   `json:"failed"` // of Ended
	Mean   *float64 `json:"mean"`
	P50    *float64 `json:"p50"`
	P99    *float64 `json:"p99"`
}

// check checks that values lie in their intervals, and that the rows add up to the ops.
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
	if s := g.shows(); g.Shown != s && (g.Shown != "none" || s != "unclear") { // older loadgens knew no "unclear"
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

const (
	flat  = 0.25 // an order this close to 0 counts as none: with twice as many ops, the cost changes by less than a fifth
	drift = 1.25 // and so does a drift between 1 divided by this and this
)

// Wide says whether the order's interval is too wide to tell that there is no growth.
func (g *Growth) Wide() bool { return *g.OrderLo < -flat || *g.OrderHi > flat }

// Drifted returns +1 if the last ops took longer than the first, -1 if they took less, and 0 if neither or unknown.
func (g *Growth) Drifted() int {
	switch {
	case g.Drift == nil:
		return 0
	case *g.Drift > drift:
		return 1
	case *g.Drift < 1/drift:
		return -1
	}
	return 0
}

// shows returns the conclusion from order and drift together.
func (g *Growth) shows() string {
	switch {
	case g.Order == nil || g.OrderLo == nil || g.OrderHi == nil:
		return ""
	case *g.OrderLo > 0:
		return "grows"
	case *g.OrderHi < 0:
		return "falls"
	case g.Wide() || g.Drifted() != 0:
		return "unclear"
	}
	return "none"
}

// Judge sets Shown.
func (g *Growth) Judge() { g.Shown = g.shows() }
