package judge

import (
	"cmp"
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	beforeEvent      = 5    // the most seconds that an event is compared with
	recoveredFor     = 3    // as many seconds in a row, each about as good as those before the event, are a recovery
	recoveredRate    = 0.90 // share of the rate before the event that is about as good
	recoveredLatency = 1.5  // multiple of the p95 response before it that is about as good
	recoveredBad     = 0.01 // that many more ops may fail than before it, as a share

	leastEachSecond = 100  // ops without which the p95 of a second says too little
	mostScatter     = 0.04 // standard deviation of the rate of a second, as a share: with more, seconds fall below recoveredRate by chance
	ampleSeconds    = 5    // to know that deviation; from fewer, arrivals are taken to be random
)

// events describes the events of the phase and their effects.
func (p *phase) events(ph *plan.Phase, m *Measured) {
	if len(ph.Events) == 0 {
		return
	}
	p.Event = map[string]*run.Event{}
	var rows []second
	if p.counts.noWindow == "" {
		rows = p.counts.window.seconds(m.Series)
	}
	starts := make([]float64, len(ph.Events)) // when each event happened
	for i := range ph.Events {
		ev := &ph.Events[i]
		e := &run.Event{Do: ev.Do, Target: ev.Target, Node: ev.Node, AtSeconds: ev.At.Seconds()}
		p.Event[ev.Name] = e
		starts[i] = math.Inf(1)
		if h := m.happened(i, m.Load); h != nil {
			starts[i] = max(0, seconds(int64(h.At)-m.Load.Origin))
			e.HappenedSeconds, e.TookSeconds, e.Failed = &starts[i], h.Took.Seconds(), h.Failed
			if h.Undone > 0 {
				e.UndoneSeconds = number(max(starts[i], seconds(int64(h.Undone)-m.Load.Origin)))
			}
		}
	}
	order := make([]int, len(ph.Events))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(starts[i], starts[j]) })
	from, to := 0.0, math.Inf(1) // the load is as usual between these
	for k, i := range order {
		name, next := ph.Events[i].Name, math.Inf(1)
		for _, j := range order[k+1:] {
			if starts[j] > starts[i] {
				next = min(next, starts[j])
			}
		}
		e := p.Event[name]
		p.event("event."+name, e, &aftermath{series: m.Over, rows: rows, from: from, to: min(to, starts[i]), next: next, maxBad: ph.MaxBad})
		if e.RecoveredSeconds != nil {
			from = max(from, starts[i]+*e.RecoveredSeconds)
		} else {
			to = min(to, starts[i])
		}
	}
}

// event fills in the effects of one event, and the reason for each figure that is missing.
func (p *phase) event(at string, e *run.Event, a *aftermath) {
	missing := func(code reason.Code, why string, names ...string) { p.null(at+".", code, why, names...) }
	if e.UndoneSeconds == nil {
		missing(reason.NotApplicable, "it was not undone", "undone_seconds")
	}
	if e.HappenedSeconds == nil {
		why := "the load ended first"
		if p.counts.GoesOn {
			why = "its time has not come yet"
		}
		missing(reason.TooShort, why, "happened_seconds", "recovered_seconds", "before", "during", "after")
		return
	}
	if p.counts.noWindow != "" {
		missing(reason.NoPlateau, p.counts.noWindow, "recovered_seconds", "before", "during", "after")
		return
	}
	code, why := a.follow(e)
	if e.RecoveredSeconds == nil {
		missing(code, why, "recovered_seconds")
	}
	for _, w := range []struct {
		name string
		of   *run.Window
	}{{"before", &e.Before}, {"during", &e.During}, {"after", &e.After}} {
		switch {
		case w.of.ToSeconds == w.of.FromSeconds:
			missing(reason.TooShort, "no whole second of the load", w.name)
		case w.of.P50 == nil || w.of.P95 == nil || w.of.P99 == nil:
			missing(reason.TooFew, "fewer than 10 ops lie beyond that quantile, or it falls on ops that failed", w.name+".p50", w.name+".p95", w.name+".p99")
		}
	}
}

// aftermath finds the effects of an event: the figures before, during and after it, and the time of recovery.
type aftermath struct {
	series *Series
	rows   []second // of the plateau
	from   float64  // when the load had recovered from the event before
	to     float64  // when this event happened or, if the load has not recovered since, the first one before it
	next   float64  // when the next event happened
	maxBad float64
}

