package judge

import (
	"fmt"
	"math"

	"github.com/loadgen/loadgen/internal/result/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Codes of what gave out first in a search.
const (
	byGenerator   = "generator"
	byConnections = "connections"
	byMemory      = "memory"
	byProcessor   = "processor"
	byErrors      = "errors"
	byNetwork     = "network"
	notVisible    = "not_visible"
)

const (
	worn     = 0.85  // share of the time that a thread has a processor from which on it has given out: it cannot get all of it
	broken   = 0.001 // share of the ops of a level that were refused or answered with an error from which on that is why it failed
	overcast = 0.01  // share of the bytes that TCP sent again
)

// cause says what gave out first in a search, as far as the levels that failed show it, or the plan's observations of the target's servers. It says
// nothing of a search in which no rate failed, nor if neither shows it in a plan that observes no server.
func (p *phase) cause(of *plan.Plan, ph *plan.Phase, m Measured) {
	s := p.Search
	switch {
	case s == nil:
		return
	case s.ClientBound != nil:
		s.Cause, s.Evidence = byGenerator, "the generator, which could not offer more"
		return
	case s.FirstFailed == nil:
		return
	}
	if s.Cause, s.Evidence = m.signs(); s.Cause != "" {
		return
	}
	for _, o := range of.Observes {
		if seen := m.Observed[o.Name]; o.Kind == plan.ObserveServer && o.Target == ph.Target && seen != nil {
			s.Cause, s.Evidence = m.strain(seen).cause(of.Target(ph.Target).Driver)
		}
	}
}

// signs returns what the first level that failed shows by itself: ops that found no connection or were answered with an error, bytes sent again.
func (m *Measured) signs() (code, evidence string) {
	for _, l := range m.Levels {
		if l.outcome != Failed && l.outcome != Overloaded {
			continue
		}
		var due, refused, answered uint64
		for _, o := range l.phase.parts() {
			due, refused, answered = due+o.Due, refused+o.Causes.Refused, answered+o.Causes.Reply
		}
		said := ""
		if len(l.phase.Errors) > 0 {
			said = " (" + l.phase.Errors[0].Text + ")"
		}
		of := func(n uint64) string { return quantity.Number(float64(n)) + " of " + quantity.Count(due, "op") }
		switch t := l.phase.Generator.TCP; {
		case float64(refused) > broken*float64(due):
			return byConnections, "connections: " + of(refused) + " found none" + said
		case float64(answered) > broken*float64(due):
			return byErrors, "the server: it answered " + of(answered) + " with an error" + said
		case t != nil && float64(t.BytesRetransmitted) > overcast*float64(t.BytesSent):
			return byNetwork, "the network: TCP sent " + quantity.Percent(float64(t.BytesRetransmitted)/float64(t.BytesSent)) + " of the bytes again"
		}
		return "", ""
	}
	return "", ""
}

// strain is what was observed while the target had more to do than it could.
type strain struct {
	rows  []run.Probe
	spans [][2]float64 // on the run clock, in seconds
}

// strain returns what was observed during the closed load and the levels that failed.
func (m *Measured) strain(o *Observation) strain {
	s := strain{rows: o.rows.Cells}
	for _, l := range m.Levels {
		if l.outcome == Failed || l.outcome == Overloaded || l.outcome == Closed {
			from := m.Origin + l.StartSeconds
			s.spans = append(s.spans, [2]float64{from, from + l.DurationSeconds})
		}
	}
	return s
}

// most returns the greatest growth a second of the sum of some counters from one probe to the next, 0 if one is missing.
func (s strain) most(fields ...string) (perSecond float64) {
	for i := 1; i < len(s.rows); i++ {
		a, b := &s.rows[i-1], &s.rows[i]
		if b.At <= a.At || !s.meets(a.At, b.At) {
			continue
		}
		grown := 0.0
		for _, f := range fields {
			before, was := a.Value[f]
			after, is := b.Value[f]
			if !was || !is {
				return 0
			}
			grown += after - before
		}
		perSecond = max(perSecond, grown/(b.At-a.At))
	}
	return perSecond
}

// meets says whether some time is part of a span.
func (s strain) meets(from, to float64) bool {
	for _, span := range s.spans {
		if from < span[1] && to > span[0] {
			return true
		}
	}
	return false
}

// last returns a field's last value, NaN if there is none.
func (s strain) last(field string) float64 {
	for i := len(s.rows) - 1; i >= 0; i-- {
		if v, there := s.rows[i].Value[field]; there {
			return v
		}
	}
	return math.NaN()
}

// cause returns what gave out, as servers of a driver show it.
func (s strain) cause(driver string) (code, evidence string) {
	refused, evicted, busy, who := 0.0, 0.0, 0.0, ""
	switch driver {
	case "redis":
		refused, evicted = s.most("rejected_connections"), s.most("evicted_keys")
		if s.last("io_threads_active") == 0 { // such threads spin: their time says nothing
			busy, who = s.most("used_cpu_user_main_thread", "used_cpu_sys_main_thread"), "the server's main thread"
		}
	case "memcached":
		refused, evicted = s.most("listen_disabled_num"), s.most("evictions")
		if threads := s.last("threads"); threads > 0 {
			busy, who = s.most("rusage_user", "rusage_system")/threads, quantity.Count(int(threads), "thread")+" of the server"
		}
	}
	switch {
	case refused > 0:
		return byConnections, fmt.Sprintf("connections: the server refused %s a second", quantity.Number(refused))
	case evicted > 0:
		return byMemory, fmt.Sprintf("memory: the server evicted %s keys a second", quantity.Number(evicted))
	case busy >= worn:
		return byProcessor, fmt.Sprintf("the processor: %s had one for %s of the time", who, quantity.Percent(min(busy, 1)))
	}
	return notVisible, "not visible from here"
}
