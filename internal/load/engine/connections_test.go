package engine

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
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
	e := assigned(t, Config{Loops: 1}, p)
	defer e.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	loaded(t, e)
	began := userTime(t)
	final := ran(t, e)
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
	all := manyConnections
	if !servertest.Whole() {
		all /= 4
	}
	const each500ms = "closed {\n sessions = %d\n think = \"500ms\"\n ramp = \"500ms\"\n iterations = 2\n}"
	some := drive(t, addr, fmt.Sprintf(each500ms, all/10))
	many := drive(t, addr, fmt.Sprintf(each500ms, all))
	require.EqualValues(t, all, many.sessions)
	require.Zero(t, many.bad)
	require.EqualValues(t, 2*all, many.ok)
	each := float64(many.bytes-some.bytes) / float64(all-all/10)
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

// TestMessagesBetweenReplies has servers send unasked messages behind replies: allowed ones are skipped, whole or in pieces, and others lose the
// connection.
func TestMessagesBetweenReplies(t *testing.T) {
	for _, c := range []struct {
		protocol, piece int
		said, wrong     string
	}{
		{3, 0, ">1\r\n+a\r\n", ""},
		{3, 3, ">1\r\n+a\r\n>2\r\n:1\r\n:2\r\n", ""},
		{3, 0, ">1\r\n+a\r\n+OK\r\n", driver.ErrUnasked.Error() + `: "+OK`},
		{3, 0, "$-1\r\n", driver.ErrUnasked.Error() + `: "$-1`},
		{3, 0, ">x\r\n", "not a number"},
		{2, 0, ">1\r\n+a\r\n", driver.ErrUnasked.Error() + `: ">1`},
		{2, 0, "+OK\r\n", driver.ErrUnasked.Error() + `: "+OK`},
	} {
		b := newBench(t, redisPlan(t, 1, fmt.Sprintf("protocol = %d", c.protocol), "ops = { put = 1 }\nmax_bad = 1\nclosed {\n sessions = 1\n iterations = 20\n}"), "load", time.Millisecond)
		b.server(0).words, b.server(0).piece = []byte("+OK\r\n"+c.said), c.piece
		got := b.run(worker.Load)
		require.Equal(t, c.wrong == "", got.Ops[driver.Put].Outcomes[driver.OK] == 20, "%+v", c)
		require.Equal(t, c.wrong != "", got.Reconnects > 0, "%+v", c)
		for text := range got.Errors.All() {
			require.Contains(t, text, c.wrong, "%+v", c)
		}
		require.Equal(t, c.wrong != "", got.Errors.Total() > 0, "%+v", c)
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

// metered is a network whose kernel counts the bytes that are written to each connection.
type metered struct {
	*virtualNet
	sent map[int]uint64
}

func (n metered) Write(fd int, p []byte) (int, error) {
	took, err := n.virtualNet.Write(fd, p)
	n.sent[fd] += uint64(took)
	return took, err
}

func (n metered) all() (sum uint64) {
	for _, sent := range n.sent {
		sum += sent
	}
	return sum
}

func (n metered) Traffic(fd int) sockets.Traffic { return sockets.Traffic{BytesSent: n.sent[fd]} }

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

// newSlotlessBench is a bench with a session on a cluster of two nodes, and its wire. The second node has no slots, and no connection yet.
func newSlotlessBench(t *testing.T) (*bench, *wire) {
	t.Helper()
	b := &bench{t: t, net: newVirtualNet(10), slotless: 1}
	p := redisPlan(t, 2, "cluster = true", "ops = { get = 1 }\nclosed {\n sessions = 1\n iterations = 1\n}")
	require.NoError(t, b.connect(p, "load", 0, b.net.clock))
	b.equip(worker.Load)
	return b, b.l.tr.(*wire)
}

// A connection that cannot be made, watched, written to or read from is lost, with the reason, and made again.
func TestConnectionsThatFail(t *testing.T) {
	for call, want := range map[string]string{"connect": "no way", "connected": "no way", "watch": "no way", "write": "write: no way", "read": "read: no way"} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { put = 1 }\nmax_bad = 1\nclosed {\n sessions = 2\n pipeline = 4\n duration = \"1s\"\n}"), "load", time.Millisecond)
		b.after(300*time.Millisecond, func() {
			b.net.fails = map[string]error{call: errors.New("no way")}
			b.server(0).sever()
		})
		b.after(400*time.Millisecond, func() { b.net.fails = nil })
		got := b.run(worker.Load)
		require.Greater(t, got.Ops[driver.Put].Outcomes[driver.OK], uint64(6000), call)
		require.EqualValues(t, 2, got.Reconnects, call)
		require.Contains(t, maps.Collect(got.Errors.All()), "n0 (127.0.0.1:7001): "+want, call)
	}
}

// When it is time, a connection that is down is dialled. One to a cluster node without slots stays down until a request is to go there, though it was
// up and was lost.
func TestWhichConnectionsAreMadeAgain(t *testing.T) {
	b, w := newSlotlessBench(t)
	busy, idle := w.conns[0], w.conns[1]
	fire := func(c *wireConn) { w.fire(timer{arg: w.token(c)}, 0) }
	fire(busy)
	require.Equal(t, isUp, busy.state)
	require.Empty(t, b.g.cluster.doubt)
	w.lose(busy, io.EOF)
	require.Len(t, b.g.cluster.doubt, 1, "its slots may have gone to another")
	fire(busy)
	require.Equal(t, isConnecting, busy.state)
	idle.wasUp = true
	b.l.missed(&idle.link, 0)
	require.Zero(t, w.room(idle), "it was up, and is to be made again first")
	fire(idle)
	require.Equal(t, isDown, idle.state)
	require.Positive(t, w.room(idle))
	require.Equal(t, isConnecting, idle.state)
}

// TestConnectionsThatServersCloseWhenIdle: 40 sessions think for as long as their server lets a connection idle, so some of its farewells cross
// requests. With an idle_timeout below that, no op fails.
func TestConnectionsThatServersCloseWhenIdle(t *testing.T) {
	bad := func(target string) uint64 {
		b := newBench(t, redisPlan(t, 1, target, `
	ops = { get = 1, put = 1 }
	closed {
		sessions   = 40
		iterations = 50
		think      = "2999900us"
	}`), "load", 100*time.Microsecond)
		b.server(0).idle = 3 * time.Second
		totals := b.run(worker.Load)
		due, failed, _ := totals.Ended()
		require.EqualValues(t, 2000, due)
		require.Equal(t, target == "", totals.Reconnects > 0, "a connection that idled is not lost")
		return failed
	}
	require.Positive(t, bad(""))
	require.Zero(t, bad(`idle_timeout = "2500ms"`))
}
