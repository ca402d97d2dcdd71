package cachenode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestControl(t *testing.T) {
	n := idleNode(t, 1<<20)
	n.store.set(0, []byte("k"), []byte("v"), 0)
	tests := []struct{ line, want string }{
		{"delay 100us", "ok"},
		{"delay 100", `error delay "100": write a duration with its unit, like 100us, or exp(100us), uniform(50us, 200us) or lognormal(100us, 0.5)`},
		{"delay -1s", "error delay -1s: write 0s to 1h0m0s"},
		{"delay", `error delay "": write a duration with its unit, like 100us, or exp(100us), uniform(50us, 200us) or lognormal(100us, 0.5)`},
		{"stall 1m", "ok"},
		{"stall 0s", "error stall: length 0s: write more than 0, at most 1h0m0s"},
		{"stall soon", `error stall "soon": write a duration with its unit, like 1s`},
		{"flush", "ok"},
		{"", `error unknown order "": want stall, delay, drop, flush, peers or quit`},
		{"dance \x1b[2J", `error unknown order "dance \x1b[2J": want stall, delay, drop, flush, peers or quit`},
		{"  quit \r", "ok"},
	}
	var in strings.Builder
	var want strings.Builder
	for _, test := range tests {
		in.WriteString(test.line + "\n")
		want.WriteString(test.want + "\n")
	}
	var out bytes.Buffer
	rest := strings.NewReader("never read\n")
	require.NoError(t, Control(context.Background(), n, io.MultiReader(strings.NewReader(in.String()), rest), &out))
	require.Equal(t, want.String(), out.String())
	require.Equal(t, fixed(100*time.Microsecond), *n.delays.times.Load())
	require.NotZero(t, n.gate.end(time.Since(n.gate.epoch)))
	require.Zero(t, n.store.stats().used)
}

// deaf is a writer whose reader is gone.
type deaf struct{}

func (deaf) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestControlEnds(t *testing.T) {
	n := idleNode(t, 1<<20)
	ctx := context.Background()
	require.NoError(t, Control(ctx, n, strings.NewReader(""), io.Discard), "end of the pipe")
	require.ErrorIs(t, Control(ctx, n, strings.NewReader("flush\n"), deaf{}), io.ErrClosedPipe)
	require.ErrorIs(t, Control(ctx, n, strings.NewReader(strings.Repeat("x", maxLine+1)), io.Discard), bufio.ErrTooLong)
	broken := errors.New("broken")
	require.ErrorIs(t, Control(ctx, n, io.MultiReader(strings.NewReader("flush\n"), failing{broken}), io.Discard), broken)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// runChild runs a child's side in this process. It returns the parent's ends of the pipes, and what RunChild returns.
func runChild(t *testing.T, ctx context.Context) (orders *os.File, answers *bufio.Reader, ended chan error) {
	t.Helper()
	in, orders, err := os.Pipe()
	require.NoError(t, err)
	said, out, err := os.Pipe()
	require.NoError(t, err)
	ended = make(chan error, 1)
	go func() {
		ended <- RunChild(ctx, Config{Listen: "127.0.0.1:0", Memory: 1 << 20}, in, out)
		_ = in.Close()
		_ = out.Close()
	}()
	t.Cleanup(func() {
		_ = orders.Close() // some tests did
		_ = said.Close()
	})
	answers = bufio.NewReader(said)
	line, err := answers.ReadString('\n')
	require.NoError(t, err)
	require.Regexp(t, `^ready 127\.0\.0\.1:\d+\n$`, line)
	return orders, answers, ended
}

func endsSoon(t *testing.T, ended chan error) {
	t.Helper()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(5 * time.Second):
		t.Fatal("child goes on")
	}
}

func TestRunChild(t *testing.T) {
	t.Run("end of the pipe", func(t *testing.T) {
		orders, _, ended := runChild(t, context.Background())
		require.NoError(t, orders.Close())
		endsSoon(t, ended)
	})
	t.Run("quit", func(t *testing.T) {
		orders, answers, ended := runChild(t, context.Background())
		_, err := io.WriteString(orders, "flush\nquit\n")
		require.NoError(t, err)
		endsSoon(t, ended)
		rest, err := io.ReadAll(answers)
		require.NoError(t, err)
		require.Equal(t, "ok\nok\n", string(rest))
	})
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		_, _, ended := runChild(t, ctx)
		cancel()
		endsSoon(t, ended)
	})
	t.Run("bad config", func(t *testing.T) {
		in, orders, err := os.Pipe()
		require.NoError(t, err)
		defer orders.Close()
		defer in.Close()
		err = RunChild(context.Background(), Config{Listen: "127.0.0.1:0"}, in, io.Discard)
		require.ErrorContains(t, err, "memory bound of 0 bytes")
	})
}
