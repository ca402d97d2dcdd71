package engine

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
)

// inBubble runs a test in virtual time, on the blocking executor. The bubble fails it if a goroutine outlives the connections.
func inBubble(t *testing.T, endpoints int, target, phase string, test func(b *bench)) {
	t.Helper()
	servertest.Bubble(t, func(t *testing.T) {
		b := newPipedBench(t, redisPlan(t, endpoints, target+onBlocking, phase), "load", time.Millisecond)
		test(b)
		require.Nil(t, b.g.traffic(), "the kernel's counts of these are not known")
		b.g.close()
		time.Sleep(time.Minute) // until servers have found that nobody listens any more
	})
}

const getsForASecond = "ops = { get = 1 }\n max_bad = 1\n expect_hits = 0\n closed {\n sessions = 2\n pipeline = 3\n duration = \"1s\"\n}"

// TestCodecOnBothExecutors runs the same programs, loads and faults over the same scripted servers on the event loop and on the
// blocking executor: the same events come in the same order, and both ledgers are the same.
func TestCodecOnBothExecutors(t *testing.T) {
	late := func(b *bench) {
		b.server(0).latency = func(n int) time.Duration {
			if n%20 == 0 {
				return 25 * time.Millisecond
			}
			return time.Millisecond
		}
	}
	const closed = "ops = {\n get = 3\n put = 2\n delete = 1\n}\n max_bad = 1\n expect_hits = 0\n closed {\n sessions = 2\n pipeline = 2\n iterations = 300\n ramp = \"50ms\"\n}"
	const open = "ops = {\n get = 3\n put = 2\n}\n max_bad = 1\n expect_hits = 0\n open {\n rate = 700\n duration = \"1s\"\n arrivals = \"poisson\"\n sessions = 3\n pipeline = 4\n}"
	const quick = "timeout = \"20ms\"\n"
	for _, c := range []struct {
		name, target, phase string
		endpoints           int
		script              func(b *bench)
		late                bool
		direct              bool
	}{
		{name: "plain", phase: closed, endpoints: 4},
		{name: "plain, directly", phase: closed, endpoints: 4, direct: true},
		{name: "plain open, directly", phase: open, endpoints: 4, direct: true},
		{name: "late replies, directly", target: quick, phase: closed, endpoints: 2, script: late, late: true, direct: true},
		{name: "plain open", phase: open, endpoints: 4},
		{name: "nwr", target: nwr321, phase: closed, endpoints: 4},
		{name: "nwr open", target: nwr321, phase: open, endpoints: 4},
		{name: "nwr all", target: replicated[2].target, phase: closed, endpoints: 4},
		{name: "nwr read one", target: replicated[3].target, phase: closed, endpoints: 4},
		{name: "late replies", target: quick, phase: closed, endpoints: 2, script: late, late: true},
		{name: "late replies, nwr", target: quick + nwr321, phase: open, endpoints: 3, script: late, late: true},
		{name: "error replies", phase: closed, endpoints: 1, script: func(b *bench) { b.server(0).words = []byte("-OOM no room\r\n") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			prepare := func(b *bench) *logged {
				for i := range c.endpoints {
					b.server(i).uneven = i + 1
				}
				if c.script != nil {
					c.script(b)
				}
				log := &logged{anyWriter: true} // a virtualServer sends what a key holds when the reply leaves
				if !c.direct {
					b.log = log
				}
				return log
			}
			loop := newBench(t, redisPlan(t, c.endpoints, c.target, c.phase), "load", time.Millisecond)
			loop.net.clock.tick = 1
			want := prepare(loop)
			a := loop.run(worker.Load)
			require.True(t, a.LateReplies > 0 || !c.late)
			inBubble(t, c.endpoints, c.target, c.phase, func(b *bench) {
				got := prepare(b)
				z := b.run(worker.Load)
				require.Equal(t, want.lines, got.lines)
				require.Equal(t, a.Digest, z.Digest)
				require.Equal(t, a.Requests, z.Requests)
				require.Equal(t, a.LateReplies, z.LateReplies)
				require.Equal(t, a.Reconnects, z.Reconnects)
				for v, o := range a.Ops {
					if o == nil {
						continue
					}
					require.Equal(t, o.Ledger(), z.Ops[v].Ledger(), driver.Verb(v))
					require.Equal(t, o.Causes, z.Ops[v].Causes, driver.Verb(v))
					require.Equal(t, []uint64{o.In, o.Out}, []uint64{z.Ops[v].In, z.Ops[v].Out}, driver.Verb(v))
					before, after := o.ServiceAll().Answered, z.Ops[v].ServiceAll().Answered
					require.InDelta(t, before.Quantile(0.5), after.Quantile(0.5), 0.01*float64(before.Quantile(0.5)))
				}
			})
		})
	}
}

