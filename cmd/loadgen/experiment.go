package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/detail"
	"github.com/loadgen/loadgen/internal/experiment"
	"github.com/loadgen/loadgen/internal/machine"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/report"
	reportpage "github.com/loadgen/loadgen/internal/report/page"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/rundir"
	"github.com/loadgen/loadgen/internal/table"
	"github.com/loadgen/loadgen/pkg/plan"
)

// series is an experiment under way. It is used by one goroutine.
type series struct {
	*runFlags
	*trial
	root    string
	dir     *rundir.Experiment
	words   io.Writer
	result  *run.Experiment
	results []*run.Run
	spent   []time.Duration // by variant
	passed  []bool          // by variant: its cap, and that is said

	rounds   int  // that every variant has had when differences were last foreseen
	foreseen bool // all of them

	timedOut func() bool // whether --timeout has ended it; to be asked once it has ended
}

// experiment runs every variant of a plan's experiment as often as it says, and reports how they compare.
func (f *runFlags) experiment(cmd *cobra.Command, t *trial) error {
	if t.Fork && f.fleet.workers > 0 {
		return errors.New("the plan's experiment says fork = true, which is for a worker that is started here: leave --workers out, or fork")
	}
	f.fleet.process = f.fleet.process || t.Fork
	root, err := f.root()
	if err != nil {
		return err
	}
	if err := errors.Join(checkOut("--out", f.out), checkOut("--report", f.report)); err != nil {
		return failed("%w", err)
	}
	base := t.baseline()
	x := experiment.New(rundir.NewID(time.Now(), base.Name), base, t.Experiment, time.Now(), version())
	x.Labels = f.labels
	dir, err := rundir.CreateExperiment(root, x)
	if err != nil {
		return failed("%w", err)
	}
	if err := keepTables(dir, t.tables); err != nil {
		return failed("%w", errors.Join(err, dir.Close()))
	}
	s := &series{
		runFlags: f, trial: t, root: root, dir: dir, words: f.wordsOn(cmd.ErrOrStderr()), result: x,
		spent: make([]time.Duration, len(t.Variants)), passed: make([]bool, len(t.Variants)),
	}
	fmt.Fprintf(s.words, "experiment of %d runs: %d variants × %d, %s, baseline %s\n", len(t.Variants)*t.Repeat, len(t.Variants), t.Repeat, t.Order, t.Baseline)
	drain, ctx, release := interrupts(cmd.Context())
	defer release()
	limit, timedOut := limited(drain, f.timeout, f.timeout)
	s.timedOut = timedOut
	s.run(ctx, limit)
	if timedOut() {
		fmt.Fprintln(s.words, s.endedBy())
	}
	return errors.Join(s.finish(cmd.OutOrStdout()), dir.Close())
}

// run goes through the schedule, until the user asks for an end.
func (s *series) run(ctx context.Context, drain <-chan struct{}) {
	turns := experiment.Schedule(s.Experiment, s.result.Seed)
	for i, t := range turns {
		if interrupted(ctx, drain) {
			s.result.Abort(s.endedBy())
			return
		}
		if s.Cap > 0 && s.spent[t.Variant] >= s.Cap {
			if !s.passed[t.Variant] {
				s.passed[t.Variant] = true
				s.result.Cap(s.Variants[t.Variant].Name)
			}
			continue
		}
		fmt.Fprintf(s.words, "run %d of %d: %s, repetition %d\n", i+1, len(turns), s.Variants[t.Variant].Name, t.Repetition)
		s.turn(ctx, drain, t)
		s.foresee()
	}
	if interrupted(ctx, drain) {
		s.result.Abort(s.endedBy())
	}
}

// endedBy says what has ended the experiment early.
func (s *series) endedBy() string {
	if s.timedOut() {
		return fmt.Sprintf("ended by --timeout %v", s.timeout)
	}
	return "stopped by the user"
}

// interrupted says whether the user has asked for an end.
func interrupted(ctx context.Context, drain <-chan struct{}) bool {
	select {
	case <-drain:
		return true
	default:
		return ctx.Err() != nil
	}
}

// turn runs a variant once. Whatever becomes of it is in the experiment's result.
func (s *series) turn(ctx context.Context, drain <-chan struct{}, t experiment.Turn) {
	variant := s.Variants[t.Variant].Name
	began := time.Now()
	limit, capped := limited(drain, s.Cap, s.Cap-s.spent[t.Variant])
	result := s.carryOut(ctx, limit, s.plans[t.Variant], run.Header{
		ID:     rundir.NewID(began, fmt.Sprintf("%s-%s-%d", s.result.Plan, variant, t.Repetition)),
		Strict: s.strict, Labels: s.labels, Experiment: s.result.ID, Variant: variant, Repetition: t.Repetition,
	}, capped)
	s.spent[t.Variant] += time.Since(began)
	s.results = append(s.results, result)
	s.result.Add(result, capped())
	s.result.Seconds = time.Since(s.result.StartedAt).Seconds()
	fmt.Fprintf(s.words, "%s: %s, %s; %s\n", variant, result.Verdict.Completeness, result.Verdict.Validity, time.Since(began).Round(time.Millisecond))
	if err := s.dir.Save(s.result); err != nil {
		fmt.Fprintf(s.words, "loadgen: %v\n", err)
	}
}

