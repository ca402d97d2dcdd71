package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
)

// firstBeats is the number of heartbeats sent back to back, each as soon as the last is echoed, so that the clocks are well known before a run begins.
const firstBeats = 8

// serve runs the stream: it sends, and another goroutine receives. When parent ends, it stops the work and, if the coordinator still listens, reports
// the outcome before the worker leaves.
func (s *session) serve(parent context.Context, j *joined, cancel context.CancelFunc) (*pb.Goodbye, error) {
	var bye *pb.Goodbye
	var failed error
	ended := make(chan struct{})
	var receiver sync.WaitGroup
	receiver.Go(func() {
		defer close(ended)
		bye, failed = s.receive(j, cancel)
	})
	err := s.send(parent, j, ended)
	if err != nil {
		cancel()
	}
	receiver.Wait()
	switch {
	case bye != nil:
		return bye, nil
	case failed != nil:
		return nil, failed
	}
	return nil, err
}

// receive handles messages until the stream ends. If the coordinator is silent for three heartbeats, the stream may be lost, so it is ended and
// another one tried.
func (s *session) receive(j *joined, cancel context.CancelFunc) (*pb.Goodbye, error) {
	silent := time.AfterFunc(3*j.heartbeat, cancel)
	defer silent.Stop()
	for {
		msg, err := j.stream.Recv()
		if err != nil {
			return nil, err
		}
		silent.Reset(3 * j.heartbeat)
		at := s.now()
		switch {
		case msg.GetGoodbye() != nil:
			cancel()
			return msg.GetGoodbye(), nil
		case msg.GetEcho() != nil:
			err = s.echoed(msg.GetEcho(), at, j.lease)
		case msg.GetStored() > 0:
			s.mu.Lock()
			err = s.link.ack(msg.GetStored())
			s.mu.Unlock()
			poke(s.wake)
		case msg.GetEnvelope() != nil:
			err = s.accept(msg.GetEnvelope())
		default:
			err = errors.New("a message that has no place there")
		}
		if err != nil {
			cancel()
			return nil, fmt.Errorf("the coordinator broke the protocol: %w", err)
		}
	}
}

// echoed renews the lease and compares the clocks.
func (s *session) echoed(e *pb.Echo, at, lease time.Duration) error {
	received, err := decodeTime(e.GetReceivedNs())
	if err != nil {
		return err
	}
	back, err := decodeTime(e.GetEchoedNs())
	if err != nil {
		return err
	}
	sent := time.Duration(e.GetSentNs())
	if sent < 0 || sent > at {
		return fmt.Errorf("an echo of a heartbeat from %v, at %v", sent, at)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream.flight.echoed(e.GetSentNs())
	poke(s.wake)
	s.watchSleep()
	if sent < s.woke {
		return nil // the heartbeat was sent before this machine slept: the lease went on meanwhile, and the clocks have shifted
	}
	if s.moved {
		s.offsets, s.moved = offsets{}, false
	}
	first := s.offsets.n == 0
	s.offsets.add(sent, received, back, at)
	if first && s.offsets.n > 0 {
		s.compared.Do(func() { close(s.synced) })
	}
	if s.offsets.n < firstBeats {
		s.stream.beat = true
	}
	if until := sent + s.slept + lease; until > s.lease {
		s.lease = until
		if s.local != nil {
			s.local.SetLease(s.lease - s.zero)
		}
	}
	return nil
}

// shortSleep is the shortest time that counts as sleep, since the clocks are not read at the same instant.
const shortSleep = 10 * time.Millisecond

// watchSleep detects that this machine was suspended. Its clock stood still while the coordinator's went on, so the first new measurement of the
// offset replaces all older ones. The caller holds the lock.
func (s *session) watchSleep() {
	slept := s.cfg.Suspended()
	if slept-s.slept < shortSleep {
		return
	}
	s.cfg.Logger.Warn("this machine was suspended", "for", slept-s.slept)
	s.slept, s.woke, s.moved = slept, s.now(), true
}

// accept takes an envelope. Orders that end a step are carried out at once, the rest in turn.
func (s *session) accept(e *pb.Envelope) error {
	s.mu.Lock()
	fresh, err := s.link.accept(e)
	if fresh {
		s.link.take()
		s.stream.taken = s.link.taken
		poke(s.wake)
	}
	local := s.local
	s.mu.Unlock()
	if err != nil || !fresh {
		return err
	}
	switch e.GetKind() {
	case kindAbandon:
		s.abandon()
	case kindDrain:
		if local == nil {
			return errors.New("a drain before an assignment")
		}
		local.Drain()
	default:
		select {
		case s.orders <- e:
		default:
			return errors.New("more orders than can be carried out")
		}
	}
	return nil
}

// poke wakes whoever waits for a channel that holds one value.
func poke(waiting chan<- struct{}) {
	select {
	case waiting <- struct{}{}:
	default:
	}
}

// push queues an envelope for the coordinator.
func (s *session) push(e *pb.Envelope) {
	s.mu.Lock()
	s.link.push(e)
	s.mu.Unlock()
	poke(s.wake)
}

// send sends whatever is queued until the stream ends, heartbeats first.
func (s *session) send(parent context.Context, j *joined, ended <-chan struct{}) error {
	beats := time.Tick(j.heartbeat)
	leaving := parent.Done()
	for {
		if err := s.sendAll(j); err != nil {
			return err
		}
		select {
		case <-s.wake:
		case <-beats:
			s.mu.Lock()
			s.stream.beat = true
			s.mu.Unlock()
		case <-leaving:
			return s.leave(j)
		case <-ended:
			return nil
		}
	}
}

// sendAll sends everything that may be sent now.
func (s *session) sendAll(j *joined) error {
	for {
		msg, err := s.pick()
		if msg == nil || err != nil {
			return err
		}
		if err := j.stream.Send(msg); err != nil {
			return err
		}
	}
}

// pick returns the next message, nil if there is none: heartbeats before acknowledgements before envelopes. If an envelope must wait, a heartbeat is
// sent, whose echo releases it.
func (s *session) pick() (*pb.FromWorker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.stream
	if st.beat {
		return s.beat(), nil
	}
	if st.taken > st.told {
		st.told = st.taken
		return &pb.FromWorker{Received: st.taken}, nil
	}
	msg, full, err := st.flight.next(&s.link)
	if full && st.flight.probe() {
		return s.beat(), nil
	}
	return msg, err
}

// beat returns a heartbeat to send now.
func (s *session) beat() *pb.FromWorker {
	s.watchSleep()
	h := s.heartbeat()
	s.stream.beat = false
	s.stream.flight.beat(h.GetSentNs())
	return &pb.FromWorker{Heartbeat: h}
}

// leave stops the work, sends the rest of its reports, and says goodbye. The user of this machine asked for that.
func (s *session) leave(j *joined) error {
	s.abandon()
	deadline := time.After(DefaultTiming().Farewell)
	idle := s.idle
	for {
		if err := s.sendAll(j); err != nil {
			return err
		}
		s.mu.Lock()
		done := idle == nil && len(s.link.queue) == 0
		s.mu.Unlock()
		if done {
			break
		}
		select {
		case <-s.wake:
			continue
		case <-idle:
			idle = nil
			continue
		case <-deadline:
		}
		break
	}
	err := j.stream.Send(&pb.FromWorker{Goodbye: &pb.Goodbye{Reason: "it was stopped on its own machine"}})
	return errors.Join(err, j.stream.CloseSend())
}
