package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/target/drivers/log"
)

func newLog() *cobra.Command {
	return group("log", "Look at log files that a killed run or a crash has left", newInspectLog(), newVerifyLog())
}

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
			return lookAt(args[0], func(c *log.Contents) { showLog(cmd.OutOrStdout(), args[0], c) })
		},
	}
}

func newVerifyLog() *cobra.Command {
	var expected uint64
	c := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that a log file is whole",
		Long: `Check that a log file is whole: that no record of it is damaged, and that no entry of a session is missing between others. A record that was
begun but not completed is what a crash leaves, not damage. The file cannot say how far the log should reach: give the number of acknowledged
entries with --expect, and fewer are damage. Without it, the log is whole as far as it reaches.

The file is only read. A file that is in use is refused. Exit codes: 0 the log is whole, 1 it is damaged or has gaps, 6 it could not be read.`,
		Example: "  loadgen log verify ~/.local/state/loadgen/logs/wal-w0.pmlog",
		Args:    one("file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return lookAt(args[0], func(c *log.Contents) {
				w, reach := cmd.OutOrStdout(), " as far as it reaches"
				if cmd.Flag("expect").Changed {
					c.Expect(expected)
					reach = ""
				}
				if c.Whole() {
					fmt.Fprintf(w, "%s: whole%s, %s entries\n", args[0], reach, quantity.Thousands(c.Held()))
					return
				}
				fmt.Fprintf(w, "%s: not whole, %s entries\n", args[0], quantity.Thousands(c.Held()))
				findings(w, c)
			})
		},
	}
	c.Flags().Uint64Var(&expected, "expect", 0, "take fewer than `N` entries as damage")
	return c
}

// lookAt shows a log, and returns an exit code if it is damaged or has gaps.
func lookAt(path string, show func(c *log.Contents)) error {
	c, err := log.Inspect(path)
	if err != nil {
		return failed("%w", err)
	}
	show(c)
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
