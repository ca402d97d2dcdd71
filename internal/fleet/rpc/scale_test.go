package rpc

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestMain lets this test binary also be a process full of workers: its arguments are "workers", the directory of the key, the coordinator's
// address, how many, and for how long each of them loads.
func TestMain(m *testing.M) {
	if len(os.Args) == 6 && os.Args[1] == "workers" {
		if err := simulate(os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// BenchmarkFleet measures what 1,000 workers cost the coordinator, which is this process; the workers are another one. They speak the protocol
// through Join, over TCP on the loopback, where both ends have certificates, or a socket, where nothing is encrypted. Each counts 1,000 gets and
// 1,000 puts a second, so that its snapshots carry four latency series of a few hundred buckets each, and the lags. The coordinator checks, joins and
// keeps them in a run directory as in any run.
func BenchmarkFleet(b *testing.B) {
	const loads = 30 * time.Second
	b.Run("over=TLS", func(b *testing.B) { benchmarkFleet(b, "127.0.0.1:0", loads) })
	b.Run("over=socket", func(b *testing.B) { benchmarkFleet(b, "socket:fleet", loads) })
}

func benchmarkFleet(b *testing.B, at string, loads time.Duration) {
	for b.Loop() {
		cost := operate(b, at, 1000, loads, spawn)
		b.ReportMetric(cost.cpu, "CPU-s/1000-worker-s")
		b.ReportMetric(cost.bytes, "B/worker-s")
		b.ReportMetric(cost.memory, "RSS-B/worker")
		b.ReportMetric(cost.lag.Seconds()*1e3, "lag-p99-ms")
		b.ReportMetric(cost.late.Seconds()*1e3, "late-p99-ms")
		b.ReportMetric(cost.sync.Seconds()*1e3, "sync-max-ms")
		b.ReportMetric(cost.joined.Seconds(), "join-s")
		b.ReportMetric(0, "ns/op") // how long it takes was decided above
	}
}

// TestFleetOfTwenty puts the benchmark's coordinator and twenty of its workers into one process, for two seconds: the result has all that they
// counted, and the run's directory, too.
func TestFleetOfTwenty(t *testing.T) {
	const workers, loads = 20, 2 * time.Second
	cost := operate(t, "127.0.0.1:0", workers, loads, func(t testing.TB, place identity.Place, _ string, workers int, loads time.Duration) (end func() time.Duration) {
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		var late time.Duration
		all.Go(func() {
			var err error
			if late, err = work(ctx, place, workers, loads); err != nil {
				t.Error(err)
			}
		})
		return func() time.Duration {
			cancel()
			all.Wait()
			return late
		}
	})
	ops := cost.result.Phase["load"].Op
	for _, verb := range []string{"get", "put"} {
		require.EqualValues(t, cost.kept.snapshots*perSecond, ops[verb].Due, verb)
		require.EqualValues(t, cost.kept.snapshots*perSecond, ops[verb].OK, verb)
	}
	var read int
	require.NoError(t, rundir.Snapshots(filepath.Dir(cost.dir), filepath.Base(cost.dir), func(_, b []byte) error {
		read++
		return decodeSnapshot(new(measure.Snapshot), b)
	}))
	require.Equal(t, cost.kept.snapshots, read)
	require.GreaterOrEqual(t, read, 2*workers)
}

// spawn starts the workers in a process of their own.
func spawn(t testing.TB, place identity.Place, dir string, workers int, loads time.Duration) (end func() time.Duration) {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, "workers", dir, place.Name, strconv.Itoa(workers), loads.String())
	var stdout strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	return func() time.Duration {
		require.NoError(t, stdin.Close())
		require.NoError(t, cmd.Wait())
		late, err := time.ParseDuration(stdout.String())
		require.NoError(t, err)
		return late
	}
}

// simulate is that process. It ends with its standard input, and says how late its workers were.
func simulate(dir, addr, workers, loads string) error {
	n, err := strconv.Atoi(workers)
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(loads)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	place, err := identity.At(dir, addr)
	if err != nil {
		return err
	}
	late, err := work(ctx, place, n, d)
	fmt.Print(late)
	return err
}

// work has workers take part in one run. It returns the 99th percentile of how late they begin their work at the end of an interval, which falls at the
// same instant for all.
func work(ctx context.Context, place identity.Place, workers int, loads time.Duration) (late time.Duration, err error) {
	shared := newSeconds()
	all := make([]*simulated, workers)
	errs := make(chan error, workers)
	for i := range workers {
		cfg := JoinConfig{
			Place: place, Name: fmt.Sprintf("w%04d", i), Version: "v1", Once: true, Logger: slog.New(slog.DiscardHandler),
			New: func() Local {
				all[i] = &simulated{seconds: shared, loads: loads}
				return all[i]
			},
		}
		go func() { errs <- Join(ctx, cfg) }() // received below
	}
	for range workers {
		if failed := <-errs; failed != nil {
			err = failed
		}
	}
	var lates []time.Duration
	for _, w := range all {
		if w != nil {
			lates = append(lates, w.late...)
		}
	}
	return quantile(lates, 0.99), err
}

// quantile sorts all; 0 for none.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(q*float64(len(all)-1))]
}

// seconds are what a worker may count for a verb in a second, made in advance: that takes longer than a thousand workers have.
type seconds [16]measure.Op

// perSecond is how many ops of a verb a worker counts in an interval.
const perSecond = 1000

// newSeconds draws latencies like those of a server on a network that is not busy.
func newSeconds() *seconds {
	all := new(seconds)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range all {
		var t measure.Totals
		for range perSecond {
			lag, service := 5e3*math.Exp(0.5*r.NormFloat64()), 300e3*math.Exp(0.6*r.NormFloat64())
			t.Record(&measure.Sample{Verb: driver.Get, Start: int64(lag), End: int64(lag) + int64(service)})
		}
		all[i] = *t.Ops[driver.Get]
	}
	return all
}

// simulated counts ops that are never carried out.
type simulated struct {
	seconds *seconds
	loads   time.Duration
	zero    time.Time
	index   int // of the worker
	step    int
	late    []time.Duration // by interval
}

func (w *simulated) Assign(_ context.Context, a worker.Assignment) error {
	w.zero, w.index = a.Zero, a.Index
	return nil
}

func (w *simulated) Prepare(_ context.Context, s worker.Step) (worker.Ready, error) {
	w.step = s.Seq
	return worker.Ready{Step: s.Seq, Sessions: s.To - s.From, Executor: "event loop", Loops: 1}, nil
}

func (*simulated) Drain()                 {}
func (*simulated) SetLease(time.Duration) {}
func (*simulated) Close()                 {}

func (w *simulated) Run(ctx context.Context, at time.Duration, sink worker.Sink) (worker.Final, error) {
	total := measure.NewTotals(int64(at), 1)
	from, end := at, at+w.loads
	for seq := uint64(1); from < end; seq++ {
		to := min(end, from.Truncate(time.Second)+time.Second)
		// The counts are made up at a random moment before the interval ends: the machine has no time to do that for all workers at once.
		if err := w.sleep(ctx, to-100*time.Millisecond-rand.N(500*time.Millisecond)); err != nil {
			return worker.Final{}, err
		}
		delta := measure.NewTotals(int64(at), 1)
		w.count(delta, int(seq), int64(from), int64(to))
		total.Merge(delta)
		if err := w.sleep(ctx, to); err != nil {
			return worker.Final{}, err
		}
		w.late = append(w.late, time.Since(w.zero)-to)
		kept, err := sink(&measure.Snapshot{
			Step: w.step, SeqFirst: seq, SeqLast: seq, From: int64(from), To: int64(to), Delta: *delta, Running: total.Counters(), Final: to == end,
		})
		if err == nil {
			err = kept()
		}
		if err != nil {
			return worker.Final{}, err
		}
		from = to
	}
	return worker.Final{Step: w.step, Totals: total, Generator: measure.Generator{Executor: "event loop", Loops: 1}}, nil
}

// sleep waits for a time on the run clock.
func (w *simulated) sleep(ctx context.Context, until time.Duration) error {
	select {
	case <-time.After(time.Until(w.zero.Add(until))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// count makes up what happened in an interval.
func (w *simulated) count(t *measure.Totals, seq int, from, to int64) {
	for i, v := range [...]driver.Verb{driver.Get, driver.Put} {
		like := &w.seconds[(w.index+seq+i)%len(w.seconds)]
		o := &measure.Op{In: 200 * perSecond, Out: 30 * perSecond}
		o.Due, o.Outcomes = perSecond, like.Outcomes
		o.Lag.Merge(&like.Lag)
		o.Service[measure.ClassOK].Merge(&like.Service[measure.ClassOK])
		o.Response[measure.ClassOK].Merge(&like.Response[measure.ClassOK])
		o.Bins[driver.OK], o.Turns[driver.OK] = new(measure.Bins), new(measure.Bins)
		for n := range int64(perSecond) {
			at := from - t.Origin + (to-from)*n/perSecond
			o.Bins[driver.OK].AddN(at, 1)
			o.Turns[driver.OK].AddN(at, 1)
		}
		t.Ops[v] = o
		*t.Request(0, v) = measure.Requests{Sent: perSecond, Answered: perSecond}
	}
}

// cost is what a fleet cost its coordinator while it loaded.
type cost struct {
	cpu    float64       // seconds per 1,000 worker-seconds
	bytes  float64       // on the wire, both ways, per worker-second
	memory float64       // bytes per worker
	lag    time.Duration // from when a snapshot was to be sent until it was kept; the 99th percentile
	late   time.Duration // of that, what the workers' process took to begin; the 99th percentile
	sync   time.Duration // of that, what the disk took for one commit; the most
	joined time.Duration // until all workers had come
	result *run.Run
	kept   *keeper
	dir    string // of the run
}

// operate is the coordinator of one run.
func operate(t testing.TB, at string, workers int, loads time.Duration, start func(testing.TB, identity.Place, string, int, time.Duration) (end func() (late time.Duration))) cost {
	var wire atomic.Int64
	keys := memory(t)
	place, err := identity.At(keys, at)
	require.NoError(t, err)
	listen := place.Listen
	place.Listen = func() (net.Listener, error) {
		lis, err := listen()
		return metered{lis, &wire}, err
	}
	quiet := slog.New(slog.DiscardHandler)
	server, err := Listen(Config{Place: place, Run: "r", Version: "v1", Timing: DefaultTiming(), Logger: quiet})
	require.NoError(t, err)
	cfg := scaleConfig(t, workers)
	dir, err := rundir.Create(t.TempDir(), "20260102T030405Z-0102", cfg.Canonical)
	require.NoError(t, err)

	defer Frugal()()
	debug.FreeOSMemory() // what another fleet has left behind
	before := usage(t)
	began := time.Now()
	place, err = identity.At(keys, server.Addr())
	require.NoError(t, err)
	end := start(t, place, keys, workers, loads)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cfg.Workers, err = server.Wait(ctx, workers)
	require.NoError(t, err)
	c := cost{joined: time.Since(began), kept: &keeper{Dir: dir, turns: map[string]time.Duration{}}, dir: dir.Path()}

	kept := c.kept
	for i, m := range cfg.Workers {
		kept.turns[m.Name] = turn(i, workers)
	}
	cfg.Workers[0].Worker = &listener{cfg.Workers[0].Worker, kept}
	cfg.Store = kept
	var first, last spent
	cfg.Progress = func(u run.Update) {
		if u.Final {
			return
		}
		last = usage(t)
		last.wire = wire.Load()
		if first.at.IsZero() {
			first = last
			kept.counts.Store(true)
		}
		c.memory = max(c.memory, last.rss-before.rss)
	}
	c.result = coord.Run(context.Background(), cfg)
	server.Close()
	c.late = end()
	require.NoError(t, dir.Finish(c.result))
	require.Equal(t, run.Complete, c.result.Verdict.Completeness, c.result.Verdict.Reasons[:min(3, len(c.result.Verdict.Reasons))])

	seconds := last.at.Sub(first.at).Seconds() * float64(workers)
	c.cpu = (last.cpu - first.cpu).Seconds() / seconds * 1000
	c.bytes = float64(last.wire-first.wire) / seconds
	c.memory /= float64(workers)
	kept.mu.Lock()
	c.lag, c.sync = quantile(kept.lags, 0.99), kept.slowest
	kept.mu.Unlock()
	return c
}

func scaleConfig(t testing.TB, workers int) coord.Config {
	text := fmt.Sprintf(`
plan "fleet" {}
target "t" {
	driver    = "null"
	endpoints = ["a"]
}
dataset "d" {
	keys { count = 1000 }
	values { size = 100 }
}
phase "load" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1, put = 1 }
	expect_hits = 0
	closed {
		sessions = %d
		duration = "1h"
	}
}`, workers)
	file, diags := plan.Parse([]byte(text), "fleet.hcl", []driver.Driver{nowhere{}})
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{})
	require.Empty(t, diags)
	canonical, err := p.Canonical()
	require.NoError(t, err)
	return coord.Config{
		Header: run.Header{ID: "r", PlanDigest: plan.Digest(canonical)}, Environment: machine.Environment{Servers: map[string]map[string]map[string]string{}},
		Plan: p, Canonical: canonical, Logger: slog.New(slog.DiscardHandler), Drain: make(chan struct{}),
	}
}

// nowhere is the driver of a target that is never contacted.
type nowhere struct{}

func (nowhere) Name() string                          { return "null" }
func (nowhere) NewConfig() any                        { return &struct{}{} }
func (nowhere) Outcomes(driver.Verb) []driver.Outcome { return []driver.Outcome{driver.OK} }

// spent is what this process has used at a time.
type spent struct {
	at   time.Time
	cpu  time.Duration
	rss  float64
	wire int64
}

func usage(t testing.TB) spent {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	b, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	require.NoError(t, err)
	return spent{at: time.Now(), cpu: time.Duration(u.Utime.Nano() + u.Stime.Nano()), rss: float64(pages * os.Getpagesize())}
}

// metered counts the bytes on connections.
type metered struct {
	net.Listener
	bytes *atomic.Int64
}

func (m metered) Accept() (net.Conn, error) {
	conn, err := m.Listener.Accept()
	return meteredConn{conn, m.bytes}, err
}

type meteredConn struct {
	net.Conn
	bytes *atomic.Int64
}

// SyscallConn gives access to the socket.
func (m meteredConn) SyscallConn() (syscall.RawConn, error) {
	return m.Conn.(syscall.Conn).SyscallConn()
}

func (m meteredConn) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.bytes.Add(int64(n))
	return n, err
}

func (m meteredConn) Write(b []byte) (int, error) {
	n, err := m.Conn.Write(b)
	m.bytes.Add(int64(n))
	return n, err
}

// listener looks at when the run clock began.
type listener struct {
	worker.Worker
	keeper *keeper
}

func (l *listener) Assign(ctx context.Context, a worker.Assignment) error {
	l.keeper.mu.Lock()
	l.keeper.zero = a.Zero
	l.keeper.mu.Unlock()
	return l.Worker.Assign(ctx, a)
}

// keeper is a run's directory that looks at when snapshots have been kept.
type keeper struct {
	*rundir.Dir
	turns  map[string]time.Duration
	counts atomic.Bool

	mu        sync.Mutex
	zero      time.Time
	due       []time.Duration // when those that are not kept yet were to be sent
	lags      []time.Duration
	slowest   time.Duration // sync
	snapshots int
}

func (k *keeper) Append(worker string, snapshot []byte) error {
	if worker == "" { // the coordinator's own
		return k.Dir.Append(worker, snapshot)
	}
	k.mu.Lock()
	k.snapshots++
	k.due = append(k.due, endOf(snapshot)+k.turns[worker])
	k.mu.Unlock()
	return k.Dir.Append(worker, snapshot)
}

func (k *keeper) Sync() error {
	began := time.Now()
	err := k.Dir.Sync()
	took := time.Since(began)
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Since(k.zero)
	if k.counts.Load() {
		k.slowest = max(k.slowest, took)
		for _, due := range k.due {
			k.lags = append(k.lags, now-due)
		}
	}
	k.due = k.due[:0]
	return err
}

// endOf reads a snapshot's To from its binary form.
func endOf(b []byte) time.Duration {
	b = b[1:] // version
	for range 3 {
		_, n := binary.Uvarint(b)
		b = b[n:]
	}
	from, n := binary.Varint(b)
	width, _ := binary.Uvarint(b[n:])
	return time.Duration(from) + time.Duration(width)
}
