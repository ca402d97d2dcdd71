package run

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Limits of validity. Offered to achieved: Lancet (ATC 2019) allows 10 %, too loose for figures that are compared within a few
// per cent. Busy: beyond 70 % of a loop, queueing in the client is no longer small beside the service time; beyond 85 % it rules. Lag is
// also allowed what a queue of the measured cost of an op would have.
const (
	suspectAchieved = 0.995
	invalidAchieved = 0.98
	suspectBusy     = 0.70
	invalidBusy     = 0.85
	suspectQueued   = 0.01  // of the time, in the kernel's run queue
	invalidQueued   = 0.10  // in an open phase
	freeLag         = 50e-6 // p99 lag that never matters, seconds
	freeLagQueue    = 1.5   // of the expected p99 lag
	suspectLag      = 1e-3
	suspectLagShare = 0.10   // of the p99 service time
	suspectResent   = 0.0001 // of the bytes sent, by TCP
	suspectSched    = 1e-3   // p99 scheduling latency on the blocking executor, seconds
	suspectPause    = 1e-3   // longest stop for a garbage collection there, seconds
	suspectApart    = 0.01   // of the plateau, by which workers' clocks may differ
	suspectDrift    = 0.02   // of the mean rate, over the phase
	suspectSlope    = 0.10   // of the mean response
	chanceOfDrift   = 0.01   // above this probability a trend is taken for chance
)

// Figures of an op, as paths below it.
var (
	rateFigures    = []string{"rate", "answered", "rate_per_minute", "rate_wall", "keys.rate", "keys.answered", "keys.rate_wall"}
	latencyFigures = []string{"response", "service", "latency", "acks"}
)

// doubt adds a reason why figures of the phase are no better than v.
func (p *Phase) doubt(v Validity, touches []string, format string, args ...any) {
	if v.rank() > p.Validity.rank() {
		p.Validity = v
	}
	p.Reasons = append(p.Reasons, Reason{Validity: v, Text: fmt.Sprintf(format, args...), Touches: touches})
}

// all are the paths of everything that was measured.
func (p *Phase) all() []string {
	return []string{"op", "scenario", "offered_rate", "achieved_rate", "steady"}
}

// each lists figures of every op and scenario.
func (p *Phase) each(figures ...[]string) (paths []string) {
	for v := range driver.NumVerbs {
		verb := driver.Verb(v).String()
		if p.Op[verb] == nil {
			continue
		}
		for _, f := range slices.Concat(figures...) {
			paths = append(paths, "op."+verb+"."+f)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Scenario)) {
		for _, f := range slices.Concat(figures...) {
			if f != "acks" && f != "hit_ratio" {
				paths = append(paths, "scenario."+name+"."+f)
			}
		}
	}
	return paths
}

