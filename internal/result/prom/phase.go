package prom

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

const (
	maxEndpoints = 7 // names of endpoints in a phase; with more endpoints, the last name is "other"
	maxAcks      = 7 // k of the last ack that has a histogram
)

// phasePage writes the metrics of one phase.
type phasePage struct {
	page
	v  *View
	ph *Phase
}

func (p *phasePage) write() {
	load := p.ph.Load
	if load == nil {
		load = &measure.Totals{}
	}
	run, name := p.v.Run, p.ph.Name
	p.flag(phaseActive, name == p.v.Current, run, name)
	judged := -1.0
	if v, ended := p.v.Verdict.Phases[name]; ended {
		judged = validity(v)
	}
	p.number(phaseValidity, judged, run, name)
	p.number(phaseOffered, p.ph.Offered, run, name)
	p.count(phaseReconnects, load.Reconnects, run, name)
	p.count(phaseLateReplies, load.LateReplies, run, name)
	p.count(phaseForeign, load.Foreign, run, name)
	p.count(phaseErrors, load.Errors.Total(), run, name)
	p.count(phaseStalls, load.Stalls, run, name)
	p.number(phaseMaxStall, seconds(float64(load.MaxStall)), run, name)
	if p.ph.HasSetup {
		p.setup()
	}
	if p.ph.Cached {
		p.cache(&load.Cache)
	}
	shares := p.ph.shares(load.Requests)
	row := 0
	for i := range p.ph.Targets {
		p.endpoints(&p.ph.Targets[i], shares[i], load.Away[min(row, len(load.Away)):])
		row += len(shares[i]) / driver.NumVerbs
	}
	for _, verb := range p.ph.Verbs {
		p.op(verb, load)
	}
	for i, t := range p.ph.Targets {
		for verb := range driver.Verb(driver.NumVerbs) {
			p.requests(&t, verb, shares[i])
		}
	}
	for i := range p.ph.Scenarios {
		p.scenario(i, load)
	}
}

// setup emits the ops of all verbs together.
func (p *phasePage) setup() {
	var due uint64
	var outcomes [driver.NumOutcomes]uint64
	if p.ph.Setup != nil {
		for _, o := range p.ph.Setup.Ops {
			l := o.Ledger()
			due += l.Due
			for i, n := range l.Outcomes {
				outcomes[i] += n
			}
		}
	}
	p.count(setupDue, due, p.v.Run, p.ph.Name)
	for i, n := range outcomes {
		p.count(setupOps, n, p.v.Run, p.ph.Name, driver.Outcome(i).String())
	}
}

// cache emits the counts of the caches that gets read through.
func (p *phasePage) cache(c *measure.Cache) {
	run, phase := p.v.Run, p.ph.Name
	p.count(cacheGets, c.Hits, run, phase, "hit")
	p.count(cacheGets, c.Misses, run, phase, "miss")
	p.number(cacheHitRatio, float64(c.Hits)/float64(c.Gets), run, phase)
	p.count(cacheLoads, c.Loads, run, phase)
	p.number(cacheLoadTime, seconds(float64(c.LoadTime)), run, phase)
	p.count(cacheCoalesced, c.Coalesced, run, phase)
	p.count(cacheUnavailable, c.Unavailable, run, phase)
	p.count(cacheUncached, c.Uncached, run, phase)
	p.count(cacheEvictions, c.Evictions, run, phase)
	p.count(cacheCleared, c.Cleared, run, phase)
	p.number(cacheEntries, float64(c.Entries), run, phase)
	p.number(cacheBytes, float64(c.Bytes), run, phase)
}

// endpoints emits a target's requests of all verbs together, and the time for which its connections were away, by endpoint.
func (p *phasePage) endpoints(t *Target, requests []measure.Requests, away []uint64) {
	names := endpointNames(t.Endpoints)
	answered, failed, gone := make([]uint64, len(names)), make([]uint64, len(names)), make([]uint64, len(names))
	for i, ns := range away[:min(len(away), len(requests)/driver.NumVerbs)] {
		gone[min(i, len(names)-1)] += ns
	}
	for i, r := range requests {
		at := min(i/driver.NumVerbs, len(names)-1)
		answered[at] += r.Answered + r.Moved + r.Ask
		failed[at] += r.Timeout + r.Error + r.Refused
	}
	for i, name := range names {
		p.count(endpointRequests, answered[i], p.v.Run, p.ph.Name, t.Name, name, "answered")
		p.count(endpointRequests, failed[i], p.v.Run, p.ph.Name, t.Name, name, "failed")
		p.number(endpointAway, seconds(float64(gone[i])), p.v.Run, p.ph.Name, t.Name, name)
	}
}

// endpointNames returns the names for that many endpoints, at least one.
func endpointNames(endpoints int) []string {
	names := make([]string, min(max(endpoints, 1), maxEndpoints))
	for i := range names {
		names[i] = "n" + strconv.Itoa(i)
	}
	if endpoints > maxEndpoints {
		names[maxEndpoints-1] = "other"
	}
	return names
}

