package coord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Kept is what a run left on disk whose coordinator ended before it could write the result.
type Kept struct {
	Plan      *plan.Plan
	Canonical []byte // the plan's bytes

	// Records calls f with every record of the log, in order: a worker's snapshots, and under "" the coordinator's own entries.
	Records func(f func(worker, record []byte) error) error
	// Probes calls f with every probe, in order.
	Probes func(f func(run.Probe) error) error
}

// ErrNothingKept says that the coordinator ended before the run had any load.
var ErrNothingKept = errors.New("it has nothing to make a result from: its coordinator ended before there was any load")

// errEnded marks the end of what was kept: there the coordinator ended, or it ended the run if the records say how.
var errEnded = errors.New("no more was kept")

// Recover makes the result of a run whose coordinator ended before it could. It goes through the steps as [Run] does, but reads the workers' reports
// from disk. The run is degraded, unless it was aborted or had failed before its coordinator ended; the verdict says what is missing. Recover leaves
// asserts to the caller.
func Recover(from Kept) (*run.Run, error) { return from.replay(false) }

// Replay makes the result of a run, except for its asserts, again from its records, which must say how it ended. The result equals the one that the
// coordinator wrote, unless the two do not belong together. The run's end may be worse than the other records alone imply, since they do not hold all
// failures, but not better.
func Replay(from Kept) (*run.Run, error) { return from.replay(true) }

