package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/drivers/null"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
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

// TestRequestsThatWaitTooLongCostNoClient hands eight requests at a time to a client that carries out two within their timeout. The others time out.
// The one in progress then costs the client; those that still waited do not.
func TestRequestsThatWaitTooLongCostNoClient(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		p := nullPlan(t, 1, onBlocking+`timeout = "25ms"`, "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 80\n pipeline = 8\n}")
		b := newPipedBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
		b.g.plan, b.g.phase, b.g.target = p, p.Phase("load"), p.Target("t")
		var dials, used atomic.Int64
		tr := &blocking{
			l: b.l, lane: &b.l.lane, link: b.g.link, endpoints: b.g.endpoints[:1], clients: 1, limit: backlog, timeout: b.g.target.Timeout,
			dial: func(context.Context, driver.Link) (driver.Session, error) {
				dials.Add(1)
				return slowClient{10 * time.Millisecond, &used}, nil
			},
		}
		b.l.tr.close()
		b.l.tr, b.l.lane.tr = tr, tr
		defer tr.close()
		require.NoError(t, tr.open(b.l.clock.now()+int64(time.Second)))
		get := b.run(worker.Load).Ops[driver.Get]
		require.Positive(t, get.Outcomes[driver.OK])
		require.Equal(t, get.Due, get.Outcomes[driver.OK]+get.Outcomes[driver.Timeout]+get.Outcomes[driver.Error])
		require.LessOrEqual(t, used.Load(), int64(get.Outcomes[driver.OK])+dials.Load(), "one request for each client is its last")
		require.Less(t, dials.Load(), int64(get.Outcomes[driver.Timeout])/2)
	})
}

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
	e := New(Config{Loops: loops, Drivers: []driver.Driver{dialed{null.Driver{}, dial}}, Logger: slog.New(slog.DiscardHandler), Spin: -1, Sleep: time.Sleep})
	defer e.Close()
	canonical, err := p.Canonical()
	require.NoError(t, err)
	require.NoError(t, e.Assign(t.Context(), worker.Assignment{Plan: canonical, Digest: plan.Digest(canonical), Zero: time.Now(), Workers: 1}))
	if _, err := e.Prepare(t.Context(), stepOf(p.Phase("load"), worker.Load)); err != nil {
		return worker.Final{}, err
	}
	final, err := e.Run(t.Context(), time.Duration(e.clock.now()), func(*measure.Snapshot) (func() error, error) {
		return func() error { return nil }, nil
	})
	require.NoError(t, err)
	require.NoError(t, final.Totals.CheckValid())
	return final, nil
}

