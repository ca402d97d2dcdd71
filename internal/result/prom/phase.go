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
	p.flag("phase_active", name == p.v.Current, run, name)
	judged := -1.0
	if v, ended := p.v.Verdict.Phases[name]; ended {
		judged = validity(v)
	}
	p.number("phase_validity", judged, run, name)
	p.number("phase_offered_ops_per_second", p.ph.Offered, run, name)
	p.count("reconnects_total", load.Reconnects, run, name)
	p.count("late_replies_total", load.LateReplies, run, name)
	p.count("foreign_values_total", load.Foreign, run, name)
	p.count("errors_total", load.Errors.Total(), run, name)
	p.count("stalls_total", load.Stalls, run, name)
	p.number("max_stall_seconds", seconds(float64(load.MaxStall)), run, name)
	if len(p.ph.Plan.Setup) > 0 {
		p.setup()
	}
	if len(p.ph.Plan.Behind) > 0 { // gets may read through a cache
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
	for i := range p.ph.Plan.Scenarios {
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
	p.count("setup_ops_due_total", due, p.v.Run, p.ph.Name)
	for i, n := range outcomes {
		p.count("setup_ops_total", n, p.v.Run, p.ph.Name, driver.Outcome(i).String())
	}
}

// cache emits the counts of the caches that gets read through.
func (p *phasePage) cache(c *measure.Cache) {
	run, phase := p.v.Run, p.ph.Name
	p.count("cache_gets_total", c.Hits, run, phase, "hit")
	p.count("cache_gets_total", c.Misses, run, phase, "miss")
	p.number("cache_hit_ratio", float64(c.Hits)/float64(c.Gets), run, phase)
	p.count("cache_loads_total", c.Loads, run, phase)
	p.number("cache_load_seconds_total", seconds(float64(c.LoadTime)), run, phase)
	p.count("cache_coalesced_total", c.Coalesced, run, phase)
	p.count("cache_unavailable_total", c.Unavailable, run, phase)
	p.count("cache_uncached_total", c.Uncached, run, phase)
	p.count("cache_evictions_total", c.Evictions, run, phase)
	p.count("cache_cleared_total", c.Cleared, run, phase)
	p.number("cache_entries", float64(c.Entries), run, phase)
	p.number("cache_bytes", float64(c.Bytes), run, phase)
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
		p.count("endpoint_requests_total", answered[i], p.v.Run, p.ph.Name, t.Name, name, "answered")
		p.count("endpoint_requests_total", failed[i], p.v.Run, p.ph.Name, t.Name, name, "failed")
		p.number("endpoint_away_seconds_total", seconds(float64(gone[i])), p.v.Run, p.ph.Name, t.Name, name)
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
	p.chain([...]string{"ops_due_total", "ops_total", "ops_in_flight", "response_seconds"}, o, run, phase, name)
	if p.ph.Plan.Batch > 1 {
		p.count("keys_due_total", o.Keys.Due, run, phase, name)
		for i, n := range o.Keys.Outcomes {
			p.count("keys_total", n, run, phase, name, driver.Outcome(i).String())
		}
	}
	p.count("received_bytes_total", o.In, run, phase, name)
	if p.ph.saysSent(verb, load) {
		p.count("sent_bytes_total", o.Out, run, phase, name)
	}

	p.histogram("lag_seconds", &o.Lag, classicBounds[:], run, phase, name)
	for i := range measure.NumClasses {
		p.histogram("service_seconds", &o.Service[i], classicBounds[:], run, phase, name, measure.Class(i).String())
	}
	if p.ph.Syncs && verb.Stores() { // service times have two parts, where the worker can tell these apart
		split := cmp.Or(o.Split, &measure.Split{})
		p.histogram("write_seconds", &split.Write, classicBounds[:], run, phase, name)
		p.histogram("sync_seconds", &split.Sync, classicBounds[:], run, phase, name)
	}
	for k := range min(p.ph.Copies, maxAcks) {
		h := &hist.Hist{}
		if k < len(o.Acks) {
			h = &o.Acks[k]
		}
		p.histogram("ack_seconds", h, nil, run, phase, name, strconv.Itoa(k+1))
	}
}

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
	run, phase, s := p.v.Run, p.ph.Name, &p.ph.Plan.Scenarios[i]
	p.chain([...]string{"scenarios_due_total", "scenarios_total", "scenarios_in_flight", "scenario_response_seconds"}, o, run, phase, s.Name)
	for j, name := range s.StepNames() {
		of := &measure.Op{}
		if j < len(o.Steps) {
			of = o.Steps[j]
		}
		p.chain([...]string{"steps_due_total", "steps_total", "steps_in_flight", "step_response_seconds"}, of, run, phase, s.Name, name, s.Steps[j].TargetIn(p.ph.Plan))
	}
}

// chain emits the counts and response times of a verb, a scenario or a step. of names the families: due, ended, in flight, response.
func (p *phasePage) chain(of [4]string, o *measure.Op, labels ...string) {
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
		sum.Merge(&all[i])
	}
	if sum == (measure.Requests{}) && !slices.Contains(t.Verbs, verb) {
		return
	}
	run, phase, name := p.v.Run, p.ph.Name, p.ph.Words.Name(verb)
	p.count("requests_total", sum.Answered+sum.Moved+sum.Ask, run, phase, t.Name, name, "answered")
	p.count("requests_total", sum.Timeout, run, phase, t.Name, name, "timeout")
	p.count("requests_total", sum.Error, run, phase, t.Name, name, "error")
	p.count("requests_total", sum.Refused, run, phase, t.Name, name, "refused")
	p.number("requests_in_flight", float64(sum.InFlight), run, phase, t.Name, name)
}