// TestPipedRepliesInPieces has every reply come a byte at a time.
func TestPipedRepliesInPieces(t *testing.T) {
	inBubble(t, 1, "", "ops = {\n get = 1\n put = 1\n}\n closed {\n sessions = 2\n pipeline = 4\n iterations = 200\n}", func(b *bench) {
		b.server(0).far.pieces = true
		got := b.run(worker.Load)
		get, put := got.Ops[driver.Get], got.Ops[driver.Put]
		require.EqualValues(t, 400, get.Outcomes[driver.OK]+get.Outcomes[driver.Miss]+put.Outcomes[driver.OK])
		require.EqualValues(t, get.Due, b.server(0).requests("GET"))
		require.EqualValues(t, put.Due, b.server(0).requests("SET"))
	})
}

// TestPipedServerGoesAway breaks connections off, twice, and refuses new ones for a while.
func TestPipedServerGoesAway(t *testing.T) {
	inBubble(t, 1, "", getsForASecond, func(b *bench) {
		go func() { // ends with the load
			time.Sleep(300 * time.Millisecond)
			b.server(0).far.Lock()
			b.server(0).down = true
			b.server(0).far.Unlock()
			b.server(0).cut()
			time.Sleep(200 * time.Millisecond)
			b.server(0).far.Lock()
			b.server(0).down = false
			b.server(0).far.Unlock()
			time.Sleep(200 * time.Millisecond)
			b.server(0).cut()
		}()
		got := b.run(worker.Load)
		require.EqualValues(t, 4, got.Reconnects)
		ledger := got.Request(0, driver.Get)
		require.Positive(t, ledger.Error)
		require.Positive(t, ledger.Refused)
		require.InDelta(t, ledger.Sent, b.server(0).requests("GET"), 2*2*3) // what both sessions were writing of their pipelines, each time
	})
}

// deafen has the first server read nothing for a while, so that a write to it takes as long.
func (b *bench) deafen(from, to time.Duration) {
	far, over := &b.server(0).far, make(chan struct{})
	set := func(until chan struct{}) {
		far.Lock()
		defer far.Unlock()
		far.deaf = until
	}
	time.AfterFunc(from, func() { set(over) })
	time.AfterFunc(to, func() {
		set(nil)
		close(over)
	})
}

// TestPipedRequestsLeaveOneWriteAfterAnother has a write last 20 ms: its requests are slow, and those that wait behind it are late, from when theirs begins.
func TestPipedRequestsLeaveOneWriteAfterAnother(t *testing.T) {
	inBubble(t, 1, "", "ops = { get = 1 }\nexpect_hits = 0\nclosed {\n sessions = 1\n pipeline = 3\n duration = \"1s\"\n}", func(b *bench) {
		b.server(0).uneven = 1
		b.deafen(300*time.Millisecond, 320*time.Millisecond)
		get := b.run(worker.Load).Ops[driver.Get]
		service := get.ServiceAll().Answered
		slow, late := above(&service, 10*time.Millisecond), above(&get.Lag, 10*time.Millisecond)
		require.Positive(t, slow)
		require.Positive(t, late)
		require.Equal(t, 3, slow+late)
	})
}

// TestPipedServerReadsNothing makes writes block: requests time out where they are, and the connection is opened again.
func TestPipedServerReadsNothing(t *testing.T) {
	inBubble(t, 1, "timeout = \"50ms\"", getsForASecond, func(b *bench) {
		b.deafen(300*time.Millisecond, 600*time.Millisecond)
		got := b.run(worker.Load)
		require.Positive(t, got.Reconnects)
		ledger := got.Request(0, driver.Get)
		require.Positive(t, ledger.Timeout)
		require.Zero(t, ledger.InFlight)
		require.InDelta(t, 50e6, got.Ops[driver.Get].Service[measure.ClassBad].Quantile(1), 2e6)
	})
}

// TestPipedHungConnectionIsReopened sends to a server that hangs: the connection is opened again after twice the timeout.
func TestPipedHungConnectionIsReopened(t *testing.T) {
	const load = "ops = { put = 1 }\n max_bad = 1\n closed {\n sessions = 1\n duration = \"400ms\"\n think = \"10ms\"\n}"
	inBubble(t, 3, "timeout = \"100ms\"\n"+nwr321, load, func(b *bench) {
		b.server(0).latency = func(n int) time.Duration {
			if n > 1 && n < 22 {
				return -1
			}
			return time.Millisecond
		}
		got := b.run(worker.Load)
		require.EqualValues(t, 1, got.Reconnects)
		ledger := got.Request(0, driver.Put)
		require.Greater(t, ledger.Answered, uint64(10))
		require.Positive(t, ledger.Timeout)
		require.EqualValues(t, ledger.Sent, b.server(0).requests("SET"))
	})
}

