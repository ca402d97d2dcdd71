package engine

import (
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
)

// A server that answers a request twice, and the second time late, shifts the answers that follow: each is taken for that to the next request. Every
// request is answered then, all but the last too early, and only what still comes after the last answer shows it.

// How long to watch for such bytes: twice the longest service, but within these limits. Late second answers came 50 to 120 ms after the last.
const (
	leastWatch = 50 * time.Millisecond
	mostWatch  = 250 * time.Millisecond
	watchStep  = 10 * time.Millisecond // the longest that an end of the run waits for
)

// watch waits at the end of a load for bytes that nothing has asked for, and finds them. The loops have ended.
func (e *Engine) watch(g *group, totals *measure.Totals) {
	wires, clients := g.outside()
	if len(wires)+len(clients) == 0 {
		return
	}
	longest := int64(0)
	for _, o := range totals.Ops {
		for i := range measure.NumClasses {
			if o != nil {
				longest = max(longest, o.Service[i].Max())
			}
		}
	}
	for left := min(max(2*time.Duration(longest), leastWatch), mostWatch); left > 0 && e.halt.Load() != abandon; left -= watchStep {
		e.clock.sleep(watchStep)
	}
	for _, w := range wires {
		for _, c := range w.conns {
			if c.state == isUp && c.queue.len() == 0 {
				w.read(c, false)
			}
		}
	}
	for _, b := range clients {
		for _, c := range b.conns {
			b.l.unasked.Alone += c.meter.Unasked(c.up.Load() && len(c.handed) == 0)
		}
	}
}

// outside lists the transports to servers that are not loadgen's own.
func (g *group) outside() (wires []*wire, clients []*blocking) {
	for _, l := range g.loops {
		for _, la := range l.lanes {
			if la.side.target.Builtin != nil {
				continue
			}
			switch t := la.tr.(type) {
			case *wire:
				wires = append(wires, t)
			case *blocking:
				clients = append(clients, t)
			}
		}
	}
	return wires, clients
}

// unasked returns what was found since the last call.
func (g *group) unasked() (all measure.Unasked) {
	for _, l := range g.loops {
		all.Add(l.unasked)
		l.unasked = measure.Unasked{}
	}
	return all
}
