package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/internal/target/capture"
)

func newTraceDiff() *cobra.Command {
	var flush bool
	c := &cobra.Command{
		Use:   "diff TRACE A B",
		Short: "Find the replies in which two servers differ",
		Long: `Send the requests of a trace to server A, to B and to A again, in recorded order on one connection, and compare the replies. A and B are Redis,
Valkey or others that speak RESP: HOST:PORT or redis://HOST:PORT. Both must be empty, unless --flush empties them; the keys that a pass put are
deleted after it.

Some replies may differ without a fault, and are counted apart, not judged: those in which A differs from itself; commands that answer by chance,
such as SPOP, and every later request on their keys; keys that expire within ten times the longest pass. Elements of sets compare in any order,
numbers as numbers, errors by their first word.

Exit codes: 0 no difference, 1 a difference, or B ended the connection, 6 A could not be compared or B not reached, 7 nothing could be judged.`,
		Example: `  loadgen trace diff shop.trace 127.0.0.1:6379 127.0.0.1:6380
  loadgen trace diff shop.trace redis://127.0.0.1:6379 redis://127.0.0.1:6380 --flush`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error { return traceDiff(cmd, args[0], args[1:], flush) },
	}
	c.Flags().BoolVar(&flush, "flush", false, "empty both servers before each pass, whatever they hold (FLUSHALL)")
	return c
}

func traceDiff(cmd *cobra.Command, path string, addresses []string, flush bool) error {
	var at [2]capture.Compared
	for i, text := range addresses {
		a, err := plainRedis(text)
		if err != nil {
			return err
		}
		at[i] = capture.Compared{Name: string(rune('A'+i)) + ", " + a.endpoint, Dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{Timeout: answers}).DialContext(ctx, "tcp", a.endpoint)
		}}
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
	d, err := capture.Compare(cmd.Context(), open, at[0], at[1], flush)
	if err != nil {
		return failed("%w", err)
	}
	return tellDifferences(cmd.OutOrStdout(), d)
}

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
