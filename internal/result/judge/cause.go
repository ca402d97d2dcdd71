package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/target/servers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Codes of the resource that gave out first in a search.
const (
	byGenerator   = "generator"
	byConnections = "connections"
	byMemory      = "memory"
	byProcessor   = "processor"
	byDisk        = "disk"
	byLocks       = "locks"
	byStalls      = "stalls"
	byErrors      = "errors"
	byNetwork     = "network"
	byServer      = "server"
	notVisible    = "not_visible"
)

const (
	worn     = 0.85  // a thread that has a processor for at least this share of the time has given out: it cannot get all of it
	broken   = 0.001 // a level with at least this share of ops refused or answered with an error failed because of them
	overcast = 0.01  // share of the bytes that TCP sent again, from which on the network has given out
	hushed   = 15    // multiple of the mean time between answers; random arrivals leave so long a gap once in three million
	mostly   = 0.5   // share of a database sessions' time from which on one activity or wait is their main one
)

// unseen says how to find out what gave out first.
const unseen = "not visible from here; an observe block for the server's process (process, prometheus or hook) may show it"

// cause says what gave out first in a search, as far as the levels that failed or that confirmed the answer show it, or the plan's observations of the
// target's servers. It says nothing about a search in which no rate failed.
func (p *phase) cause(of *plan.Plan, ph *plan.Phase, m Measured) {
	s := p.Search
	if s == nil {
		return
	}
	last := m.Levels[len(m.Levels)-1]
	switch {
	case last.outcome == Unanswered:
		s.Cause, s.Evidence = byServer, fmt.Sprintf("the server, which was gone: nobody answered %s any more%s: its log may say why it ended", p.arriving(last.Rate), last.endings().said)
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
	if s.Cause, s.Evidence = m.stood(ph); s.Cause != "" {
		return
	}
	for _, o := range of.Observes {
		if seen := m.Observed[o.Name]; o.Kind == plan.ObserveServer && o.Target == ph.Target && seen != nil {
			s.Cause, s.Evidence = m.strain(seen).cause(of.Target(ph.Target).Driver)
			return
		}
	}
	s.Cause, s.Evidence = notVisible, unseen
}

// signs returns what the first level that failed shows by itself: ops that found no connection or were answered with an error, bytes sent again.
func (m *Measured) signs() (code, evidence string) {
	for _, l := range m.Levels {
		if l.outcome != Failed && l.outcome != Overloaded {
			continue
		}
		f := l.endings()
		of := func(n uint64) string { return quantity.Number(float64(n)) + " of " + quantity.Count(f.due, "op") }
		switch t := l.phase.Generator.TCP; {
		case float64(f.refused) > broken*float64(f.due):
			return byConnections, "connections: " + of(f.refused) + " found none" + f.said
		case float64(f.replied) > broken*float64(f.due) && (strings.Contains(f.said, "OOM command not allowed") || strings.Contains(f.said, "out of memory")):
			return byMemory, "memory: the server answered " + of(f.replied) + " with an error" + f.said
		case float64(f.replied) > broken*float64(f.due):
			return byErrors, "the server: it answered " + of(f.replied) + " with an error" + f.said
		case t != nil && float64(t.BytesRetransmitted) > overcast*float64(t.BytesSent):
			return byNetwork, "the network: TCP sent " + quantity.Percent(float64(t.BytesRetransmitted)/float64(t.BytesSent)) + " of the bytes again"
		}
		return "", ""
	}
	return "", ""
}

// stood says that the target stood still, if most levels that failed show it: nothing ended for half of a limit or longer, and far longer than usual.
func (m *Measured) stood(ph *plan.Phase) (code, evidence string) {
	limit := math.Inf(1)
	for i := range ph.Search.SLOs {
		for _, q := range ph.Search.SLOs[i].Limits() {
			limit = min(limit, q.Most.Seconds())
		}
	}
	failed, still, longest := 0, 0, int64(0)
	for _, l := range m.Levels {
		if l.outcome != Failed {
			continue
		}
		failed++
		ends := endsOf(present(l.totals.Ops[:]))
		silent, _ := silence(&ends, window{0, int64(l.DurationSeconds * 1e9)})
		answered := uint64(0)
		for _, n := range ends.N {
			answered += n
		}
		if seconds(silent) >= limit/2 && seconds(silent)*float64(answered) >= hushed*l.DurationSeconds && l.phase.absence(0.01) == "" {
			still, longest = still+1, max(longest, silent)
		}
	}
	if still*2 <= failed {
		return "", ""
	}
	return byStalls, fmt.Sprintf("the server stood still: in %d of %s that failed it answered nothing for up to %s", still, quantity.Count(failed, "level"), quantity.Duration(seconds(longest)))
}

// strain holds the observations from the time in which the target was overloaded.
type strain struct {
	rows  []run.Probe
	spans [][2]float64 // when it was overloaded: on the run clock, in seconds
}

// strain returns what was observed during the levels that failed or that were to confirm the answer.
func (m *Measured) strain(o *Observation) strain {
	s := strain{rows: o.rows.Cells}
	for _, l := range m.Levels {
		if l.outcome == Failed || l.outcome == Overloaded || l.aim == Confirm {
			from := m.Origin + l.StartSeconds
			s.spans = append(s.spans, [2]float64{from, from + l.DurationSeconds})
		}
	}
	return s
}

// most returns the greatest growth per second, from one probe to the next, of the sum of some counters; 0 if a counter is missing.
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

// meets says whether the time between from and to overlaps a span.
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

// mean returns the mean of a field over the probes made in the spans, 0 if there is none.
func (s strain) mean(field string) float64 {
	sum, n := 0.0, 0.0
	for i := range s.rows {
		if v, there := s.rows[i].Value[field]; there && s.meets(s.rows[i].At, s.rows[i].At) {
			sum, n = sum+v, n+1
		}
	}
	return sum / max(n, 1)
}

// cause returns what gave out, by the figures that a driver's servers show. A full cache evicts at any rate, so evictions count only if no processor
// has given out.
func (s strain) cause(driver string) (code, evidence string) {
	of := servers.Of(driver)
	if of.Waits != nil {
		return s.waits()
	}
	refused, evicted, busy, who := s.most(of.Refused), s.most(of.Evicted), 0.0, "the server's main thread"
	switch threads := s.last(of.Threads); {
	case threads > 0:
		busy, who = s.most(of.Busy...)/threads, quantity.Count(int(threads), "thread")+" of the server"
	case of.Threads == "" && (of.Spins == "" || s.last(of.Spins) == 0): // I/O threads spin, so that their time says nothing
		busy = s.most(of.Busy...)
	}
	switch {
	case refused > 0:
		return byConnections, fmt.Sprintf("connections: the server refused %s a second", quantity.Number(refused))
	case busy >= worn:
		return byProcessor, fmt.Sprintf("the processor: %s was running for %s of the time", who, quantity.Percent(min(busy, 1)))
	case evicted > 0:
		return byMemory, fmt.Sprintf("memory: the server evicted %s keys a second", quantity.Number(evicted))
	}
	return notVisible, unseen
}

// waits returns what a database's sessions mostly did or waited for while they had something to do, from samples of them.
func (s strain) waits() (code, evidence string) {
	all := s.mean("sessions_active")
	for _, w := range []struct{ field, code, what string }{
		{"sessions_on_io", byDisk, "the disk: %s of the sessions that had something to do waited for it"},
		{"sessions_on_locks", byLocks, "locks: %s of the sessions that had something to do waited for others"},
		{"sessions_running", byProcessor, "the processor: %s of the sessions that had something to do ran, or waited for one"},
	} {
		if share := s.mean(w.field) / all; all >= 1 && share > mostly {
			return w.code, fmt.Sprintf(w.what, quantity.Percent(share))
		}
	}
	return notVisible, unseen
}
