package rpc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// next returns the oldest envelope not yet taken. Envelopes that arrived from a lost worker come before its loss.
func (m *member) next(ctx context.Context) (*pb.Envelope, error) {
	for {
		m.mu.Lock()
		var e *pb.Envelope
		if len(m.inbox) > 0 {
			e, m.inbox[0] = m.inbox[0], nil
			m.inbox = m.inbox[1:]
		}
		lost := m.lost
		m.mu.Unlock()
		switch {
		case e != nil:
			return e, nil
		case lost != nil:
			return nil, lost
		}
		select {
		case <-m.arrived:
		case <-m.gone:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// attend waits until the worker is lost, or ctx ends.
func (m *member) attend(ctx context.Context) *worker.Loss {
	select {
	case <-m.gone:
		return m.lost
	case <-ctx.Done():
		return nil
	}
}

// taken acknowledges the envelope returned by next.
func (m *member) taken() {
	m.mu.Lock()
	m.link.take()
	n, c := m.link.taken, m.conn
	m.mu.Unlock()
	if c != nil {
		c.with(func() { c.stored = n })
	}
}

// broke gives the worker up because of an invalid message.
func (m *member) broke(format string, args ...any) error {
	m.lose("it broke the protocol: " + fmt.Sprintf(format, args...))
	return m.lost
}

// Assign gives the worker its part of a run.
func (m *member) Assign(ctx context.Context, a worker.Assignment) error {
	zero := m.server.now() - time.Since(a.Zero)
	m.mu.Lock()
	m.zero = zero
	m.mu.Unlock()
	order, err := sealed(kindAssign, assignment{a, int64(zero)}, a.Plan)
	if err != nil {
		return err
	}
	m.push(order)
	e, err := m.next(ctx)
	if err != nil {
		return err
	}
	if e.GetKind() != kindAssigned {
		return m.broke("its answer to an assignment is %.100q", e.GetKind())
	}
	m.taken()
	return errorOf(e.GetError())
}

// Prepare tells the worker to get ready for a step.
func (m *member) Prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	order, err := sealed(kindPrepare, step, nil)
	if err != nil {
		return worker.Ready{}, err
	}
	m.push(order)
	e, err := m.next(ctx)
	if err != nil {
		m.abandon()
		return worker.Ready{}, err
	}
	if e.GetKind() != kindReady {
		return worker.Ready{}, m.broke("its answer to step %d is %.100q", step.Seq, e.GetKind())
	}
	m.taken()
	if err := errorOf(e.GetError()); err != nil {
		return worker.Ready{}, err
	}
	ready, err := decodeReady(e)
	if err != nil {
		return worker.Ready{}, m.broke("%v", err)
	}
	if ready.Step != step.Seq {
		return worker.Ready{}, m.broke("its answer to step %d is of step %d", step.Seq, ready.Step)
	}
	m.mu.Lock()
	m.clock = health{offset: ready.Offset, uncertainty: ready.Uncertainty}
	m.mu.Unlock()
	ready.Uncertainty = m.uncertainty()
	return ready, nil
}

// Progress returns how much work the worker reports to have done to make steps ready.
func (m *member) Progress() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.health.progress
}

// abandon tells the worker to stop at once.
func (m *member) abandon() { m.push(&pb.Envelope{Kind: kindAbandon}) }

// Drain ends the current step and all later ones early.
func (m *member) Drain() { m.push(&pb.Envelope{Kind: kindDrain}) }

// Run starts the prepared step and passes on what the worker counts. When ctx ends, the worker has Farewell to send its final report.
func (m *member) Run(ctx context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	order, err := sealed(kindStart, at, nil)
	if err != nil {
		return worker.Final{}, err
	}
	m.push(order)
	t := m.server.cfg.Timing
	bounded, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		m.abandon()
		time.AfterFunc(t.Farewell, cancel)
	})
	defer stop()
	idle := m.server.alarm(t.Idle, func() { m.lose(fmt.Sprintf("it is alive, but has counted nothing for %v", t.Idle)) })
	idle.set()
	defer idle.stop()
	for {
		e, err := m.next(bounded)
		switch {
		case errors.Is(err, context.Canceled):
			return worker.Final{}, ctx.Err()
		case err != nil:
			return worker.Final{}, err
		}
		switch e.GetKind() {
		case kindSnapshot:
			idle.stop() // the time to store a snapshot does not count as the worker's silence
			if err := m.pass(e.GetContent(), sink); err != nil {
				return worker.Final{}, err
			}
			m.taken()
			idle.set()
		case kindFinal:
			m.taken()
			if err := errorOf(e.GetError()); err != nil {
				return worker.Final{}, err
			}
			final := new(worker.Final)
			err := m.server.decode(func(scratch *measure.Snapshot) (err error) {
				*final, err = decodeFinal(e, &scratch.Delta)
				return err
			})
			if err != nil {
				return worker.Final{}, m.broke("%v", err)
			}
			final.Uncertainty = m.uncertainty()
			return *final, nil
		default:
			return worker.Final{}, m.broke("a step was running, and %.100q came", e.GetKind())
		}
	}
}

// pass gives a snapshot to sink, and returns once it is kept.
func (m *member) pass(b []byte, sink worker.Sink) error {
	var kept func() error
	err := m.server.decode(func(scratch *measure.Snapshot) (err error) {
		if err := decodeSnapshot(scratch, b); err != nil {
			return m.broke("%v", err)
		}
		if kept, err = sink(scratch); err != nil {
			m.abandon()
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := kept(); err != nil {
		m.abandon()
		return err
	}
	return nil
}
