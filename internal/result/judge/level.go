package judge

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Level is a level of a phase while its result is made.
type Level struct {
	run.Level

	phase   *phase // the level as a phase of its own
	totals  *measure.Totals
	power   float64 // achieved rate divided by the mean response
	outcome Outcome
	aim     Aim
	late    bool // an objective was missed that ops started in time would have met; or the generator was later than the objective allows, and so with replies
}

// overloadedAt is the share of the offered rate below which a target is so overloaded that the level need not be repeated.
const overloadedAt = 0.9

// achieved makes the achieved rate of a closed step from the rates of its ops, or of its scenarios.
func (p *phase) achieved() {
	sum := 0.0
	for _, f := range turning(p.Op, p.Scenario) {
		if f.Answered == nil {
			return
		}
		sum += *f.Answered
	}
	p.AchievedRate = number(sum)
	p.known("achieved_rate")
}

// turning lists the figures of what takes turns in a closed load: scenarios if there are any, else ops.
func turning(ops map[string]*run.Op, scenarios map[string]*run.Scenario) (all []*run.Figures) {
	for _, s := range scenarios {
		all = append(all, &s.Figures)
	}
	for _, o := range ops {
		if len(scenarios) == 0 && o != nil {
			all = append(all, &o.Figures)
		}
	}
	return all
}

// powerOf returns rate divided by the mean response time of the ops of all verbs; 0 if there is none. A failed op counts as the slowest. Response
// times of scenarios are not used: they include think times, which are not waiting and are the same at any rate.
func powerOf(rate *float64, t *measure.Totals) float64 {
	var response measure.Times
	var slowest int64
	for _, o := range present(t.Ops[:]) {
		all := o.ResponseAll()
		response.Merge(&all)
		slowest = max(slowest, all.Answered.Max(), o.Response[measure.ClassBad].Max())
	}
	sum := response.Answered.Sum() + float64(response.Failed)*float64(slowest)
	if rate == nil || sum == 0 {
		return 0
	}
	return *rate * 1e9 / (sum / float64(response.Count()))
}

// Tries returns the levels of a search as its algorithm sees them.
func (m *Measured) Tries(ph *plan.Phase) []Try {
	var tries []Try
	for _, l := range m.Levels {
		try := Try{Rate: l.Rate, Outcome: l.outcome, Power: l.power, Aim: l.aim, Seconds: l.DurationSeconds}
		if l.outcome == Closed {
			try.Rate, try.Power = l.roughly(), 0
		} else {
			try.Score, try.Slow = l.score(ph)
		}
		if n := len(tries); n > 0 && try.Outcome == Unanswered && m.Levels[n-1].outcome != Held && m.Levels[n-1].endings().away > 0 {
			tries[n-1].Outcome = Unanswered // it was on the way out
		}
		tries = append(tries, try)
	}
	return tries
}

// endings are the ops of a level, and how they ended.
type endings struct {
	due, ended    uint64
	away, refused uint64 // that met no server: refused, or their connection was lost
	replied       uint64 // that were answered with an error
	said          string // the most frequent error, in parentheses; "" for none
}

func (l *Level) endings() (f endings) {
	for _, o := range l.phase.parts() {
		f.due, f.ended = f.due+o.Due, f.ended+o.OK+o.Miss
		f.away, f.refused, f.replied = f.away+o.Causes.Lost+o.Causes.Refused, f.refused+o.Causes.Refused, f.replied+o.Causes.Reply
	}
	if len(l.phase.Errors) > 0 {
		f.said = " (" + l.phase.Errors[0].Text + ")"
	}
	return f
}

