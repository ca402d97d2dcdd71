package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/result/rundir"
)

func newExport(flags *runFlags) *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "export RUN... -o FILE",
		Short: "Pack runs and experiments into one file, for another machine",
		Long: `Pack runs, and experiments with their runs, into one file (tar, gzip), for loadgen runs import on another machine. The same runs make
the same file.`,
		Example: "  loadgen runs export 20261120T173438Z-hydra-m4-4f2a -o hydra.tar.gz",
		Args:    some,
		RunE: flags.inRoot(func(cmd *cobra.Command, root string, args []string) error {
			if out == "" {
				return errors.New("-o FILE is missing")
			}
			all, err := rundir.Packable(root, args)
			if err != nil {
				return fmt.Errorf("%w; see loadgen runs list", err)
			}
			if err := safefile.Replace(out, func(w io.Writer) error { return rundir.Pack(w, root, all) }); err != nil {
				return failed("%w", err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %s\n", out, strings.Join(all, ", "))
			return err
		}),
	}
	c.Flags().StringVarP(&out, "out", "o", "", "write to `FILE`")
	return c
}

func newImport(flags *runFlags) *cobra.Command {
	const mib = 1 << 20
	var most int64
	c := &cobra.Command{
		Use:   "import FILE",
		Short: "Unpack runs packed by loadgen runs export",
		Long: `Unpack runs and experiments packed by loadgen runs export; - reads standard input. Everything is checked before anything is kept: names,
sizes, digests, snapshot checksums, and, as loadgen runs verify does, each result against what its run has kept. A run of another version of
loadgen is imported as not verified, and says so wherever it is shown. Runs that are already there, byte for byte, are skipped; nothing is
overwritten.`,
		Example: "  loadgen runs import hydra.tar.gz",
		Args:    one("file"),
		RunE: flags.inRoot(func(cmd *cobra.Command, root string, args []string) error {
			in := cmd.InOrStdin()
			if args[0] != standard {
				f, err := safefile.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			not, but := map[string]string{}, map[string]string{} // why a run was not verified, or what of it
			added, there, err := rundir.Import(root, in, most*mib, func(root, id string) (string, error) {
				if rundir.StartOf(id).After(time.Now().Add(24 * time.Hour)) {
					return "", errors.New("its ID is more than a day ahead of this machine's clock")
				}
				checked, err := verified(flags.known, root, id)
				not[id], but[id] = checked.not, checked.but
				return checked.not, err
			})
			for _, id := range there {
				fmt.Fprintf(cmd.OutOrStdout(), "%s: is there already\n", id)
			}
			for _, id := range added {
				if why := not[id]; why != "" {
					fmt.Fprintf(cmd.OutOrStdout(), "%s: NOT VERIFIED: %s\n", id, why)
					continue
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s%s\n", id, but[id])
			}
			if err != nil {
				return failed("%s: %w", args[0], err)
			}
			return nil
		}),
	}
	c.Flags().Int64Var(&most, "max-size", 4096, "refuse to unpack more than this many `MIB`")
	return c
}

func newDelete(flags *runFlags) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:   "delete RUN...",
		Short: "Delete runs and experiments",
		Long: `Delete runs, and experiments with their runs. Asks first; without a terminal, --yes is required. A run that is being written is not
deleted, nor is one of an experiment that stays.`,
		Example: "  loadgen runs delete 20261120T173438Z-hydra-m4-4f2a",
		Args:    some,
		RunE: flags.inRoot(func(cmd *cobra.Command, root string, args []string) error {
			all, err := rundir.DeletedWith(root, args)
			if err != nil {
				return fmt.Errorf("%w; see loadgen runs list", err)
			}
			if !yes {
				what := "it"
				if len(all) > 1 {
					what = fmt.Sprintf("these %d", len(all))
				}
				if err := ask(cmd, what, all); err != nil {
					return err
				}
			}
			for _, id := range all {
				if err := rundir.Delete(root, id); err != nil {
					return failed("%w", err)
				}
				fmt.Fprintf(cmd.OutOrStdout(), "deleted %s\n", id)
			}
			return nil
		}),
	}
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask")
	return c
}

// ask names things and asks the user at the terminal whether to delete them.
func ask(cmd *cobra.Command, what string, names []string) error {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return fmt.Errorf("no terminal to ask whether to delete %s: add --yes", strings.Join(names, ", "))
	}
	for _, name := range names {
		fmt.Fprintln(cmd.ErrOrStderr(), name)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "Delete %s for good? [y/N] ", what)
	line, err := bufio.NewReader(io.LimitReader(in, 80)).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return errors.New("nothing was deleted")
	}
	return nil
}
