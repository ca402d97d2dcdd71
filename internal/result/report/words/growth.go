package words

import (
	"math"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Grown says how the cost of ops changed as their number grew, a line for each figure; nothing if the phase does not measure that.
func (d Done) Grown() (lines []string) {
	g := d.Growth
	if g == nil {
		return nil
	}
	nulls, mark := d.ph.Nulls, Mark(d.ph, d.At+".growth")
	if g.Order == nil {
		lines = append(lines, "no order ("+nulls[d.At+".growth.order"]+")")
	} else {
		lines = append(lines, "order "+order(*g.Order)+mark+", 95 % interval "+order(*g.OrderLo)+" to "+order(*g.OrderHi))
	}
	if g.Drift == nil {
		lines = append(lines, "no drift ("+nulls[d.At+".growth.drift"]+")")
	} else {
		lines = append(lines, "the last 5 % of "+quantity.Thousands(g.Ops)+" took "+quantity.Number(*g.Drift)+mark+" × as long as the first")
	}
	if says := shown(g); says != "" {
		lines = append(lines, says)
	}
	switch what := quantity.Thousands(g.To); {
	case g.To == 0:
	case g.SecondsTo == nil:
		lines = append(lines, what+": not known ("+nulls[d.At+".growth.seconds_to"]+")")
	case uint64(g.To) <= g.Ops:
		lines = append(lines, "the first "+what+" took "+quantity.Duration(*g.SecondsTo)+mark)
	default:
		lines = append(lines, what+" would take "+quantity.Duration(*g.SecondsTo)+mark+", 95 % interval "+quantity.Duration(*g.SecondsToLo)+" to "+quantity.Duration(*g.SecondsToHi))
	}
	return lines
}

// order formats an exponent.
func order(n float64) string {
	if math.Abs(n) < 0.005 {
		return "0"
	}
	return quantity.Digits(math.Round(n*100) / 100)
}

// shown puts the conclusion from order and drift into words; nothing without an order.
func shown(g *run.Growth) string {
	before := map[int]string{1: "ops got slower at first; in the second half ", -1: "ops got quicker at first; in the second half "}[g.Drifted()]
	switch {
	case g.Order == nil:
		return ""
	case g.Shown == "grows" && g.Drifted() >= 0:
		return "so ops cost more as their number grows"
	case g.Shown == "grows":
		return "so " + before + "ops cost more as their number grows"
	case g.Shown == "falls" && g.Drifted() <= 0:
		return "so ops got quicker, as in a program that warms up, such as a JVM"
	case g.Shown == "falls":
		return "so " + before + "they got quicker"
	case g.Wide():
		return "growth cannot be told from none: the interval is too wide"
	}
	return "so " + before + "no growth is shown"
}

// Took says how long the load took, and whether its time was up before its work was done.
func Took(ph *run.Phase) string {
	seconds := ph.Seconds
	if ph.Model == run.ModelOpen && ph.Ended == run.EndSchedule {
		seconds = max(seconds, ph.Load.RampSeconds+ph.Load.DurationSeconds)
	}
	took := "took " + quantity.Duration(seconds)
	if ph.Ended == run.EndDuration && ph.Load.Iterations > 0 {
		return took + ": its time was up before its work was done"
	}
	return took
}
