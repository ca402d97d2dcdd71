package coord

import (
	"context"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// replace gives the places of lost workers to those that have come to replace them, before a phase begins. Keys and seeds depend only on session
// numbers, so a new worker does what the lost one would have done in this phase and later ones.
func (c *coordinator) replace(ctx context.Context, ph *plan.Phase) error {
	if c.past != nil {
		return c.past.settle()
	}
	if c.Replace == nil || c.left() == len(c.Workers) {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, c.ReplaceWithin)
	defer cancel()
	defer c.onDrain(cancel)()
	defer c.tellReplacing(ph)()
	for i := range c.Workers {
		for c.isLost(i) {
			m, err := c.Replace(waiting)
			if err != nil {
				c.Logger.Warn("worker not replaced", "worker", c.Workers[i].Name, "phase", ph.Name, "why", err)
				break
			}
			if err := c.takeOver(ctx, i, m, ph); err != nil {
				return err
			}
		}
	}
	if c.left() == 0 && !c.stopping(ctx) {
		return fmt.Errorf("%w, and none has come to take a place within %v", errNobody, c.ReplaceWithin)
	}
	return nil
}

// takeOver makes a worker take a lost one's place. The worker may itself be lost meanwhile.
func (c *coordinator) takeOver(ctx context.Context, i int, m worker.Member, ph *plan.Phase) error {
	c.Logger.Info("worker replaced", "worker", c.Workers[i].Name, "by", m.Name, "phase", ph.Name)
	c.enter(i, m, ph.Name)
	c.note(entry{Member: &arrival{Index: i, Phase: ph.Name, Is: *c.fleetOf(i)}})
	return c.assignTo(ctx, i)
}

// enter puts a worker in a lost one's place.
func (c *coordinator) enter(i int, m worker.Member, phase string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n, of := range slices.Backward(c.of) {
		if of == i {
			c.result.Losses[n].ReplacedBy, c.result.Losses[n].ReplacedFrom = m.Name, phase
			break
		}
	}
	c.fleet[i] = len(c.result.Fleet)
	c.result.Fleet = append(c.result.Fleet, run.Worker{Name: m.Name, Host: m.Host, Loadgen: m.Version, Replaces: c.Workers[i].Name, Since: phase})
	c.result.Workers = append(c.result.Workers, m.Name)
	c.Workers[i], c.lost[i], c.seqs[i] = m, false, 0
}

// tellReplacing says each second what the run waits for, until the returned function is called.
func (c *coordinator) tellReplacing(ph *plan.Phase) (release func()) {
	s := &step{c: c, ph: ph, steps: []worker.Step{{Kind: worker.Load}}}
	return s.tell(nil, func() string {
		return fmt.Sprintf("waiting for a worker in the place of a lost one, %v at most", c.ReplaceWithin)
	})
}
