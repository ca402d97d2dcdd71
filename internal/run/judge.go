package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Limits of validity. Offered to achieved: Lancet (ATC 2019) allows 10 %, too loose for figures that are compared within a few
// per cent. Busy: beyond 70 % of a loop, queueing in the client is no longer small beside the service time; beyond 85 % it rules.
const (
	suspectAchieved = 0.995
	invalidAchieved = 0.98
	suspectBusy     = 0.70
	invalidBusy     = 0.85
	freeLag         = 50e-6 // p99 lag that never matters, seconds
	suspectLag      = 1e-3
	suspectLagShare = 0.10 // of the p99 service time
)

// doubt adds a reason why the phase is no better than v.
func (p *Phase) doubt(v Validity, format string, args ...any) {
	if v.rank() > p.Validity.rank() {
		p.Validity = v
	}
	p.Reasons = append(p.Reasons, fmt.Sprintf(format, args...))
}

// judge decides on the validity of a phase whose figures are complete.
func (p *Phase) judge(ph *plan.Phase, m Measured) {
	p.Validity, p.Reasons = Valid, []string{}
	p.judgeOffered()
	p.judgeLedgers(m)
	p.judgeFleet(m)
	if whole := p.judgeWhole(m); !whole || p.Kind != string(Load) {
		return
	}
	p.judgeOutcomes(ph)
	p.judgePlateau()
	p.judgeGenerator()
	if p.Model != "closed" {
		p.judgeLag()
	}
	if p.Foreign > 0 {
		p.doubt(Suspect, "%s read were not written by loadgen", plural(p.Foreign, "value"))
	}
}

// judgeOffered comes first: of an overloaded target nothing else is worth reading before it.
func (p *Phase) judgeOffered() {
	if !p.short() {
		return
	}
	offered, achieved := *p.OfferedRate, *p.AchievedRate
	v := Suspect
	if achieved < invalidAchieved*offered {
		v = Invalid
	}
	p.doubt(v, "offered %s/s, sustained %s/s", decimal(offered), decimal(achieved))
}

// short says whether what was achieved falls short of what was offered.
func (p *Phase) short() bool {
	if p.OfferedRate == nil || p.AchievedRate == nil {
		return false
	}
	offered, achieved := *p.OfferedRate, *p.AchievedRate
	const edge = 2 // ops that may fall on either side of the window's ends
	return (offered-achieved)*p.Load.DurationSeconds > edge && achieved < suspectAchieved*offered
}

