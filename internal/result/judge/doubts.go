package judge

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/servers"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Limits of validity. Achieved to offered: Lancet (ATC 2019) allows 10 %, which is too loose for figures that are compared within a few per cent.
// Busy: beyond 70 % of a loop, queueing in the client is no longer small compared with the service time; beyond 85 % it dominates. Lag is also
// allowed up to a multiple of the lag of a queue with the measured cost of an op.
const (
	invalidAchieved = 0.98
	suspectBusy     = 0.70
	invalidBusy     = 0.85
	suspectQueued   = 0.01  // share of the time in the kernel's run queue
	invalidQueued   = 0.10  // the same, in an open phase
	invalidHeldBack = 0.01  // share of the time in which ops waited for what the worker's policy allows
	freeLag         = 50e-6 // p99 lag that never matters, seconds
	freeOwnLag      = 5e-6  // the same of loadgen's own, of any share of the ops: no network answers in twice that
	freeLagQueue    = 1.5   // multiple of the expected p99 lag
	suspectLag      = 1e-3
	suspectLagShare = 0.10   // share of the p99 service time
	suspectResent   = 0.0001 // share of the bytes that TCP sent again
	suspectSched    = 1e-3   // p99 scheduling latency on the blocking executor, seconds
	suspectPause    = 1e-3   // longest stop for a garbage collection on the blocking executor, seconds
	suspectGaps     = 0.01   // share of the time in which a closed phase's loop was kept from its processor
	suspectMet      = 0.001  // share of the answered ops that were in flight during gaps
	suspectApart    = 0.01   // share of the plateau by which workers' clocks may differ
	suspectDrift    = 0.02   // drift over the phase, as a share of the mean rate
	suspectSlope    = 0.10   // the same, as a share of the mean response
	chanceOfDrift   = 0.01   // a trend with a higher probability is attributed to chance
)

// Figures of an op, as paths relative to it.
var (
	latencyFigures = []string{"response", "service", "latency", "acks"}
	tailFigures    = []string{"response.p999", "response.max", "service.p999", "service.max"}
)

// rateFigures() lists the rates of an op.
func rateFigures() (names []string) {
	for _, m := range metric.Op() {
		if m.Kind == metric.Rate {
			names = append(names, m.Name)
		}
	}
	return names
}

// doubts are the reasons not to believe figures, the most important first.
type doubts []run.Reason

// add adds a reason why figures of the phase are no better than v.
func (d *doubts) add(code reason.Code, v run.Validity, touches []string, format string, args ...any) {
	why := run.Reason{Validity: v, Code: code, Text: fmt.Sprintf(format, args...), Touches: touches}
	if slices.Equal(touches, []string{"search"}) {
		why.OneSided = code.Bound()
	}
	*d = append(*d, why)
}

// all returns the paths of all measured figures.
func (p *phase) all() []string {
	return []string{"op", "scenario", "offered_rate", "achieved_rate", "steady"}
}