// follow fills in the figures before, during and after an event that has happened. It returns why there is no time of recovery.
func (a *aftermath) follow(e *run.Event) (code reason.Code, why string) {
	at := *e.HappenedSeconds
	var before, since []second
	for _, r := range a.rows {
		switch {
		case r.T <= a.to:
			if r.T-r.length >= a.from {
				before = append(before, r)
			}
		case r.T > at && r.T <= a.next:
			since = append(since, r)
		}
	}
	uneven := scattered(before)
	before = before[max(0, len(before)-beforeEvent):]
	usual := a.window(&e.Before, before)
	back := -1
	switch p95, known := usual.Quantile(0.95); {
	case len(before) == 0:
		code, why = reason.TooShort, "no whole second of the load came before it"
	case !known:
		code, why = reason.OpsFailed, "ops failed before it, too"
	case float64(usual.Count())/float64(len(before)) < leastEachSecond || uneven:
		code, why = reason.TooFew, "by chance alone, seconds differ too much: offer a higher or an even rate"
	default:
		code, why = reason.NotRecovered, "the load ended, or the next event happened, first"
		back = a.recovery(since, &e.Before, p95)
	}
	if back < 0 {
		a.window(&e.During, since)
		return code, why
	}
	a.window(&e.During, since[:back])
	a.window(&e.After, since[back:])
	e.RecoveredSeconds = number(max(0, since[back].T-since[back].length-at))
	return "", ""
}

// scattered says whether seconds are so different that chance may move one below recoveredRate. What a few seconds show is inexact: where random
// arrivals would differ little enough, half as much again is no proof of more.
func scattered(rows []second) bool {
	rates := ratesOf(rows)
	mean := stat.Mean(rates)
	random := mean*mostScatter*mostScatter < 1
	if len(rows) < ampleSeconds {
		return random
	}
	most := mostScatter * mean
	if !random {
		most *= 1.5
	}
	return stat.Variance(rates) > most*most
}

// recovery returns the first row from which on the load is again about as good as before the event, in recoveredFor rows one by one and in all
// together; −1 if there is none.
func (a *aftermath) recovery(rows []second, before *run.Window, p95 int64) int {
	good := func(t *measure.Times, ok uint64, length float64) bool {
		now, known := t.Quantile(0.95)
		bad, n := *before.BadRatio, float64(t.Count())
		most := min(a.maxBad, bad+recoveredBad) + 3*math.Sqrt(bad*(1-bad)/n)
		return known && float64(t.Failed) <= most*n && float64(ok)/length >= recoveredRate**before.Rate && float64(now) <= recoveredLatency*float64(p95)
	}
	back, row, ok, length := -1, 0, uint64(0), 0.0
	var all measure.Times
	for i := len(rows) - 1; i >= 0; i-- {
		t := a.times(rows[i : i+1])
		all.Merge(&t)
		ok, length = ok+rows[i].OK, length+rows[i].length
		if row++; !good(&t, rows[i].OK, rows[i].length) {
			row = 0
		}
		if row >= recoveredFor && good(&all, ok, length) {
			back = i
		}
	}
	return back
}

// window fills in the figures of some rows, and returns their response times.
func (a *aftermath) window(w *run.Window, rows []second) (t measure.Times) {
	if len(rows) == 0 {
		return t
	}
	t = a.times(rows)
	w.FromSeconds, w.ToSeconds = rows[0].T-rows[0].length, rows[len(rows)-1].T
	ok := uint64(0)
	for _, r := range rows {
		ok += r.OK
	}
	w.Rate = number(float64(ok) / (w.ToSeconds - w.FromSeconds))
	w.BadRatio = number(float64(t.Failed) / float64(max(1, t.Count())))
	w.P50, w.P95, w.P99 = quantileOf(&t, 0.5), quantileOf(&t, 0.95), quantileOf(&t, 0.99)
	return t
}

// times returns the response times of the ops that ended in some rows.
func (a *aftermath) times(rows []second) (t measure.Times) {
	for _, r := range rows {
		one := a.series.at(r.T)
		t.Answered.Merge(&one)
		t.Failed += r.Bad + r.Due - r.Sent
	}
	return t
}
