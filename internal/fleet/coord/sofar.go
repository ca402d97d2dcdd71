package coord

import (
	"maps"
	"slices"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
)

// soFar returns the run as it stands in the middle of a step: the phase in progress is judged as if it had been told to end at the last joint interval.
// Phases that have ended are shared with the run's result. The caller holds the step's lock.
func (s *step) soFar() *run.Run {
	completeness := s.c.soFar().Completeness
	s.c.mu.Lock()
	defer s.c.mu.Unlock()
	r := *s.c.result
	r.Seconds = time.Duration(s.shown).Seconds()
	r.PhaseOrder, r.Phase = slices.Clip(r.PhaseOrder), maps.Clone(r.Phase)
	r.Fleet, r.Losses = slices.Clone(r.Fleet), slices.Clone(r.Losses)
	r.Environment.Servers = maps.Clone(r.Environment.Servers)
	for target, said := range r.Environment.Servers {
		r.Environment.Servers[target] = maps.Clone(said)
	}
	r.Add(s.ph.Name, s.c.active.soFar(s))
	r.Conclude(completeness)
	return &r
}

// counted returns what the step has counted so far. When sessions were at work is estimated, since workers report it only at the end.
func (s *step) counted() *measure.Totals {
	t := &measure.Totals{}
	t.Merge(s.totals)
	for i, part := range s.steps {
		if src := &s.sources[i]; !src.final && t.Origin > 0 {
			span := judge.Span(s.ph, t, part.To-part.From, min(src.upTo, s.shown))
			t.Span.Merge(&span)
		}
	}
	return t
}

// soFar makes the result of the phase as if the step in progress had ended now.
func (p *activePhase) soFar(s *step) *run.Phase {
	now := activePhase{c: p.c, ph: p.ph, m: p.m, begun: p.begun}
	now.m.Series, now.m.Levels, now.m.Steps = slices.Clip(p.m.Series), slices.Clip(p.m.Levels), slices.Clip(p.m.Steps)
	now.m.Endpoints, now.m.Others = s.endpoints()
	aborted, counted := s.aborted, s.counted()
	s.aborted = true
	now.take(s, counted)
	s.aborted = aborted
	if err := now.settle(s, counted); err != nil {
		now.m.WarmUp = run.WarmUp{}
	}
	now.m.GoesOn = true
	now.m.Observed = map[string]*judge.Observation{}
	for _, one := range p.watch.all {
		one.mu.Lock()
		defer one.mu.Unlock()
		now.m.Observed[one.o.Name] = one.seen.SoFar()
	}
	return p.c.judged(p.ph, now.m)
}
