package command

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/internal/target/drivers/log"
)

func newInspectLog() *cobra.Command {
	return &cobra.Command{
		Use:   "inspect FILE",
		Short: "Show what a log file holds",
		Long: `Show what a log file holds: its layout and header, where it ends, what was begun and not completed, its entries by phase (the epoch) and session,
which entries are missing, and what is damaged.

The file is only read, and recovered in memory: it stays as it is. A file that is in use is refused. The next run with the same target deletes the
file, so copy it if you want to keep it. Exit codes: 0 the log is whole, 1 it is damaged or has gaps, 6 it could not be read.`,
		Example: "  loadgen log inspect ~/.local/state/loadgen/logs/wal-w0.pmlog",
		Args:    one("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return lookAt(args[0], func(c *log.Contents) error {
				showLog(cmd.OutOrStdout(), args[0], c)
				return nil
			})
		},
	}
}

func newVerifyLog() *cobra.Command {
	var expected uint64
	var run string
	var flags runFlags
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that a log file is whole",
		Long: `Check that a log file is whole: that no record of it is damaged, and that no entry of a session is missing between others. A record that was
begun but not completed is what a crash leaves, not damage. The file cannot say how far the log should reach: name the run that wrote it with --run,
or give the number of acknowledged entries with --expect, and fewer are damage. With neither, the log is whole as far as it reaches.

The file is only read. A file that is in use is refused. Exit codes: 0 the log is whole, 1 it is damaged or has gaps, 6 it could not be read.`,
		Example: "  loadgen log verify ~/.local/state/loadgen/logs/wal-w0.pmlog --run last",
		Args:    one("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return lookAt(args[0], func(c *log.Contents) error {
				w, reach := cmd.OutOrStdout(), ""
				switch {
				case run != "":
					if err := expectOf(&flags, run, args[0], c); err != nil {
						return failed("what run %s wrote to %s: %w", run, args[0], err)
					}
				case cmd.Flag("expect").Changed:
					c.Expect(expected)
				default:
					reach = " as far as it reaches"
				}
				if c.Whole() {
					fmt.Fprintf(w, "%s: whole%s, %s entries%s\n", args[0], reach, quantity.Thousands(c.Held()), badCopy(c))
					return nil
				}
				fmt.Fprintf(w, "%s: not whole, %s entries\n", args[0], quantity.Thousands(c.Held()))
				findings(w, c)
				return nil
			})
		},
	}
	c.Flags().Uint64Var(&expected, "expect", 0, "take fewer than `N` entries as damage")
	c.Flags().StringVar(&run, "run", "", "take it as damage if entries are missing that `RUN` had acknowledged")
	c.Flags().StringVar(&flags.runs, "runs", "", "look for the run in `DIR` (default: in the user's state directory)")
	c.MarkFlagsMutuallyExclusive("expect", "run")
	return c
}

// logName is the name of a log that all of a worker's sessions share: its target's, and the worker's number.
var logName = regexp.MustCompile(`^(.+)-w([0-9]{1,6})\.pmlog$`)

// expectOf takes it as damage if the log lacks entries that a run's snapshots acknowledge.
func expectOf(flags *runFlags, text, path string, c *log.Contents) error {
	name := logName.FindStringSubmatch(filepath.Base(path))
	if name == nil || c.Reused() {
		return errors.New("its snapshots tell that of a file TARGET-wN.pmlog that all of a worker's sessions append to, and that was never cleared: for others write --expect")
	}
	root, err := flags.root()
	if err != nil {
		return err
	}
	id, err := runNamed(root, text)
	if err != nil {
		return err
	}
	p, _, err := planOf(drivers.Stock(), root, id)
	if err != nil {
		return err
	}
	number, _ := strconv.Atoi(name[2])
	written, err := coord.Acknowledged(func(f func(worker, record []byte) error) error { return rundir.Records(root, id, f) }, number)
	if torn := (*rundir.TornError)(nil); err != nil && !errors.As(err, &torn) { // the run's own end may be torn, as the log's
		return err
	}
	said := false
	for _, ph := range p.Phases {
		if n := written[ph.Name]; n > 0 && ph.Target == name[1] {
			if cfg, ok := p.Target(ph.Target).Config.(*log.Config); ok && cfg.Full == "rotate" {
				return errors.New("it is rotated, so its snapshots do not tell which entries are still there: write --expect")
			}
			c.ExpectOf(engine.EpochOf(id, ph.Name), n, ph.Name)
			said = true
		}
	}
	if !said {
		return errors.New("its snapshots acknowledge no entry of it")
	}
	return nil
}