// A client that cannot be made again is tried at 10 ms, 20 ms and so on, up to every second. Each attempt may take a second, or the timeout if that
// is longer.
func TestClientsAreMadeAgainEverLessOften(t *testing.T) {
	for timeout, may := range map[string]time.Duration{"20ms": time.Second, "3s": 3 * time.Second} {
		servertest.Bubble(t, func(t *testing.T) {
			var tried []time.Duration
			var last time.Time
			dial := func(ctx context.Context, _ string) (driver.Session, error) {
				now := time.Now()
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
			var want []time.Duration
			for _, ms := range []int{0, 10, 20, 40, 80, 160, 320, 640, 1000} {
				want = append(want, time.Duration(ms)*time.Millisecond)
			}
			require.Equal(t, want, tried[:len(want)])
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
		require.ErrorContains(t, err, "connect to n0 (e0)")
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

// TestTargetOfClientsDies has clients that fail and cannot be connected again: later ops fail, and the load ends on time.
func TestTargetOfClientsDies(t *testing.T) {
	for _, loops := range []int{1, 2, 4} {
		for _, endpoints := range []int{1, 4} {
			servertest.Bubble(t, func(t *testing.T) {
				dies := time.Now().Add(500 * time.Millisecond)
				client := doing(func(context.Context, *driver.Request, *driver.Reply) error {
					time.Sleep(time.Millisecond)
					if time.Now().After(dies) {
						return errors.New("it is dead")
					}
					return nil
				})
				dial := func(context.Context, string) (driver.Session, error) {
					if time.Now().After(dies) {
						return nil, errors.New("it is dead")
					}
					return client, nil
				}
				began := time.Now()
				final, err := driveClients(t, loops, endpoints, dial, `timeout = "300ms"`, "closed {\n sessions = 4\n duration = \"1s\"\n pipeline = 8\n}")
				require.NoError(t, err)
				require.Less(t, time.Since(began), 1400*time.Millisecond)
				get := final.Totals.Ops[driver.Get]
				require.Zero(t, get.InFlight)
				require.Greater(t, get.Outcomes[driver.OK], uint64(1000))
				require.Positive(t, get.Outcomes[driver.Error])
			})
		}
	}
}

// TestClientsThatAreGoneGetNoCalls loses one of a session's two clients for good. The other carries out what is due from then on.
func TestClientsThatAreGoneGetNoCalls(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var calls, dials atomic.Int64
		client := doing(func(context.Context, *driver.Request, *driver.Reply) error {
			if calls.Add(1) == 1 {
				return errors.New("it hung up")
			}
			time.Sleep(time.Millisecond)
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
		require.EqualValues(t, 1, get.Outcomes[driver.Error])
		require.Zero(t, get.Outcomes[driver.Timeout])
		require.Greater(t, get.Outcomes[driver.OK], uint64(300))
	})
}

// TestClientsThatIgnoreTheirDeadline has clients that never return: their calls are given up a little after the deadline, and calls that wait behind
// at their own. Neither the load nor closing waits for them.
func TestClientsThatIgnoreTheirDeadline(t *testing.T) {
	for _, loops := range []int{1, 2} {
		servertest.Bubble(t, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			stuck := doing(func(context.Context, *driver.Request, *driver.Reply) error {
				<-release
				return nil
			})
			began := time.Now()
			final, err := driveClients(t, loops, 1, always(stuck), `timeout = "100ms"`, "closed {\n sessions = 2\n duration = \"1s\"\n pipeline = 8\n}")
			require.NoError(t, err)
			require.Less(t, time.Since(began), time.Second+100*time.Millisecond+time.Duration(overtime)+closeWithin+50*time.Millisecond)
			get := final.Totals.Ops[driver.Get]
			require.Zero(t, get.InFlight)
			require.Positive(t, get.Outcomes[driver.Timeout])
			require.Equal(t, get.Due, get.Outcomes[driver.Timeout]+get.Outcomes[driver.Error])
		})
	}
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

// TestClientsThatAnswerTooLate has clients that ignore their deadline and answer after it: the ops have timed out, and the answers are late.
func TestClientsThatAnswerTooLate(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		var n atomic.Int64
		slow := doing(func(context.Context, *driver.Request, *driver.Reply) error {
			if n.Add(1)%10 == 0 {
				time.Sleep(time.Second)
			}
			time.Sleep(time.Millisecond)
			return nil
		})
		final, err := driveClients(t, 1, 1, always(slow), `timeout = "100ms"`, "closed {\n sessions = 1\n duration = \"5s\"\n}")
		require.NoError(t, err)
		get := final.Totals.Ops[driver.Get]
		require.Zero(t, get.Outcomes[driver.Error])
		require.Equal(t, get.Due, get.Outcomes[driver.OK]+get.Outcomes[driver.Timeout])
		late := final.Totals.LateReplies
		require.Greater(t, late, uint64(2))
		require.LessOrEqual(t, late, get.Outcomes[driver.Timeout])
		require.LessOrEqual(t, uint64(n.Load()), get.Outcomes[driver.OK]+late+1, "each call is answered in time, or late, or is in progress at the end")
	})
}

// TestWhatACallKeeps is its own copy of a key and a value, whose memory the next op takes.
func TestWhatACallKeeps(t *testing.T) {
	var call blockingCall
	for _, text := range []string{"first", "the second", "3"} {
		passing := &op.Verbatim{Bytes: []byte(text)}
		key, value := []byte("key:"+text), driver.Value{Size: len(text), Maker: passing}
		call.req = driver.Request{Key: key, Value: &value}
		call.keep()
		copy(key, "xxxxxxxxxx")
		copy(passing.Bytes, "xxxxxxxxxx")
		value.Size = 2
		require.Equal(t, "key:"+text, string(call.req.Key))
		require.Equal(t, text, string(call.req.Value.AppendTo(nil)))
		require.Same(t, passing, value.Maker)
	}
	value := driver.Value{Size: 10, Seed: 1}
	want := string(value.AppendTo(nil))
	call.req = driver.Request{Value: &value}
	call.keep()
	value.Seed = 2
	require.Equal(t, want, string(call.req.Value.AppendTo(nil)))
	call.req = driver.Request{}
	call.keep()
	require.Nil(t, call.req.Value)
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
		_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Load))
		require.NoError(t, err)
		final, err := e.Run(t.Context(), e.now(), takeAll)
		require.NoError(t, err)
		require.Greater(t, final.Totals.Ops[driver.Put].Outcomes[driver.OK], uint64(100))
		require.Greater(t, stayed.Load(), int64(5))
	})
}

// TestBlockingClientsConnectSideBySide has 500 clients that take 300 ms each to connect: one after another they would take minutes.
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
			require.LessOrEqual(t, most.Load(), int64(loops*64))
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
			return closing{&closed}, nil
		}
		_, err := driveClients(t, 1, 1, dial, "", "closed {\n sessions = 500\n iterations = 1\n}")
		require.ErrorContains(t, err, "nobody there")
		require.Equal(t, dials.Load()-1, closed.Load())
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
type closing struct{ closed *atomic.Int64 }