// TestPipedHostileBytes has servers that do not speak the protocol, or send more than they were asked for.
func TestPipedHostileBytes(t *testing.T) {
	for name, c := range map[string]struct {
		script func(s *virtualServer)
		want   string
	}{
		"another protocol":      {func(s *virtualServer) { s.words = []byte("HTTP/1.1 400 Bad Request\r\n\r\n") }, "HTTP/1.1 400"},
		"more than was asked":   {func(s *virtualServer) { s.far.twice = true }, driver.ErrUnasked.Error()},
		"a value without bound": {func(s *virtualServer) { s.words = []byte("$99999999999\r\n") }, "n0 (127.0.0.1:7001): "},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 1, "", "ops = { get = 1 }\n max_bad = 1\n expect_hits = 0\n closed {\n sessions = 2\n duration = \"1s\"\n}", func(b *bench) {
				c.script(b.server(0))
				got := b.run(worker.Load)
				require.Positive(t, got.Reconnects)
				var texts []string
				for text := range got.Errors.All() {
					texts = append(texts, text)
				}
				require.NotEmpty(t, texts)
				require.Contains(t, texts[0], c.want)
			})
		})
	}
}

// TestPipedGreetingIsRefused opens connections to a server that lets nobody in.
func TestPipedGreetingIsRefused(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		p := redisPlan(t, 1, onBlocking, getsForASecond)
		b := &bench{t: t, net: newVirtualNet(0)}
		b.refusal = "-NOAUTH Authentication required.\r\n"
		err := b.connect(p, "load", 0, &wallClock{zero: time.Now(), nap: time.Sleep})
		require.ErrorContains(t, err, "connect to n0 (127.0.0.1:7001): PING: server says NOAUTH")
		b.g.close()
	})
}

// TestPipedLoadEndsWithTheLease runs out of lease in the middle of a load: what had not left does not count as sent.
func TestPipedLoadEndsWithTheLease(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		inBubble(t, 1, "timeout = \"5s\"", "ops = { get = 1 }\n open {\n sessions = 4\n pipeline = 16\n rate = \"4000/s\"\n duration = \"10s\"\n}", func(b *bench) {
			b.e.SetLease(time.Duration(b.e.clock.now()) + 2*time.Second)
			wait := make(chan struct{})
			if deaf {
				time.AfterFunc(1999*time.Millisecond, func() {
					b.server(0).far.Lock()
					defer b.server(0).far.Unlock()
					b.server(0).far.deaf = wait
				})
			}
			got := b.run(worker.Load)
			require.True(t, b.l.lapsed)
			close(wait)
			synctest.Wait()
			require.EqualValues(t, b.server(0).requests("GET"), got.Request(0, driver.Get).Sent)
		})
	}
}

// TestWritesEndBetweenRequests has requests of several sizes leave by a pipe, which TLS goes through, however they are made: none is cut, and none shares a
// write with others that would make it longer than a TLS record.
func TestWritesEndBetweenRequests(t *testing.T) {
	for name, values := range map[string]string{"by programs": "size = 6000", "alone": "size = \"uniform(1000B, 40000B)\"", "as a sheet": "size = 6000", "large": "size = 20000"} {
		servertest.Bubble(t, func(t *testing.T) {
			p := redisPlanOf(t, 1, values, "timeout = \"1h\"\n"+onBlocking, "ops = { put = 1 }\nclosed {\n sessions = 2\n pipeline = 16\n iterations = 100\n}")
			b := newPipedBench(t, p, "load", time.Millisecond)
			b.indirect = name == "by programs"
			got := b.run(worker.Load)
			b.g.close()
			time.Sleep(time.Minute) // until servers have found that nobody listens any more
			require.EqualValues(t, 200, got.Ops[driver.Put].Outcomes[driver.OK], name)
			far := &b.server(0).far
			far.Lock()
			defer far.Unlock()
			require.Zero(t, far.broken, name)
			require.LessOrEqual(t, far.most, sockets.RecordSize, name)
			if name != "alone" {
				require.Equal(t, name != "large", far.most > sockets.RecordSize/2, name)
			}
		})
	}
}

