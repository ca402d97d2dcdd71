package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

// stage is how far an engine has come. Orders out of turn are refused.
type stage uint8

const (
	unassigned stage = iota
	isIdle           // between steps
	isReady          // a step is prepared
	isSpent          // a step could not be prepared: only Close is left
)

var (
	errAssigned   = errors.New("a plan has been assigned already")
	errUnassigned = errors.New("no plan has been assigned")
	errUnprepared = errors.New("no step is prepared")
	errSpent      = errors.New("a step could not be prepared, so no other one is")
)

// checkOrder refuses to prepare a step out of turn, or one that is not in the plan.
func (e *Engine) checkOrder(step worker.Step) error {
	switch e.stage {
	case unassigned:
		return errUnassigned
	case isSpent:
		return errSpent
	}
	ph := e.plan.Phase(step.Phase)
	if ph == nil {
		return fmt.Errorf("the plan has no phase %q", step.Phase)
	}
	if step.From < 0 || step.To < step.From || step.To > ph.Sessions() {
		return fmt.Errorf("phase %q has %d sessions, and a step of it is for %d to %d", ph.Name, ph.Sessions(), step.From, step.To)
	}
	if g := e.group; g != nil && g.phase == ph && (g.step.From != step.From || g.step.To != step.To) {
		return fmt.Errorf("phase %q: sessions %d to %d after %d to %d: they are the same in all its steps", ph.Name, step.From, step.To, g.step.From, g.step.To)
	}
	return checkShape(ph, step)
}

// maxLasts bounds the duration of a schedule, and so everything computed from it.
const maxLasts = 10 * 365 * 24 * time.Hour

// checkShape refuses an impossible schedule.
func checkShape(ph *plan.Phase, step worker.Step) error {
	s := step.Shape
	possible := func(rate float64) bool { return rate >= 0 && !math.IsInf(rate, 0) }
	if !possible(s.Rate) || !possible(s.From) || s.Ramp < 0 || s.Duration < s.Ramp || s.Duration > maxLasts || step.Level < 0 {
		return fmt.Errorf("phase %q: a step with an impossible schedule", ph.Name)
	}
	if scheduled := ph.Schedule() != nil && step.Kind.Timed(); scheduled && ph.Trace() == nil && (s.Duration == 0 || s.Rate+s.From == 0 && ph.Search == nil) {
		return fmt.Errorf("phase %q: a step of its schedule without a rate or a duration", ph.Name)
	}
	return nil
}
