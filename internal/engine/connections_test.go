package engine

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/drivers"
	"github.com/loadgen/loadgen/internal/drivers/redis"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

const manyConnections = 10_000

// manyServer starts a redis that takes as many connections as the test makes.
func manyServer(t testing.TB) (addr string) {
	t.Helper()
	var limit unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	var missing error
	if want := uint64(manyConnections + 1000); limit.Cur < want {
		missing = fmt.Errorf("%d open files are allowed, %d are wanted (ulimit -n %d)", limit.Cur, want, want)
	}
	servertest.Require(t, "files", missing)
	return servertest.Redis(t, "--maxclients", fmt.Sprint(manyConnections+100))
}

// bill is what a load cost.
type bill struct {
	sessions uint64 // that sent something
	ok       uint64
	bad      uint64
	bytes    uint64 // allocated in all, from the making of connections on
	user     time.Duration
}

// drive carries out a load of puts: the text of its block.
func drive(t testing.TB, addr, load string) bill {
	p := parsePlan(t, fmt.Sprintf(`
target "t" {
	driver    = "redis"
	endpoints = [%q]
	timeout   = "10s"
}
dataset "d" {
	keys { count = 1000 }
	values { size = 32 }
}
phase "load" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	%s
}`, addr, load))
	canonical, err := p.Canonical()
	require.NoError(t, err)
	e := New(Config{Drivers: drivers.All(), Loops: 1, Spin: -1, Logger: slog.New(slog.DiscardHandler)})
	defer e.Close()
	ctx := context.Background()
	require.NoError(t, e.Assign(ctx, worker.Assignment{Plan: canonical, Digest: plan.Digest(canonical), Zero: time.Now(), Workers: 1}))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = e.Prepare(ctx, stepOf(p.Phase("load"), worker.Load))
	require.NoError(t, err)
	began := userTime(t)
	final, err := e.Run(ctx, time.Duration(e.clock.now()), func(*measure.Snapshot) (func() error, error) {
		return func() error { return nil }, nil
	})
	require.NoError(t, err)
	s := bill{user: userTime(t) - began, sessions: final.Totals.Span.Sessions}
	runtime.ReadMemStats(&after)
	s.bytes = after.TotalAlloc - before.TotalAlloc
	ledger := final.Totals.Ops[driver.Put].Ledger()
	s.ok = ledger.Outcomes[driver.OK]
	s.bad = ledger.Due - s.ok
	return s
}

// userTime is what this process has spent outside of the kernel.
func userTime(t testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano())
}

// TestTenThousandConnections drives them all. Each takes at most 4 KiB, counting everything ever allocated for it.
func TestTenThousandConnections(t *testing.T) {
	addr := manyServer(t)
	const each500ms = "closed {\n sessions = %d\n think = \"500ms\"\n ramp = \"500ms\"\n iterations = 2\n}"
	some := drive(t, addr, fmt.Sprintf(each500ms, manyConnections/10))
	many := drive(t, addr, fmt.Sprintf(each500ms, manyConnections))
	require.EqualValues(t, manyConnections, many.sessions)
	require.Zero(t, many.bad)
	require.EqualValues(t, 2*manyConnections, many.ok)
	each := float64(many.bytes-some.bytes) / (manyConnections - manyConnections/10)
	t.Logf("%.0f bytes a connection", each)
	require.LessOrEqual(t, each, 4096.0)
}