// Requests that were handed over count as sent when their write began, and their op starts then, unless another of its requests left earlier.
// Requests behind them have not left.
func TestWhenWhatWasHandedOverBegan(t *testing.T) {
	for _, tt := range []struct{ start, sent, at, want int64 }{
		{5, 5, 7, 7}, {5, 5, 3, 3}, {5, 5, 5, 5}, {5, 6, 7, 5}, {5, 6, 5, 5}, {5, 6, 3, 3},
	} {
		c := &wireConn{handed: 2, behind: 1, fresh: 1}
		starts := make([]int64, 5)
		for i := range starts {
			starts[i] = tt.start
			c.queue.push(pending{start: &starts[i], sent: tt.sent, n: 1})
		}
		c.queue.at(1).start = nil
		c.began(tt.at)
		require.Zero(t, c.handed)
		require.Equal(t, []int64{tt.start, tt.start, tt.want, tt.start, tt.start}, starts, "%+v", tt)
		for i, want := range []int64{tt.sent, tt.at, tt.at, tt.sent, tt.sent} {
			require.Equal(t, want, c.queue.at(i).sent, "%+v: request %d", tt, i)
		}
	}
}

// Bytes leave a pipe when its goroutine writes them. Until then their requests can be taken back; from then on they have begun. Meanwhile the next
// ones wait, until all before them are written.
func TestHowRequestsLeaveAPipe(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		near, far := net.Pipe()
		began := time.Now()
		var over atomic.Bool
		p := sockets.NewPipes(
			func() int64 { return int64(time.Since(began)) },
			func(int64) bool { return over.Load() },
			func(context.Context, int32) (net.Conn, error) { return near, nil },
		)
		fd, err := p.Connect(nil, 0)
		require.NoError(t, err)
		synctest.Wait()
		w := &wire{l: new(loop), poll: p, ready: make([]sockets.Readiness, 1), partials: new(partials)}
		o := newOutlet(w, p)
		c := &wireConn{fd: fd}
		gather := func() {
			c.queue.push(pending{n: 1})
			c.fresh, c.out, c.cuts = 1, []byte("request"), []int{3}
			o.gathered(c)
			c.fresh = 0
		}
		pass := func(took int, err error) {
			t.Helper()
			n, whole, failed := o.pass(c)
			synctest.Wait()
			require.Equal(t, []any{took, false, err}, []any{n, whole, failed})
		}
		waiting := func(handed, behind int) {
			t.Helper()
			require.Equal(t, [2]int{handed, behind}, [2]int{c.handed, c.behind})
		}
		sent := func(want ...time.Duration) {
			t.Helper()
			for i, at := range want {
				require.EqualValues(t, at, c.queue.at(i).sent, "request %d", i)
			}
		}
		take := func() {
			t.Helper()
			_, err := io.ReadFull(far, make([]byte, len("request")))
			require.NoError(t, err)
			synctest.Wait()
		}

		time.Sleep(5 * time.Second)
		gather()
		pass(7, nil)
		waiting(1, 0)
		require.Empty(t, c.cuts)
		require.Zero(t, o.withdraw(c), "its write has begun")
		waiting(1, 0)
		gather()
		pass(0, sockets.ErrAgain)
		waiting(0, 1)
		require.Equal(t, []int{3}, c.cuts)
		sent(5*time.Second, 0)
		take()
		time.Sleep(time.Second)
		pass(7, nil)
		waiting(1, 0)
		take()
		time.Sleep(time.Second)
		gather()
		pass(7, nil)
		waiting(1, 0)
		sent(5*time.Second, 6*time.Second, 0)
		take()
		time.Sleep(time.Second)
		_, err = far.Write([]byte("reply"))
		require.NoError(t, err)
		synctest.Wait()
		_, err = p.Read(fd, make([]byte, 10))
		require.NoError(t, err)
		require.EqualValues(t, 8*time.Second, o.arrival(c))
		waiting(0, 0)
		sent(5*time.Second, 6*time.Second, 7*time.Second)
		_, err = o.wait(0)
		require.NoError(t, err)
		require.False(t, w.l.lapsed)

		over.Store(true)
		gather()
		pass(7, nil)
		waiting(1, 0)
		_, err = o.wait(0)
		require.NoError(t, err)
		require.True(t, w.l.lapsed)
		require.False(t, o.date(c))
		gather()
		pass(0, sockets.ErrAgain)
		waiting(1, 1)
		sent(5*time.Second, 6*time.Second, 7*time.Second, 0, 0)
		require.Equal(t, 1, o.withdraw(c))
		require.Zero(t, o.withdraw(c), "it is taken back already")
		require.Zero(t, o.withdraw(&wireConn{fd: -1}), "a connection that is down has handed nothing over")
		c.handed, c.behind = 0, 0
		pass(7, nil) // of no request, such as a greeting
		waiting(0, 0)
		require.True(t, o.date(c))
		p.Close(fd)
		p.Release()
		require.NoError(t, far.Close())
	})
}
