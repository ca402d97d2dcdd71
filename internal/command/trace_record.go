package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/target/capture"
)

func newTraceRecord() *cobra.Command {
	f := recordFlags{lasts: time.Minute, most: 1 << 30}
	c := &cobra.Command{
		Use:   "record HOST:PORT",
		Short: "Record what clients ask of a Redis or Valkey, for replay",
		Long: `Record what clients ask of a Redis or Valkey by MONITOR, for --for, and write a trace and the plan that replays it, as trace import does. MONITOR costs
the server about half as much processor time again while it runs. Ctrl-C ends the recording and keeps what there is.`,
		Example: `  loadgen trace record redis://127.0.0.1:6379 --for 60s -o shop`,
		Args:    one("address"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.record(cmd, args[0]) },
	}
	flags := c.Flags()
	flags.StringVarP(&f.stem, "output", "o", "", "write STEM.trace and STEM.hcl, with the path `STEM`")
	flags.DurationVar(&f.lasts, "for", f.lasts, "record for so long")
	flags.Int64Var(&f.most, "most", f.most, "end after so many `BYTES` of MONITOR's output")
	flags.StringSliceVar(&f.allow, "allow", nil, "record commands that are left out otherwise, by `NAME,...`")
	flags.BoolVar(&f.force, "force", false, "overwrite existing files")
	return c
}

// recordFlags are the flags of trace record.
type recordFlags struct {
	importFlags
	lasts time.Duration
	most  int64
}

func (f *recordFlags) record(cmd *cobra.Command, text string) error {
	a, err := plainRedis(text)
	if err != nil {
		return err
	}
	if f.lasts <= 0 || f.most <= 0 {
		return errors.New("--for and --most: write more than 0")
	}
	if err := f.free(); err != nil {
		return err
	}
	f.form = capture.Monitor
	f.begin()
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	conn, err := (&net.Dialer{Timeout: answers}).DialContext(ctx, "tcp", a.endpoint)
	if err != nil {
		return failed("%w", err)
	}
	defer conn.Close()
	fmt.Fprintf(cmd.ErrOrStderr(), "recording %s for %v by MONITOR, which costs it about half as much processor time again; Ctrl-C ends it\n", a.endpoint, f.lasts)
	watched := &watch{conn: conn, left: f.most}
	if err := watched.begin(); err != nil {
		return failed("%s: MONITOR: %w", a.endpoint, err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.lasts)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })()
	sorter := capture.NewSorter(sortWindow)
	defer sorter.Close()
	if err := f.read(watched, 0, sorter, io.Discard); err != nil {
		return failed("%s: %w", a.endpoint, err)
	}
	switch {
	case watched.left <= 0:
		fmt.Fprintf(cmd.ErrOrStderr(), "ended after %d bytes, as --most says\n", f.most)
	case ctx.Err() == nil:
		fmt.Fprintf(cmd.ErrOrStderr(), "the server ended MONITOR early; a client that reads too slowly is cut off (client-output-buffer-limit)\n")
	}
	return f.end(cmd.OutOrStdout(), sorter, [32]byte{}, []string{a.endpoint})
}

// plainRedis reads the address of a server that is asked by loadgen itself, not by a driver.
func plainRedis(text string) (*address, error) {
	a, err := choice{drivers: []string{"redis"}, write: "write HOST:PORT or redis://HOST:PORT", others: "only servers that speak RESP will do"}.parse(text, "")
	if err != nil {
		return nil, err
	}
	if a.tls || a.user != "" || a.password != "" || a.database != "" {
		return nil, fmt.Errorf("%s: no TLS, password or database here: write HOST:PORT", a.endpoint)
	}
	return a, nil
}

// watch reads the output of MONITOR until it has all, or its connection's deadline is over, and then ends like a file.
type watch struct {
	conn net.Conn
	left int64
}

// begin starts MONITOR and waits for its +OK.
func (w *watch) begin() error {
	if err := w.conn.SetDeadline(time.Now().Add(answers)); err != nil {
		return err
	}
	if _, err := io.WriteString(w.conn, "MONITOR\r\n"); err != nil {
		return err
	}
	var reply []byte
	for one := make([]byte, 1); len(reply) < 512 && (len(reply) == 0 || reply[len(reply)-1] != '\n'); {
		if _, err := w.conn.Read(one); err != nil {
			return err
		}
		reply = append(reply, one[0])
	}
	if string(reply) != "+OK\r\n" {
		return fmt.Errorf("it says %.200q", reply)
	}
	return w.conn.SetDeadline(time.Time{})
}

func (w *watch) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, io.EOF
	}
	n, err := w.conn.Read(p)
	w.left -= int64(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}
