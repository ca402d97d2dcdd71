package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/target/drivers/null"
	"github.com/loadgen/loadgen/pkg/driver"
)

// slowClient takes a time for each request, or until its context ends; then it is unusable.
type slowClient struct {
	takes time.Duration
	used  *atomic.Int64
}

func (c slowClient) Do(ctx context.Context, _ *driver.Request, _ *driver.Reply) error {
	c.used.Add(1)
	select {
	case <-time.After(c.takes):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c slowClient) Close() error { return nil }

// dialed is a driver that brings its own client, which a test makes.
type dialed struct {
	driver.Driver // of whose other methods it has none
	dial          func(ctx context.Context, endpoint string) (driver.Session, error)
}

func (d dialed) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	return d.dial(ctx, link.Endpoint)
}

// doing is a client that is a function.
type doing func(ctx context.Context, req *driver.Request, reply *driver.Reply) error

func (f doing) Do(ctx context.Context, req *driver.Request, reply *driver.Reply) error {
	return f(ctx, req, reply)
}

func (f doing) Close() error { return nil }

// always dials the same client.
func always(client driver.Session) func(context.Context, string) (driver.Session, error) {
	return func(context.Context, string) (driver.Session, error) { return client, nil }
}

// driveClients carries out a phase of clients that a test dials.
func driveClients(t *testing.T, loops, endpoints int, dial func(context.Context, string) (driver.Session, error), target, phase string) (worker.Final, error) {
	t.Helper()
	p := nullPlan(t, endpoints, onBlocking+target, "ops = { get = 1 }\n"+phase)
	e := assigned(t, Config{Loops: loops, Drivers: []driver.Driver{dialed{null.Driver{}, dial}}, Sleep: time.Sleep}, p)
	defer e.Close()
	if _, err := e.Prepare(t.Context(), stepOf(p.Phase("load"), worker.Load)); err != nil {
		return worker.Final{}, err
	}
	return ran(t, e), nil
}

// A client that cannot be made again is tried every 50 ms. Each attempt may take a second, or the timeout if that is longer.
func TestClientsAreMadeAgain(t *testing.T) {
	for timeout, may := range map[string]time.Duration{"20ms": time.Second, "3s": 3 * time.Second} {
		servertest.Bubble(t, func(t *testing.T) {
			var tried []time.Duration
			var last time.Time
			var before context.Context
			dial := func(ctx context.Context, _ string) (driver.Session, error) {
				now := time.Now()
				if before != nil {
					require.Error(t, before.Err(), "what an attempt leaves running ends with it")
				}
				before = ctx
				if !last.IsZero() {
					until, _ := ctx.Deadline()
					require.Equal(t, may, until.Sub(now))
					tried = append(tried, now.Sub(last))
					last = now
					return nil, errors.New("nobody is there")
				}
				return doing(func(context.Context, *driver.Request, *driver.Reply) error {
					last = time.Now()
					return errors.New("gone")
				}), nil
			}
			_, err := driveClients(t, 1, 1, dial, "timeout = \""+timeout+"\"", "closed {\n sessions = 1\n duration = \"4s\"\n}")
			require.NoError(t, err)
			require.Zero(t, tried[0])
			require.Equal(t, slices.Repeat([]time.Duration{50 * time.Millisecond}, 79), tried[1:80])
		})
	}
}

// A phase whose clients cannot be made ends after ten seconds.
func TestClientsThatAreNeverMade(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		began := time.Now()
		hangs := func(ctx context.Context, _ string) (driver.Session, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		_, err := driveClients(t, 1, 1, hangs, "", "closed {\n sessions = 1\n iterations = 1\n}")
		require.ErrorContains(t, err, "connect to n0 (10.0.0.1:1)")
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}

// What a client leaves running ends with its call, not with the call's deadline.
func TestClientsContextEndsWithTheCall(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		ends := make(chan time.Duration, 3)
		client := doing(func(ctx context.Context, _ *driver.Request, _ *driver.Reply) error {
			began, done := time.Now(), ctx.Done()
			go func() {
				select {
				case <-done:
				case <-time.After(10 * time.Second):
				}
				ends <- time.Since(began)
			}()
			time.Sleep(time.Millisecond)
			return nil
		})
		_, err := driveClients(t, 1, 1, always(client), "", "closed {\n sessions = 1\n think = \"100ms\"\n iterations = 3\n}")
		require.NoError(t, err)
		for range cap(ends) {
			require.Equal(t, time.Millisecond, <-ends)
		}
	})
}