// score returns the largest log odds of a slow op less those that an objective or max_bad allows, over these and the ops; and the most slow ops that
// one of them found. The log odds are of (k+½)/(n+1).
func (l *Level) score(ph *plan.Phase) (y float64, most uint64) {
	y = math.Inf(-1)
	logit := func(p float64) float64 { return math.Log(p / (1 - p)) }
	for v, o := range l.totals.Ops {
		if o == nil || o.Due == 0 {
			continue
		}
		all := o.ResponseAll()
		add := func(k uint64, allowed float64) {
			y, most = max(y, logit((float64(k)+0.5)/float64(all.Count()+1))-logit(allowed)), max(most, k)
		}
		if ph.MaxBad > 0 {
			add(all.Failed, ph.MaxBad)
		}
		for i := range ph.Search.SLOs {
			slo := &ph.Search.SLOs[i]
			for _, q := range slo.Limits() {
				if slo.Op == "" || slo.Op == l.phase.words.Name(driver.Verb(v)) {
					add(slow(&all, q.Most), 1-q.Share)
				}
			}
		}
	}
	return y, most
}

// slow returns how many ops took more than a limit, or failed.
func slow(all *measure.Times, limit time.Duration) uint64 {
	return all.Answered.Above(int64(limit)) + all.Failed
}

// roughly returns how many ops, or scenarios, ended per second in a closed step. It needs fewer of them than the achieved rate does.
func (l *Level) roughly() (perSecond float64) {
	if l.AchievedRate != nil {
		return *l.AchievedRate
	}
	if l.phase.Seconds == 0 {
		return 0
	}
	for _, f := range turning(l.Op, l.Scenario) {
		perSecond += float64(f.OK+f.Miss) / l.phase.Seconds
	}
	return perSecond
}

// Belief returns the median and the interval of the largest rate that holds, as far as a search has found; zeros for nothing yet.
func (m *Measured) Belief(ph *plan.Phase) (middle, low, high float64) {
	if len(m.Levels) == 0 {
		return 0, 0, 0
	}
	f := boundsOf(ph).Sum(m.Tries(ph))
	return f.Middle, f.Low, f.High
}

// boundsOf returns the bounds of a phase's search.
func boundsOf(ph *plan.Phase) Bounds {
	s := ph.Search
	b := Bounds{From: s.From, To: s.To, Precision: s.Precision, Budget: s.Budget.Seconds(), Least: s.StepDuration.Seconds()}
	for i := range s.SLOs {
		for _, q := range s.SLOs[i].Limits() {
			b.Limit = max(b.Limit, q.Most.Seconds())
		}
	}
	b.Few, b.Many = ph.Arrivals()
	return b
}

// NextTry returns the step that a search makes next, given the time its levels have taken so far; more is false once it has ended. Where the search
// stands is taken from its levels alone, so that a run that is read back comes to the same; the time only ends it.
func (m *Measured) NextTry(ph *plan.Phase, spent time.Duration) (shape plan.Shape, more bool) {
	s := ph.Search
	if len(m.Levels) == 0 {
		return s.Closed(), true
	}
	last := m.Levels[len(m.Levels)-1]
	took := max(last.DurationSeconds, seconds(last.totals.Span.Last-last.totals.Span.First))
	next, end := boundsOf(ph).Next(m.Tries(ph), last.StartSeconds-m.Levels[0].StartSeconds+took)
	shape, m.Aim = plan.Shape{Rate: next.Rate, Duration: time.Duration(next.Seconds * 1e9)}, next.Aim
	switch {
	case len(m.Losses) > 0:
		m.Ended = Shrunk
	case end != GoOn:
		m.Ended = end
	case spent+shape.Duration <= s.Budget, len(m.Levels) == 1: // the first rate is tried whatever the budget
		return shape, true
	default:
		m.Ended = Spent
	}
	return plan.Shape{}, false
}

// Stop ends a search because the user asked for it, or because it cannot go on.
func (m *Measured) Stop() { m.Ended = Stopped }