func (c closing) Do(context.Context, *driver.Request, *driver.Reply) error { return nil }

func (c closing) Close() error {
	c.closed.Add(1)
	return nil
}

// TestBlockingExecutorAllocatesNothingPerOp compares loads of different lengths: the extra allocations of the longer one are its clients', which
// allocate nothing.
func TestBlockingExecutorAllocatesNothingPerOp(t *testing.T) {
	nothing := doing(func(_ context.Context, _ *driver.Request, reply *driver.Reply) error { return nil })
	allocated := func(iterations string) uint64 {
		final, err := driveClients(t, 1, 1, always(nothing), "", "closed {\n sessions = 4\n pipeline = 2\n iterations = "+iterations+"\n}")
		require.NoError(t, err)
		return final.Generator.Mallocs
	}
	allocated("1000") // what is made once in a process
	const more = 4 * 20_000
	short, long := allocated("1000"), allocated("21000")
	require.Less(t, float64(max(long, short)-short)/more, 0.05)
}

// The executor's own time is what the loop was not idle, or what calls waited for it on the mean of all that may be under way; never more than all.
func TestTheExecutorsOwnTime(t *testing.T) {
	for _, tt := range []struct {
		idle, late int64
		clients    int
		want       int64
	}{
		{idle: 90, late: 400, clients: 2, want: 50}, // four sessions of two calls
		{idle: 90, late: 400, clients: 1, want: 100},
		{idle: 90, late: 400, clients: 5, want: 50},
		{idle: 30, late: 400, clients: 2, want: 70},
		{idle: 90, late: 4000, clients: 2, want: 100},
		{idle: 200, want: 0, clients: 2},
	} {
		b := &blocking{l: &loop{sessions: make([]*session, 4), pipeline: 2}, endpoints: make([]sockets.Endpoint, 1), clients: tt.clients, idle: tt.idle, late: tt.late}
		require.Equal(t, tt.want, b.own(100), tt)
		require.EqualValues(t, 100, b.own(100), "idle time counts once")
	}
}

// TestExecutorThatIsTheBottleneckIsBusy has clients that take no time, so the executor limits the rate. With clients that wait for a target, or ops
// that wait until they are due, it does not.
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
		share := busy(0, "closed {\n sessions = "+sessions+"\n duration = \"500ms\"\n}") // all are at work to the end
		require.Greater(t, share, 0.85, "%s sessions", sessions)
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

// An op starts with the first of its requests that a client takes up; requests that no client takes up do not count.
func TestAnOpBeganWithItsFirstRequest(t *testing.T) {
	for _, tt := range []struct{ begun, call, want int64 }{
		{0, 0, 0}, {0, 7, 7}, {5, 0, 5}, {5, 3, 3}, {5, 5, 5}, {5, 7, 5},
	} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
		b.equip(worker.Load)
		b.l.programs.Program = unmoved{}
		tr := &blocking{l: b.l, lane: &b.l.lane, endpoints: b.g.endpoints, clients: 1, limit: 1}
		c := tr.newConn(0)
		st := b.l.take()
		st.session, st.by, st.start = b.l.sessions[0], b.l.programs, tt.begun
		b.l.occupy(st.session, 1, 0)
		call := &blockingCall{conn: c, st: st, req: driver.Request{Verb: driver.Get}, start: tt.call, end: 9, failed: op.Lost, cause: errors.New("gone")}
		c.handed = append(c.handed, call)
		tr.finish(call, 10)
		require.Equal(t, tt.want, st.start, "%+v", tt)
	}
}

// A client takes up a call unless the loop has taken it back or may not load its target any more.
func TestWhichCallsAClientTakesUp(t *testing.T) {
	for _, tt := range []struct{ over, back, want bool }{{false, false, true}, {false, true, false}, {true, false, false}, {true, true, false}} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
		b.l.lease = &lease{suspended: func() time.Duration { return 0 }}
		b.l.lease.until.Store(never)
		if tt.over {
			b.l.lease.set(1)
		}
		tr := &blocking{l: b.l, lane: &b.l.lane, endpoints: b.g.endpoints, clients: 1, limit: 1, timeout: time.Hour, returned: make(chan *blockingCall, 1)}
		c := tr.newConn(0)
		call := &blockingCall{conn: c, req: driver.Request{Verb: driver.Get}}
		if tt.back {
			require.True(t, call.take())
		}
		c.calls <- call
		close(c.calls)
		var done atomic.Int64
		tr.serve(t.Context(), c, doing(func(context.Context, *driver.Request, *driver.Reply) error {
			done.Add(1)
			return nil
		}))
		require.Equal(t, tt.want, done.Load() == 1, "%+v", tt)
		require.Equal(t, tt.want, len(tr.returned) == 1, "%+v", tt)
		require.Equal(t, !tt.want && !tt.back, call.take(), "%+v: the loop can take it back", tt)
	}
}