// each returns the paths of figures of every op and scenario.
func (p *phase) each(figures ...[]string) (paths []string) {
	for v := range driver.NumVerbs {
		verb := p.words.Name(driver.Verb(v))
		if p.Op[verb] == nil {
			continue
		}
		for _, f := range slices.Concat(figures...) {
			paths = append(paths, "op."+verb+"."+f)
			if f == "service" && p.Op[verb].Growth != nil {
				paths = append(paths, "op."+verb+".growth")
			}
			if f == "latency" && p.Op[verb].Kind != nil {
				paths = append(paths, "op."+verb+".kind")
			}
			if below, ok := strings.CutPrefix(f, "service"); ok && p.Op[verb].Sync != nil && p.Op[verb].Sync.Count > 0 {
				paths = append(paths, "op."+verb+".write"+below, "op."+verb+".sync"+below)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Scenario)) {
		for _, f := range slices.Concat(figures...) {
			if !ofScenarios(f) {
				continue
			}
			paths = append(paths, "scenario."+name+"."+f)
			for _, step := range p.Scenario[name].StepOrder {
				paths = append(paths, "scenario."+name+".step."+step+"."+f)
			}
			if f == "service" && p.Scenario[name].Growth != nil {
				paths = append(paths, "scenario."+name+".growth")
			}
		}
	}
	return paths
}

// ofScenarios says whether scenarios have a figure, or a group of figures, of that name.
func ofScenarios(figure string) bool {
	return slices.ContainsFunc(metric.Figures(), func(m metric.Of[run.Figures]) bool {
		return m.Name == figure || strings.HasPrefix(m.Name, figure+".")
	})
}

// newDoubts judges figures that are complete.
func newDoubts(p *phase) doubts {
	d := doubts{}
	if why := p.counts.Failed; why != "" {
		d.add(reason.NotCarriedOut, run.Invalid, p.all(), "ended early because of a failure: %s", why)
	}
	p.judgePolicy(&d)
	p.judgeOffered(&d)
	p.judgeWitnesses(&d, false)
	p.judgeEnded(&d)
	p.judgeFleet(&d)
	if short := p.shortfall(); short != "" {
		d.add(reason.SetupFailed, run.Invalid, p.all(), "%s", short)
	}
	p.judgeVerify(&d)
	if !p.timed() {
		return d
	}
	p.judgeServers(&d)
	p.judgeSilent(&d)
	p.judgeOutcomes(&d)
	p.judgeLost(&d)
	p.judgePlateau(&d)
	p.judgeStall(&d)
	p.judgeClocks(&d)
	p.judgeLog(&d)
	p.judgeGenerator(&d)
	p.judgeMachine(&d)
	if !p.Closed() {
		p.judgeLag(&d)
	}
	if ph := p.counts.phase; ph.Growth == nil && len(ph.Events) == 0 { // else change is what the phase asks about
		p.judgeSteady(&d)
	}
	p.judgeEvents(&d)
	p.bound(d)
	return d
}

// bound finds the doubts that leave a bound, and makes them no worse than suspect. Late ops are answered no earlier where a connection has one in flight,
// they wait instead of being dropped, none fails, and the servers do not answer several at once; an op that was late in a search also fails its level.
func (p *phase) bound(d doubts) {
	l := &p.Load
	if p.Closed() || l.Pipeline != 1 || l.OnFull != "wait" || p.Log != nil || p.groups() || len(p.Others) > 0 {
		return
	}
	for _, o := range p.parts() {
		if o.OK+o.Miss < o.Due {
			return
		}
	}
	for i := range d {
		if why := &d[i]; why.Code.Bound() == reason.AtMost {
			if why.OneSided = reason.AtMost; p.Model != run.ModelSearch {
				why.Validity = run.Suspect
			}
		}
	}
}

// groups reports whether the servers may make several clients' writes durable at once, so that late ones end sooner.
func (p *phase) groups() bool {
	for _, facts := range p.counts.Servers[p.Target.Name] {
		if facts["appendfsync"] == "always" {
			return true
		}
	}
	return servers.Of(p.Target.Driver).Groups
}

// judgeOffered checks whether the target kept up with the offered rate. It comes first, since an overload explains most other doubts.
func (p *phase) judgeOffered(d *doubts) {
	if !p.rates.short() {
		return
	}
	offered, achieved := *p.OfferedRate, *p.AchievedRate
	v := run.Suspect
	if achieved < invalidAchieved*offered {
		v = run.Invalid
	}
	d.add(reason.Overloaded, v, p.all(), "offered %s, sustained %s", p.arriving(offered), p.arriving(achieved))
}

// arriving formats a rate of scenarios, if the phase has any, else of ops.
func (p *phase) arriving(rate float64) string {
	if len(p.Scenario) > 0 {
		return quantity.Number(rate) + " scenarios/s"
	}
	return quantity.Number(rate) + "/s"
}

// judgeEnded finds ops and requests still in flight at the end. What lost workers had in flight is expected to stay so.
func (p *phase) judgeEnded(d *doubts) {
	c := p.counts
	if c.StoppedOn != "" {
		d.add(reason.StoppedByPlan, run.Suspect, p.all(), "ended early, by %s", c.StoppedOn)
	}
	if c.Aborted {
		return
	}
	for v, l := range c.Unfinished.Ops {
		name, left := p.words.Name(driver.Verb(v)), int64(0)
		var touches []string
		for _, o := range parts(driver.Verb(v), name, p.Op, p.Scenario) {
			left += o.InFlight
			touches = append(touches, o.at)
		}
		switch {
		case touches == nil:
		case left != l.InFlight:
			d.add(reason.Unended, run.Invalid, touches, "%s: %d ops had not ended when the phase had", name, left-l.InFlight)
		case left != 0:
			d.add(reason.WorkerLost, run.Suspect, touches, "%s: how %s of lost workers ended is not known", name, quantity.Count(uint64(left), "op"))
		}
	}
	rows := rowsOf(p.targets())
	for i, r := range c.Load.Requests {
		left := r.InFlight
		if i < len(c.Unfinished.Requests) {
			left -= c.Unfinished.Requests[i].InFlight
		}
		if left != 0 {
			verb := p.words.Name(driver.Verb(i % driver.NumVerbs))
			d.add(reason.Unended, run.Suspect, []string{"requests", "op." + verb + ".acks"}, "%s at %s: %d requests had not ended when the phase had", verb, rowAt(rows, i/driver.NumVerbs).endpoint, left)
		}
	}
}

// judgeFleet doubts figures that mix loads of different numbers of workers.
func (p *phase) judgeFleet(d *doubts) {
	for _, l := range p.counts.Losses {
		d.add(reason.WorkerLost, run.Suspect, append(p.each(rateFigures()), "offered_rate", "achieved_rate", "steady.rate"), "the load of worker %s ended early or is missing: rates are those of fewer workers", l.Worker)
	}
}

// judgeClocks checks whether workers loaded at the same time.
func (p *phase) judgeClocks(d *doubts) {
	apart := p.counts.Apart.Seconds()
	if p.counts.even() > 0 && apart > suspectApart*p.counts.even() {
		d.add(reason.ClocksApart, run.Suspect, append(p.each(rateFigures()), "offered_rate", "achieved_rate", "steady.rate"),
			"the clocks of workers may be %s apart, which is %s of the plateau: for that long, some workers may have loaded without the others",
			quantity.Duration(apart), quantity.Percent(apart/p.counts.even()))
	}
}

// shortfall says how a step that must succeed completely fell short, or "".
func (p *phase) shortfall() (short string) {
	c := p.counts
	if c.Setup != nil {
		short = Shortfall(worker.Setup, c.plan.Words(), 0, p.copies(), c.Setup)
	}
	if !p.Kind.Timed() {
		short = Shortfall(p.Kind, c.plan.Words(), c.plan.Once(c.phase, false), p.copies(), c.Load)
	}
	return short
}

// timed says whether there is a load to judge: none if the setup fell short.
func (p *phase) timed() bool { return p.Kind.Timed() && p.shortfall() == "" }

// copies returns the number of endpoints that loadgen sends each key to.
func (p *phase) copies() int {
	if p.Target.Replication == nil || !p.Target.Replication.ByClient() {
		return 1
	}
	return p.Target.Replication.N
}

// judgeOutcomes checks outcomes against max_bad and expect_hits.
func (p *phase) judgeOutcomes(d *doubts) {
	ph := p.counts.phase
	begun := false
	said := quote(p.Errors)
	if p.Log != nil && p.Log.Failure != "" {
		said = "" // another reason says it
	}
	for _, o := range p.parts() {
		begun = begun || o.Due > 0
		wrong := o.QuorumFailed + o.Timeout + o.Error + o.Shed
		if share := float64(wrong) / float64(o.Due); share > ph.MaxBad {
			d.add(reason.MaxBad, run.Invalid, []string{o.at}, "%s: %s of %s ops went wrong, more than max_bad = %s: %s%s",
				o.name, quantity.Percent(share), quantity.Number(float64(o.Due)), quantity.Percent(ph.MaxBad), wrongs(o.Figures, p.Lost()), said)
		}
		if o.verb != driver.Get || ph.ExpectHits == nil || o.Due == 0 {
			continue
		}
		switch {
		case o.hits == nil:
			d.add(reason.ExpectHits, run.Invalid, []string{o.at}, "%s: none was answered, but %s should hit", o.name, quantity.Percent(*ph.ExpectHits))
		case *o.hits < *ph.ExpectHits:
			d.add(reason.ExpectHits, run.Invalid, []string{o.at}, "%s: %s were hits, fewer than expect_hits = %s", o.name, quantity.Percent(*o.hits), quantity.Percent(*ph.ExpectHits))
		}
	}
	p.judgeTargets(d)
	if !begun {
		d.add(reason.NoOps, run.Invalid, p.all(), "no op was due")
	}
}

// wrongs lists how ops went wrong and why: "12 timeout, 3 error; caused by 12 timeout, 3 lost connection".
func wrongs(o *run.Figures, lost string) string {
	ways := list(named{"quorum_failed", o.QuorumFailed}, named{"timeout", o.Timeout}, named{"error", o.Error}, named{"shed", o.Shed})
	c := o.Causes
	causes := list(named{"reply", c.Reply}, named{"timeout", c.Timeout}, named{lost, c.Lost},
		named{"refused", c.Refused}, named{"op timeout", c.OpTimeout})
	if causes == "" {
		return ways
	}
	return ways + "; caused by " + causes
}

func (p *phase) judgePlateau(d *doubts) {
	for _, o := range p.parts() {
		if o.Rate == nil {
			d.add(reason.NoPlateau, run.Suspect, p.each(rateFigures()), "%s", p.Nulls[o.at+".rate"])
			return // one plateau for all
		}
	}
}

// judgeSteady checks whether the load was steady enough for one number to represent it.
func (p *phase) judgeSteady(d *doubts) {
	if p.WarmUp.Code == reason.NeverSettled {
		d.add(reason.NeverSettled, run.Suspect, append(p.each(rateFigures(), latencyFigures), "steady"), "%s", p.WarmUp.Reason)
		return
	}
	drifts := func(what string, t run.Trend, most float64, figures []string) {
		if t.Drift == nil || *t.DriftP >= chanceOfDrift || math.Abs(*t.Drift) <= most {
			return
		}
		way := "rose"
		if *t.Drift < 0 {
			way = "fell"
		}
		d.add(reason.Drift, run.Suspect, p.each(figures), "%s %s by %s from the beginning to the end of %d s: its mean describes no moment of them",
			what, way, quantity.Percent(math.Abs(*t.Drift)), p.Steady.Seconds)
	}
	drifts("the rate", p.Steady.Rate, suspectDrift, rateFigures())
	if !p.Closed() { // in a closed phase, the response time follows from the rate
		drifts("the mean response", p.Steady.Response, suspectSlope, latencyFigures)
	}
}

// judgeStall checks whether a closed load's target stood still, so that its mean rate describes no part of the load.
func (p *phase) judgeStall(d *doubts) {
	s := &p.rates.stall
	switch {
	case s.silent > 0:
		d.add(reason.Stalled, run.Suspect, p.each(rateFigures(), latencyFigures),
			"nothing ended for %s, %s of the plateau: the target stood still, and the load waited; the rate includes that time, but latencies show it as one slow op per slot only",
			quantity.Duration(s.silent), quantity.Percent(s.share))
	case len(p.counts.Losses) > 0: // slots of a lost worker have ended, not hung
	case math.Abs(s.byTime-s.byEnds) > suspectHung*s.byEnds:
		why := "ops under way at its end took far longer than the rest"
		if s.byTime > s.byEnds {
			why = "for part of it, slots had no op under way, or one that began before it or never ended"
		}
		d.add(reason.Stalled, run.Suspect, p.each(rateFigures()), "slots hung: %s ended in the plateau, but the times of these ops make it %s: %s",
			p.arriving(s.byEnds), p.arriving(s.byTime), why)
	}
}

// judgeTargets checks the ops of each of several targets against max_bad, so that the verdict names the target that failed.
func (p *phase) judgeTargets(d *doubts) {
	ph := p.counts.phase
	if len(p.Others) == 0 {
		return
	}
	for _, t := range p.targets() {
		var all run.Figures
		var touches []string
		for _, name := range slices.Sorted(maps.Keys(p.Scenario)) {
			for _, step := range p.Scenario[name].StepOrder {
				if s := p.Scenario[name].Step[step]; s.Target == t.Name {
					sumUp(&all, &s.Figures)
					touches = append(touches, "scenario."+name+".step."+step)
				}
			}
		}
		wrong := all.QuorumFailed + all.Timeout + all.Error + all.Shed
		if all.Due == 0 || float64(wrong)/float64(all.Due) <= ph.MaxBad {
			continue
		}
		d.add(reason.MaxBad, run.Invalid, touches, "target %q: %s of its %s ops went wrong, more than max_bad = %s: %s", t.Name,
			quantity.Percent(float64(wrong)/float64(all.Due)), quantity.Number(float64(all.Due)), quantity.Percent(ph.MaxBad), wrongs(&all, p.Lost()))
	}
}

// sumUp adds the counts of one op to those of another.
func sumUp(to, of *run.Figures) {
	to.Due += of.Due
	to.QuorumFailed += of.QuorumFailed
	to.Timeout += of.Timeout
	to.Error += of.Error
	to.Shed += of.Shed
	to.Causes.Reply += of.Causes.Reply
	to.Causes.Timeout += of.Causes.Timeout
	to.Causes.Lost += of.Causes.Lost
	to.Causes.Refused += of.Causes.Refused
	to.Causes.OpTimeout += of.Causes.OpTimeout
}

// judgeEvents doubts a phase in which an event did not happen as it should.
func (p *phase) judgeEvents(d *doubts) {
	ph := p.counts.phase
	for i := range ph.Events {
		ev := &ph.Events[i]
		if e := p.Event[ev.Name]; e != nil && e.Failed != "" {
			d.add(reason.EventFailed, run.Suspect, []string{"event." + ev.Name}, "event %s: %s", ev.Name, e.Failed)
		}
	}
}