// judgeLedgers finds ops and requests that went astray.
func (p *Phase) judgeLedgers(m Measured) {
	balance := func(of string, t *measure.Totals) {
		if err := t.CheckValid(); err != nil {
			p.doubt(Invalid, "the ledgers of %s do not balance: %s", of, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	balance("the "+p.Kind, m.Load)
	if m.Setup != nil {
		balance("the setup", m.Setup)
	}
	if m.Aborted {
		return
	}
	p.judgeEnded(m)
}

// judgeEnded finds what was in flight at the end and should not have been. What lost workers had in flight stays that.
func (p *Phase) judgeEnded(m Measured) {
	for v, l := range m.Unfinished.Ops {
		if o := p.Op[driver.Verb(v).String()]; o != nil && o.InFlight == l.InFlight && l.InFlight != 0 {
			p.doubt(Suspect, "%s: how %s of lost workers ended is not known", driver.Verb(v), plural(uint64(l.InFlight), "op"))
		} else if o != nil && o.InFlight != l.InFlight {
			p.doubt(Invalid, "%s: %d ops had not ended when the phase had", driver.Verb(v), o.InFlight-l.InFlight)
		}
	}
	for i, r := range m.Load.Requests {
		left := r.InFlight
		if i < len(m.Unfinished.Requests) {
			left -= m.Unfinished.Requests[i].InFlight
		}
		if left != 0 {
			verb := driver.Verb(i % driver.NumVerbs)
			p.doubt(Suspect, "%s at %s: %d requests had not ended when the phase had", verb, m.Endpoints[i/driver.NumVerbs], left)
		}
	}
}

// judgeFleet says that figures mix the load of different numbers of workers.
func (p *Phase) judgeFleet(m Measured) {
	for _, l := range m.Losses {
		p.doubt(Suspect, "the load of worker %s ended early or is missing: rates are those of fewer workers", l.Worker)
	}
}

// judgeWhole asks whether the steps that must succeed whole did. After a setup that did not there is no load to judge.
func (p *Phase) judgeWhole(m Measured) bool {
	var short string
	if m.Setup != nil {
		short = Shortfall(Setup, p.copies(), m.Setup)
	}
	if p.Kind != string(Load) {
		short = Shortfall(StepKind(p.Kind), p.copies(), m.Load)
	}
	if short != "" {
		p.doubt(Invalid, "%s", short)
	}
	return short == ""
}

// copies is on how many endpoints a key lives.
func (p *Phase) copies() int {
	if p.Target.Replication == nil {
		return 1
	}
	return p.Target.Replication.N
}

// judgeOutcomes holds outcomes against max_bad and expect_hits.
func (p *Phase) judgeOutcomes(ph *plan.Phase) {
	var due uint64
	for v := range driver.NumVerbs {
		verb := driver.Verb(v)
		o := p.Op[verb.String()]
		if o == nil {
			continue
		}
		due += o.Due
		wrong := o.QuorumFailed + o.Timeout + o.Error + o.Shed
		if share := float64(wrong) / float64(o.Due); share > ph.MaxBad {
			p.doubt(Invalid, "%s: %s of %s ops went wrong, more than max_bad = %s: %s%s",
				verb, percent(share), decimal(float64(o.Due)), percent(ph.MaxBad), o.wrongs(), quote(p.Errors))
		}
		if verb != driver.Get || ph.ExpectHits == nil || o.Due == 0 {
			continue
		}
		switch {
		case o.HitRatio == nil:
			p.doubt(Invalid, "get: none was answered, %s were expected to hit", percent(*ph.ExpectHits))
		case *o.HitRatio < *ph.ExpectHits:
			p.doubt(Invalid, "get: %s were hits, fewer than expect_hits = %s", percent(*o.HitRatio), percent(*ph.ExpectHits))
		}
	}
	if due == 0 {
		p.doubt(Invalid, "no op was due")
	}
}

// wrongs lists how ops went wrong and why: "12 timeout, 3 error; caused by 12 timeout, 3 lost connection".
func (o *Op) wrongs() string {
	ways := list(named{"quorum_failed", o.QuorumFailed}, named{"timeout", o.Timeout}, named{"error", o.Error}, named{"shed", o.Shed})
	c := o.Causes
	causes := list(named{"reply", c.Reply}, named{"timeout", c.Timeout}, named{"lost connection", c.Lost},
		named{"refused", c.Refused}, named{"op timeout", c.OpTimeout})
	if causes == "" {
		return ways
	}
	return ways + "; caused by " + causes
}

func (p *Phase) judgePlateau() {
	for v := range driver.NumVerbs {
		verb := driver.Verb(v).String()
		if o := p.Op[verb]; o != nil && o.Rate == nil {
			p.doubt(Suspect, "%s", p.Nulls["op."+verb+".rate"])
			return // one plateau for all verbs
		}
	}
}

// judgeGenerator asks whether the figures are those of the target or of loadgen.
func (p *Phase) judgeGenerator() {
	g, busy := p.Generator, percent(p.Generator.Busy)
	switch closed := p.Model == "closed"; {
	case closed && g.Busy > invalidBusy:
		p.doubt(Suspect, "client-bound: the generator's loop was busy %s of the time, so the rate is its own", busy)
	case p.Model == "search" && g.Busy > invalidBusy: // what holds nevertheless would hold all the more with an idle one
		p.doubt(Suspect, "client-bound: the generator's loop was busy %s of the time, so latencies are its own, too", busy)
	case !closed && g.Busy > invalidBusy:
		p.doubt(Invalid, "client-bound: the generator's loop was busy %s of the time", busy)
	case !closed && g.Busy > suspectBusy:
		p.doubt(Suspect, "the generator's loop was busy %s of the time", busy)
	}
	if p.Model == "closed" && p.Stalls > 0 { // an open phase shows it as lag
		p.doubt(Suspect, "the generator stood still %s for more than 250 ms, at most %v",
			plural(p.Stalls, "time"), time.Duration(p.MaxStallSeconds*1e9).Round(time.Millisecond))
	}
	if g.GCCycles > 0 {
		p.doubt(Suspect, "%s ran in the generator while it measured", plural(uint64(g.GCCycles), "garbage collection"))
	}
}

// judgeLag asks whether ops were started when they were due.
func (p *Phase) judgeLag() {
	for v := range driver.NumVerbs {
		verb := driver.Verb(v).String()
		o := p.Op[verb]
		if o == nil || o.Lag.P99 == nil {
			continue
		}
		lag := *o.Lag.P99
		switch {
		case lag > suspectLag:
			p.doubt(Suspect, "%s: started late: p99 lag %s", verb, duration(lag))
		case lag > freeLag && o.Service.P99 != nil && lag > suspectLagShare**o.Service.P99:
			p.doubt(Suspect, "%s: started late: p99 lag %s beside a p99 service time of %s", verb, duration(lag), duration(*o.Service.P99))
		}
	}
}

// Shortfall says in what a step that must succeed whole (setup, populate, clear) fell short: it is "" when every op was done on all
// of the endpoints that hold a key, copies in number. A clear may miss: the key is not there afterwards, which is what was asked for.
func Shortfall(kind StepKind, copies int, t *measure.Totals) string {
	short := func(done, due uint64, what string) string {
		return fmt.Sprintf("%s: %s of %s %s%s", kind, decimal(float64(done)), decimal(float64(due)), what, quote(errorTexts(&t.Errors)))
	}
	for v, o := range t.Ops {
		if o == nil {
			continue
		}
		verb, done := driver.Verb(v), o.Outcomes[driver.OK]
		if kind == Clear {
			done += o.Outcomes[driver.Miss]
		}
		if done != o.Due {
			return short(done, o.Due, verb.String()+" ops were done")
		}
		if copies == 1 {
			continue
		}
		var everywhere uint64
		if len(o.Acks) >= copies {
			everywhere = o.Acks[copies-1].Count()
		}
		if everywhere != o.Due {
			return short(everywhere, o.Due, fmt.Sprintf("%s ops were done on all %d endpoints of their key", verb, copies))
		}
	}
	return ""
}