// TestClientsThatAreGoneGetNoCalls loses one of a session's two clients for good. The other carries out what is due from then on, and what it says of one
// call is kept though it begins the next at once.
func TestClientsThatAreGoneGetNoCalls(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var calls, dials atomic.Int64
		words := []byte("no room")
		client := doing(func(_ context.Context, _ *driver.Request, reply *driver.Reply) error {
			n := calls.Add(1)
			if n == 1 {
				return errors.New("it hung up")
			}
			clear(words)
			time.Sleep(time.Millisecond)
			if n%10 == 0 {
				copy(words, "no room")
				reply.Outcome, reply.Message = driver.Error, words
			}
			return nil
		})
		dial := func(context.Context, string) (driver.Session, error) {
			if dials.Add(1) > 2 {
				return nil, errors.New("it takes no more")
			}
			return client, nil
		}
		final, err := driveClients(t, 1, 1, dial, `timeout = "100ms"`, "closed {\n sessions = 1\n duration = \"500ms\"\n pipeline = 2\n}")
		require.NoError(t, err)
		get := final.Totals.Ops[driver.Get]
		require.Greater(t, dials.Load(), int64(2))
		require.EqualValues(t, 1, get.Causes[op.Lost])
		require.Equal(t, get.Outcomes[driver.Error]-1, maps.Collect(final.Totals.Errors.All())["no room"])
		require.Zero(t, get.Outcomes[driver.Timeout])
		require.Greater(t, get.Outcomes[driver.OK], uint64(300))
	})
}

// TestBacklogOfAClient fills what waits for a client that never returns: what has no room is refused.
func TestBacklogOfAClient(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		stuck := doing(func(context.Context, *driver.Request, *driver.Reply) error {
			<-release
			return nil
		})
		const beyond, room = 20, 1 + backlog + 1 // the one that it has, and those that wait
		final, err := driveClients(t, 1, 1, always(stuck), `timeout = "10ms"`, fmt.Sprintf("closed {\n sessions = 1\n iterations = %d\n}", room+beyond))
		require.NoError(t, err)
		get := final.Totals.Ops[driver.Get]
		require.Equal(t, measure.Requests{Sent: room, Timeout: room, Refused: beyond}, *final.Totals.Request(0, driver.Get))
		require.EqualValues(t, room, get.Outcomes[driver.Timeout])
		require.EqualValues(t, beyond, get.Causes[op.Refused])
	})
}

// TestWhatACallKeeps is its own copy of a value that is given in bytes, whose memory the next op takes.
func TestWhatACallKeeps(t *testing.T) {
	var call blockingCall
	for _, text := range []string{"first", "the second", "3"} {
		passing := &op.Verbatim{Bytes: []byte(text)}
		call.req.Value = &driver.Value{Size: len(text), Maker: passing}
		call.keep()
		clear(passing.Bytes)
		require.Equal(t, text, string(call.req.Value.AppendTo(nil)))
	}
}

// A client that stays with a request after its deadline has that request's key and value to the end, whatever ops have begun meanwhile.
func TestClientThatStaysHasItsOwnRequest(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var n, stayed atomic.Int64
		client := doing(func(_ context.Context, req *driver.Request, _ *driver.Reply) error {
			told := func() string { return fmt.Sprintf("%s %x", req.Key, req.Value.AppendTo(nil)) }
			before := told()
			if n.Add(1)%20 == 0 {
				time.Sleep(time.Second)
				stayed.Add(1)
			}
			time.Sleep(time.Millisecond)
			assert.Equal(t, before, told())
			return nil
		})
		p := nullPlan(t, 1, onBlocking+`timeout = "100ms"`, "ops = { put = 1 }\nclosed {\n sessions = 2\n pipeline = 3\n duration = \"5s\"\n}")
		e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{dialed{null.Driver{}, always(client)}}, Sleep: time.Sleep}, p)
		loaded(t, e)
		final := ran(t, e)
		require.Greater(t, final.Totals.Ops[driver.Put].Outcomes[driver.OK], uint64(100))
		require.Greater(t, stayed.Load(), int64(5))
	})
}

