package judge

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Level is a level of a phase while its result is made.
type Level struct {
	run.Level

	phase   *phase // the level as a phase of its own
	totals  *measure.Totals
	power   float64 // achieved rate divided by the mean response
	outcome Outcome
	late    bool // an objective was missed that would have been met if the generator had started ops in time
}

// overloadedAt is the share of the offered rate below which a target is so overloaded that the level need not be repeated.
const overloadedAt = 0.9

// achieved makes the achieved rate of a closed step from the rates of its ops, or of its scenarios.
func (p *phase) achieved() {
	sum, known := 0.0, true
	add := func(f *run.Figures) {
		if f.Answered == nil {
			known = false
			return
		}
		sum += *f.Answered
	}
	for _, o := range p.Op {
		if len(p.Scenario) == 0 && o != nil {
			add(&o.Figures)
		}
	}
	for _, s := range p.Scenario {
		add(&s.Figures)
	}
	if known {
		p.AchievedRate = number(sum)
		p.known("achieved_rate")
	}
}

// powerOf returns rate divided by the mean response time of the ops of all verbs; 0 if there is none. A failed op counts as the slowest. Response
// times of scenarios are not used: they include think times, which are not waiting and are the same at any rate.
func powerOf(rate *float64, t *measure.Totals) float64 {
	var response measure.Times
	var slowest int64
	for _, o := range t.Ops {
		if o != nil {
			all := o.ResponseAll()
			response.Merge(&all)
			slowest = max(slowest, all.Answered.Max(), o.Response[measure.ClassBad].Max())
		}
	}
	sum := response.Answered.Sum() + float64(response.Failed)*float64(slowest)
	if rate == nil || sum == 0 {
		return 0
	}
	return *rate * 1e9 / (sum / float64(response.Count()))
}

// Tries returns the levels of a search as its algorithm sees them.
func (m *Measured) Tries() []Try {
	var tries []Try
	for _, l := range m.Levels {
		try := Try{Rate: l.Rate, Outcome: l.outcome, Power: l.power}
		if l.outcome == Closed {
			try.Rate, try.Power = 0, 0
			try.Rate = l.roughly()
		}
		tries = append(tries, try)
	}
	return tries
}

// roughly returns how many ops, or scenarios, ended per second in a closed step. It needs fewer of them than the achieved rate does.
func (l *Level) roughly() (perSecond float64) {
	if l.AchievedRate != nil {
		return *l.AchievedRate
	}
	if l.phase.Seconds == 0 {
		return 0
	}
	add := func(f *run.Figures) { perSecond += float64(f.OK+f.Miss) / l.phase.Seconds }
	for _, o := range l.Op {
		if len(l.Scenario) == 0 && o != nil {
			add(&o.Figures)
		}
	}
	for _, s := range l.Scenario {
		add(&s.Figures)
	}
	return perSecond
}

// Best returns the largest rate that holds as far as a search has found, 0 for none.
func (m *Measured) Best(s *plan.Search) float64 {
	if tries := m.Tries(); len(tries) > 0 {
		if held := boundsOf(s).Sum(tries).Held; held >= 0 {
			return m.Levels[held].Rate
		}
	}
	return 0
}

// boundsOf returns the bounds of a search.
func boundsOf(s *plan.Search) Bounds {
	return Bounds{From: s.From, To: s.To, Precision: s.Precision}
}

// NextTry returns the step that a search makes next, given the time its levels have taken so far; more is false once it has ended.
func (m *Measured) NextTry(ph *plan.Phase, spent time.Duration) (shape plan.Shape, more bool) {
	const reserved = 4 // tries at the end, to confirm the answer
	s, tries := ph.Search, m.Tries()
	if len(tries) == 0 {
		return s.Closed(), true
	}
	rate, end := boundsOf(s).Next(tries, false)
	if left := s.Budget - spent - s.Drain; end == GoOn && left < reserved*ph.Try(rate).Duration {
		rate, end = boundsOf(s).Next(tries, true)
	}
	shape = ph.Try(rate)
	switch {
	case len(m.Losses) > 0:
		m.Ended = Shrunk
	case rate == 0:
		m.Ended = end
	case spent+shape.Duration+s.Drain <= s.Budget, len(tries) == 1 && tries[0].Outcome == Closed: // the first rate is tried whatever the budget
		return shape, true
	case end == GoOn:
		m.Ended = Spent
	default:
		m.Ended = end
	}
	return plan.Shape{}, false
}

