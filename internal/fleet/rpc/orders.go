package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
)

// carryOut carries out the coordinator's orders one by one until the session ends. It runs in its own goroutine; the session's end waits for it.
func (s *session) carryOut() {
	defer close(s.idle)
	for {
		select {
		case <-s.work.Done():
			return
		case e := <-s.orders:
			s.push(s.do(e))
		}
	}
}

// do carries out one order and returns the answer.
func (s *session) do(e *pb.Envelope) *pb.Envelope {
	kind, answer := kindAssigned, &pb.Envelope{Kind: kindAssigned}
	var err error
	switch e.GetKind() {
	case kindAssign:
		err = s.assign(e)
		s.refused = err
	case kindPrepare:
		kind = kindReady
		answer, err = s.prepare(e)
	case kindStart:
		kind = kindFinal
		answer, err = s.start(e)
	default:
		err = fmt.Errorf("an unknown order, %.100q", e.GetKind())
	}
	if err != nil {
		return &pb.Envelope{Kind: kind, Error: textOf(err)}
	}
	return answer
}

// assign takes on a run, with the clocks as they stand now.
func (s *session) assign(e *pb.Envelope) error {
	a, zero, err := decodeAssignment(e)
	if err != nil {
		return err
	}
	select {
	case <-s.synced:
	case <-s.work.Done():
		return s.work.Err()
	}
	local := s.cfg.New()
	s.mu.Lock()
	if s.local != nil {
		s.mu.Unlock()
		local.Close()
		return errors.New("a second assignment")
	}
	s.local = local
	s.turn = turn(a.Index, a.Workers)
	s.clocks = s.offsets.best()
	s.zero = zero + s.clocks.offset
	local.SetLease(s.lease - s.zero)
	s.mu.Unlock()
	a.Zero = s.epoch.Add(s.zero)
	return local.Assign(s.work, a)
}

var errUnassigned = errors.New("an order before an assignment")

func (s *session) prepare(e *pb.Envelope) (*pb.Envelope, error) {
	step, err := decodeStep(e)
	if err == nil && s.local == nil {
		err = errUnassigned
	}
	if err != nil {
		return nil, err
	}
	ctx, stop := s.leased()
	ready, err := s.local.Prepare(ctx, step)
	stop()
	if err != nil {
		return nil, err
	}
	ready.Step = step.Seq
	ready.Offset, ready.Uncertainty, ready.RTT = s.clocks.offset, s.clocks.rtt/2, s.clocks.rtt
	return sealed(kindReady, plainReady(ready), nil)
}

var errLapsed = errors.New("the lease was over before the step was ready: nothing had been heard from the coordinator")

// leased returns a context that ends with the work or with the lease. stop ends it.
func (s *session) leased() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(s.work)
	var watch sync.WaitGroup
	watch.Go(func() {
		for ctx.Err() == nil {
			s.mu.Lock()
			left := s.lease - s.now()
			s.mu.Unlock()
			if left <= 0 {
				cancel(errLapsed)
			}
			select {
			case <-time.After(left):
			case <-ctx.Done():
			}
		}
	})
	return ctx, func() {
		cancel(nil)
		watch.Wait()
	}
}

func (s *session) start(e *pb.Envelope) (*pb.Envelope, error) {
	ns, err := opened[int64](e)
	if err != nil {
		return nil, err
	}
	at, err := decodeTime(ns)
	if err == nil && s.local == nil {
		err = errUnassigned
	}
	if err != nil {
		return nil, err
	}
	final, err := s.local.Run(s.work, at, func(snap *measure.Snapshot) (func() error, error) {
		s.wait()
		return func() error { return nil }, s.keep(snap)
	})
	if err != nil {
		return nil, err
	}
	return encodeFinal(&final)
}

const (
	together = 16                          // workers in one group: the coordinator wakes up once for all of them
	apart    = together * time.Millisecond // from one group's turn to the next
	spread   = 800 * time.Millisecond      // from the first turn to the last, at most; intervals last a second
)

// turn returns a worker's delay between the end of an interval and sending its snapshot. Intervals end at the same time on all workers, and the
// coordinator takes one snapshot after another.
func turn(index, workers int) time.Duration {
	turns := (workers + together - 1) / together
	return time.Duration(index/together) * min(apart, spread/time.Duration(turns))
}

// wait waits for the worker's turn, unless the session ends.
func (s *session) wait() {
	select {
	case <-time.After(s.turn):
	case <-s.work.Done():
	}
}

// keep puts a snapshot into the spool. If the spool is full and the snapshot before it was never sent, the two are merged: the coordinator gets fewer,
// longer intervals, but misses nothing.
func (s *session) keep(snap *measure.Snapshot) error {
	e, err := encodeSnapshot(snap)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	defer poke(s.wake)
	if tail := s.link.tail(); tail.GetKind() == kindSnapshot && s.link.held+len(e.GetContent()) > s.cfg.Spool {
		var joint measure.Snapshot
		if err := decodeSnapshot(&joint, tail.GetContent()); err != nil {
			return err
		}
		if joint.Merge(snap) == nil {
			both, err := encodeSnapshot(&joint)
			if err != nil {
				return err
			}
			tail.Content = both.Content
			s.link.amend()
			return nil
		}
	}
	s.link.push(e)
	return nil
}
