package run

import "fmt"

// CheckValid reports whether the result is consistent in itself: its schema is the one this program writes, every phase of the
// order is there, and a phase whose ledgers do not balance is judged invalid.
func (r *Run) CheckValid() error {
	if r.Schema != schemaVersion {
		return fmt.Errorf("result of schema %d, this loadgen reads %d", r.Schema, schemaVersion)
	}
	if len(r.PhaseOrder) != len(r.Phase) {
		return fmt.Errorf("%d phases in phase_order, %d in phase", len(r.PhaseOrder), len(r.Phase))
	}
	for _, name := range r.PhaseOrder {
		p := r.Phase[name]
		if p == nil {
			return fmt.Errorf("phase %q of phase_order is not in phase", name)
		}
		if err := p.checkLedgers(); err != nil && p.Validity != Invalid {
			return fmt.Errorf("phase %q is judged %s: %w", name, p.Validity, err)
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