func (p *phasePage) op(verb driver.Verb, load *measure.Totals) {
	o := load.Ops[verb]
	if o == nil {
		o = &measure.Op{}
	}
	run, phase, name := p.v.Run, p.ph.Name, p.ph.Words.Name(verb)
	p.count(opsDue, o.Due, run, phase, name)
	for i, n := range o.Outcomes {
		p.count(opsEnded, n, run, phase, name, driver.Outcome(i).String())
	}
	p.number(opsInFlight, float64(o.InFlight), run, phase, name)
	if p.ph.Batch > 1 {
		p.count(keysDue, o.Keys.Due, run, phase, name)
		for i, n := range o.Keys.Outcomes {
			p.count(keysEnded, n, run, phase, name, driver.Outcome(i).String())
		}
	}
	p.count(received, o.In, run, phase, name)
	if p.ph.saysSent(verb, load) {
		p.count(sent, o.Out, run, phase, name)
	}

	p.histogram(lag, &o.Lag, classicBounds[:], run, phase, name)
	for i := range measure.NumClasses {
		class := measure.Class(i).String()
		p.histogram(response, &o.Response[i], classicBounds[:], run, phase, name, class)
		p.histogram(service, &o.Service[i], classicBounds[:], run, phase, name, class)
	}
	if p.ph.divides(verb) {
		split := cmp.Or(o.Split, &measure.Split{})
		p.histogram(writePart, &split.Write, classicBounds[:], run, phase, name)
		p.histogram(syncPart, &split.Sync, classicBounds[:], run, phase, name)
	}
	for k := range min(p.ph.Copies, maxAcks) {
		h := &hist.Hist{}
		if k < len(o.Acks) {
			h = &o.Acks[k]
		}
		p.histogram(ack, h, nil, run, phase, name, strconv.Itoa(k+1))
	}
}

// divides says whether service times of a verb are divided into two parts, where the worker can tell these apart.
func (ph *Phase) divides(verb driver.Verb) bool { return ph.Syncs && verb.Stores() }

// saysSent says whether the bytes sent for a verb are known. Drivers with their own clients do not count them: requests without any bytes reveal
// that.
func (ph *Phase) saysSent(verb driver.Verb, load *measure.Totals) bool {
	if o := load.Ops[verb]; ph.Files || o != nil && o.Out > 0 {
		return true
	}
	for i := int(verb); i < len(load.Requests); i += driver.NumVerbs {
		if load.Requests[i].Sent > 0 {
			return false
		}
	}
	return true
}

// scenario emits scenario i and its steps. Their ops also count for their verbs.
func (p *phasePage) scenario(i int, load *measure.Totals) {
	o := &measure.Op{}
	if i < len(load.Scenarios) {
		o = load.Scenarios[i]
	}
	run, phase, s := p.v.Run, p.ph.Name, &p.ph.Scenarios[i]
	p.chain([...]id{scenariosDue, scenariosEnded, scenariosInFlight, scenarioResponse}, o, run, phase, s.Name)
	for j, step := range s.Steps {
		of := &measure.Op{}
		if j < len(o.Steps) {
			of = o.Steps[j]
		}
		p.chain([...]id{stepsDue, stepsEnded, stepsInFlight, stepResponse}, of, run, phase, s.Name, step.Name, step.Target)
	}
}

// chain emits the counts and response times of a scenario or a step. of names the families: due, ended, in flight, response.
func (p *phasePage) chain(of [4]id, o *measure.Op, labels ...string) {
	labels = slices.Clip(labels)
	p.count(of[0], o.Due, labels...)
	for i, n := range o.Outcomes {
		p.count(of[1], n, append(labels, driver.Outcome(i).String())...)
	}
	p.number(of[2], float64(o.InFlight), labels...)
	for i := range measure.NumClasses {
		p.histogram(of[3], &o.Response[i], classicBounds[:], append(labels, measure.Class(i).String())...)
	}
}

// requests emits a target's requests of one verb, summed over its endpoints, if the phase asks for that verb or if there were any.
func (p *phasePage) requests(t *Target, verb driver.Verb, all []measure.Requests) {
	var sum measure.Requests
	for i := int(verb); i < len(all); i += driver.NumVerbs {
		r := all[i]
		sum.Answered += r.Answered + r.Moved + r.Ask
		sum.Timeout += r.Timeout
		sum.Error += r.Error
		sum.Refused += r.Refused
		sum.InFlight += r.InFlight
	}
	if sum == (measure.Requests{}) && !slices.Contains(t.Verbs, verb) {
		return
	}
	run, phase, name := p.v.Run, p.ph.Name, p.ph.Words.Name(verb)
	p.count(requestsEnded, sum.Answered, run, phase, t.Name, name, "answered")
	p.count(requestsEnded, sum.Timeout, run, phase, t.Name, name, "timeout")
	p.count(requestsEnded, sum.Error, run, phase, t.Name, name, "error")
	p.count(requestsEnded, sum.Refused, run, phase, t.Name, name, "refused")
	p.number(requestsInFlight, float64(sum.InFlight), run, phase, t.Name, name)
}