// lookAt shows a log, and returns an exit code if it is damaged or has gaps.
func lookAt(path string, show func(c *log.Contents) error) error {
	c, err := log.Inspect(path)
	if err != nil {
		return failed("%w", err)
	}
	if err := show(c); err != nil {
		return err
	}
	if !c.Whole() {
		return &exitError{code: exit.Assert}
	}
	return nil
}

// mostSessions is how many sessions of an epoch are shown.
const mostSessions = 20

// showLog writes a summary of a log's content.
func showLog(w io.Writer, path string, c *log.Contents) {
	closed := "not closed: its process was killed, or the machine crashed"
	if c.Clean {
		closed = "closed properly"
	}
	if c.Layout == "" {
		fmt.Fprintf(w, "%s: a log of %s bytes\n", path, quantity.Thousands(c.Size))
	} else {
		fmt.Fprintf(w, "%s: %s log of %s bytes, %s\n", path, c.Layout, quantity.Thousands(c.Size), closed)
		cleared := "never cleared"
		if c.Cleared > 1 {
			cleared = fmt.Sprintf("cleared last in era %d", c.Cleared)
		}
		fact(w, "header", "era %d, %s%s", c.Era, cleared, badCopy(c))
		fact(w, "end", "byte %s", quantity.Thousands(c.End))
	}
	if c.Found.Torn > 0 {
		fact(w, "torn", "%s begun and not completed, as a crash leaves them", quantity.Thousands(c.Found.Torn))
	}
	if c.Found.Holes > 0 {
		fact(w, "holes", "%s lost before later ones, as a crash leaves them in relaxed order", quantity.Count(c.Found.Holes, "record"))
	}
	fact(w, "entries", "%s", quantity.Thousands(c.Held()))
	for _, e := range c.Epochs {
		sizes := quantity.Thousands(e.Most)
		if e.Least != e.Most {
			sizes = quantity.Thousands(e.Least) + " to " + sizes
		}
		fact(w, "", "epoch %010x: %s of %s bytes by %s", e.ID>>24, quantity.Thousands(e.Entries), sizes,
			quantity.Count(len(e.Sessions), "session"))
		for i, s := range e.Sessions {
			if i == mostSessions {
				fact(w, "", "  and %s more", quantity.Count(len(e.Sessions)-i, "session"))
				break
			}
			fact(w, "", "  session %d: %s, from entry %s to %s", s.Session, quantity.Thousands(s.Entries), quantity.Thousands(s.Lowest),
				quantity.Thousands(s.Highest))
		}
	}
	if c.Strange > 0 {
		fact(w, "", "beside %s that no run wrote", quantity.Count(c.Strange, "record"))
	}
	findings(w, c)
}

// badCopy says which copy of a log's header cannot be read.
func badCopy(c *log.Contents) string {
	for i, name := range [...]string{"first", "second"} {
		if err := c.Wrong[i]; err != nil {
			return fmt.Sprintf("; the %s copy is damaged, the other will do: %v", name, err)
		}
	}
	return ""
}

// findings writes what is wrong with a log.
func findings(w io.Writer, c *log.Contents) {
	for _, kind := range []struct {
		name string
		log.Findings
	}{{"gaps", c.Gaps}, {"damage", c.Damage}} {
		if kind.Count == 0 {
			fact(w, kind.name, "none")
			continue
		}
		fact(w, kind.name, "%s", quantity.Thousands(kind.Count))
		for _, one := range kind.First {
			fact(w, "", "%s", one)
		}
		if kind.More {
			fact(w, "", "and more")
		}
	}
}

// fact writes a line of what is known about a log.
func fact(w io.Writer, name, format string, args ...any) {
	line := fmt.Sprintf("  %-9s %s", name, fmt.Sprintf(format, args...))
	fmt.Fprintln(w, strings.TrimRight(quantity.Plain(line), " "))
}
