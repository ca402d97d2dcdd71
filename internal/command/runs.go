package command

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/report"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/target/drivers"
)

func newRuns(known *drivers.Set) *cobra.Command {
	flags := runsOf(known)
	c := group("runs", "Manage past runs", newList(flags), newShowRun(flags), newCompare(flags), newExport(flags), newImport(flags), newDelete(flags), newPush(flags), newRecover(flags), newVerifyRun(flags), newSamples(flags))
	c.PersistentFlags().StringVar(&flags.runs, "runs", "", "look for runs in `DIR` (default: in the user's state directory)")
	return c
}

// inRoot returns what a command does that works in the directory of runs.
func (f *runFlags) inRoot(do func(cmd *cobra.Command, root string, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		root, err := f.root()
		if err != nil {
			return err
		}
		return do(cmd, root, args)
	}
}

func newList(flags *runFlags) *cobra.Command {
	var texts []string
	c := &cobra.Command{
		Use:   "list",
		Short: "List runs, newest first",
		Example: `  loadgen runs list
  loadgen runs list --label branch=main`,
		Args: atMost(0),
		RunE: flags.inRoot(func(cmd *cobra.Command, root string, _ []string) error {
			labels, err := parseLabels(texts)
			if err != nil {
				return err
			}
			runs, err := rundir.List(root)
			if err != nil {
				return failed("%w", err)
			}
			return report.List(cmd.OutOrStdout(), labelled(runs, labels))
		}),
	}
	c.Flags().StringArrayVar(&texts, "label", nil, "list only runs with the label `NAME=VALUE`; if repeated, with all of them")
	return c
}

func newShowRun(flags *runFlags) *cobra.Command {
	var full bool
	c := &cobra.Command{
		Use:   "show [RUN]",
		Short: "Show the result of a run or an experiment",
		Long: `Show the result of a run or an experiment; by default, the last one. For an experiment that is still running, or was cut off, compare
the runs so far. For pages, Markdown, CSV and JSON, use loadgen report.`,
		Example: `  loadgen runs show
  loadgen runs show 20261120T173438Z-hydra-m4-4f2a`,
		Args: atMost(1),
		RunE: flags.inRoot(func(cmd *cobra.Command, root string, args []string) error {
			args, err := orLatest(root, args)
			if err != nil {
				return err
			}
			id := args[0]
			x, err := loadExperiment(flags.known, root, id)
			switch {
			case err == nil:
				return report.Experiment(cmd.OutOrStdout(), x, optionsFor(cmd.OutOrStdout(), "", full))
			case !errors.Is(err, fs.ErrNotExist):
				return err
			}
			r, err := rundir.Load(root, id)
			if err != nil {
				return fmt.Errorf("%w; see loadgen runs list", err)
			}
			return report.Text(cmd.OutOrStdout(), r, optionsFor(cmd.OutOrStdout(), "", full))
		}),
	}
	addFull(c.Flags(), &full)
	return c
}

// loadExperiment returns an experiment. If it has not finished, it compares the runs that it has so far.
func loadExperiment(known *drivers.Set, root, id string) (*run.Experiment, error) {
	x, err := rundir.LoadExperiment(root, id)
	if err != nil || x.Finished {
		return x, err
	}
	runs, err := runsNamed(root, x)
	if err != nil {
		return nil, err
	}
	experiment.Conclude(x, runs)
	s, planOf, err := settingsOf(known, root, id, x)
	switch {
	case errors.Is(err, fs.ErrNotExist): // it is of an older loadgen
		return x, nil
	case err == nil:
		s.Wanted.Charts = nil // they need histograms
		err = s.Show(x, runs, planOf, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("experiment %s: %w", id, err)
	}
	return x, nil
}

// runsNamed reads the runs that an experiment names.
func runsNamed(root string, x *run.Experiment) ([]*run.Run, error) {
	var runs []*run.Run
	for _, one := range x.Runs {
		r, err := rundir.Load(root, one.ID)
		if err != nil {
			return nil, fmt.Errorf("experiment %s: %w", x.ID, err)
		}
		runs = append(runs, r)
	}
	return runs, nil
}