// Stop ends a search because the user asked for it, or because it cannot go on.
func (m *Measured) Stop() { m.Ended = Stopped }

// try decides the outcome of a level of a search.
func (l *Level) try(ph *plan.Phase) {
	l.Why = l.shortfall(ph)
	l.outcome = Held
	switch {
	case l.Why == "":
	case l.starved() || l.late:
		l.outcome = Limited
	case l.OfferedRate != nil && l.AchievedRate != nil && *l.AchievedRate < overloadedAt**l.OfferedRate:
		l.outcome = Overloaded
	default:
		l.outcome = Failed
	}
	l.Outcome = l.outcome.String()
}

// whose says whether the generator may be to blame for a level that does not hold.
func (l *Level) whose() string {
	g := l.phase.Generator
	busy := "; the generator's loop was busy " + quantity.Percent(g.Busy) + " of the time"
	switch {
	case heldBack(&g) != "":
		return "; " + heldBack(&g)
	case g.Busy > invalidBusy:
		return busy
	case g.Throttled != nil && g.Throttled.Periods > 0:
		return "; a CPU quota kept the generator from running"
	case l.phase.Stalls > 0:
		return "; the generator stood still for " + quantity.Duration(l.phase.MaxStallSeconds)
	case g.RunQueueWait != nil && *g.RunQueueWait > suspectQueued:
		return fmt.Sprintf("; the generator's loop waited %s of the time for a processor: it may be to blame", quantity.Percent(*g.RunQueueWait))
	case l.phase.absence(0.01) != "":
		return l.phase.absence(0.01)
	case l.late:
		return busy + ": it started ops late"
	case g.Busy > suspectBusy:
		return busy
	}
	return busy + ": it is not to blame"
}

// starved says whether the generator was kept from offering the rate, so that the level says nothing about the target.
func (l *Level) starved() bool {
	g := l.phase.Generator
	return g.Busy > invalidBusy || l.phase.Stalls > 0 || heldBack(&g) != "" ||
		g.Throttled != nil && g.Throttled.Periods > 0 ||
		g.RunQueueWait != nil && *g.RunQueueWait > invalidQueued
}

// shortfall says why the level does not hold the objectives, or "" if it does.
func (l *Level) shortfall(ph *plan.Phase) string {
	if l.OfferedRate == nil || l.AchievedRate == nil {
		return l.phase.Nulls["achieved_rate"]
	}
	if l.phase.rates.short() {
		return "sustained " + l.phase.arriving(*l.AchievedRate) + l.whose()
	}
	for _, o := range l.phase.parts() {
		if o.Shed > 0 {
			return fmt.Sprintf("%s of %s was shed", quantity.Count(o.Shed, o.name), quantity.Number(float64(o.Due))) + l.whose()
		}
	}
	for i := range ph.Search.SLOs {
		if why := l.misses(&ph.Search.SLOs[i]); why != "" {
			return why
		}
	}
	if l.Validity == run.Invalid {
		return l.Reasons[0].Text
	}
	return ""
}

// misses says how a level misses an objective, or "" if it does not.
func (l *Level) misses(slo *plan.SLO) string {
	for _, o := range l.phase.parts() {
		if slo.Op != "" && slo.Op != l.phase.words.Name(o.verb) {
			continue
		}
		for _, q := range slo.Limits() {
			name, is := quantity.QuantileText(q.Name), o.Response.Quantile(q.Name)
			switch {
			case is == nil:
				at := o.at + ".response."
				return fmt.Sprintf("%s: no %s of the response times: %s", o.name, name, cmp.Or(l.phase.Nulls[at+q.Name], l.phase.Nulls[at+"quantiles."+q.Name]))
			case *is > q.Most.Seconds():
				service, lag := *o.Service.Quantile(q.Name), *o.Lag.Quantile(q.Name) // both have at least as many samples as Response
				l.late = *is-l.phase.generatorLag(1-q.Share) <= q.Most.Seconds()
				return fmt.Sprintf("%s: %s response %s (service %s, lag %s)", o.name, name, quantity.Duration(*is), quantity.Duration(service), quantity.Duration(lag)) + l.whose()
			}
		}
	}
	return ""
}

