package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// CheckValid reports whether the result is consistent in itself: its schema is the one this program writes, every phase of the
// order is there, nothing is missing that figures come with, and a phase whose ledgers do not balance is judged invalid.
func (r *Run) CheckValid() error {
	if r.Schema != schemaVersion {
		return fmt.Errorf("result of schema %d, this loadgen reads %d", r.Schema, schemaVersion)
	}
	if order := slices.Sorted(slices.Values(r.PhaseOrder)); !slices.Equal(order, slices.Sorted(maps.Keys(r.Phase))) {
		return fmt.Errorf("phase_order does not name each phase once: %q", r.PhaseOrder)
	}
	for _, name := range r.PhaseOrder {
		p := r.Phase[name]
		if p == nil {
			return fmt.Errorf("phase %q is null", name)
		}
		if err := p.checkWhole(); err != nil {
			return fmt.Errorf("phase %q: %w", name, err)
		}
		if err := p.checkLedgers(); err != nil && p.Validity != Invalid {
			return fmt.Errorf("phase %q is judged %s: %w", name, p.Validity, err)
		}
	}
	return nil
}

// checkWhole finds what is null though something beside it says that it is there.
func (p *Phase) checkWhole() error {
	if err := checkFigures(p.Op, p.Scenario); err != nil {
		return err
	}
	if p.Setup != nil {
		if err := checkFigures(p.Setup.Op, nil); err != nil {
			return fmt.Errorf("setup: %w", err)
		}
	}
	for i := range p.Levels {
		if err := checkFigures(p.Levels[i].Op, p.Levels[i].Scenario); err != nil {
			return fmt.Errorf("level %d: %w", i, err)
		}
	}
	for name, fields := range p.Observe {
		for field, o := range fields {
			if o.Last != nil && (o.Min == nil || o.Max == nil || o.Mean == nil) {
				return fmt.Errorf("observe %s: %s has a last value, and no least, most or mean", name, field)
			}
		}
		if p.Probes[name] == nil {
			return fmt.Errorf("observe %s: nothing is said of its probes", name)
		}
	}
	for name, probes := range p.Probes {
		if probes == nil {
			return fmt.Errorf("probes %s is null", name)
		}
	}
	for _, t := range []trend{p.Steady.Rate, p.Steady.Response} {
		if t.CI95 != nil && (t.Effective == nil || t.Drift == nil || t.DriftP == nil) {
			return errors.New("a trend with a confidence interval, and no more")
		}
	}
	return p.checkSearch()
}

// checkSearch holds that what a search has found are levels of it.
func (p *Phase) checkSearch() error {
	s := p.Search
	if s == nil {
		return nil
	}
	for _, at := range []*int{s.Level, s.KneeLevel} {
		if at != nil && (*at < 0 || *at >= len(p.Levels)) {
			return fmt.Errorf("search: level %d of %d", *at, len(p.Levels))
		}
	}
	return nil
}

func checkFigures(ops map[string]*Op, scenarios map[string]*scenario) error {
	for verb, o := range ops {
		if o == nil {
			return fmt.Errorf("%s is null", verb)
		}
		if err := o.check(o.Acks...); err != nil {
			return fmt.Errorf("%s: %w", verb, err)
		}
	}
	for name, s := range scenarios {
		if s == nil {
			return fmt.Errorf("scenario %s is null", name)
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("scenario %s: %w", name, err)
		}
	}
	return nil
}

// check holds that rates come in both units, and that a latency with samples has what any number of samples has.
func (f *Figures) check(acks ...Latency) error {
	if (f.Rate == nil) != (f.RatePerMinute == nil) {
		return errors.New("a rate per second or per minute without the other")
	}
	latencies := []Latency{f.Response, f.Service, f.Lag}
	for _, c := range []classLatency{f.Latency.OK, f.Latency.Miss, f.Latency.Bad} {
		latencies = append(latencies, c.Response, c.Service)
	}
	for _, l := range append(latencies, acks...) {
		if l.Count > 0 && (l.Mean == nil || l.SD == nil || l.Min == nil || l.Max == nil) {
			return fmt.Errorf("%s without a mean, sd, min or max", plural(l.Count, "latency sample"))
		}
	}
	return nil
}

func (p *Phase) checkLedgers() error {
	if p.Setup != nil {
		if err := checkLedgers(p.Setup.Op, p.Setup.Requests); err != nil {
			return fmt.Errorf("setup: %w", err)
		}
	}
	for name, s := range p.Scenario {
		if ended := s.OK + s.Miss + s.Conflict + s.QuorumFailed + s.Timeout + s.Error + s.Shed; s.Due != ended+uint64(s.InFlight) {
			return fmt.Errorf("scenario %s: due %d, but %d ended and %d in flight", name, s.Due, ended, s.InFlight)
		}
	}
	return checkLedgers(p.Op, p.Requests)
}

func checkLedgers(ops map[string]*Op, requests []Requests) error {
	for verb, o := range ops {
		ended := o.OK + o.Miss + o.Conflict + o.QuorumFailed + o.Timeout + o.Error + o.Shed
		if o.Due != ended+uint64(o.InFlight) {
			return fmt.Errorf("%s: due %d, but %d ended and %d in flight", verb, o.Due, ended, o.InFlight)
		}
		if o.Sent != o.Due-o.Shed {
			return fmt.Errorf("%s: sent %d, but due %d and shed %d", verb, o.Sent, o.Due, o.Shed)
		}
	}
	for _, r := range requests {
		if ended := r.Answered + r.Moved + r.Ask + r.Timeout + r.Error; r.Sent != ended+uint64(r.InFlight) {
			return fmt.Errorf("%s at %s: sent %d, but %d ended and %d in flight", r.Verb, r.Endpoint, r.Sent, ended, r.InFlight)
		}
	}
	return nil
}
