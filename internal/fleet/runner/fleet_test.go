package runner

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/hook"
	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// local is a worker in this process that only records its end.
type local struct {
	worker.Worker
	closed int
}

func (l *local) SetLease(time.Duration) {}
func (l *local) Close()                 { l.closed++ }

// config is of workers that come to a socket, or to a port of the loopback.
func fleetConfig(t *testing.T, listen string, words io.Writer) FleetConfig {
	dir, err := os.MkdirTemp("", "fleet") // a socket's path must be short
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return FleetConfig{
		Version: "v1", Listen: listen, Means: identity.Means{Dir: filepath.Join(dir, "d")}, Wait: time.Minute, TTL: time.Minute, Lease: time.Minute,
		Words: words, Logger: slog.New(slog.DiscardHandler), Refused: slog.New(slog.DiscardHandler),
	}
}

// soon ends long after what is awaited should have come.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestWithNoWorkersAskedForThereIsOneHere(t *testing.T) {
	here := &local{}
	c := fleetConfig(t, "socket:s", io.Discard)
	c.Spares = true
	c.New, c.CPU = func([]int) rpc.Local { return here }, func() time.Duration { return 3 * time.Second }
	f, err := OpenFleet("run", c)
	require.NoError(t, err)
	members, err := f.Gather(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, members, 1)
	require.Equal(t, worker.Member{Name: Local, Version: "v1", Worker: here}, members[0])
	require.Equal(t, []worker.Status{{Name: Local, Up: true, CPU: 3 * time.Second}}, f.Status())
	require.Zero(t, f.Lease(), "it ends with this process")
	require.False(t, f.Spares(), "nobody can come")
	require.Equal(t, "socket:s", f.Listen())
	require.Zero(t, here.closed)
	f.Close()
	require.Equal(t, 1, here.closed)
}

// While workers are awaited, the user is told how to start them, and may end the wait.
func TestWorkersThatDoNotComeAreNotWaitedForForEver(t *testing.T) {
	var words bytes.Buffer
	c := fleetConfig(t, "127.0.0.1:0", &words)
	c.Workers, c.Spares = 2, true
	f, err := OpenFleet("run", c)
	require.NoError(t, err)
	defer f.Close()
	require.True(t, f.Spares())
	require.Equal(t, time.Minute, f.Lease())

	host, port, err := net.SplitHostPort(f.Listen())
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", host)
	require.NotEqual(t, "0", port, "the next run of an experiment has the port of this one")

	drain := make(chan struct{})
	close(drain)
	ctx := soon(t)
	_, err = f.Gather(ctx, drain)
	require.ErrorContains(t, err, "no worker has come to "+f.Listen()+", of 2 wanted")
	require.NoError(t, ctx.Err())
	require.Contains(t, words.String(), "0 of 2 workers; start each with loadgen worker --join "+f.Listen())
	require.Empty(t, f.Status())
}

// A wait is bounded, and a child process that was to be the worker and has ended is not waited for.
func TestNobodyIsWaitedForInVain(t *testing.T) {
	bounded, child := fleetConfig(t, "127.0.0.1:0", io.Discard), fleetConfig(t, "", io.Discard)
	bounded.Workers, bounded.Wait = 1, time.Millisecond
	child.Child = []string{"end-at-once"}
	for _, c := range []FleetConfig{bounded, child} {
		f, err := OpenFleet("run", c)
		require.NoError(t, err)
		defer f.Close()
		ctx := soon(t)
		_, err = f.Gather(ctx, nil)
		require.ErrorContains(t, err, ", of 1 wanted")
		require.NoError(t, ctx.Err())
	}
}

func TestAPlaceThatIsNone(t *testing.T) {
	c := fleetConfig(t, "127.0.0.1:port", io.Discard)
	c.Workers = 1
	_, err := OpenFleet("run", c)
	require.ErrorContains(t, err, "--listen ")
}

// TestMain lets the test binary be a fleet's child process that ends without a word.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "end-at-once":
		os.Exit(1)
	case len(os.Args) > 1 && os.Args[1] == hook.Command:
		os.Exit(hook.Supervise(os.Args[2:]))
	}
	os.Exit(m.Run())
}

func TestTheLastThatWasStartedEndsFirst(t *testing.T) {
	var order []int
	f := &Fleet{}
	for i := range 3 {
		f.release = append(f.release, func() { order = append(order, i) })
	}
	f.Close()
	require.Equal(t, []int{2, 1, 0}, order)
}