// TestBlockingClientsConnectSideBySide has 500 clients that take 300 ms each to connect: one after another they would take minutes. A loop connects
// 64 at a time.
func TestBlockingClientsConnectSideBySide(t *testing.T) {
	for _, loops := range []int{1, 4} {
		servertest.Bubble(t, func(t *testing.T) {
			var now, most atomic.Int64
			dial := func(context.Context, string) (driver.Session, error) {
				for n, m := now.Add(1), most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(300 * time.Millisecond)
				now.Add(-1)
				return slowClient{takes: time.Millisecond, used: new(atomic.Int64)}, nil
			}
			began := time.Now()
			_, err := driveClients(t, loops, 1, dial, "", "closed {\n sessions = 500\n iterations = 1\n}")
			require.NoError(t, err)
			require.Less(t, time.Since(began), openWithin)
			require.Equal(t, int64(loops*64), most.Load(), "at a time")
		})
	}
}

// TestBlockingClientThatCannotConnect ends the others' attempts, and closes those that are connected.
func TestBlockingClientThatCannotConnect(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var dials, closed atomic.Int64
		dial := func(ctx context.Context, _ string) (driver.Session, error) {
			if dials.Add(1) == 100 {
				return nil, errors.New("nobody there")
			}
			return closing{closed: &closed}, nil
		}
		_, err := driveClients(t, 1, 1, dial, "", "closed {\n sessions = 500\n iterations = 1\n}")
		require.ErrorContains(t, err, "nobody there")
		require.Equal(t, dials.Load()-1, closed.Load())
	})
	servertest.Bubble(t, func(t *testing.T) {
		var dials atomic.Int64
		dial := func(ctx context.Context, _ string) (driver.Session, error) {
			if dials.Add(1) == 1 {
				time.Sleep(time.Millisecond)
				return nil, errors.New("nobody there")
			}
			time.Sleep(2 * time.Millisecond)
			return doing(nil), nil
		}
		_, err := driveClients(t, 1, 1, dial, "", "closed {\n sessions = 500\n iterations = 1\n}")
		require.ErrorContains(t, err, "nobody there")
		require.EqualValues(t, 64, dials.Load(), "those that have begun")
	})
	servertest.Bubble(t, func(t *testing.T) {
		dial := func(ctx context.Context, _ string) (driver.Session, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began := time.Now()
		_, err := driveClients(t, 1, 1, dial, "", "closed {\n sessions = 500\n iterations = 1\n}")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.LessOrEqual(t, time.Since(began), openWithin)
	})
}

// closing is a client that counts how often it was closed.
type closing struct {
	doing
	closed *atomic.Int64
}

func (c closing) Close() error {
	c.closed.Add(1)
	return nil
}

// TestBlockingExecutorAllocatesNothingPerOp compares loads of different lengths: the extra allocations of the longer one are its clients', which
// allocate nothing.
func TestBlockingExecutorAllocatesNothingPerOp(t *testing.T) {
	nothing := doing(func(_ context.Context, _ *driver.Request, reply *driver.Reply) error { return nil })
	allocated := func(iterations int) float64 {
		final, err := driveClients(t, 1, 1, always(nothing), "", fmt.Sprintf("closed {\n sessions = 4\n pipeline = 2\n iterations = %d\n}", iterations))
		require.NoError(t, err)
		return float64(final.Generator.Mallocs)
	}
	allocated(1000) // what is made once in a process
	more := 20_000
	if !servertest.Whole() {
		more = 5_000
	}
	short, long := allocated(1000), allocated(1000+more)
	require.Less(t, (long-short)/float64(4*more), 0.05)
}

// waitedForProcessors returns how long the process's threads have been ready to run without a processor, in seconds, summed over threads.
func waitedForProcessors(t *testing.T) (sum float64) {
	threads, err := filepath.Glob("/proc/self/task/*/schedstat")
	require.NoError(t, err)
	for _, path := range threads {
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // the thread has ended
		}
		require.NoError(t, err)
		var ran, waited int64
		_, err = fmt.Sscan(string(b), &ran, &waited)
		require.NoError(t, err)
		sum += seconds(waited)
	}
	return sum
}

