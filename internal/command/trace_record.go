package command

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/target/capture"
)

func newTraceRecord() *cobra.Command {
	f := recordFlags{lasts: time.Minute, most: 1 << 30}
	c := &cobra.Command{
		Use:   "record HOST:PORT",
		Short: "Record what clients ask of a Redis or Valkey, for replay",
		Long: `Record what clients ask of a Redis or Valkey by MONITOR, for --for, and write a trace and the plan that replays it, as trace import does. MONITOR costs
the server about half as much processor time again while it runs. Ctrl-C ends the recording and keeps what there is.
A password comes from LOADGEN_SECRET_TARGET in the environment.`,
		Example: `  loadgen trace record redis://127.0.0.1:6379 --for 60s -o shop`,
		Args:    one("address"),
		RunE:    func(cmd *cobra.Command, args []string) error { return f.record(cmd, args[0]) },
	}
	flags := c.Flags()
	f.add(flags, "record")
	flags.DurationVar(&f.lasts, "for", f.lasts, "record for so long")
	flags.Int64Var(&f.most, "most", f.most, "end after so many `BYTES` of MONITOR's output")
	flags.StringVar(&f.ca, "ca", "", "trust the certificates in `FILE` for rediss:// (default: the system's)")
	return c
}

// underWay is how long what the server has sent by the end of a recording may take to arrive.
const underWay = 200 * time.Millisecond

// recordFlags are the flags of trace record.
type recordFlags struct {
	importFlags
	lasts time.Duration
	most  int64
	ca    string
}

func (f *recordFlags) record(cmd *cobra.Command, text string) error {
	endpoint, dial, err := redisAt(text, "TARGET", f.ca)
	if err != nil {
		return err
	}
	if f.lasts <= 0 || f.most <= 0 {
		return errors.New("--for and --most: write more than 0")
	}
	if err := f.free(); err != nil {
		return err
	}
	f.options.Form = capture.Monitor
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	conn, err := dial(ctx)
	if err != nil {
		return failed("%s: %w", endpoint, err)
	}
	defer conn.Close()
	fmt.Fprintf(cmd.ErrOrStderr(), "recording %s for %v by MONITOR, which costs it about half as much processor time again; Ctrl-C ends it\n", endpoint, f.lasts)
	session := capture.NewSession(conn)
	watched := &watch{in: session.In, left: f.most}
	if err := errors.Join(session.Do("MONITOR"), conn.SetDeadline(time.Time{})); err != nil {
		return failed("%s: %w", endpoint, err)
	}
	ctx, cancel := context.WithTimeout(ctx, f.lasts)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now().Add(underWay)) })()
	sorter := capture.NewSorter(sortWindow)
	defer sorter.Close()
	if err := f.read(watched, sorter); err != nil {
		return failed("%s: %w", endpoint, err)
	}
	switch {
	case watched.left <= 0:
		fmt.Fprintf(cmd.ErrOrStderr(), "ended after %d bytes, as --most says\n", f.most)
	case ctx.Err() == nil:
		fmt.Fprintf(cmd.ErrOrStderr(), "the server ended MONITOR early; a client that reads too slowly is cut off (client-output-buffer-limit)\n")
	}
	return f.end(cmd.OutOrStdout(), sorter, [32]byte{}, []string{endpoint})
}

// redisAt reads the address of a server that is asked by loadgen itself, not by a driver, and returns how to connect to it. Its password is in the URL,
// or in LOADGEN_SECRET_ and a name.
func redisAt(text, secret, ca string) (endpoint string, dial func(context.Context) (net.Conn, error), err error) {
	a, err := choice{drivers: []string{"redis"}, write: "write HOST:PORT, redis:// or rediss://", others: "only servers that speak RESP will do"}.parse(text, "")
	if err != nil {
		return "", nil, err
	}
	if a.database != "" {
		return "", nil, fmt.Errorf("%s/%s: no database here: all are recorded and compared", a.endpoint, a.database)
	}
	if a.password == "" {
		a.password, _ = environmentSecrets(secret) // a server may need none
	}
	settings := &tls.Config{}
	if settings.ServerName, _, err = net.SplitHostPort(a.endpoint); err != nil && a.tls {
		return "", nil, err
	}
	if ca != "" {
		if settings.RootCAs, err = sockets.Authorities(pemFile, ca); err != nil {
			return "", nil, failed("--ca: %w", err)
		}
	}
	return a.endpoint, func(ctx context.Context) (net.Conn, error) {
		network, place := "tcp", a.endpoint
		if path, local := strings.CutPrefix(place, "unix://"); local {
			network, place = "unix", path
		}
		conn, err := (&net.Dialer{Timeout: answers}).DialContext(ctx, network, place)
		if err != nil {
			return nil, err
		}
		if a.tls {
			conn = tls.Client(conn, settings)
		}
		if err := a.authenticate(conn); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}, nil
}

func pemFile(path string) ([]byte, error) { return safefile.Read(path, maxAuthorities) }

// authenticate logs in, if there is a password.
func (a *address) authenticate(conn net.Conn) error {
	words := []string{"AUTH", a.user, a.password}
	switch {
	case a.password == "" && a.user != "":
		return fmt.Errorf("user %s has no password", a.user)
	case a.password == "":
		return nil
	case a.user == "":
		words = slices.Delete(words, 1, 2)
	}
	return capture.NewSession(conn).Do(words...)
}

// watch reads the output of MONITOR until it has all, or a deadline is over, and then ends like a file.
type watch struct {
	in   io.Reader
	left int64
}

func (w *watch) Read(p []byte) (int, error) {
	if w.left <= 0 {
		return 0, io.EOF
	}
	n, err := w.in.Read(p)
	w.left -= int64(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = io.EOF
	}
	return n, err
}