// try decides the outcome of a level of a search.
func (l *Level) try(ph *plan.Phase) {
	l.Why = l.shortfall(ph)
	l.outcome = Held
	switch f := l.endings(); {
	case f.away > 0 && f.ended+f.replied == 0:
		l.outcome, l.Why = Unanswered, "nobody answered"+f.said
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
			case is == nil && l.aim != Confirm:
				if all := l.totals.Ops[o.verb].ResponseAll(); float64(slow(&all, q.Most)) > (1-q.Share)*float64(all.Count()) {
					return fmt.Sprintf("%s: %s of %s took more than %s, or failed", o.name, quantity.Number(float64(slow(&all, q.Most))),
						quantity.Count(all.Count(), "op"), quantity.Duration(q.Most.Seconds())) + l.whose()
				}
			case is == nil:
				at := o.at + ".response."
				return fmt.Sprintf("%s: no %s of the response times: %s", o.name, name, cmp.Or(l.phase.Nulls[at+q.Name], l.phase.Nulls[at+"quantiles."+q.Name]))
			case *is > q.Most.Seconds():
				service, lag := *o.Service.Quantile(q.Name), *o.Lag.Quantile(q.Name) // both have at least as many samples as Response
				own := l.phase.generatorLag(1 - q.Share)
				l.late = *is-own <= q.Most.Seconds() || own > q.Most.Seconds()
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
	found := func(i int, why string, names ...string) (*float64, *int) {
		if i < 0 {
			p.null("search.", reason.NoRateHeld, why, names...)
			return nil, nil
		}
		return number(m.Levels[i].Rate), &i
	}
	r.Rate, r.Level = found(sum.Held, "no rate was confirmed", "rate", "level")
	r.Knee, r.KneeLevel = found(sum.Knee, "it may lie beyond the rates that were tried", "knee", "knee_level")
	r.FirstFailed, _ = found(sum.Failed, "the target failed at no higher rate", "first_failed")
	r.ClientBound, _ = found(sum.Limited, "the generator did not bound the answer", "client_bound")
	if sum.Low > 0 {
		r.Low, r.Noise = number(sum.Low), number(sum.Noise)
		if !math.IsInf(sum.High, 1) {
			r.High = number(sum.High)
		}
	}
}

// judgeSearch checks whether the answer is the target's own, and as precise as asked.
func (p *phase) judgeSearch(d *doubts, m *Measured) {
	r, touches := p.Search, []string{"search"}
	switch {
	case m.GoesOn:
	case r.Rate == nil && m.Ended == BelowFrom: // nothingConfirmed has added that doubt
	case r.Rate == nil && r.ClientBound != nil:
		d.add(reason.CannotTell, run.Suspect, touches, "cannot be told: the generator could not offer %s", p.arriving(*r.ClientBound))
	case r.Rate == nil && r.Low == nil:
		d.add(reason.CannotTell, run.Suspect, touches, "cannot be told: %v before any rate held", m.Ended)
	case r.Rate == nil:
		d.add(reason.CannotTell, run.Suspect, touches, "cannot be told: %v; the limit lies between %s and %s", m.Ended, p.arriving(*r.Low), p.arriving(*r.High))
	case r.ClientBound != nil:
		d.add(reason.ClientBound, run.Suspect, touches, "client-bound at %s: the target may hold more than %s", p.arriving(*r.ClientBound), p.arriving(*r.Rate))
	case m.Ended == Precise, m.Ended == AtTo, r.High == nil:
	case *r.High > *r.Low*(1+r.Precision):
		d.add(reason.SearchEnded, run.Suspect, touches, "%v: the limit lies between %s and %s", m.Ended, p.arriving(*r.Low), p.arriving(*r.High))
	}
	if r.Rate == nil && !m.GoesOn || r.ClientBound != nil {
		m.spoiled(d)
	}
}

// spoiled adds the reasons for which levels were spoiled, of which each has its own remedy.
func (m *Measured) spoiled(d *doubts) {
	for _, l := range m.Levels {
		for _, why := range l.Reasons {
			known := slices.ContainsFunc(*d, func(other run.Reason) bool { return other.Code == why.Code })
			switch why.Code {
			case reason.RunQueue, reason.CpuQuota, reason.StoodStill, reason.Neighbours, reason.PolicyLimit:
				if l.outcome == Limited && !known {
					d.add(why.Code, run.Suspect, []string{"search.high"}, "at %s, %s", l.phase.arriving(l.Rate), why.Text)
				}
			}
		}
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