// TestExecutorThatIsTheBottleneckIsBusy has clients that take no time, so the executor limits the rate, but for the time in which other programs have the
// processors. With clients that wait for a target, or ops that wait until they are due, it does not.
func TestExecutorThatIsTheBottleneckIsBusy(t *testing.T) {
	busy := func(takes time.Duration, phase string) float64 {
		client := doing(func(context.Context, *driver.Request, *driver.Reply) error {
			if takes > 0 {
				time.Sleep(takes)
			}
			return nil
		})
		final, err := driveClients(t, 1, 1, always(client), "", phase)
		require.NoError(t, err)
		return final.Generator.Busy
	}
	for _, sessions := range []string{"1", "16"} {
		before := waitedForProcessors(t)
		share := busy(0, "closed {\n sessions = "+sessions+"\n duration = \"500ms\"\n}") // all are at work to the end
		waited := (waitedForProcessors(t) - before) / 0.5
		require.Greater(t, share+waited, 0.85, "%s sessions", sessions)
	}
	require.Less(t, busy(20*time.Millisecond, "closed {\n sessions = 1\n iterations = 20\n}"), 0.7)
	require.Less(t, busy(0, "closed {\n sessions = 1\n iterations = 10\n think = \"20ms\"\n}"), 0.7)
	require.Less(t, busy(0, "open {\n sessions = 1\n rate = 50\n duration = \"300ms\"\n}"), 0.7)
}

// unmoved is a program whose ops go on whatever happens.
type unmoved struct{ op.Program }

func (unmoved) On(dst []driver.Request, _ op.Event) ([]driver.Request, op.Step) {
	return dst, op.Step{}
}

// inFlight is an op of a session that nobody has begun.
func inFlight(l *loop, s *session) *opState {
	st := l.take()
	st.session, st.by = s, l.programs
	l.occupy(s, 1, 0)
	return st
}

// oneClient is a transport of one client, whose goroutine the test is, and an op whose program waits for nothing. Its clock stands still.
func oneClient(t *testing.T) (*blocking, *blockingConn, *opState) {
	t.Helper()
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
	b.equip(worker.Load)
	b.l.programs.Program = unmoved{}
	b.net.clock.tick = 0
	tr := &blocking{
		l: b.l, lane: &b.l.lane, link: b.g.link, endpoints: b.g.endpoints,
		clients: 1, limit: 2, timeout: time.Second, returned: make(chan *blockingCall, 4),
	}
	c := tr.newConn(0)
	c.up.Store(true)
	tr.conns = []*blockingConn{c}
	return tr, c, inFlight(b.l, b.l.sessions[0])
}

// setClock sets the time of a clock that stands still.
func (b *blocking) setClock(at int64) { b.l.clock.(*virtualClock).t = at }

// TestCallsBehindAClientThatStays has a client ignore its first deadline. Calls wait behind: the client has for each what is left of its timeout, and never
// sees one that has waited for too long, or whose turn comes when the lease is over.
func TestCallsBehindAClientThatStays(t *testing.T) {
	const timeout, ms = 100 * time.Millisecond, time.Millisecond
	for _, tt := range []struct {
		stays, lease time.Duration
		left         []time.Duration // of the first calls
	}{
		{620 * ms, time.Hour, []time.Duration{timeout, 80 * ms, timeout}}, // after half a second more, nobody waits for the first call
		{700 * ms, time.Hour, []time.Duration{timeout, timeout, timeout}},
		{750 * ms, time.Hour, []time.Duration{timeout, 50 * ms, timeout}},
		{620 * ms, 610 * ms, []time.Duration{timeout}},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			var left []time.Duration
			client := doing(func(ctx context.Context, _ *driver.Request, _ *driver.Reply) error {
				by, _ := ctx.Deadline()
				left = append(left, time.Until(by))
				time.Sleep(map[bool]time.Duration{true: tt.stays, false: ms}[len(left) == 1])
				return nil
			})
			p := nullPlan(t, 1, onBlocking+`timeout = "100ms"`, "ops = { get = 1 }\nclosed {\n sessions = 1\n duration = \"1s\"\n}")
			e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{dialed{null.Driver{}, always(client)}}, Sleep: time.Sleep}, p)
			loaded(t, e)
			e.SetLease(tt.lease)
			final := ran(t, e)
			require.Zero(t, final.Totals.Reconnects, "a call that waits costs no client")
			require.Nil(t, final.Generator.TCP, "it has no connections")
			require.Equal(t, tt.lease < tt.stays, len(left) == 1)
			require.Equal(t, tt.left, left[:len(tt.left)])
		})
	}
}

// Every client is closed: one that has failed at once, the others with their phase.
func TestClientsAreClosed(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var calls, dials, closed atomic.Int64
		dial := func(context.Context, string) (driver.Session, error) {
			dials.Add(1)
			return closing{func(context.Context, *driver.Request, *driver.Reply) error {
				if calls.Add(1)%10 == 0 {
					return errors.New("gone")
				}
				return nil
			}, &closed}, nil
		}
		_, err := driveClients(t, 1, 1, dial, "", "closed {\n sessions = 2\n iterations = 50\n}")
		require.NoError(t, err)
		require.Greater(t, dials.Load(), int64(5))
		require.Equal(t, dials.Load(), closed.Load())
	})
}

