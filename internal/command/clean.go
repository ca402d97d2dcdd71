package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/fleet/runner"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

func newClean(known *drivers.Set) *cobra.Command {
	flags, yes := quickly("clean", known), false
	c := &cobra.Command{
		Use:   "clean RUN",
		Short: "Delete the keys that a run has left behind",
		Long: `Delete the keys that a run has left on its servers: carry out the clear phases of its plan, which delete keys by name. A run that came to
its end has done so itself; one that was killed has not. Running it twice does no harm.

Another may have written an imported run, so the command names the servers and keys and asks first, and sends secrets only where --secret says.`,
		Example: "  loadgen clean 20260102-150405-capacity-1a2b",
		Args:    one("run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, err := flags.root()
			if err != nil {
				return failed("%w", err)
			}
			p, _, err := planOf(known, root, args[0])
			if err != nil {
				return failed("%w", err)
			}
			if flags.loops.foreign = rundir.Imported(root, args[0]); flags.loops.foreign && !yes {
				if err := ask(cmd, "these keys", cleared(p)); err != nil {
					return err
				}
			}
			if err := flags.clean(cmd, p, cmd.ErrOrStderr()); err != nil {
				return failed("run %s: %w", args[0], err)
			}
			return nil
		},
	}
	set := c.Flags()
	flags.share(set, "runs", "secret")
	set.BoolVarP(&yes, "yes", "y", false, "do not ask before the keys of an imported run are deleted")
	return c
}

// cleared says which keys the clear phases of a plan delete, and where.
func cleared(p *plan.Plan) (list []string) {
	for _, ph := range p.Phases {
		if ph.Clear == nil {
			continue
		}
		keys := p.Dataset(ph.Dataset).Keys
		of := keys.Format
		if keys.File != nil {
			of = "from a file"
		}
		list = append(list, fmt.Sprintf("%s %s on %s", quantity.Count(keys.Count, "key"), of, strings.Join(p.Target(ph.Target).Endpoints, ", ")))
	}
	return list
}

// clean carries out the clear phases of a plan, as a run that is not kept.
func (f *quickFlags) clean(cmd *cobra.Command, p *plan.Plan, words io.Writer) error {
	only := *p
	only.Phases = slices.DeleteFunc(slices.Clone(p.Phases), func(ph *plan.Phase) bool { return ph.Clear == nil })
	only.Observes, only.Asserts = []*plan.Observe{}, []*plan.Assert{}
	if len(only.Phases) == 0 {
		return fmt.Errorf("its plan has no phase with clear {}, so it does not say what to delete")
	}
	cfg, err := f.config(io.Discard)
	if err != nil {
		return err
	}
	if cfg.Root, err = os.MkdirTemp("", "loadgen-clean-"); err != nil {
		return err
	}
	defer os.RemoveAll(cfg.Root)
	drain, ctx, release := interrupts(cmd.Context())
	defer release()
	cfg.Drain = drain
	result, _, err := runner.Run(ctx, cfg, &only, "")
	if err != nil {
		return err
	}
	if result.Verdict.Completeness != run.Complete {
		return fmt.Errorf("%s", result.Verdict.Reasons[0])
	}
	var deleted uint64
	for _, ph := range result.Phase {
		for _, o := range ph.Op {
			deleted += o.OK
		}
	}
	_, err = fmt.Fprintf(words, "Deleted %s.\n", quantity.Count(deleted, "key"))
	return err
}
