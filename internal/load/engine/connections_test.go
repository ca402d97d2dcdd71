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
	"github.com/loadgen/loadgen/internal/plan/op"
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
		{3, 0, ">1\r\n+a\r\n+OK\r\n", driver.ErrUnasked.Error() + `: got "+OK`},
		{3, 0, "$-1\r\n", driver.ErrUnasked.Error() + `: got "$-1`},
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

// Of wires that share a poller, the first gives it up; each closes its own connections, once.
func TestWhoGivesAPollerUp(t *testing.T) {
	for base, want := range map[int32]int{0: 1, 1: 0, 7: 0} {
		b := newBench(t, redisPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 2\n iterations = 1\n}"), "load", 0)
		w := b.l.tr.(*wire)
		n := &releasing{virtualNet: b.net}
		w.poll, w.base = n, base
		fds := []int{w.conns[0].fd, w.conns[1].fd}
		require.NoError(t, w.makeRoom(w.conns[0]))
		w.close()
		require.Zero(t, w.partials.taken.Load(), "memory of replies is given back")
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

// newWireBench is a bench with so many connections to one server, and its wire, which works over a poller that notes its calls. Time stands still
// unless somebody waits.
func newWireBench(t *testing.T, sessions int) (*bench, *wire, *notebook) {
	t.Helper()
	b := newBench(t, redisPlan(t, 1, "", fmt.Sprintf("ops = { get = 1 }\nclosed {\n sessions = %d\n iterations = 1\n}", sessions)), "load", 0)
	b.equip(worker.Load)
	w, n := b.l.tr.(*wire), &notebook{Poller: b.net}
	w.poll, b.net.clock.tick = n, 0
	return b, w, n
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

// An attempt to connect has as long as a request, and at least a second, from when it began.
func TestAttemptsThatAreGivenUp(t *testing.T) {
	for timeout, limit := range map[time.Duration]time.Duration{time.Millisecond: time.Second, time.Minute: time.Minute} {
		b, w, _ := newWireBench(t, 1)
		c := w.conns[0]
		b.net.clock.t, w.timeout = int64(time.Hour), int64(timeout)
		w.lose(c, io.EOF)
		w.dial(c)
		end := int64(time.Hour + limit)
		require.Equal(t, min(end, int64(time.Hour+timeout)), w.sweep(int64(time.Hour)))
		w.sweep(end - 1)
		require.Equal(t, isConnecting, c.state)
		w.sweep(end)
		require.Equal(t, isDown, c.state)
	}
}

// endings is a way that notes how requests end.
type endings struct {
	bulkWay // nothing else of it is called
	l       *loop
	told    []string
	then    func() // called after the next one
}

func (e *endings) failed(_ *wireConn, p *pending, kind op.EventKind, _ int64) {
	e.told = append(e.told, fmt.Sprintf("%d %v, sent at %d: %s", p.n, kind, p.sent, e.l.sampling.why))
	if then := e.then; then != nil {
		e.then = nil
		then()
	}
}

// fill gives a connection five entries of requests, which can be told apart by how many they stand for: first, and one more each. The first has timed
// out, and the last two have not been written.
func (c *wireConn) fill(first int32) {
	for i, sent := range []int64{1, 2, 3, 0, 0} {
		c.queue.push(pending{n: first + int32(i), sent: sent, dead: i == 0})
	}
	c.queue.dead, c.fresh = 1, 2
}

// Requests are lost with their connection, or refused if they were only gathered for it. One that had timed out has ended before. Nothing is left of
// the connection, and another attempt will be made.
func TestWhatIsLostWithAConnection(t *testing.T) {
	b, w, n := newWireBench(t, 2)
	ends := &endings{l: b.l}
	b.l.sampling = new(sampling)
	w.use(ends)
	c := w.conns[0]
	c.fill(1)
	c.out, c.in, c.held = make([]byte, 1, 600), make([]byte, 1, 700), make([]byte, 1, 800)
	c.gone, c.behind, c.handed, c.cuts, c.blocked = 1, 1, 1, []int{1}, true
	kept, now := w.kept, b.net.clock.t
	w.lose(c, errors.New("gone"))
	const why = "n0 (127.0.0.1:7001): gone"
	require.Equal(t, []string{
		"2 lost, sent at 2: " + why, "3 lost, sent at 3: " + why,
		fmt.Sprintf("4 refused, sent at %d: %s", now, why), fmt.Sprintf("5 refused, sent at %d: %s", now, why),
	}, ends.told)
	require.Equal(t, map[string]uint64{why: 1}, maps.Collect(b.l.rec.Errors.All()))
	require.Empty(t, b.l.sampling.why, "it is not why others fail")
	require.Equal(t, []string{"close 0"}, n.calls)
	require.Equal(t, kept+600+700+800, w.kept, "buffers are given back")
	require.Equal(t, [2]int{1, 0}, [2]int{w.up, w.inMaking})
	require.Equal(t, [3]int{}, [3]int{c.queue.len(), c.queue.owed, c.queue.dead})
	require.Empty(t, c.cuts)
	c.queue, c.cuts, c.codec = queue{}, nil, nil
	require.Equal(t, wireConn{state: isDown, wasUp: true, fd: -1, link: c.link, heard: c.heard, since: c.since, greetAll: c.greetAll}, *c)
	next := b.l.timers.pop()
	require.Equal(t, timer{kind: reconnect, arg: w.token(c)}, timer{kind: next.kind, arg: next.arg, n: next.n})

	ends.told = nil
	w.lose(w.conns[1], io.EOF)
	require.Empty(t, ends.told, "what was lost is not lost again")
	require.Equal(t, kept+600+700+800, w.kept)
	w.close()
	require.Equal(t, []string{"close 0", "close 1"}, n.calls)
}

// When a request is lost, its op may begin others, which may lose another connection. Then both lose their own requests, each for its reason.
func TestLosingAConnectionMeanwhile(t *testing.T) {
	b, w, _ := newWireBench(t, 2)
	ends := &endings{l: b.l}
	b.l.sampling = new(sampling)
	w.use(ends)
	first, second := w.conns[0], w.conns[1]
	first.fill(1)
	w.lose(first, errors.New("some reason that is longer"))
	first.fill(1)
	second.fill(11)
	ends.told = nil
	ends.then = func() { w.lose(second, errors.New("second")) }
	w.lose(first, errors.New("first"))
	now := b.net.clock.t
	of := func(n int, kind op.EventKind, sent int64, why string) string {
		return fmt.Sprintf("%d %v, sent at %d: n0 (127.0.0.1:7001): %s", n, kind, sent, why)
	}
	require.Equal(t, []string{
		of(2, op.Lost, 2, "first"),
		of(12, op.Lost, 2, "second"), of(13, op.Lost, 3, "second"), of(14, op.Refused, now, "second"), of(15, op.Refused, now, "second"),
		of(3, op.Lost, 3, "first"), of(4, op.Refused, now, "first"), of(5, op.Refused, now, "first"),
	}, ends.told)
}

// When it is time, a connection that is down is dialled. One to a cluster node without slots stays down until a request is to go there, though it was
// up and was lost.
func TestWhichConnectionsAreMadeAgain(t *testing.T) {
	b, w := newSlotlessBench(t)
	n := &notebook{Poller: b.net}
	w.poll, w.base = n, 100
	busy, idle := w.conns[0], w.conns[1]
	fire := func(c *wireConn) { w.fire(timer{arg: w.token(c)}, 0) }
	fire(busy)
	require.Equal(t, isUp, busy.state)
	require.Empty(t, n.calls)
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
	fire(idle)
	require.Equal(t, []string{"close 0", "connect 100", "connect 101"}, n.calls)
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