// The executor keeps a call until its client has it, and an answer until the loop has seen it.
func TestHowLongTheExecutorKeepsAnswers(t *testing.T) {
	tr, c, st := oneClient(t)
	require.True(t, tr.send(st.session, st, &driver.Request{Verb: driver.Get}))
	call := <-c.calls
	call.start, call.end, call.ok = call.handed+10, call.handed+50, true
	tr.finish(call, call.handed+70)
	require.EqualValues(t, 10+20, tr.late)
}

// What comes back after the end of an interval counts in the next one. Once the lease is over nothing is sealed before the rest of the step: what has
// not left is still to be taken back.
func TestCallsThatComeBackAfterAnInterval(t *testing.T) {
	for _, lapsed := range []bool{false, true} {
		tr, _, st := oneClient(t)
		require.True(t, tr.send(st.session, st, &driver.Request{Verb: driver.Get}))
		call := tr.conns[0].handed[0]
		call.start, call.end, call.ok = 1, 2, true
		ended := tr.l.rec
		tr.l.lapsed, tr.l.sealAt = lapsed, 100
		tr.setClock(150)
		require.True(t, tr.collect(call))
		require.EqualValues(t, 1, tr.l.rec.Request(0, driver.Get).Answered)
		require.Equal(t, lapsed, tr.l.rec == ended, "lapsed: %v", lapsed)

		require.True(t, tr.send(st.session, st, &driver.Request{Verb: driver.Get}))
		again := tr.conns[0].handed[0]
		again.start, again.end, again.ok = 1, 2, true
		tr.give(t.Context(), again)
		require.True(t, tr.collect(nil))
		require.EqualValues(t, 2, tr.l.rec.Request(0, driver.Get).Answered)
	}
}

// linked is a driver whose clients make connections.
type linked struct {
	driver.Driver // of whose other methods it has none
	dial          func(ctx context.Context, link driver.Link) (driver.Session, error)
}

func (d linked) Dial(ctx context.Context, link driver.Link) (driver.Session, error) {
	return d.dial(ctx, link)
}

// A client that waits for its connection, whatever becomes of its context, ends when that is cut, a second and a half after its phase.
func TestClosingCutsConnections(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		returned := make(chan bool, 1)
		d := linked{null.Driver{}, func(ctx context.Context, link driver.Link) (driver.Session, error) {
			conn, err := link.Dial(ctx)
			return doing(func(context.Context, *driver.Request, *driver.Reply) error {
				_, err := conn.Read(make([]byte, 1))
				returned <- true
				return err
			}), err
		}}
		e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{d}, Sleep: time.Sleep}, nullPlan(t, 1, onBlocking+`timeout = "1h"`, "ops = { get = 1 }\nclosed { iterations = 1 }"))
		here, there := net.Pipe()
		defer there.Close()
		e.dial = func(context.Context, string, string) (net.Conn, error) { return here, nil }
		step := stepOf(e.plan.Phases[0], worker.Load)
		step.Last = false
		prepared(t, e, step)
		time.AfterFunc(time.Second, e.Drain)
		ran(t, e)
		require.Empty(t, returned)
		began := time.Now()
		e.Close()
		<-returned
		require.Equal(t, closeWithin, time.Since(began))
	})
}

// What the kernel has counted is known if any client has made a connection, and is told once.
func TestTrafficOfClients(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	tr, c, _ := oneClient(t)
	tr.connect = func(ctx context.Context, _, _ int) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", listener.Addr().String())
	}
	tr.conns = append(tr.conns, tr.newConn(0)) // which makes none
	_, known := tr.traffic()
	require.False(t, known)
	here, err := c.meter.Dial(t.Context())
	require.NoError(t, err)
	defer here.Close()
	there, err := listener.Accept()
	require.NoError(t, err)
	defer there.Close()
	for _, n := range []uint64{5, 0, 300} {
		_, err = here.Write(make([]byte, n))
		require.NoError(t, err)
		_, err = io.ReadFull(there, make([]byte, n))
		require.NoError(t, err)
		since, known := tr.traffic()
		require.True(t, known)
		require.Equal(t, n, since.BytesSent-since.BytesRetransmitted)
	}
}