// replay is Replay if whole is set, and otherwise Recover.
func (from *Kept) replay(whole bool) (*run.Run, error) {
	next, stop := iter.Pull2(from.records)
	defer stop()
	k := &past{pull: next, whole: whole, probes: map[string]map[string]*judge.Observation{}}
	first, err := k.take()
	switch {
	case errors.Is(err, errEnded), k.end != nil:
		return nil, ErrNothingKept
	case err != nil:
		return nil, err
	case first.entry.Begin == nil:
		return nil, fmt.Errorf("%w, or by another version of loadgen", ErrNothingKept)
	}
	b := first.entry.Begin
	if digest := plan.Digest(from.Canonical); digest != b.Header.PlanDigest {
		return nil, fmt.Errorf("its plan has the digest %s, but the plan of the run had %s", digest, b.Header.PlanDigest)
	}
	if err := k.readProbes(from.Probes); err != nil {
		return nil, err
	}
	k.c = newCoordinator(Config{Header: b.Header, Environment: b.Environment, Plan: from.Plan, Workers: make([]worker.Member, len(b.Fleet)), Lease: b.Lease, Logger: slog.New(slog.DiscardHandler)})
	k.c.past, k.c.result.Fleet, k.abort, k.replaces = k, b.Fleet, b.Abort, b.Replace
	for i, w := range b.Fleet {
		k.c.Workers[i] = worker.Member{Name: w.Name}
		k.c.fleet = append(k.c.fleet, i)
	}
	if err := k.settle(); err != nil {
		return nil, err
	}
	if k.ahead == nil && !whole {
		return nil, ErrNothingKept
	}
	err = k.c.all(context.Background())
	if k.err != nil {
		return nil, k.err
	}
	if whole {
		if k.settle() != nil {
			return nil, k.err
		}
		err = k.endAs(err)
	} else {
		k.c.result.Recovered, k.c.result.Seconds = true, k.upTo.Seconds()
		k.conclude(err)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	if err := k.c.result.CheckValid(); err != nil {
		return nil, fmt.Errorf("what was kept does not make a result: %w", err)
	}
	return k.c.result, nil
}

// keptRecord is a record of the log.
type keptRecord struct {
	worker   string
	snapshot []byte // valid until the next record is read
	entry    entry  // if worker is ""
}

// records iterates over the log.
func (from *Kept) records(yield func(*keptRecord, error) bool) {
	enough := errors.New("enough was read")
	err := from.Records(func(name, b []byte) error {
		r, err := &keptRecord{worker: string(name), snapshot: b}, error(nil)
		if len(name) == 0 {
			r.entry, err = readEntry(b)
		}
		if !yield(r, err) {
			return enough
		}
		return nil
	})
	if err != nil && !errors.Is(err, enough) {
		yield(nil, err)
	}
}

// past is a run being read back.
type past struct {
	c        *coordinator
	pull     func() (*keptRecord, error, bool)
	held     *keptRecord // a record that was read but not taken
	ahead    *keptRecord // the record that begins the next step or phase, or nil
	probes   map[string]map[string]*judge.Observation
	watched  map[string]string
	snap     measure.Snapshot
	done     []bool        // by worker: there are no more records of it in the current step
	upTo     time.Duration // how far the records reach, on the run clock
	over     bool          // the records end in mid-step
	whole    bool          // the records say how the run ended, and the result must equal the coordinator's
	end      *ended        // that end, once it has been read
	search   string        // the last search that ended before it had to
	nobody   error         // set when no worker is left and none can come
	stopped  reason.Why    // why the run ended early
	abort    bool          // the run was set to end when a worker is lost
	replaces bool          // others could take the places of lost workers
	err      error         // the first record that no coordinator writes
}

// take returns the next record.
func (k *past) take() (*keptRecord, error) {
	if k.end != nil {
		return nil, errEnded
	}
	if r := k.held; r != nil {
		k.held = nil
		return r, nil
	}
	r, err, more := k.pull()
	switch {
	case !more && k.whole:
		return nil, k.wrong("its records do not say how the run ended")
	case !more:
		return nil, errEnded
	case err != nil:
		k.err = err
	case r.entry.End != nil:
		k.end = r.entry.End
		return nil, errEnded
	}
	return r, err
}

// wrong reports a record that no coordinator writes, and ends the reading.
func (k *past) wrong(format string, args ...any) error {
	k.err = fmt.Errorf("no coordinator keeps such records: "+format, args...)
	return k.err
}

// settle reads the records between two steps, up to the one that begins the next.
func (k *past) settle() error {
	if k.err != nil { // report the first error
		return k.err
	}
	for k.ahead == nil {
		r, err := k.take()
		switch {
		case errors.Is(err, errEnded):
			return nil
		case err != nil:
			return err
		case r.worker != "":
			return k.wrong("a snapshot of worker %q is of no step", r.worker)
		}
		e := r.entry
		switch {
		case e.Nodes != nil:
			k.c.nodes = e.Nodes
		case e.Watched != nil:
			k.watched = e.Watched
		case e.Loss != nil:
			if err := k.lose(nil, e.Loss); err != nil {
				return err
			}
		case e.Stop != nil:
			k.stop(e.Stop)
		case e.Over != "":
			k.search = e.Over
		case e.Member != nil:
			if err := k.arrive(e.Member); err != nil {
				return err
			}
		case e.Step != nil, e.Flush != nil:
			k.ahead = r
		default:
			return k.wrong("an entry without its place")
		}
	}
	return nil
}

// goesOn says whether the next step, as far as is known, belongs to the phase.
func (k *past) goesOn(phase string) bool {
	return k.settle() == nil && k.search != phase && (k.ahead == nil || k.ahead.entry.Step != nil && k.ahead.entry.Step.Step.Phase == phase)
}

// step replays a step from its records.
func (k *past) step(s *step) (*step, error) {
	if err := k.settle(); err != nil {
		return nil, err
	}
	if k.ahead == nil {
		return nil, errEnded
	}
	was := k.ahead.entry.Step
	k.ahead = nil
	if err := k.fits(s, was); err != nil {
		return nil, err
	}
	for i := range s.steps {
		s.steps[i].Shape = was.Step.Shape
	}
	s.facts, s.found = was.Facts, was.Facts.Found
	s.ready = make([]worker.Ready, len(s.steps))
	for i, p := range was.Facts.Parts {
		s.ready[i].Ops = p.Ops
	}
	s.enter()
	at, err := k.began(s, was.After)
	if err != nil {
		return nil, err
	}
	s.begin(at)
	k.upTo, k.done = max(k.upTo, was.After), make([]bool, len(s.steps))
	for i := range k.done {
		k.done[i] = k.c.isLost(i)
	}
	for slices.Contains(k.done, false) {
		err := k.next(s)
		if errors.Is(err, errEnded) {
			if k.whole {
				k.nobody = cmp.Or(k.nobody, err)
			} else {
				k.giveUp(s)
			}
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if err := k.behind(s); err != nil {
		return nil, err
	}
	s.close()
	s.aborted = s.err != nil || k.c.stopping(context.Background())
	return s, cmp.Or(s.err, k.nobody)
}

// behind reads the records of a step that come after the last report of its workers: orders to end the run, and that a worker contradicts itself.
func (k *past) behind(s *step) error {
	for {
		switch r, err := k.take(); {
		case errors.Is(err, errEnded):
			return nil
		case err != nil:
			return err
		case r.entry.Stop != nil:
			k.stop(r.entry.Stop)
		case r.entry.Failed != nil:
			if err := k.fail(s, r.entry.Failed); err != nil {
				return err
			}
		case r.entry.Event != nil:
			if err := k.happen(s, r.entry.Event); err != nil {
				return err
			}
		default:
			k.held = r
			return nil
		}
	}
}

// fail ends a step because a worker has reported a failure.
func (k *past) fail(s *step, e *failure) error {
	if e.Worker < 0 || e.Worker >= len(s.steps) {
		return k.wrong("worker %d of %d has failed", e.Worker, len(s.steps))
	}
	why := errors.New(e.Why)
	s.failedBy(e.Worker, why, k.c.blame(k.c.Workers[e.Worker], why))
	k.done[e.Worker] = true
	return nil
}

// happen takes an event that the coordinator has carried out.
func (k *past) happen(s *step, e *happened) error {
	if e.Number < 0 || e.Number >= len(s.ph.Events) || !s.steps[0].Kind.Timed() {
		return k.wrong("event %d of %d of phase %q", e.Number, len(s.ph.Events), s.ph.Name)
	}
	s.happened[e.Number] = &e.Is
	return nil
}

// fits checks that the kept step is the one that comes next in the plan.
func (k *past) fits(s *step, was *begun) error {
	if was == nil {
		return k.wrong("phase %q is not the one that was emptied", s.ph.Name)
	}
	is := s.steps[0]
	is.From, is.To = 0, 0
	if k.c.Plan.Phase(s.ph.Name).Search != nil { // its first step was carried out as a closed phase
		is.Shape = was.Step.Shape
	}
	shape := was.Step.Shape
	switch {
	case was.Step != is:
		return k.wrong("step %d is one of phase %q, and the plan has one of %q there", was.Step.Seq, was.Step.Phase, is.Phase)
	case len(was.Facts.Parts) != len(s.steps):
		return k.wrong("%d of %d workers were ready for step %d", len(was.Facts.Parts), len(s.steps), is.Seq)
	case was.After < 0, !(shape.Rate >= 0), !(shape.From >= 0), shape.Ramp < 0, shape.Duration < shape.Ramp:
		return k.wrong("step %d has impossible times or rates", is.Seq)
	}
	return nil
}

// next takes one record of a step.
func (k *past) next(s *step) error {
	r, err := k.take()
	if err != nil {
		return err
	}
	if r.worker != "" {
		return k.fold(s, r)
	}
	switch e := r.entry; {
	case e.Final != nil && e.Final.Worker >= 0 && e.Final.Worker < len(s.steps):
		s.conclude(e.Final.Worker, e.Final.final())
		s.sources[e.Final.Worker].whole, k.done[e.Final.Worker] = !e.Final.Cut, true
	case e.Failed != nil:
		return k.fail(s, e.Failed)
	case e.Loss != nil:
		return k.lose(s, e.Loss)
	case e.Event != nil:
		return k.happen(s, e.Event)
	case e.Stop != nil:
		k.stop(e.Stop)
	default:
		return k.wrong("an entry in step %d that has no place there", s.steps[0].Seq)
	}
	return nil
}

// began returns when a step began. That entry follows the order to start, unless the coordinator ended in between.
func (k *past) began(s *step, after time.Duration) (time.Duration, error) {
	switch r, err := k.take(); {
	case errors.Is(err, errEnded):
		return after, nil
	case err != nil:
		return 0, err
	case r.entry.Began == nil || *r.entry.Began < after:
		return 0, k.wrong("step %d has no beginning", s.steps[0].Seq)
	default:
		return *r.entry.Began, nil
	}
}

// sender returns the worker of that name that is not lost, or −1 if there is none. A lost worker's replacement may have the same name.
func (k *past) sender(name string) int {
	for i, m := range k.c.Workers {
		if m.Name == name && !k.c.isLost(i) {
			return i
		}
	}
	return -1
}

// fold adds a snapshot to its step.
func (k *past) fold(s *step, r *keptRecord) error {
	i := k.sender(r.worker)
	if i < 0 {
		return k.wrong("a snapshot of %q, which is not a worker of step %d", r.worker, s.steps[0].Seq)
	}
	rest, err := k.snap.Decode(r.snapshot)
	if err == nil && len(rest) > 0 {
		err = errors.New("something comes after it")
	}
	if err == nil {
		err = k.snap.CheckValid()
	}
	if err == nil {
		err = s.follows(i, &k.snap)
	}
	if err != nil {
		return k.wrong("worker %s: %w", r.worker, err)
	}
	s.fold(i, &k.snap)
	k.upTo = max(k.upTo, time.Duration(k.snap.To))
	return nil
}

// lose carries on without a worker that the coordinator had lost. s is nil outside a step.
func (k *past) lose(s *step, e *lossEntry) error {
	if e.Worker < 0 || e.Worker >= len(k.c.Workers) || k.c.isLost(e.Worker) {
		return k.wrong("worker %d of %d is lost", e.Worker, len(k.c.Workers))
	}
	if s != nil {
		s.strike(e.Worker)
		k.done[e.Worker] = true
	}
	if _ = k.c.lose(e.Worker, e.Is); k.c.left() == 0 && !k.replaces {
		k.nobody = errNobody
	}
	if k.abort && k.stopped == (reason.Why{}) { // the order to stop may have been kept after the other workers' ends, or not at all
		k.stopped = byLoss
	}
	return nil
}

// arrive gives a lost worker's place to its replacement.
func (k *past) arrive(e *arrival) error {
	if e.Index < 0 || e.Index >= len(k.c.Workers) || !k.c.isLost(e.Index) {
		return k.wrong("worker %q takes the place %d of %d", e.Is.Name, e.Index, len(k.c.Workers))
	}
	k.c.enter(e.Index, worker.Member{Name: e.Is.Name, Host: e.Is.Host, Version: e.Is.Loadgen}, e.Phase)
	return nil
}

func (k *past) stop(e *stopped) {
	if k.stopped = reason.Why(*e); e.Code == reason.StoppedByPlan {
		k.c.stopped.Store(&e.Text)
	}
}

const (
	// mostSilent is how long a worker may have been in contact after its last kept snapshot.
	mostSilent = storeWithin
	// mostUnkept is the same for a worker in the coordinator's process, which ended with it: snapshots come each second, and a commit takes a moment.
	mostUnkept = 2 * time.Second
)

// giveUp bounds or estimates how many ops the workers may have started in a step after its records end.
func (k *past) giveUp(s *step) {
	k.over = true
	until, why := k.upTo+max(mostSilent, 3*k.c.Lease)+k.c.Lease, "the coordinator ended"
	if k.c.Lease == 0 {
		until, why = k.upTo+mostUnkept, "it ended with the coordinator"
	}
	for i := range s.sources {
		if !k.done[i] {
			_ = s.lose(i, &worker.Loss{Worker: k.c.Workers[i].Name, Why: why, LoadedSeconds: until.Seconds()}) // the run is over anyway
		}
	}
	for i := range s.sources {
		if !k.done[i] { // all workers ended at about the same time
			s.estimateSpan(i)
		}
	}
}

// flush returns the time at which the phase emptied built-in nodes.
func (k *past) flush(ph *plan.Phase) (origin float64, err error) {
	if err := k.settle(); err != nil {
		return 0, err
	}
	if k.ahead == nil {
		return 0, errEnded
	}
	was := k.ahead.entry.Flush
	k.ahead = nil
	if was == nil || was.Phase != ph.Name {
		return 0, k.wrong("phase %q was to empty its nodes", ph.Name)
	}
	k.upTo = max(k.upTo, time.Duration(was.Origin*1e9))
	return was.Origin, nil
}

// readProbes reads all probes.
func (k *past) readProbes(probes func(func(run.Probe) error) error) error {
	return probes(func(p run.Probe) error {
		of := k.probes[p.Phase]
		if of == nil {
			of = map[string]*judge.Observation{}
			k.probes[p.Phase] = of
		}
		if of[p.Observe] == nil {
			of[p.Observe] = &judge.Observation{}
		}
		of[p.Observe].Read(&p)
		return nil
	})
}

// watch returns what was observed in a phase.
func (k *past) watch(ph *plan.Phase) *watch {
	w := &watch{kept: true}
	all := slices.Clone(k.c.Plan.Observes)
	for _, l := range judge.Looks(k.c.Plan, k.c.endpointsOf) {
		all = append(all, l.Observe)
	}
	for _, o := range all {
		one := &watcher{c: k.c, phase: ph.Name, o: o}
		if seen := k.probes[ph.Name][o.Name]; seen != nil {
			one.seen = *seen
		}
		one.seen.Of = k.watched[o.Name]
		w.all = append(w.all, one)
	}
	return w
}

// endAs sets the verdict that the coordinator recorded, unless it is better than the other records allow. err is what ended the phases early.
func (k *past) endAs(err error) error {
	r, end := k.c.result, k.end
	if end == nil {
		return k.wrong("there is more after the end of the plan")
	}
	least := run.Complete
	switch {
	case k.stopped != reason.Why{}:
		least = run.Capped
	case err != nil && !errors.Is(err, errEnded):
		least = run.Failed
	case len(r.PhaseOrder) < len(k.c.Plan.Phases):
		least = run.Capped
	case len(r.Losses) > 0:
		least = run.Degraded
	}
	if end.Completeness.Better(least) {
		return k.wrong("the run ended %s, but by the records before that it was %s at best", end.Completeness, least)
	}
	r.Seconds, r.CoordinatorCPUSeconds = end.Seconds, end.CPUSeconds
	r.Conclude(end.Completeness, end.Why...)
	return nil
}

// conclude sets the verdict: how far the run had got when its coordinator ended.
func (k *past) conclude(err error) {
	r := k.c.result
	ended := fmt.Sprintf("the coordinator ended before the result was written: this was made of what it had kept, up to %s of the run", k.upTo.Round(time.Millisecond))
	var missing []string
	for _, ph := range k.c.Plan.Phases {
		if r.Phase[ph.Name] == nil {
			missing = append(missing, ph.Name)
		}
	}
	if len(missing) > 0 {
		ended += "; not begun: " + strings.Join(missing, ", ")
	}
	reasons := append([]reason.Why{{Code: reason.CoordinatorEnded, Text: ended}}, k.c.lossesOf()...)
	switch {
	case k.stopped != reason.Why{}:
		r.Conclude(run.Aborted, append([]reason.Why{k.stopped}, reasons...)...)
	case err != nil && !errors.Is(err, errEnded):
		r.Conclude(run.Failed, append([]reason.Why{whyOf(err)}, reasons...)...)
	default:
		r.Conclude(run.Degraded, reasons...)
	}
}
