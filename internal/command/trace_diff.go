package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/fleet/hook"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/internal/target/capture"
)

func newTraceDiff() *cobra.Command {
	var f diffFlags
	c := &cobra.Command{
		Use:   "diff TRACE A B",
		Short: "Find the replies in which two servers differ",
		Long: `Send the requests of a trace to server A, to B and to A again, in recorded order on one connection, and compare the replies. A and B are Redis,
Valkey or others that speak RESP: HOST:PORT, redis:// or rediss://. Both must be empty, unless --flush empties them or --before makes them alike;
the keys that a pass put are deleted after it. Passwords come from LOADGEN_SECRET_A and LOADGEN_SECRET_B in the environment.

Some replies may differ without a fault, and are counted apart, not judged: those in which A differs from itself; commands that answer by chance,
such as SPOP, and every later request on their keys; keys that expire within ten times the longest pass. Elements of sets compare in any order,
numbers as numbers, errors by their first word.

Exit codes: 0 no difference, 1 a difference, or B ended the connection, 6 A could not be compared or B not reached, 7 nothing could be judged.`,
		Example: `  loadgen trace diff shop.trace 127.0.0.1:6379 127.0.0.1:6380
  loadgen trace diff shop.trace redis://127.0.0.1:6379 redis://127.0.0.1:6380 --flush
  loadgen trace diff shop.trace 127.0.0.1:6379 127.0.0.1:6380 --before './restore.sh'`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args[0], args[1:]) },
	}
	c.Flags().BoolVar(&f.flush, "flush", false, "empty both servers before each pass, whatever they hold (FLUSHALL)")
	c.Flags().StringVar(&f.before, "before", "", "before each pass run `COMMAND ARGUMENT...`, without a shell, with the server's address in LOADGEN_ENDPOINT")
	c.Flags().StringVar(&f.ca, "ca", "", "trust the certificates in `FILE` for rediss:// (default: the system's)")
	return c
}

type diffFlags struct {
	flush  bool
	before string
	ca     string
}

func (f *diffFlags) run(cmd *cobra.Command, path string, addresses []string) error {
	var before hook.Hook
	if f.before != "" {
		var err error
		if before, err = hook.Parse("before=" + f.before); err != nil {
			return errors.New(strings.Replace(err.Error(), "--allow-exec before", "--before", 1))
		}
	}
	var at [2]capture.Compared
	for i, text := range addresses {
		name := string(rune('A' + i))
		endpoint, dial, err := redisAt(text, name, f.ca)
		if err != nil {
			return err
		}
		at[i] = capture.Compared{Name: name + ", " + endpoint, Dial: dial}
		if f.before != "" {
			at[i].Before = func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, beforeTime)
				defer cancel()
				_, err := before.Run(ctx, []string{"LOADGEN_ENDPOINT=" + endpoint})
				return err
			}
		}
	}
	open := func() (io.ReadCloser, error) { return safefile.Open(path) }
	file, err := open()
	if err != nil {
		return failed("%w", err)
	}
	_, err = trace.NewReader(file, trace.Requests, false)
	_ = file.Close() // it was only read
	if err != nil {
		return failed("%s:%w", path, err)
	}
	d, err := capture.Compare(cmd.Context(), open, at[0], at[1], f.flush)
	if err != nil {
		return failed("%w", err)
	}
	return tellDifferences(cmd.OutOrStdout(), d)
}

// beforeTime is how long --before may take.
const beforeTime = 10 * time.Minute

// tellDifferences prints what a comparison has found.
func tellDifferences(w io.Writer, d *capture.Differences) error {
	var b strings.Builder
	if d.Reads > 0 && 2*d.Missed > d.Reads {
		fmt.Fprintf(&b, "%d of %d reads found nothing: the trace reads what was stored before it began\n", d.Missed, d.Reads)
	}
	judged := d.Lines
	for _, n := range d.NotJudged {
		judged -= n
	}
	switch {
	case d.Died != nil:
		fmt.Fprintf(&b, "B ended at request %d: %s\n  B: %s\n", d.Died.Line, d.Died.Command, quantity.Plain(d.Died.B))
	case judged == 0:
		b.WriteString("Nothing could be judged.\n")
	case d.Different == 0:
		fmt.Fprintf(&b, "No difference in %d replies.\n", judged)
	}
	if d.Different > 0 {
		fmt.Fprintf(&b, "%d of %d replies differ: %d first on their keys, %d after those.\n", d.Different, judged, d.Different-d.Followers, d.Followers)
	}
	for _, f := range d.First {
		fmt.Fprintf(&b, "  request %d: %s\n    A: %s\n    B: %s\n", f.Line, quantity.Plain(f.Command), quantity.Plain(f.A), quantity.Plain(f.B))
	}
	if n := d.Different - d.Followers - int64(len(d.First)); n > 0 {
		fmt.Fprintf(&b, "  and %d more\n", n)
	}
	for _, why := range slices.Sorted(maps.Keys(d.NotJudged)) {
		fmt.Fprintf(&b, "not judged %8d  %s\n", d.NotJudged[why], why)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return failed("%w", err)
	}
	switch {
	case d.Different > 0 || d.Died != nil:
		return &exitError{code: exit.Assert}
	case judged == 0:
		return &exitError{code: exit.Undecided}
	}
	return nil
}
