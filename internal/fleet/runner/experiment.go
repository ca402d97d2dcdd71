package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Trial is an experiment with each variant's plan, and the tables and charts that the plan describes.
type Trial struct {
	*plan.Experiment
	expr.Wanted
	Plans []*plan.Plan // in the order of Variants

	Budget time.Duration // a gate begins no pair that would end later; 0 for no limit

	// Ended is called after each run, with the run's directory.
	Ended func(r *run.Run, dir string)
	// Latencies returns a look-up of a variant's histograms, once all runs have ended.
	Latencies func(x *run.Experiment) expr.Latencies
}

// Baseline returns the baseline's plan.
func (t *Trial) Baseline() *plan.Plan { return t.Plans[t.index(t.Experiment.Baseline)] }

// index returns the index of a variant.
func (t *Trial) index(variant string) int {
	return slices.IndexFunc(t.Variants, func(v plan.Variant) bool { return v.Name == variant })
}

// Hooks lists the hooks of an experiment's plans.
func (t *Trial) Hooks() []string {
	var names []string
	if t.Restart != "" {
		names = append(names, t.Restart)
	}
	for _, p := range t.Plans {
		names = append(names, p.Hooks()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Experiment runs every variant of a plan's experiment as often as it says, each time in its own directory. It returns the comparison, which has been
// kept, and the experiment's directory, or an error if there is no comparison. When ctx ends, everything ends at once.
func Experiment(ctx context.Context, c Config, t *Trial) (*run.Experiment, string, error) {
	s := &series{Config: c, Trial: t, spent: make([]time.Duration, len(t.Variants)), passed: make([]bool, len(t.Variants))}
	if err := s.open(); err != nil {
		return nil, "", err
	}
	x, dir := s.result, s.dir
	if x.Gate != nil {
		fmt.Fprintf(s.Words, "gate: is %s of phase %s worse than %s's by %s? 8 to %d pairs of runs\n", x.Gate.Metric, x.Gate.Phase, t.Experiment.Baseline, quantity.Percent(x.Gate.Worse), t.Repeat)
	} else {
		fmt.Fprintf(s.Words, "experiment of %d runs: %d variants × %d, %s, baseline %s\n", len(t.Variants)*t.Repeat, len(t.Variants), t.Repeat, t.Order, t.Experiment.Baseline)
	}
	if len(t.LeftOut) > 0 {
		fmt.Fprintf(s.Words, "left out by the plan: %s\n", strings.Join(t.LeftOut, ", "))
	}
	if len(s.kept) > 0 {
		fmt.Fprintf(s.Words, "%d of them have been run, and are kept\n", len(s.kept))
	}
	fmt.Fprintf(s.Words, "if it is cut off, go on with --resume %s\n", x.ID)
	s.Drain, s.timedOut = limited(c.Drain, c.Timeout, c.Timeout)
	s.run(ctx)
	if s.timedOut() {
		fmt.Fprintln(s.Words, s.endedBy().Text)
	}
	return x, dir.Path(), errors.Join(s.conclude(), dir.Close())
}

// series is an experiment in progress, used by one goroutine.
type series struct {
	Config
	*Trial
	settings *experiment.Settings
	dir      *rundir.Experiment
	result   *run.Experiment
	results  []*run.Run
	kept     map[experiment.Turn]*run.Run // when an experiment resumes: the runs that need not be repeated
	spent    []time.Duration              // by variant
	passed   []bool                       // by variant: it exceeded its cap, and that was reported

	rounds   int  // how many runs every variant had at the last forecast of differences
	foreseen bool // no further forecast is needed

	begun    time.Time   // when the first run was begun here
	timedOut func() bool // says whether Timeout ended it; call it once it has ended
}

// run goes through the schedule until the user asks for an end.
func (s *series) run(ctx context.Context) {
	turns := experiment.Schedule(s.Trial.Experiment, s.result.Seed)
	s.begun = time.Now()
	for i, t := range turns {
		if interrupted(ctx, s.Drain) {
			s.result.Abort(s.endedBy())
			return
		}
		if s.decided(i) {
			return
		}
		if r := s.kept[t]; r != nil {
			s.enter(t, r, time.Duration(r.Seconds*1e9))
			continue
		}
		if s.Cap > 0 && s.spent[t.Variant] >= s.Cap {
			if !s.passed[t.Variant] {
				s.passed[t.Variant] = true
				s.result.Cap(s.Variants[t.Variant].Name)
			}
			continue
		}
		fmt.Fprintf(s.Words, "run %d of %d: %s, repetition %d\n", i+1, len(s.Variants)*s.Repeat, s.Variants[t.Variant].Name, t.Repetition)
		s.turn(ctx, t)
		if why := experiment.Hopeless(s.result, s.results); why != nil {
			s.result.Abort(*why)
			return
		}
		if s.result.Gate == nil {
			s.foresee()
		}
	}
	if interrupted(ctx, s.Drain) {
		s.result.Abort(s.endedBy())
	}
}

// decided says whether a gate needs no further pair, or has no time for one, before run number i from 0. It says how the gate stands after each pair.
func (s *series) decided(i int) bool {
	if s.result.Gate == nil || i == 0 || i%2 != 0 {
		return false
	}
	done := experiment.Look(s.result, s.results)
	g := s.result.Gate
	if !done && g.By != nil {
		fmt.Fprintf(s.Words, "after %s: %+.1f %%\n", quantity.Count(g.Pairs, "pair"), 100**g.By)
	}
	spent := time.Since(s.begun)
	return done || s.Budget > 0 && spent+spent/time.Duration(i/2) > s.Budget
}

// endedBy says what ended the experiment early.
func (s *series) endedBy() reason.Why {
	if s.timedOut() {
		return timedOutAfter(s.Timeout)
	}
	return reason.User
}

// turn runs a variant once. The experiment's result records the outcome, whatever it is.
func (s *series) turn(ctx context.Context, t experiment.Turn) {
	variant := s.Variants[t.Variant].Name
	began := time.Now()
	drain, capped := limited(s.Drain, s.Cap, s.Cap-s.spent[t.Variant])
	defer capped()
	result := s.carryOut(ctx, s.Plans[t.Variant], job{drain: drain, restart: RestartOf(s.Trial.Experiment, variant), header: run.Header{
		ID:         rundir.NewID(began, fmt.Sprintf("%s-%s-%d", s.result.Plan, variant, t.Repetition)),
		Experiment: s.result.ID, ExperimentDigest: s.result.PlanDigest, Variant: variant, Repetition: t.Repetition,
	}}, capped)
	s.enter(t, result, time.Since(began))
	fmt.Fprintf(s.Words, "%s: %s, %s; %s\n", variant, result.Verdict.Completeness, result.Verdict.Validity, time.Since(began).Round(time.Millisecond))
	if err := s.dir.Save(s.result); err != nil {
		fmt.Fprintf(s.Words, "loadgen: %v\n", err)
	}
}

// enter adds a finished run to the experiment's result.
func (s *series) enter(t experiment.Turn, r *run.Run, took time.Duration) {
	s.spent[t.Variant] += took
	s.results = append(s.results, r)
	s.result.Add(r)
}

// carryOut runs a plan in its own directory and returns its result, which records a failure.
func (s *series) carryOut(ctx context.Context, p *plan.Plan, j job, capped func() bool) *run.Run {
	dir, err := s.begin(&j, p)
	if err != nil {
		return run.New(j.header, s.Environment()).Fail(err)
	}
	conclude := func(r *run.Run) {
		switch {
		case r.Verdict.Completeness != run.Aborted:
		case capped():
			is := run.Capped
			if !slices.Contains(r.Stopped(), reason.User) {
				is = run.Aborted // something else had aborted it before
			}
			r.Conclude(is, endedBy(r, reason.Why{Code: reason.Capped, Text: fmt.Sprintf("ended by the cap of %v on the runs of a variant", s.Cap)})...)
		case interrupted(ctx, j.drain) && s.timedOut():
			r.Conclude(run.Aborted, endedBy(r, s.endedBy())...)
		}
	}
	result := s.execute(ctx, j, dir, conclude)
	s.Ended(result, dir.Path())
	return result
}

// foresee reports which differences the experiment can show at best: once every variant has been run and, if those are too few runs to tell, again as
// soon as there are enough.
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
		return // already reported
	}
	for _, line := range lines {
		fmt.Fprintln(s.Words, line)
	}
}

// conclude computes and keeps the comparison, with the tables and charts that the plan describes.
func (s *series) conclude() error {
	experiment.Conclude(s.result, s.results)
	s.result.Finished = true
	planOf := func(r *run.Run) (*plan.Plan, error) { return s.Plans[s.index(r.Variant)], nil }
	return errors.Join(s.settings.Show(s.result, s.results, planOf, s.Latencies(s.result)), s.dir.Save(s.result))
}
