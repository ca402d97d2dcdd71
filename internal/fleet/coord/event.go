package coord

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/pkg/plan"
)

// happen carries out the events of the step's phase at their times, except those that workers carry out. The returned function ends events under way,
// and waits for them.
func (s *step) happen(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for i := range s.ph.Events {
		if ev := &s.ph.Events[i]; s.steps[0].Kind.Timed() && !s.c.Plan.ByWorkers(ev) {
			all.Go(func() { s.carryOutEvent(ctx, i, ev) })
		}
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// undoWithin is how long it may take to undo an event.
const undoWithin = 10 * time.Second

// carryOutEvent waits for the time of an event and carries it out. An event with a duration is undone afterwards, at the latest when the load is
// over.
func (s *step) carryOutEvent(ctx context.Context, number int, ev *plan.Event) {
	select {
	case <-time.After(time.Until(s.c.zero.Add(s.at + ev.At))):
	case <-ctx.Done():
		return
	}
	if s.asked.Load() { // the load is ending early
		return
	}
	h := judge.Happening{At: time.Since(s.c.zero)}
	err := s.c.Happen(ctx, s.ph, ev, false)
	h.Took = time.Since(s.c.zero) - h.At
	if ev.For > 0 {
		s.hasHappened(number, h)
		select {
		case <-time.After(time.Until(s.c.zero.Add(h.At + ev.For))):
		case <-ctx.Done():
		}
		undoing, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoWithin)
		err = errors.Join(err, s.c.Happen(undoing, s.ph, ev, true))
		cancel()
		h.Undone = time.Since(s.c.zero)
	}
	if err != nil {
		h.Failed = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	s.hasHappened(number, h)
	s.c.note(entry{Event: &happened{Number: number, Is: h}})
}

// hasHappened records how far an event has got.
func (s *step) hasHappened(number int, h judge.Happening) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.happened[number] = &h
}
