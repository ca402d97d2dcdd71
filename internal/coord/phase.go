package coord

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// phase runs the steps of a phase and adds it to the result. A step that must succeed whole and does not is an error; the
// phase is in the result then, too, as far as it got.
func (c *coordinator) phase(ctx context.Context, ph *plan.Phase) error {
	t := c.Plan.Target(ph.Target)
	if ph.Clear != nil && t.Builtin != nil {
		return c.flush(ctx, ph)
	}
	m := run.Measured{Endpoints: t.Endpoints}
	if t.Builtin != nil {
		m.Endpoints = c.nodes[t.Name]
	}
	kinds := stepsOf(ph)
	for i, kind := range kinds {
		s, err := c.step(ctx, ph, kind, i == len(kinds)-1)
		if s == nil {
			return err
		}
		if kind == run.Setup {
			m.Setup = s.totals
		} else {
			m.Load, m.Series = s.totals, s.rows
		}
		m.Generators, m.Aborted = s.generators, c.stopping(ctx)
		if err == nil && kind != run.Load && !m.Aborted {
			err = shortfall(kind, t, s.totals)
		}
		if err != nil || m.Aborted {
			c.add(ph, m)
			return err
		}
	}
	c.add(ph, m)
	return nil
}

func (c *coordinator) add(ph *plan.Phase, m run.Measured) {
	if m.Load == nil {
		m.Load = &measure.Totals{}
	}
	c.result.Add(ph.Name, run.NewPhase(c.Plan, ph, m))
}

func shortfall(kind run.StepKind, t *plan.Target, totals *measure.Totals) error {
	copies := 1
	if t.Replication != nil {
		copies = t.Replication.N
	}
	if short := run.Shortfall(kind, copies, totals); short != "" {
		return errors.New(short)
	}
	return nil
}

// stepsOf lists the steps of a phase, in order.
func stepsOf(ph *plan.Phase) []run.StepKind {
	switch {
	case ph.Populate != nil:
		return []run.StepKind{run.Populate}
	case ph.Clear != nil:
		return []run.StepKind{run.Clear}
	case len(ph.Setup) > 0:
		return []run.StepKind{run.Setup, run.Load}
	}
	return []run.StepKind{run.Load}
}

// flush is a clear phase on built-in nodes.
func (c *coordinator) flush(ctx context.Context, ph *plan.Phase) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if err := c.Nodes.Flush(ctx, ph.Target); err != nil {
		return err
	}
	c.add(ph, run.Measured{Endpoints: c.nodes[ph.Target]})
	return nil
}

// step is one step under way.
type step struct {
	c     *coordinator
	ph    *plan.Phase
	steps []run.Step // by worker
	at    time.Duration

	mu         sync.Mutex // sinks of different workers run at the same time
	joiner     *measure.Joiner
	totals     *measure.Totals
	rows       []run.Row
	generators []run.Generator
	ops        uint64 // fixed by the plan; 0: not known
	buf        []byte
	err        error // of the store
}

// step has the workers carry out one step. What they counted is returned also when that failed; nil when they could not start.
func (c *coordinator) step(ctx context.Context, ph *plan.Phase, kind run.StepKind, last bool) (*step, error) {
	s := &step{c: c, ph: ph, totals: &measure.Totals{}, generators: make([]run.Generator, len(c.Workers))}
	for i := range c.Workers {
		from, to := share(ph.Sessions(), i, len(c.Workers))
		s.steps = append(s.steps, run.Step{Seq: c.seq, Phase: ph.Name, Kind: kind, Last: last, From: from, To: to})
	}
	c.seq++
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	s.at = time.Since(c.zero) + startAhead
	s.joiner = measure.NewJoiner(len(c.Workers), int64(s.at))
	return s, s.run(ctx)
}

// prepare returns once every worker is ready. The user's wish to end ends it too.
func (s *step) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, prepareWithin)
	defer cancel()
	defer s.c.onDrain(cancel)()
	ready := make([]run.Ready, len(s.steps))
	group, ctx := errgroup.WithContext(ctx)
	for i, m := range s.c.Workers {
		group.Go(func() (err error) {
			ready[i], err = m.Worker.Prepare(ctx, s.steps[i])
			return s.c.blame(m, err)
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	servers := s.c.result.Environment.Servers
	for _, r := range ready {
		if len(r.Servers) > 0 && servers[s.ph.Target] == nil {
			servers[s.ph.Target] = map[string]map[string]string{}
		}
		for endpoint, facts := range r.Servers {
			servers[s.ph.Target][endpoint] = facts
		}
		s.ops += r.Ops
	}
	return nil
}

// run starts all workers at the same time and returns when each has finished.
func (s *step) run(ctx context.Context) error {
	defer s.c.onDrain(s.drain)()
	var group errgroup.Group
	for i, m := range s.c.Workers {
		group.Go(func() error {
			counted := &measure.Totals{}
			final, err := m.Worker.Run(ctx, s.at, func(snap measure.Snapshot) {
				counted.Merge(&snap.Delta)
				s.take(i, snap)
			})
			if err != nil {
				return s.c.blame(m, err)
			}
			s.generators[i] = final.Generator
			return s.c.blame(m, agree(counted, &final.Totals))
		})
	}
	return errors.Join(group.Wait(), s.err)
}

// onDrain calls f when the user asks for an early end, until the function that it returns is called; that one waits for f.
func (c *coordinator) onDrain(f func()) (release func()) {
	done := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-c.Drain:
			f()
		case <-done:
		}
	})
	return func() {
		close(done)
		watch.Wait()
	}
}

func (s *step) drain() {
	for _, m := range s.c.Workers {
		m.Worker.Drain()
	}
}

// agree compares the sum of a worker's snapshots with its own totals.
func agree(sum, final *measure.Totals) error {
	a, err := sum.AppendBinary(nil)
	if err != nil {
		return err
	}
	b, err := final.AppendBinary(nil)
	if err != nil {
		return err
	}
	if !bytes.Equal(a, b) {
		return errors.New("the sum of its snapshots is not its total")
	}
	return nil
}

// take stores a worker's snapshot and joins it to the others'.
func (s *step) take(worker int, snap measure.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.store(worker, snap); err != nil && s.err == nil {
		s.err = fmt.Errorf("store snapshot %d of step %d: %w", snap.SeqFirst, snap.Step, err)
		s.drain()
	}
	joint, ok := s.joiner.Add(worker, snap.To, snap.Final, &snap.Delta)
	if !ok {
		return
	}
	s.totals.Merge(joint.Delta)
	s.rows = run.AppendRow(s.rows, time.Duration(joint.To-int64(s.at)).Seconds(), joint.Delta)
	if s.c.Progress != nil {
		s.c.Progress(s.update(joint))
	}
}

func (s *step) store(worker int, snap measure.Snapshot) error {
	var err error
	if s.buf, err = snap.AppendBinary(s.buf[:0]); err != nil {
		return err
	}
	if err := s.c.Store.Append(s.c.Workers[worker].Name, s.buf); err != nil {
		return err
	}
	return s.c.Store.Sync()
}
