package plan

import (
	"time"

	"github.com/loadgen/loadgen/internal/lang"
)

// Phase returns the phase with the given name, or nil.
func (p *Plan) Phase(name string) *Phase {
	for _, ph := range p.Phases {
		if ph.Name == name {
			return ph
		}
	}
	return nil
}

// Target returns the target with the given name, or nil.
func (p *Plan) Target(name string) *Target {
	for _, t := range p.Targets {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Dataset returns the dataset with the given name, or nil.
func (p *Plan) Dataset(name string) *Dataset {
	for _, d := range p.Datasets {
		if d.Name == name {
			return d
		}
	}
	return nil
}

// Schedule returns how arrivals come when they do not wait for the target, nil when they do.
func (ph *Phase) Schedule() *Schedule {
	switch {
	case ph.Open != nil:
		return &ph.Open.Schedule
	case ph.Stages != nil:
		return &ph.Stages.Schedule
	case ph.Search != nil:
		return &ph.Search.Schedule
	}
	return nil
}

// Trace returns the trace that the phase replays; nil when it replays none.
func (ph *Phase) Trace() *Trace {
	switch {
	case ph.Closed != nil:
		return ph.Closed.Trace
	case ph.Open != nil:
		return ph.Open.Trace
	}
	return nil
}

// Sessions returns how many sessions the phase has, over all workers.
func (ph *Phase) Sessions() int {
	switch {
	case ph.Closed != nil:
		return ph.Closed.Sessions
	case ph.Schedule() != nil:
		return ph.Schedule().Sessions
	case ph.Populate != nil:
		return ph.Populate.Sessions
	case ph.Clear != nil:
		return ph.Clear.Sessions
	}
	return 0
}

// Pipeline returns how many ops a session of the phase may have in flight.
func (ph *Phase) Pipeline() int {
	switch {
	case ph.Closed != nil:
		return ph.Closed.Pipeline
	case ph.Schedule() != nil:
		return ph.Schedule().Pipeline
	case ph.Populate != nil:
		return ph.Populate.Pipeline
	case ph.Clear != nil:
		return ph.Clear.Pipeline
	}
	return 0
}

// MaxSize is the length of the longest plan or variable file, in bytes.
const MaxSize = lang.MaxSource

// ParseSize reads a size as plans write it, such as "64MiB", in bytes.
func ParseSize(text string) (int64, error) { return lang.ParseSize(text) }

// ParseShare reads a percentage as plans write it, such as "0.1%", or a number, such as 0.001, as a share.
func ParseShare(text string) (float64, error) {
	if n, rest, err := lang.CutNumber(text); err == nil && rest == "" {
		return n, nil
	}
	return lang.ParseShare(text)
}

// WarmUp returns how much of the phase's beginning the plan wants its figures to leave out; 0: it does not say.
func (ph *Phase) WarmUp() time.Duration {
	switch {
	case ph.Closed != nil:
		return ph.Closed.WarmUp
	case ph.Open != nil:
		return ph.Open.WarmUp
	}
	return 0
}
