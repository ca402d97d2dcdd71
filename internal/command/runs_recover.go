package command

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/result/report"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/plan"
)

func newRecover(flags *runFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "recover RUN",
		Short: "Recover a run whose coordinator died",
		Long: `Rebuild the result of a run whose coordinator died, or had no room for the result, from the snapshots that it had acknowledged.

The result is degraded (exit code 3): it says what is missing, and bounds or estimates the ops that nobody counted. It is aborted (5) or
failed (6) if the run already was when its coordinator died. From then on it is a run like any other.`,
		Example: `  loadgen runs recover 20261120T173438Z-hydra-m4-4f2a`,
		Args:    one("run"),
		RunE: flags.inRoot(func(cmd *cobra.Command, root string, args []string) error {
			dir, torn, err := rundir.Reopen(root, args[0])
			if err != nil {
				return failed("%w", err)
			}
			result, p, err := replayed(flags.known, root, args[0], true, dir.Records)
			if err != nil {
				return failed("recover run %s: %w", args[0], errors.Join(err, dir.Discard()))
			}
			if torn > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "loadgen: the last %d bytes of its snapshots are incomplete, and left out\n", torn)
			}
			return finishRecovered(cmd.OutOrStdout(), dir, p, result)
		}),
	}
}

// finishRecovered keeps the result and shows it.
func finishRecovered(w io.Writer, dir *rundir.Dir, p *plan.Plan, r *run.Run) error {
	if err := errors.Join(keepSamples(dir, p, r), dir.Finish(r)); err != nil {
		return failed("%w", err)
	}
	if err := report.Text(w, r, optionsFor(w, dir.Path(), false)); err != nil {
		return failed("%w", err)
	}
	return exitWith(r.ExitCode)
}