// BenchmarkConnections compares the user time of an op on 1,000 and on 10,000 connections. Ops are due at the same times on both: with think times,
// fewer sessions would fall into step and have more ops done at a time.
func BenchmarkConnections(b *testing.B) {
	addr := manyServer(b)
	for _, sessions := range []int{manyConnections / 10, manyConnections} {
		b.Run(fmt.Sprintf("connections=%d", sessions), func(b *testing.B) {
			for b.Loop() {
				s := drive(b, addr, fmt.Sprintf("open {\n sessions = %d\n rate = \"20k/s\"\n duration = \"4s\"\n}", sessions))
				b.ReportMetric(float64(s.user.Nanoseconds())/float64(s.ok), "user-ns/op")
				b.ReportMetric(float64(s.ok)/4, "ops/s")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}

// TestMessagesBetweenReplies has servers send unasked messages: allowed ones are skipped, whole or in pieces, and others are errors.
func TestMessagesBetweenReplies(t *testing.T) {
	for protocol, all := range map[int]map[string]string{
		3: {">1\r\n+a\r\n": "", ">1\r\n+a\r\n>2\r\n:1\r\n$": ">2\r\n:1\r\n$", ">1\r\n+a\r\n+OK\r\n": "unasked", "$-1\r\n": "unasked", ">x": "unasked"},
		2: {">1\r\n+a\r\n": "unasked", "+OK\r\n": "unasked"},
	} {
		codec, err := redis.Driver{}.NewCodec(driver.Link{Config: &redis.Config{Protocol: protocol}})
		require.NoError(t, err)
		w := newWire(&lane{l: new(loop), side: new(side)}, nil, codec)
		for said, left := range all {
			rest, err := w.parse(&wireConn{state: isUp, codec: w.codec}, []byte(said), 0)
			if left == "unasked" {
				require.ErrorIs(t, err, errUnasked, said)
				continue
			}
			require.NoError(t, err, said)
			require.Equal(t, left, string(rest), said)
		}
	}
}

// releasing is a network that counts how often it was given up, and which connections were closed.
type releasing struct {
	*virtualNet
	released int
	closed   []int
}

func (n *releasing) Release() { n.released++ }

func (n *releasing) Close(fd int) { n.closed = append(n.closed, fd) }

// Of wires that share a poller, the first gives it up; each closes its own connections, once.
func TestWhoGivesAPollerUp(t *testing.T) {
	for base, want := range map[int32]int{0: 1, 1: 0, 7: 0} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 2\n iterations = 1\n}"), "load", 0)
		w := b.l.tr.(*wire)
		n := &releasing{virtualNet: b.net}
		w.poll, w.base = n, base
		fds := []int{w.conns[0].fd, w.conns[1].fd}
		w.close()
		require.Equal(t, want, n.released, "%d", base)
		require.Equal(t, fds, n.closed)
		w.close()
		require.Equal(t, fds, n.closed)
		for _, c := range w.conns {
			require.Equal(t, isDown, c.state)
		}
	}
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}"), "load", 0)
	b.l.tr.close() // a network that nobody gives up
}

// metered is a network whose kernel counts: on each connection a hundred bytes for each number of its descriptor, from 1.
type metered struct{ *virtualNet }

func (n metered) Traffic(fd int) sockets.Traffic {
	return sockets.Traffic{BytesSent: uint64(100 * (fd + 1)), Retransmits: 1}
}

// What the kernel counted on a connection is not lost with it, and is reported once.
func TestTrafficOfLostConnections(t *testing.T) {
	b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 2\n iterations = 1\n}"), "load", 0)
	b.equip(worker.Load)
	w := b.l.tr.(*wire)
	w.poll = metered{b.net}
	first, second := uint64(100*(w.conns[0].fd+1)), uint64(100*(w.conns[1].fd+1))
	got, known := w.traffic()
	require.True(t, known)
	require.Equal(t, sockets.Traffic{BytesSent: first + second, Retransmits: 2}, got)
	w.lose(w.conns[0], io.EOF)
	got, _ = w.traffic()
	require.Zero(t, got, "nothing was sent since")
	w.dial(w.conns[0])
	again := uint64(100 * (w.conns[0].fd + 1))
	got, _ = w.traffic()
	require.Equal(t, sockets.Traffic{BytesSent: again, Retransmits: 1}, got)
}

// A loop with many connections makes some at a time, as many as may be.
func TestConnectionsAreMadeSomeAtATime(t *testing.T) {
	for sessions, most := range map[int]int{20: 40, maxOpening/2 - 1: maxOpening - 2, maxOpening / 2: maxOpening, 300: maxOpening} {
		b := newBench(t, redisPlan(t, 2, "", fmt.Sprintf("ops = { get = 1 }\nclosed {\n sessions = %d\n iterations = 1\n}", sessions)), "load", time.Millisecond)
		require.Equal(t, most, b.net.most)
		require.Zero(t, b.l.tr.(*wire).inMaking)
		require.Equal(t, 2*sessions, b.l.tr.(*wire).up)
		b.g.close()
	}
}
