package engine

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
)

// hanging is a driver of clients that does one thing only until the time for it is over.
type hanging struct {
	driver.Driver // of whose other methods it has those of null
	in            string
	deaf          chan struct{} // if it is not nil, the driver heeds no deadline, and goes on until this is closed
}

func (d hanging) hang(ctx context.Context, in string) error {
	if d.in != in {
		return nil
	}
	if d.deaf != nil {
		<-d.deaf
	}
	<-ctx.Done()
	return ctx.Err()
}

func (d hanging) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	return doing(func(context.Context, *driver.Request, *driver.Reply) error { return nil }), d.hang(ctx, "dial")
}

func (d hanging) Identify(ctx context.Context, _ net.Conn, _ driver.Link) (map[string]string, error) {
	return map[string]string{"version": "1"}, d.hang(ctx, "identify")
}

func (d hanging) Prepare(ctx context.Context, _ net.Conn, _ driver.Link) error {
	return d.hang(ctx, "prepare")
}

func (d hanging) CleanUp(ctx context.Context, _ net.Conn, _ driver.Link) error {
	return d.hang(ctx, "clean up")
}

// Whatever a driver does for a phase has a deadline: 10 s to make ready, of which 3 s for a server to identify itself, and 5 s to clean up. Nobody waits
// more than half a second longer for a driver that does not heed it.
func TestDriversThatHang(t *testing.T) {
	for in, c := range map[string]struct {
		prepare, run time.Duration
		says         string
	}{
		"":         {0, 0, ""},
		"dial":     {10 * time.Second, 0, "connect to n0 (10.0.0.1:1): context deadline exceeded"},
		"identify": {3 * time.Second, 0, `target "t": n0 (10.0.0.1:1): `},
		"prepare":  {10 * time.Second, 0, `target "t": n0 (10.0.0.1:1): `},
		"clean up": {0, 5 * time.Second, ""},
	} {
		hangs := func(t *testing.T, deaf chan struct{}) {
			p := nullPlan(t, 1, onBlocking, "clear {}")
			e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{hanging{null.Driver{}, in, deaf}}, Sleep: time.Sleep}, p)
			e.resolve = nil
			e.dial = func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe()
				t.Cleanup(func() { _ = there.Close() })
				return here, nil
			}
			began := time.Now()
			_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Clear))
			require.Equal(t, c.prepare, time.Since(began), in)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
				return
			}
			require.NoError(t, err)
			began = time.Now()
			ran(t, e)
			require.Equal(t, c.run, time.Since(began), in)
		}
		servertest.Bubble(t, func(t *testing.T) { hangs(t, nil) })
		for _, whole := range []*time.Duration{&c.prepare, &c.run} {
			if *whole > 0 {
				*whole += time.Duration(overtime)
			}
		}
		if c.says != "" {
			c.says = "the client did not return by its deadline"
		}
		servertest.Bubble(t, func(t *testing.T) {
			deaf := make(chan struct{})
			defer close(deaf)
			hangs(t, deaf)
		})
	}
}

// The context of a step ends what it was for, and nothing later.
func TestContextsEndWithTheirStep(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		p := nullPlan(t, 1, onBlocking, "ops = { get = 1 }\nclosed { iterations = 3 }")
		e := assigned(t, Config{Loops: 1, Sleep: time.Sleep}, p)
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			_, err := e.Prepare(ctx, stepOf(p.Phases[0], worker.Load))
			require.NoError(t, err)
			cancel()
			synctest.Wait()
			ctx, cancel = context.WithCancel(t.Context())
			final, err := e.Run(ctx, e.now(), takeAll)
			require.NoError(t, err)
			require.False(t, final.Stopped)
			require.EqualValues(t, 3, final.Totals.Ops[driver.Get].Due)
			cancel()
			synctest.Wait()
		}
	})
}

// A worker that no session falls to asks nobody for anything.
func TestIdleWorkerConnectsToNobody(t *testing.T) {
	p := nullPlan(t, 1, onBlocking, "ops = { get = 1 }\nclosed { iterations = 3 }")
	e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{hanging{null.Driver{}, "", nil}}}, p)
	e.resolve = nil
	e.dial = func(context.Context, string, string) (net.Conn, error) {
		t.Error("it connects")
		return nil, net.ErrClosed
	}
	ready := prepared(t, e, worker.Step{Phase: "load", Kind: worker.Load, Last: true, From: 1, To: 1})
	require.Zero(t, ready.Connections)
}

// keeping is a driver that keeps the context for which it prepares a server.
type keeping struct {
	hanging
	of *context.Context
}

func (d keeping) Prepare(ctx context.Context, _ net.Conn, _ driver.Link) error {
	*d.of = ctx
	return nil
}

// What a driver may do to make a phase ready ends when the phase is.
func TestPreparationEndsItsContext(t *testing.T) {
	var kept context.Context
	p := nullPlan(t, 1, onBlocking, "ops = { get = 1 }\nclosed { iterations = 3 }")
	e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{keeping{hanging{null.Driver{}, "", nil}, &kept}}}, p)
	e.resolve = nil
	e.dial = func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		t.Cleanup(func() { _ = there.Close() })
		return here, nil
	}
	loaded(t, e)
	require.ErrorIs(t, kept.Err(), context.Canceled)
}
