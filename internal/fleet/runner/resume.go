package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/plan"
)

// open creates the directory of an experiment, or takes over that of one that was cut off and finds out which runs need not be repeated.
func (s *series) open() error {
	base := s.Baseline()
	now := time.Now()
	x := experiment.New(rundir.NewID(now, base.Name), base, s.Trial.Experiment, now, s.Version)
	x.Labels = s.Labels
	if s.Trial.Gate != nil {
		var err error
		if x.Gate, err = experiment.NewGate(s.Trial.Experiment, base); err != nil {
			return err
		}
	}
	s.settings = &experiment.Settings{Plan: base.Name, Seed: base.Seed, Experiment: s.Trial.Experiment, Gate: x.Gate, Wanted: s.Wanted}
	for _, p := range s.Plans {
		canonical, err := p.Canonical()
		if err != nil {
			return err
		}
		s.settings.Digests = append(s.settings.Digests, plan.Digest(canonical))
	}
	text, err := json.Marshal(s.settings)
	if err != nil {
		return fmt.Errorf("encode the experiment's settings: %w", err)
	}
	x.PlanDigest = plan.Digest(text)
	s.result = x
	if s.Resume != "" {
		return s.resume()
	}
	if s.dir, err = rundir.CreateExperiment(s.Root, x); err != nil {
		return err
	}
	if err := s.dir.KeepSettings(text); err != nil {
		return errors.Join(err, s.dir.Close())
	}
	return nil
}

// resume takes over the directory of the experiment to resume. It keeps the experiment's name, start time and labels. The runs keep their schedule,
// whichever are already done.
func (s *series) resume() error {
	dir, was, err := rundir.ReopenExperiment(s.Root, s.Resume)
	if err != nil {
		return err
	}
	x := s.result
	x.ID, x.StartedAt = was.ID, was.StartedAt
	runs, err := rundir.RunsOf(s.Root, was.ID)
	if err == nil {
		s.kept, err = experiment.Resume(x, was, runs)
	}
	switch {
	case err != nil:
	case was.Finished && len(s.kept) == x.Repeat*len(x.Variants): // an experiment that was cut off before the comparison still needs one
		err = fmt.Errorf("experiment %s has all of its %d runs: loadgen runs show %s shows how they compare", was.ID, len(s.kept), was.ID)
	case len(x.Labels) > 0 && !maps.Equal(x.Labels, was.Labels):
		err = fmt.Errorf("experiment %s has labels, and goes on with those: leave --label out", was.ID)
	}
	if err != nil {
		return errors.Join(err, dir.Close())
	}
	x.Labels, s.Labels, s.dir = was.Labels, was.Labels, dir
	return nil
}
