package judge

import (
	"fmt"
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// judgeLag checks whether ops started when they were due.
func (p *phase) judgeLag(d *doubts) {
	free := freeLag
	expected := ""
	if p.ExpectedLagP99 != nil {
		free = max(free, freeLagQueue**p.ExpectedLagP99)
		expected = fmt.Sprintf("; a queue of ops that take %s explains %s", quantity.Duration(*p.OpCostSeconds), quantity.Duration(*p.ExpectedLagP99))
	}
	for v := range driver.NumVerbs {
		verb := p.words.Name(driver.Verb(v))
		if o := p.Op[verb]; o != nil {
			p.judgeStarts(d, verb, "op."+verb, &o.Figures, free, expected)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Scenario)) {
		p.judgeStarts(d, "scenario "+name, "scenario."+name, &p.Scenario[name].Figures, free, expected)
	}
}

// judgeStarts checks whether the ops of a verb, or a scenario, started when they were due. at is the path of their figures. Lag up to free is
// acceptable.
func (p *phase) judgeStarts(d *doubts, name, at string, o *run.Figures, free float64, expected string) {
	i := slices.IndexFunc(lateness[:], func(q lateQuantile) bool { return q.of(&o.Lag) != nil })
	if i < 0 {
		return
	}
	q := lateness[i]
	late := fmt.Sprintf("%s of the ops by at least %s", quantity.Percent(q.beyond), quantity.Duration(*q.of(&o.Lag)))
	lag, service, touches := *q.of(&o.Lag), q.of(&o.Service), []string{at + ".response", at + ".lag", at + ".latency"}
	if p.Connections != nil { // the plan makes ops wait for connections
		lag = min(lag, p.generatorLag(q.beyond))
	}
	if lag <= suspectLag {
		p.judgeTail(d, name, at, o)
	}
	switch {
	case lag <= free: // loadgen's cost of an op explains it
	case lag > suspectLag && p.generatorLag(q.beyond) > max(suspectLag, free):
		room := ""
		if p.waited.Count() > 0 {
			what := "room"
			if p.Connections != nil {
				what = "connection or no room"
			}
			room = fmt.Sprintf(" (%s of all ops had no %s; loadgen's own lag is %s, %s)", quantity.Percent(p.roomless()), what, quantity.Duration(p.generatorLag(q.beyond)), q.name)
		}
		d.add(reason.StartedLate, p.startedLate(), touches, "%s: started late: %s%s%s%s", name, late, room, expected, p.absence(q.beyond))
		return
	case lag > suspectLag:
		d.add(reason.StartedLate, run.Suspect, touches, "%s: started late for want of room: %s, as %s of all ops waited for the target to answer earlier ones; loadgen's own lag is %s, %s",
			name, late, quantity.Percent(p.roomless()), quantity.Duration(p.generatorLag(q.beyond)), q.name)
		return
	case service != nil && lag > suspectLagShare**service:
		d.add(reason.StartedLate, run.Suspect, touches, "%s: started late: %s, beside a %s service time of %s%s", name, late, q.name, quantity.Duration(*service), expected)
		return
	}
	for _, own := range []struct {
		q    lateQuantile
		most float64 // in service times
	}{{lateness[2], 0.5}, {lateness[0], 1}} { // whatever explains it
		if lag, service := p.generatorLag(own.q.beyond), own.q.of(&o.Service); service != nil && lag > freeOwnLag && lag > own.most**service {
			d.add(reason.StartedLate, run.Suspect, touches, "%s: responses are in part loadgen's own lag: %s of it is %s, and of the service time %s",
				name, own.q.name, quantity.Duration(lag), quantity.Duration(*service))
			return
		}
	}
}

// startedLate returns the validity of a load whose ops loadgen itself started late. In a search it is suspect only, since a rate that held would also
// hold without that.
func (p *phase) startedLate() run.Validity {
	if p.Model == run.ModelSearch {
		return run.Suspect
	}
	return run.Invalid
}

// generatorLag returns the lag, in seconds, that only the share beyond of the ops exceeds. Ops that waited for a free slot count as not late, since
// the target made them wait.
func (p *phase) generatorLag(beyond float64) float64 {
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

// roomless returns the share of ops that found no free slot when they were due.
func (p *phase) roomless() float64 {
	return float64(p.waited.Count()) / float64(max(1, p.lags.Count()))
}

// lateQuantile is a quantile that shows whether ops started late.
type lateQuantile struct {
	name   string
	beyond float64 // the share of ops above it
	of     func(*run.Latency) *float64
}

// lateness lists them, the highest that is used first. The first with enough samples is used, so that a load of few ops is checked, too.
var lateness = [...]lateQuantile{
	{"p99", 0.01, func(l *run.Latency) *float64 { return l.P99 }},
	{"p90", 0.1, func(l *run.Latency) *float64 { return l.P90 }},
	{"p50", 0.5, func(l *run.Latency) *float64 { return l.P50 }},
}

// judgeTail checks whether single gaps made the slowest thousandth of an op late.
func (p *phase) judgeTail(d *doubts, name, at string, o *run.Figures) {
	lag := o.Lag.P999
	if p.Connections != nil && lag != nil {
		lag = number(min(*lag, p.generatorLag(0.001)))
	}
	if lag == nil || *lag <= suspectLag || o.Service.P999 != nil && *lag <= suspectLagShare**o.Service.P999 {
		return
	}
	touches := []string{at + ".response.p999", at + ".response.max", at + ".lag.p999", at + ".lag.max"}
	d.add(reason.StartedLate, run.Suspect, touches, "%s: started late: 0.1 %% of the ops by at least %s%s", name, quantity.Duration(*lag), p.absence(0.001))
}

// absence says what kept loops from their processors, if that lasted long enough to make the given share of the ops late.
func (p *phase) absence(share float64) string {
	const catchUp = 2 // some late ops come after the gap, until the loop has caught up
	i := p.Generator.Interrupted
	if i == nil || i.Times == 0 || i.Seconds*catchUp < share*p.Load.DurationSeconds {
		return ""
	}
	return "; " + kept(i, "the rest went to a hypervisor or to interrupts")
}

// kept says how often and for how long loops were kept from their processors, and by what. rest is added if other threads account for less than half
// of that time.
func kept(i *measure.Interrupted, rest string) string {
	who := "other threads had it for " + quantity.Duration(i.OthersSeconds) + " of these"
	if i.OthersSeconds < i.Seconds/2 {
		who += ", " + rest
	}
	return fmt.Sprintf("the generator's loop was kept from its processor %s, for %s in all, at most %s: %s",
		quantity.Count(i.Times, "time"), quantity.Duration(i.Seconds), quantity.Duration(i.MaxSeconds), who)
}
