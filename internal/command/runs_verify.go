package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// mostDifferences bounds the lines that say where a result differs.
const mostDifferences = 10

func newVerifyRun(flags *runFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "verify RUN|EXPERIMENT...",
		Short: "Check results against what their runs have kept",
		Long: `Compute the results of runs again from what their workers and coordinators have kept, and compare phases, losses, environment, asserts,
verdict and samples; for an experiment, its runs and all that it says of them. Every difference is an error (exit code 6), and so is a run of
another version of loadgen, which may compute other figures from the same counts.

This shows that the parts of a run agree with each other. It does not show who made it: whoever can write one part can write all.`,
		Example: "  loadgen runs verify 20261120T173438Z-hydra-m4-4f2a",
		Args:    some,
		RunE: flags.inRoot(func(cmd *cobra.Command, root string, args []string) error {
			var failures []error
			for _, id := range args {
				if err := verify(cmd.OutOrStdout(), flags.known, root, id); err != nil {
					failures = append(failures, err)
				}
			}
			return orFailed(errors.Join(failures...))
		}),
	}
}

// verify verifies a run, or an experiment with its runs, and says so.
func verify(w io.Writer, known *drivers.Set, root, id string) error {
	ids := []string{id}
	if x, err := rundir.LoadExperiment(root, id); err == nil {
		for _, r := range x.Runs {
			ids = append(ids, r.ID)
		}
	}
	for _, id := range ids {
		checked, err := verified(known, root, id)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", id, err)
		case checked.not != "":
			return fmt.Errorf("%s: not verified: %s", id, checked.not)
		}
		fmt.Fprintf(w, "%s: verified%s\n", id, checked.but)
	}
	return nil
}

// check is the outcome of a verification that found no difference.
type check struct {
	not string // why it could not be verified; "" if it could
	but string // the part of it that was not made again, in words
}

// verified makes a result again and compares. The error says where it differs.
func verified(known *drivers.Set, root, id string) (check, error) {
	x, err := rundir.LoadExperiment(root, id)
	switch {
	case err == nil && x.Loadgen != version():
		return check{not: madeBy(x.Loadgen)}, nil
	case err == nil:
		return verifiedExperiment(known, root, id, x)
	case !errors.Is(err, fs.ErrNotExist):
		return check{}, err
	}
	r, err := rundir.Load(root, id)
	switch {
	case err != nil:
		return check{}, err
	case r.Loadgen != version():
		return check{not: madeBy(r.Loadgen)}, nil
	}
	return verifiedRun(known, root, id, r)
}

func madeBy(other string) string {
	return fmt.Sprintf("it was made by loadgen %s, and this is %s: only the same version makes the same figures from what was kept", other, version())
}

func verifiedRun(known *drivers.Set, root, id string, r *run.Run) (check, error) {
	again, p, err := replayed(known, root, id, r.Recovered, func(f func(worker, record []byte) error) error { return rundir.Records(root, id, f) })
	if errors.Is(err, coord.ErrNothingKept) && len(r.Phase)+len(r.Losses)+len(r.Asserts) == 0 && run.Degraded.Better(r.Verdict.Completeness) {
		return check{but: ": it ended before there was any load, and only says so"}, nil
	}
	if err != nil {
		return check{}, err
	}
	r.Unverified = ""
	if err := differing("its result", r, again); err != nil {
		return check{}, err
	}
	return check{}, sameSamples(root, id, p, again)
}

// differing returns an error if two results differ: the kept one, and the one that was made again.
func differing(what string, there, again any) error {
	list := rundir.Differences(there, again)
	n, least := len(list), ""
	switch n {
	case 0:
		return nil
	case rundir.MostDifferences:
		least = "at least "
	}
	if n > mostDifferences {
		list = append(list[:mostDifferences], fmt.Sprintf("and %d more", n-mostDifferences))
	}
	return fmt.Errorf("%s does not follow from what was kept of the run: %s%s:\n  %s", what, least, quantity.Count(n, "difference"), strings.Join(list, "\n  "))
}

// sameSamples compares the single ops of a run's file with those of its snapshots.
func sameSamples(root, id string, p *plan.Plan, r *run.Run) error {
	want, err := timeline.AppendSamples(nil, r, p.Words(), func(f func(worker, record []byte) error) error { return rundir.Records(root, id, f) })
	if err != nil {
		return err
	}
	var is []byte
	err = rundir.Samples(root, id, func(in io.Reader) (err error) {
		is, err = io.ReadAll(io.LimitReader(in, int64(len(want))+1))
		return err
	})
	if err != nil && !errors.Is(err, rundir.ErrNoSamples) {
		return err
	}
	if !bytes.Equal(is, want) {
		return errors.New("its samples are not those of its snapshots")
	}
	return nil
}

// verifiedExperiment compares an experiment with the one that its settings and its runs make.
func verifiedExperiment(known *drivers.Set, root, id string, x *run.Experiment) (check, error) {
	s, planOf, err := settingsOf(known, root, id, x)
	if err != nil {
		return check{}, err
	}
	runs, err := runsNamed(root, x)
	if err != nil {
		return check{}, err
	}
	again, unproven, err := experiment.Again(x, s, runs)
	if err != nil {
		return check{}, err
	}
	again.StartedAt = rundir.StartOf(x.ID)
	if x.Finished {
		study := timeline.NewStudy(again)
		for _, r := range runs {
			if len(s.Wanted.Charts) > 0 {
				detail, _ := loadRest(known, root, r, io.Discard)
				study.Add(r, detail)
			}
		}
		if err := s.Show(again, runs, planOf, study.Latency); err != nil {
			return check{}, err
		}
	}
	x.Unverified = ""
	if err := differing("it", x, again); err != nil {
		return check{}, err
	}
	switch {
	case !x.Finished:
		return check{but: ": it is unfinished, and its figures are computed whenever they are shown"}, nil
	case len(unproven) > 0:
		return check{but: fmt.Sprintf(", but for what only it says: %s", strings.Join(unproven, "; "))}, nil
	}
	return check{}, nil
}

// replayed makes the result of a run again, or of a run whose coordinator died, from the files in its directory.
func replayed(known *drivers.Set, root, id string, died bool, records func(f func(worker, record []byte) error) error) (*run.Run, *plan.Plan, error) {
	p, canonical, err := planOf(known, root, id)
	if err != nil {
		return nil, nil, err
	}
	replay := coord.Replay
	if died {
		replay = coord.Recover
	}
	r, err := replay(coord.Kept{
		Plan: p, Canonical: canonical, Records: records,
		Probes: func(f func(run.Probe) error) error { return rundir.Probes(root, id, f) },
	})
	if err != nil {
		return nil, nil, err
	}
	r.SetAsserts(expr.Evaluate(p, r))
	return r, p, nil
}