// carryOut runs a plan in a directory of its own and returns its result, which says so when that could not be done.
func (s *series) carryOut(ctx context.Context, drain <-chan struct{}, p *plan.Plan, header run.Header, capped func() bool) *run.Run {
	unable := func(err error) *run.Run { return run.New(header, machine.Read(os.DirFS("/"))).Fail(err.Error()) }
	job, err := newJob(p, header)
	if err != nil {
		return unable(err)
	}
	header = job.header
	dir, err := rundir.Create(s.root, header.ID, job.canonical)
	if err != nil {
		return unable(err)
	}
	conclude := func(r *run.Run) {
		switch {
		case r.Verdict.Completeness != run.Aborted:
		case capped():
			r.Conclude(run.Capped, fmt.Sprintf("ended by the cap of %v on the runs of a variant", s.Cap))
		case interrupted(ctx, drain) && s.timedOut():
			r.Conclude(run.Aborted, s.endedBy())
		}
	}
	var result *run.Run
	if err := s.restart(ctx, drain, header, s.valuesOf(header.Variant), dir); err != nil {
		result = unstarted(ctx, drain, header, machine.Read(os.DirFS("/")), fmt.Errorf("start the targets anew: %w", err))
		conclude(result)
	} else {
		result = s.execute(ctx, drain, s.words, job, dir, conclude)
	}
	if err := dir.Finish(result); err != nil {
		result.Conclude(run.Failed, err.Error())
	}
	tell(s.words, result, dir)
	return result
}

// valuesOf returns the values of a variant.
func (s *series) valuesOf(variant string) map[string]string {
	return s.Variants[slices.IndexFunc(s.Variants, func(v plan.Variant) bool { return v.Name == variant })].Values
}

// limited returns a channel that is closed when drain is, or when the rest of a limit is over; a limit of 0 is none. reached is to be called
// once nothing listens any more; it says whether it was the limit.
func limited(drain <-chan struct{}, limit, rest time.Duration) (ended <-chan struct{}, reached func() bool) {
	if limit == 0 {
		return drain, func() bool { return false }
	}
	both, done, was := make(chan struct{}), make(chan struct{}), make(chan bool, 1)
	go func() { // ends when reached is called
		timer := time.NewTimer(rest)
		defer timer.Stop()
		byLimit := false
		select {
		case <-drain:
			close(both)
		case <-timer.C:
			byLimit = true
			close(both)
		case <-done:
		}
		was <- byLimit
	}()
	return both, sync.OnceValue(func() bool { close(done); return <-was })
}

// foresee says what differences the experiment can show at best: once every variant has been run, and where that is too short to tell, as soon
// as there are repetitions enough.
func (s *series) foresee() {
	rounds := s.Repeat
	for _, v := range s.result.Variants {
		if v.Stopped == run.StopFinished {
			rounds = min(rounds, v.Runs)
		}
	}
	if s.foreseen || rounds <= s.rounds {
		return
	}
	s.rounds = rounds
	var lines []string
	if lines, s.foreseen = experiment.Outlook(s.result, s.results); !s.foreseen && rounds > 1 {
		return // as was said before
	}
	for _, line := range lines {
		fmt.Fprintln(s.words, line)
	}
}

// finish keeps the comparison, shows it, and turns its exit code into an error.
func (s *series) finish(w io.Writer) error {
	x, path := s.result, s.dir.Path()
	experiment.Conclude(x, s.results)
	x.Finished = true
	src := detail.Source{Study: detail.NewStudy(x)}
	if s.report != "" || len(s.charts) > 0 {
		src = loadStudy(s.root, x, s.words)
	}
	s.ofPlan(src.Study)
	if err := s.dir.Save(x); err != nil {
		return failed("%w", err)
	}
	if s.out != "" {
		if err := writeJSON(s.out, x); err != nil {
			return failed("%w", err)
		}
	}
	err := report.Experiment(w, x, report.Options{Dir: path, Width: columnsOf(w)})
	if s.report != "" {
		err = errors.Join(err, replace(s.report, func(w io.Writer) error { return reportpage.Write(w, []detail.Source{src}) }))
	}
	if err != nil {
		return failed("%w", err)
	}
	if x.ExitCode != run.ExitOK {
		return &exitError{code: x.ExitCode}
	}
	return nil
}

// ofPlan adds the tables and charts that the plan describes.
func (s *series) ofPlan(study *detail.Study) {
	var variants []table.Variant
	base := 0
	for i, v := range s.Variants {
		one := table.Variant{Name: v.Name, Plan: s.plans[i], Bound: s.BoundOf(v.Name), Latencies: func(phase, verb string, path ...string) *measure.Times {
			return study.Latency(v.Name, phase, verb, path...)
		}}
		for j, r := range s.results {
			if r.Variant == v.Name && s.result.Runs[j].Counts() {
				one.Runs = append(one.Runs, r)
			}
		}
		if v.Name == s.Baseline {
			base = i
		}
		variants = append(variants, one)
	}
	var tables []run.Table
	for _, t := range s.tables {
		tables = append(tables, table.Fill(t, variants, base))
	}
	s.result.Tables = append(tables, s.result.Tables...)
	for _, c := range s.charts {
		table.Draw(s.result, c, variants)
	}
}