// levels copies the levels, and the reasons for their nulls.
func (p *phase) levels(levels []*Level) {
	for i, l := range levels {
		p.Levels = append(p.Levels, l.Level)
		for path, why := range l.phase.Nulls {
			if path == "offered_rate" || path == "achieved_rate" || strings.HasPrefix(path, "op.") || strings.HasPrefix(path, "scenario.") {
				p.null(fmt.Sprintf("levels.%d.%s", i, path), l.phase.NullCodes[path], why)
			}
		}
	}
}

// search says what the search found, and how far that can be trusted.
func (p *phase) search(s *plan.Search, m *Measured, sum Found) {
	r := &run.Search{
		End: m.Ended.Code(), Ended: m.Ended.String(), From: s.From, To: s.To, StepSeconds: s.StepDuration.Seconds(), Precision: s.Precision, Budget: s.Budget.Seconds(),
		Objectives: objectives(s),
	}
	p.Search = r
	p.known("search")
	rate := func(i int, name, why string) *float64 {
		if i < 0 {
			p.null("search."+name, reason.NoRateHeld, why)
			return nil
		}
		return number(m.Levels[i].Rate)
	}
	level := func(i int, name, why string) *int {
		if i < 0 {
			p.null("search."+name, reason.NoRateHeld, why)
			return nil
		}
		return &i
	}
	failed, limited := sum.Failed, -1
	if failed >= 0 && m.Levels[failed].outcome == Limited {
		failed, limited = -1, failed
	}
	const noRate, noKnee = "no rate held", "it may lie beyond the rates that were tried"
	r.Rate, r.Level = rate(sum.Held, "rate", noRate), level(sum.Held, "level", noRate)
	r.Knee, r.KneeLevel = rate(sum.Knee, "knee", noKnee), level(sum.Knee, "knee_level", noKnee)
	r.FirstFailed = rate(failed, "first_failed", "the target failed at no higher rate")
	if sum.High > 0 {
		r.Low, r.High = number(sum.Low), number(sum.High)
	}
	r.Held, r.Tries = sum.Times, sum.Of
	r.ClientBound = rate(limited, "client_bound", "the generator could offer every higher rate that was tried")
}

// judgeSearch checks whether the answer is the target's own, and as precise as asked.
func (p *phase) judgeSearch(d *doubts, ended End) {
	r := p.Search
	switch {
	case r.Rate == nil: // nothingHeld has added that doubt
	case r.ClientBound != nil:
		d.add(reason.ClientBound, run.Suspect, []string{"search"}, "client-bound at %s: the target may hold more than %s", p.arriving(*r.ClientBound), p.arriving(*r.Rate))
	case ended == Precise || ended == AtTo:
	case r.FirstFailed == nil:
		d.add(reason.SearchEnded, run.Suspect, []string{"search"}, "%v before a rate failed: the target may hold more than %s", ended, p.arriving(*r.Rate))
	case r.Low == nil: // there is no interval to check
	case *r.High > *r.Low*(1+r.Precision):
		d.add(reason.SearchEnded, run.Suspect, []string{"search"}, "%v: the answer lies between %s and %s", ended, p.arriving(*r.Low), p.arriving(*r.High))
	}
}

// objectives lists the limits of a search.
func objectives(s *plan.Search) []run.Objective {
	list := []run.Objective{}
	for i := range s.SLOs {
		slo := &s.SLOs[i]
		for _, q := range slo.Limits() {
			list = append(list, run.Objective{Op: slo.Op, Quantile: quantity.QuantileText(q.Name), LimitSeconds: q.Most.Seconds()})
		}
	}
	return list
}

// below returns the paths that a reason affects, prefixed with at.
func below(at string, r *run.Reason) (paths []string) {
	for _, t := range r.Touches {
		paths = append(paths, at+t)
	}
	return paths
}
