package judge

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Limits of the share of time that a closed load's slots may lose. A smaller loss than the first is small compared with the other errors of a rate.
const (
	suspectLost = 0.01
	invalidLost = 0.10 // or max_bad, if that is more
)

// judgeLost checks whether a closed load had as many slots at work as the plan says. If slots spent time on ops that got no answer, or on waiting for
// a connection, the target was under a smaller load than the plan's.
func (p *phase) judgeLost(d *doubts) {
	ph, load, w := p.counts.phase, p.counts.Load, p.counts.window
	ns, covered := load.Lost.Between(w.from, w.to)
	if !p.Closed() || covered == 0 {
		return
	}
	span := &load.Span
	share := seconds(float64(ns)) / (covered * float64(span.Sessions) * float64(ph.Pipeline()))
	v := run.Suspect
	switch {
	case share < suspectLost:
		return
	case share > max(invalidLost, ph.MaxBad):
		v = run.Invalid
	}
	who := "lost workers" // they did not report how many sessions lost time
	if span.Losers > 0 {
		who = fmt.Sprintf("%s of %s from %s on", quantity.Thousands(span.Losers), quantity.Count(span.Sessions, "session"), quantity.Duration(seconds(span.LostFrom-load.Origin)))
	}
	d.add(reason.LostTime, v, p.all(), "%s of the sessions' time was lost, by %s: in ops that timed out, were refused or lost their connection, and in waits for one%s",
		quantity.Percent(share), who, quote(p.Errors))
}
