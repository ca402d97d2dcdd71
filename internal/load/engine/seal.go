package engine

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver"
)

// seal hands over the counts of an interval that has ended by now, a time just taken. If the loop stood still for several intervals, it counted
// nothing in the later ones. If the collector is behind, the interval is joined to the next.
func (l *loop) seal(now int64) {
	if now < l.sealAt {
		return
	}
	ended := l.sealAt
	boundary := now / interval * interval
	l.sealAt = boundary + interval
	l.census()
	l.settle(now)
	if l.gaps != nil {
		l.meter.kept() // short waits must not add up to a gap
	}
	l.gate.pay()
	select {
	case l.parts <- part{loop: l.index, upTo: ended, still: boundary, totals: l.rec, drawn: l.sampling.drawn()}:
		l.rec = l.fresh()
		l.gate.renewed()
	default:
	}
}

// finish hands over the rest of a step.
func (l *loop) finish(now int64) {
	if l.lapsed {
		l.tr.recall()
		if !l.stopped {
			l.cutShort(now)
		}
	}
	l.dismiss(now)
	l.seal(now)
	l.sealAt = never
	l.census()
	l.settle(now)
	for _, s := range l.sessions {
		if s.begun {
			last := max(s.first, s.last)
			l.rec.Span.Busy(s.first, min(s.out, last), last, s.turn(int64(l.pipeline), l.think))
			if s.idled {
				l.rec.Span.Lose(s.idleFrom)
			}
		}
	}
	use := l.meter.since(now-l.entered, l.spun)
	use.gaps = l.gaps
	use.rateWait, use.bytesWait = l.gate.close(now)
	if t, ok := l.tr.(interface{ own(wall int64) int64 }); ok {
		use.productive = t.own(now - l.entered)
	}
	l.parts <- part{loop: l.index, upTo: now, totals: l.rec, drawn: l.sampling.drawn(), final: true, use: use}
	l.rec = l.fresh()
}

// turn returns the mean time that an op held a slot of the session, including the think time after it.
func (s *session) turn(slots, think int64) int64 {
	return (max(s.last-s.first, 0) + think) * slots / max(s.started, slots)
}

// fresh returns an empty recorder for the step.
func (l *loop) fresh() *measure.Totals {
	var t *measure.Totals
	select {
	case t = <-l.spare:
	default:
		t = measure.NewTotals(0, len(l.reqNow)/driver.NumVerbs)
	}
	t.Origin, t.Stages = l.origin, l.stages // the recorder may come from an earlier step
	return t
}

// census counts what is in flight by looking at every op in progress and every connection's queue, and enters the change since the last census. So
// in_flight is not derived from the counts that it is checked against.
func (l *loop) census() {
	clear(l.opsNow[:])
	clear(l.keyNow[:])
	l.way.census(&l.opsNow, &l.keyNow)
	for v, n := range &l.keyNow {
		if change := n - l.keyBefore[v]; change != 0 {
			l.rec.AddKeysInFlight(driver.Verb(v), change)
		}
	}
	l.keyBefore = l.keyNow
	for v, n := range &l.opsNow {
		if change := n - l.opsBefore[v]; change != 0 {
			l.rec.AddInFlight(driver.Verb(v), change)
		}
	}
	l.opsBefore = l.opsNow
	for _, t := range l.inside() {
		t.count(&l.rec.Cache)
	}
	l.countLinks()
	clear(l.reqNow)
	l.tr.outstanding(l.reqNow)
	for i := range l.reqNow {
		l.rec.Requests[i].InFlight += l.reqNow[i].InFlight - l.reqBefore[i].InFlight
	}
	l.reqNow, l.reqBefore = l.reqBefore, l.reqNow
}
