package coord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// probeGrace is how long a probe may take to notice that its time is up.
const probeGrace = 50 * time.Millisecond

// observe creates the plan's probes. The returned function closes them.
func (c *coordinator) observe() (end func()) {
	if c.past != nil {
		return func() {}
	}
	watched := map[string]string{}
	for _, o := range c.Plan.Observes {
		var endpoints []string
		if t := c.Plan.Target(o.Target); t != nil {
			endpoints = c.endpointsOf(t)
		}
		p := &asked{o: o, Probe: c.Observe(o, endpoints)}
		c.probes, watched[o.Name] = append(c.probes, p), p.Of()
	}
	if c.Observe != nil {
		for _, l := range judge.Looks(c.Plan, c.endpointsOf) {
			c.probes = append(c.probes, &asked{o: l.Observe, Probe: c.Observe(l.Observe, []string{l.Endpoint})})
		}
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

// endpointsOf lists the endpoints of a target that are known before it is loaded.
func (c *coordinator) endpointsOf(t *plan.Target) []string {
	if t.Builtin != nil {
		return c.nodes[t.Name]
	}
	return t.Endpoints
}

// asked is a probe together with a Take that may still be running.
type asked struct {
	Probe
	o       *plan.Observe
	late    <-chan run.Probe // result of a Take that missed its deadline, or nil
	refused string           // why a server's counts are not asked for any more; "" if they are
}

// watch observes one phase, with one goroutine per observation. end waits for them.
type watch struct {
	all   []*watcher
	over  context.CancelFunc // ends the probes during the load; nil before they begin
	kept  bool               // the observation was read back, and is over
	group sync.WaitGroup
}

// watcher takes the probes of one observation in one phase.
type watcher struct {
	c       *coordinator
	phase   string
	o       *plan.Observe
	probe   *asked
	mu      sync.Mutex // guards seen, while the phase goes on
	seen    judge.Observation
	skipped int // probes that were skipped before the last one that was kept
	last    *commit
	err     error
}

// watch prepares to observe a phase.
func (c *coordinator) watch(ph *plan.Phase) *watch {
	if c.past != nil {
		return c.past.watch(ph)
	}
	w := &watch{}
	for _, p := range c.probes {
		if p.o.Kind != plan.ObserveCounts || slices.Contains(ph.Targets(), p.o.Target) {
			w.all = append(w.all, &watcher{c: c, phase: ph.Name, o: p.o, probe: p, seen: judge.Observation{Of: p.Of()}})
		}
	}
	return w
}

// begin takes the probes before the load, and returns when each has answered or timed out. Further calls do nothing.
func (w *watch) begin(ctx context.Context) {
	if w.over != nil || w.kept {
		return
	}
	var during context.Context
	during, w.over = context.WithCancel(ctx)
	var first, others sync.WaitGroup // the servers' counts come last, so that they include the connections of the others
	for _, one := range w.all {
		before, after := &others, &first
		if one.o.Kind != plan.ObserveCounts {
			before, after = new(sync.WaitGroup), &others
		}
		after.Add(1)
		w.group.Go(func() {
			before.Wait()
			one.take(ctx, one.seen.Begin)
			after.Done()
			one.each(during)
		})
	}
	others.Wait()
	first.Wait()
}

// end takes the probes after the load, if the watch has begun, and returns when they are on disk.
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

// observed returns the results by observation.
func (w *watch) observed() map[string]*judge.Observation {
	all := map[string]*judge.Observation{}
	for _, one := range w.all {
		all[one.o.Name] = &one.seen
	}
	return all
}

// each takes probes during the load until ctx ends. A probe that falls due while another is in progress is skipped.
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
			w.skip()
			due = missed
		}
		w.take(ctx, func(p *run.Probe) {
			if !errors.Is(ctx.Err(), context.Canceled) { // else the end of the load cut the probe off
				w.seen.Add(p)
			}
		})
	}
}

// skip counts a probe that was due while an earlier one was in progress.
func (w *watcher) skip() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen.Skipped++
}

// take takes one probe and passes it to add. It returns at the probe's deadline, whatever the probe does. While an overdue probe is still running, no
// other starts.
func (w *watcher) take(ctx context.Context, add func(*run.Probe)) {
	if w.probe.late != nil {
		select {
		case <-w.probe.late:
			w.probe.late = nil
		default:
			w.enter(add, time.Now(), run.Probe{Missing: map[string]string{"": "the probe before has not returned"}})
			return
		}
	}
	began := time.Now()
	if w.probe.refused != "" {
		w.enter(add, began, run.Probe{Missing: map[string]string{"": w.probe.refused}})
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.o.Timeout)
	defer cancel()
	done := make(chan run.Probe, 1)
	go func() { // ends when the probe does, at the latest when it is closed; a hung file system can take longer
		value, missing := w.probe.Take(ctx)
		done <- run.Probe{Value: value, Missing: missing}
	}()
	var got run.Probe
	select {
	case got = <-done:
	case <-ctx.Done():
		select {
		case got = <-done:
		case <-time.After(probeGrace):
			w.probe.late = done
			got.Missing = map[string]string{"": fmt.Sprintf("no answer within %v", w.o.Timeout)}
		}
	}
	if dials, ok := w.probe.Probe.(interface{ Dialed() uint64 }); ok {
		got.Dialed = dials.Dialed()
	}
	if w.o.Kind == plan.ObserveCounts {
		if is, ok := w.probe.Probe.(interface{ Identity() map[string]string }); ok {
			got.Is = is.Identity()
		}
		w.probe.Close() // no connection of its own stays at the server
		w.probe.refused = got.Missing[""]
	}
	w.enter(add, began, got)
}

// enter keeps a finished probe, unless add rejects it.
func (w *watcher) enter(add func(*run.Probe), began time.Time, p run.Probe) {
	now := time.Now()
	p.Phase, p.Observe, p.At, p.Seconds = w.phase, w.o.Name, now.Sub(w.c.zero).Seconds(), now.Sub(began).Seconds()
	w.mu.Lock()
	if add(&p); p.When == "" {
		w.mu.Unlock()
		return
	}
	p.Skipped, w.skipped = w.seen.Skipped-w.skipped, w.seen.Skipped
	w.mu.Unlock()
	if w.c.Probed != nil && w.o.Kind != plan.ObserveCounts {
		w.c.Probed(&p)
	}
	line, err := json.Marshal(p)
	if err != nil {
		w.err = errors.Join(w.err, fmt.Errorf("observe %q: encode a probe: %w", w.o.Name, err))
		return
	}
	w.last = w.c.journal.put(record{probe: line})
}

// kept returns once the last probe, and with it every earlier one, is on disk. There is always at least one, the probe after the load.
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