// judge decides on the validity of a phase whose figures are complete.
func (p *Phase) judge(whole *plan.Plan, ph *plan.Phase, m Measured) {
	p.Validity, p.Reasons = Valid, []Reason{}
	p.judgeOffered()
	p.judgeLedgers(m)
	p.judgeFleet(m)
	if !p.judgeWhole(whole, ph, m) || p.Kind != string(Load) {
		return
	}
	p.judgeOutcomes(ph)
	p.judgePlateau()
	p.judgeClocks(m)
	p.judgeLog(m)
	p.judgeGenerator()
	p.judgeMachine()
	if p.Model != "closed" {
		p.judgeLag()
	}
	p.judgeSteady()
	if p.Foreign > 0 {
		p.doubt(Suspect, p.each(latencyFigures, []string{"hit_ratio"}), "%s read were not written by loadgen", plural(p.Foreign, "value"))
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
	p.doubt(v, p.all(), "offered %s, sustained %s", p.arriving(offered), p.arriving(achieved))
}

// arriving is a rate of what a load counts: scenarios where the phase has some.
func (p *Phase) arriving(rate float64) string {
	if len(p.Scenario) > 0 {
		return decimal(rate) + " scenarios/s"
	}
	return decimal(rate) + "/s"
}

// short says whether what was achieved falls short of what was offered.
func (p *Phase) short() bool {
	if p.OfferedRate == nil || p.AchievedRate == nil {
		return false
	}
	offered, achieved := *p.OfferedRate, *p.AchievedRate
	const (
		edge     = 2 // ops that may fall on either side of the window's ends
		unlikely = 4 // standard deviations: three in 100,000 phases are as far off to one side
	)
	return offered-achieved > max(edge/p.plateau, unlikely*p.chance) && achieved < suspectAchieved*offered
}

// judgeLedgers finds ops and requests that went astray.
func (p *Phase) judgeLedgers(m Measured) {
	balance := func(of string, t *measure.Totals) {
		if err := t.CheckValid(); err != nil {
			p.doubt(Invalid, append(p.all(), "requests", "setup"), "the ledgers of %s do not balance: %s", of, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
	balance("the "+p.Kind, m.Load)
	if m.Setup != nil {
		balance("the setup", m.Setup)
	}
	if err := p.checkRequests(); err != nil {
		p.doubt(Invalid, append(p.all(), "requests", "setup"), "%v", err)
	}
	if m.Braked != "" {
		p.doubt(Suspect, p.all(), "ended early, by %s", m.Braked)
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
			p.doubt(Suspect, []string{"op." + driver.Verb(v).String()}, "%s: how %s of lost workers ended is not known", driver.Verb(v), plural(uint64(l.InFlight), "op"))
		} else if o != nil && o.InFlight != l.InFlight {
			p.doubt(Invalid, []string{"op." + driver.Verb(v).String()}, "%s: %d ops had not ended when the phase had", driver.Verb(v), o.InFlight-l.InFlight)
		}
	}
	for i, r := range m.Load.Requests {
		left := r.InFlight
		if i < len(m.Unfinished.Requests) {
			left -= m.Unfinished.Requests[i].InFlight
		}
		if left != 0 {
			verb := driver.Verb(i % driver.NumVerbs)
			p.doubt(Suspect, []string{"requests", "op." + verb.String() + ".acks"}, "%s at %s: %d requests had not ended when the phase had", verb, endpointName(m.Endpoints, i/driver.NumVerbs), left)
		}
	}
}

// judgeFleet says that figures mix the load of different numbers of workers.
func (p *Phase) judgeFleet(m Measured) {
	for _, l := range m.Losses {
		p.doubt(Suspect, append(p.each(rateFigures), "offered_rate", "achieved_rate", "steady.rate"), "the load of worker %s ended early or is missing: rates are those of fewer workers", l.Worker)
	}
}

// judgeClocks asks whether workers that were to load at the same time did.
func (p *Phase) judgeClocks(m Measured) {
	apart := m.Apart.Seconds()
	if p.even > 0 && apart > suspectApart*p.even {
		p.doubt(Suspect, append(p.each(rateFigures), "offered_rate", "achieved_rate", "steady.rate"),
			"the clocks of workers may be %s apart, which is %s of the plateau: for so long some may have loaded without the others",
			quantity.Duration(apart), quantity.Percent(apart/p.even))
	}
}

// judgeWhole asks whether the steps that must succeed whole did. After a setup that did not there is no load to judge.
func (p *Phase) judgeWhole(whole *plan.Plan, ph *plan.Phase, m Measured) bool {
	var short string
	if m.Setup != nil {
		short = Setup.Shortfall(0, p.copies(), m.Setup)
	}
	if p.Kind != string(Load) {
		short = StepKind(p.Kind).Shortfall(whole.Once(ph, false), p.copies(), m.Load)
	}
	if short != "" {
		p.doubt(Invalid, p.all(), "%s", short)
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

// judgeHits holds hits against the share of gets that asked for keys of the dataset. Chance moves them by five standard deviations once in
// two million phases.
func (p *Phase) judgeHits(ph *plan.Phase) {
	o := p.Op[driver.Get.String()]
	if ph.HitRatio == nil || o == nil || o.HitRatio == nil {
		return
	}
	asked, answered := *ph.HitRatio, float64(o.OK+o.Miss)
	if off := math.Abs(*o.HitRatio - asked); off > 5*math.Sqrt(asked*(1-asked)/answered)+1/answered || asked == 1 && off > 0 {
		p.doubt(Suspect, []string{"op.get"}, "get: %s were hits where hit_ratio = %s was asked, further off than chance: were all keys put before, and have none been evicted or put by others?",
			quantity.Percent(*o.HitRatio), quantity.Percent(asked))
	}
}

// judgeOutcomes holds outcomes against max_bad and expect_hits.
func (p *Phase) judgeOutcomes(ph *plan.Phase) {
	var due uint64
	said := quote(p.Errors)
	if p.Log != nil && p.Log.Failure != "" {
		said = "" // it is a reason of its own
	}
	for v := range driver.NumVerbs {
		verb := driver.Verb(v)
		o := p.Op[verb.String()]
		if o == nil {
			continue
		}
		due += o.Due
		wrong := o.QuorumFailed + o.Timeout + o.Error + o.Shed
		if share := float64(wrong) / float64(o.Due); share > ph.MaxBad {
			p.doubt(Invalid, []string{"op." + verb.String()}, "%s: %s of %s ops went wrong, more than max_bad = %s: %s%s",
				verb, quantity.Percent(share), decimal(float64(o.Due)), quantity.Percent(ph.MaxBad), o.wrongs(p.Lost()), said)
		}
		if verb != driver.Get || ph.ExpectHits == nil || o.Due == 0 {
			continue
		}
		switch {
		case o.HitRatio == nil:
			p.doubt(Invalid, []string{"op.get"}, "get: none was answered, %s were expected to hit", quantity.Percent(*ph.ExpectHits))
		case *o.HitRatio < *ph.ExpectHits:
			p.doubt(Invalid, []string{"op.get"}, "get: %s were hits, fewer than expect_hits = %s", quantity.Percent(*o.HitRatio), quantity.Percent(*ph.ExpectHits))
		}
	}
	p.judgeHits(ph)
	if due == 0 {
		p.doubt(Invalid, p.all(), "no op was due")
	}
}

// judgeLog asks whether what was acknowledged is there.
func (p *Phase) judgeLog(m Measured) {
	l := p.Log
	switch {
	case l == nil:
		return
	case l.Failure != "":
		p.doubt(Invalid, p.all(), "a log failed, and nothing was written to it after that: %s", l.Failure)
	case strings.Contains(l.SyncUsed, ", "):
		p.doubt(Invalid, p.all(), "workers wrote with different durability: %s", l.SyncUsed)
	}
	switch proof := l.Proof; {
	case proof == nil && l.Failure != "": // said above
	case proof == nil && !m.Aborted:
		p.doubt(Invalid, p.all(), "what was written was not verified: %s", l.Unproven)
	case proof == nil:
	case len(proof.Wrong) > 0 || proof.Verified != proof.Acknowledged:
		p.doubt(Invalid, p.all(), "of %s acknowledged entries that had to be there, %s were: %s",
			decimal(float64(proof.Acknowledged)), decimal(float64(proof.Verified)), strings.Join(proof.Wrong, "; "))
	}
}

// Lost names what ended ops without an answer: their connection, or the log that failed below them.
func (p *Phase) Lost() string {
	if p.Log != nil {
		return "failed log"
	}
	return "lost connection"
}

// wrongs lists how ops went wrong and why: "12 timeout, 3 error; caused by 12 timeout, 3 lost connection".
func (o *Figures) wrongs(lost string) string {
	ways := list(named{"quorum_failed", o.QuorumFailed}, named{"timeout", o.Timeout}, named{"error", o.Error}, named{"shed", o.Shed})
	c := o.Causes
	causes := list(named{"reply", c.Reply}, named{"timeout", c.Timeout}, named{lost, c.Lost},
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
			p.doubt(Suspect, p.each(rateFigures), "%s", p.Nulls["op."+verb+".rate"])
			return // one plateau for all verbs
		}
	}
}

// judgeGenerator asks whether the figures are those of the target or of loadgen.
func (p *Phase) judgeGenerator() {
	g, busy := p.Generator, quantity.Percent(p.Generator.Busy)
	switch closed := p.Model == "closed"; {
	case closed && g.Busy > invalidBusy:
		p.doubt(Suspect, append(p.each(rateFigures), "steady.rate"), "client-bound: the generator's loop was busy %s of the time, so the rate is its own", busy)
	case p.Model == "search" && g.Busy > invalidBusy: // what holds nevertheless would hold all the more with an idle one
		p.doubt(Suspect, p.each(latencyFigures), "client-bound: the generator's loop was busy %s of the time, so latencies are its own, too", busy)
	case !closed && g.Busy > invalidBusy:
		p.doubt(Invalid, p.all(), "client-bound: the generator's loop was busy %s of the time", busy)
	case !closed && g.Busy > suspectBusy:
		p.doubt(Suspect, p.each(latencyFigures), "the generator's loop was busy %s of the time", busy)
	}
	switch {
	case p.Stalls == 0:
	case p.Model == "closed": // its lag does not show it
		p.doubt(Suspect, p.each(rateFigures, latencyFigures), "the generator stood still %s for more than 250 ms, at most %s",
			plural(p.Stalls, "time"), quantity.Duration(p.MaxStallSeconds))
	default:
		p.doubt(p.stalled(), p.each(latencyFigures, []string{"lag"}), "the generator stood still %s for more than 250 ms, at most %s",
			plural(p.Stalls, "time"), quantity.Duration(p.MaxStallSeconds))
	}
	blocks := strings.Contains(g.Executor, "blocking") // whose clients allocate: collections are part of them, long stops are not
	if g.GCCycles > 0 && (!blocks || g.GCPauseMaxSeconds > suspectPause) {
		p.doubt(Suspect, p.each(latencyFigures), "%s ran in the generator while it measured", plural(uint64(g.GCCycles), "garbage collection"))
	}
	if blocks && g.SchedLatencyP99Seconds > suspectSched {
		p.doubt(Suspect, p.each(latencyFigures, []string{"lag"}), "goroutines that could run waited for a thread: p99 %s", quantity.Duration(g.SchedLatencyP99Seconds))
	}
}

// stalled judges an open phase in which loops stood still: when 1 % of the ops or more were late for it, they are the load of another schedule.
func (p *Phase) stalled() Validity {
	for _, o := range p.Op {
		for _, q := range lateness {
			if lag := q.of(&o.Lag); lag != nil && *lag > suspectLag && p.generatorLag(q.beyond) > suspectLag {
				return Invalid
			}
		}
	}
	return Suspect
}

// judgeMachine asks what kept the generator, or its packets, from moving.
func (p *Phase) judgeMachine() {
	g := p.Generator
	if w := g.RunQueueWait; w != nil && *w > suspectQueued {
		v, touches := Suspect, p.each(rateFigures, latencyFigures)
		if p.Model != "closed" {
			touches = p.each(latencyFigures, []string{"lag"})
			if *w > invalidQueued && p.Model != "search" { // what holds nevertheless would hold all the more otherwise
				v = Invalid
			}
		}
		others := "others"
		if p.Target.Builtin {
			others = "others (such as the built-in nodes)"
		}
		p.doubt(v, touches, "the generator's loop waited %s of the time for a processor, which %s had", quantity.Percent(*w), others)
	}
	if t := g.Throttled; t != nil && t.Periods > 0 {
		p.doubt(Invalid, p.all(), "a CPU quota kept the generator from running %s, for %s in all", plural(t.Periods, "time"), quantity.Duration(t.Seconds))
	}
	if m := g.Machine; m.Doubtful() {
		p.doubt(Suspect, append(p.each(rateFigures, latencyFigures), "achieved_rate", "steady"),
			"processes other than loadgen's and the target's had %s of the processors' time on a worker's machine, and %s of it was idle: loadgen or the target may have wanted it; stop them, or run where they are not",
			quantity.Percent(m.OthersShare), quantity.Percent(m.IdleShare))
	}
	if t := g.TCP; t != nil && t.BytesSent > 0 {
		if share := float64(t.BytesRetransmitted) / float64(t.BytesSent); share > suspectResent {
			p.doubt(Suspect, p.each(latencyFigures), "TCP sent %s of the bytes again, in %s: the network lost them, or the other end was late",
				quantity.Percent(share), plural(t.Retransmits, "segment"))
		}
	}
}

// judgeLag asks whether ops were started when they were due.
func (p *Phase) judgeLag() {
	free := freeLag
	expected := ""
	if p.ExpectedLagP99 != nil {
		free = max(free, freeLagQueue**p.ExpectedLagP99)
		expected = fmt.Sprintf("; a queue of ops that take %s would have %s", quantity.Duration(*p.OpCostSeconds), quantity.Duration(*p.ExpectedLagP99))
	}
	for v := range driver.NumVerbs {
		verb := driver.Verb(v).String()
		if o := p.Op[verb]; o != nil {
			p.judgeStarts(verb, "op."+verb, &o.Figures, free, expected)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Scenario)) {
		p.judgeStarts("scenario "+name, "scenario."+name, &p.Scenario[name].Figures, free, expected)
	}
}

// judgeStarts asks it of the ops of a verb, or of a scenario, whose figures stand at a path. Lag up to free is as it should be.
func (p *Phase) judgeStarts(name, at string, o *Figures, free float64, expected string) {
	i := slices.IndexFunc(lateness[:], func(q lateQuantile) bool { return q.of(&o.Lag) != nil })
	if i < 0 {
		return
	}
	q := lateness[i]
	lag, service, touches := *q.of(&o.Lag), q.of(&o.Service), []string{at + ".response", at + ".lag", at + ".latency"}
	if lag <= suspectLag {
		p.judgeTail(name, at, o)
	}
	switch {
	case lag <= free:
	case lag > suspectLag && p.generatorLag(q.beyond) > max(suspectLag, free):
		room := ""
		if p.waited.Count() > 0 {
			room = fmt.Sprintf(" (%s of all ops had no room; without these, %s)", quantity.Percent(p.roomless()), quantity.Duration(p.generatorLag(q.beyond)))
		}
		p.doubt(p.startedLate(), touches, "%s: started late: %s lag %s%s%s%s", name, q.name, quantity.Duration(lag), room, expected, p.absence(q.beyond))
	case lag > suspectLag:
		p.doubt(Suspect, touches, "%s: started late for want of room: %s lag %s, while %s of all ops waited for the target to answer earlier ones; without these, %s",
			name, q.name, quantity.Duration(lag), quantity.Percent(p.roomless()), quantity.Duration(p.generatorLag(q.beyond)))
	case service != nil && lag > suspectLagShare**service:
		p.doubt(Suspect, touches, "%s: started late: %s lag %s beside a %s service time of %s%s", name, q.name, quantity.Duration(lag), q.name, quantity.Duration(*service), expected)
	}
}

// startedLate judges that loadgen itself started ops late. What a search finds to hold would hold all the more without.
func (p *Phase) startedLate() Validity {
	if p.Model == "search" {
		return Suspect
	}
	return Invalid
}

// generatorLag is what all but a share of the ops were started late by at most, seconds, if those that waited for room were not late at all: how
// long a target lets them wait is no fault of the generator.
func (p *Phase) generatorLag(beyond float64) float64 {
	own := map[int64]int64{}
	var bounds []int64
	enter := func(h *hist.Hist, sign int64) {
		for upper, n := range h.Buckets() {
			if _, there := own[upper]; !there {
				bounds = append(bounds, upper)
			}
			own[upper] += sign * int64(n)
		}
	}
	enter(&p.lags, 1)
	enter(&p.waited, -1)
	slices.Sort(bounds)
	above := int64(0)
	for _, upper := range slices.Backward(bounds) {
		if above += own[upper]; float64(above) > beyond*float64(p.lags.Count()) {
			return min(seconds(upper), seconds(p.lags.Max()))
		}
	}
	return 0
}

// roomless is the share of ops that had no room when they were due.
func (p *Phase) roomless() float64 {
	return float64(p.waited.Count()) / float64(max(1, p.lags.Count()))
}

// lateQuantile is one that says whether ops were started late.
type lateQuantile struct {
	name   string
	beyond float64 // the share of ops above it
	of     func(*Latency) *float64
}

// lateness are they, the first of which with samples enough is looked at: few ops may be late, too.
var lateness = [...]lateQuantile{
	{"p99", 0.01, func(l *Latency) *float64 { return l.P99 }},
	{"p90", 0.1, func(l *Latency) *float64 { return l.P90 }},
	{"p50", 0.5, func(l *Latency) *float64 { return l.P50 }},
}

// judgeTail asks the same of the last thousandth of an op, which single gaps make late.
func (p *Phase) judgeTail(name, at string, o *Figures) {
	lag := o.Lag.P999
	if lag == nil || *lag <= suspectLag || o.Service.P999 != nil && *lag <= suspectLagShare**o.Service.P999 {
		return
	}
	touches := []string{at + ".response.p999", at + ".response.max", at + ".lag.p999", at + ".lag.max"}
	p.doubt(Suspect, touches, "%s: one in a thousand started late: p99.9 lag %s%s", name, quantity.Duration(*lag), p.absence(0.001))
}

// absence says what kept loops from their processors, if that was long enough to have made a share of the ops late.
func (p *Phase) absence(share float64) string {
	const catchUp = 2 // of what was late, some comes from afterwards, until the loop has made up for it
	i := p.Generator.Interrupted
	if i == nil || i.Times == 0 || i.Seconds*catchUp < share*p.Load.DurationSeconds {
		return ""
	}
	who := "other threads had it for " + quantity.Duration(i.OthersSeconds) + " of these"
	if i.OthersSeconds < i.Seconds/2 {
		who += ", the rest is a hypervisor's or an interrupt's"
	}
	return fmt.Sprintf("; the generator's loop was kept from its processor %s, for %s in all, at most %s: %s",
		plural(i.Times, "time"), quantity.Duration(i.Seconds), quantity.Duration(i.MaxSeconds), who)
}

// judgeSteady asks whether the load ran evenly enough for one number to stand for it.
func (p *Phase) judgeSteady() {
	if strings.HasPrefix(p.WarmUp.Reason, neverSettled) {
		p.doubt(Suspect, append(p.each(rateFigures, latencyFigures), "steady"), "%s", p.WarmUp.Reason)
		return
	}
	drifts := func(what string, t trend, most float64, figures []string) {
		if t.Drift == nil || *t.DriftP >= chanceOfDrift || math.Abs(*t.Drift) <= most {
			return
		}
		way := "rose"
		if *t.Drift < 0 {
			way = "fell"
		}
		p.doubt(Suspect, p.each(figures), "%s %s by %s from the beginning to the end of %d s: it stands for no moment of them",
			what, way, quantity.Percent(math.Abs(*t.Drift)), p.Steady.Seconds)
	}
	drifts("the rate", p.Steady.Rate, suspectDrift, rateFigures)
	if p.Model != "closed" { // in a closed phase it is the rate, seen from the other side
		drifts("the mean response", p.Steady.Response, suspectSlope, latencyFigures)
	}
}

// Shortfall says in what a step that must succeed whole (setup, populate, clear) fell short: it is "" when as many ops as the plan has, 0 for those that were due, were done, on all
// of the endpoints that hold a key, copies in number. A part of them may never have been due, because its worker was lost. A clear may miss: the key is
// not there afterwards, which is what was asked for.
func (kind StepKind) Shortfall(planned int64, copies int, t *measure.Totals) string {
	short := func(done, due uint64, what, ends string) string {
		return fmt.Sprintf("%s: %s of %s %s%s%s", kind, decimal(float64(done)), decimal(float64(due)), what, ends, quote(errorTexts(&t.Errors)))
	}
	begun := false
	for v, o := range t.Ops {
		if o == nil {
			continue
		}
		begun = true
		verb, done, due := driver.Verb(v), o.Outcomes[driver.OK], max(o.Due, uint64(planned)) // these steps have one verb
		if kind == Clear {
			done += o.Outcomes[driver.Miss]
		}
		if done != due {
			return short(done, due, verb.String()+" ops were done", kind.ends(o, due))
		}
		if copies == 1 {
			continue
		}
		var everywhere uint64
		if len(o.Acks) >= copies {
			everywhere = o.Acks[copies-1].Count()
		}
		if everywhere != due {
			return short(everywhere, due, fmt.Sprintf("%s ops were done on all %d endpoints of their key", verb, copies), "")
		}
	}
	if !begun && planned > 0 {
		return short(0, uint64(planned), "ops were done", "")
	}
	return ""
}

// ends lists how ops of such a step ended that were not done.
func (kind StepKind) ends(o *measure.Op, due uint64) string {
	misses := o.Outcomes[driver.Miss]
	if kind == Clear {
		misses = 0
	}
	said := list(named{"timed out", o.Outcomes[driver.Timeout]}, named{"ended in an error", o.Outcomes[driver.Error]}, named{"missed their quorum", o.Outcomes[driver.QuorumFailed]},
		named{"were refused as conflicts", o.Outcomes[driver.Conflict]}, named{"missed", misses}, named{"were never begun", due - o.Due})
	if said == "" {
		return ""
	}
	return ": " + said
}
