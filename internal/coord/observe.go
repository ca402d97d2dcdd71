package coord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/judge"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// probeGrace is how long a probe may take to notice that its time is over.
const probeGrace = 50 * time.Millisecond

// observe makes the probes of the plan; the function that it returns ends them.
func (c *coordinator) observe() (end func()) {
	if c.past != nil {
		return func() {}
	}
	watched := map[string]string{}
	for _, o := range c.Plan.Observes {
		endpoints := c.nodes[o.Target]
		if t := c.Plan.Target(o.Target); t != nil && t.Builtin == nil {
			endpoints = t.Endpoints
		}
		p := &asked{Probe: c.Observe(o, endpoints)}
		c.probes, watched[o.Name] = append(c.probes, p), p.Of()
	}
	if len(watched) > 0 {
		c.note(entry{Watched: watched})
	}
	return func() {
		for _, p := range c.probes {
			p.Close()
		}
	}
}

// asked is a probe, and whether it is being taken.
type asked struct {
	Probe
	late <-chan probed // of a Take that did not return in time; nil: none
}

// watch observes one phase. Its goroutines, one for each observation, are awaited by end.
type watch struct {
	all   []*watcher
	over  context.CancelFunc // ends what is done during the load; nil: it has not begun
	kept  bool               // it is over, and read back
	group sync.WaitGroup
}

// watcher makes the probes of one observation in one phase.
type watcher struct {
	c     *coordinator
	phase string
	o     *plan.Observe
	probe *asked
	seen  judge.Observation
	last  *commit
	err   error
}

// probed is what a probe returns.
type probed struct {
	value   map[string]float64
	missing map[string]string
}

// watch prepares to observe a phase.
func (c *coordinator) watch(ph *plan.Phase) *watch {
	if c.past != nil {
		return c.past.watch(ph)
	}
	w := &watch{}
	for i, p := range c.probes {
		w.all = append(w.all, &watcher{c: c, phase: ph.Name, o: c.Plan.Observes[i], probe: p, seen: judge.Observation{Of: p.Of()}})
	}
	return w
}

// begin makes the probes that come before the load, and returns when each is there or its time is over. Called again, it does nothing.
func (w *watch) begin(ctx context.Context) {
	if w.over != nil || w.kept {
		return
	}
	var during context.Context
	during, w.over = context.WithCancel(ctx)
	var first sync.WaitGroup
	for _, one := range w.all {
		first.Add(1)
		w.group.Go(func() {
			one.take(ctx, one.seen.Begin)
			first.Done()
			one.each(during)
		})
	}
	first.Wait()
}

// end makes the probes that come after the load, if it has begun, and returns when they are kept.
func (w *watch) end(ctx context.Context) error {
	if w.over == nil {
		return nil
	}
	w.over()
	w.group.Wait()
	for _, one := range w.all {
		w.group.Go(func() { one.take(ctx, one.seen.End) })
	}
	w.group.Wait()
	var errs []error
	for _, one := range w.all {
		errs = append(errs, one.kept())
	}
	return errors.Join(errs...)
}

// observed returns what there is, by observation.
func (w *watch) observed() map[string]*judge.Observation {
	all := map[string]*judge.Observation{}
	for _, one := range w.all {
		all[one.o.Name] = &one.seen
	}
	return all
}

// each makes the probes during a load, until ctx ends. A probe that is due while another is under way is skipped.
func (w *watcher) each(ctx context.Context) {
	if w.o.Every == 0 {
		return
	}
	tick := time.Tick(w.o.Every)
	due := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
		}
		due = due.Add(w.o.Every)
		for missed := due.Add(w.o.Every); missed.Before(time.Now()); missed = missed.Add(w.o.Every) {
			w.seen.Skipped, due = w.seen.Skipped+1, missed
		}
		w.take(ctx, func(p *run.Probe) {
			if !errors.Is(ctx.Err(), context.Canceled) { // else the end of the load has cut the probe off
				w.seen.Add(p)
			}
		})
	}
}

// take makes one probe and enters it by add. It returns when the probe's time is over, whatever the probe does; while that goes on there is no
// other.
func (w *watcher) take(ctx context.Context, add func(*run.Probe)) {
	if w.probe.late != nil {
		select {
		case <-w.probe.late:
			w.probe.late = nil
		default:
			w.enter(add, time.Now(), probed{missing: map[string]string{"": "the probe before has not returned"}})
			return
		}
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	done := make(chan probed, 1)
	go func() { // ends when the probe does, at the latest when it is closed; a file system that hangs can take longer
		value, missing := w.probe.Take(ctx)
		done <- probed{value, missing}
	}()
	var got probed
	select {
	case got = <-done:
	case <-ctx.Done():
		select {
		case got = <-done:
		case <-time.After(probeGrace):
			w.probe.late = done
			got.missing = map[string]string{"": fmt.Sprintf("no answer within %v", w.o.Timeout)}
		}
	}
	w.enter(add, began, got)
}

// enter keeps a probe that is over. One that add does not take is left out.
func (w *watcher) enter(add func(*run.Probe), began time.Time, got probed) {
	now := time.Now()
	p := run.Probe{
		Phase: w.phase, Observe: w.o.Name, At: now.Sub(w.c.zero).Seconds(), Seconds: now.Sub(began).Seconds(),
		Value: got.value, Missing: got.missing,
	}
	if add(&p); p.When == "" {
		return
	}
	line, err := json.Marshal(p)
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("observe %q: encode a probe: %w", w.o.Name, err))
		return
	}
	w.last = w.c.journal.put(record{probe: line})
}

// kept returns once the last probe is on disk, and with it all before. There is one: that which comes after the load.
func (w *watcher) kept() error {
	if w.err != nil {
		return w.err
	}
	w.last.hurry()
	if err := w.last.wait(); err != nil {
		return fmt.Errorf("observe %q: keep a probe: %w", w.o.Name, err)
	}
	return nil
}
