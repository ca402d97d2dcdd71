package engine

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

func TestQuantileSince(t *testing.T) {
	h := func(counts ...uint64) *metrics.Float64Histogram {
		return &metrics.Float64Histogram{Counts: counts, Buckets: []float64{0, 1, 2, 3, math.Inf(1)}}
	}
	require.Equal(t, 0.0, quantileSince(0.99, h(1, 2, 3, 4), h(1, 2, 3, 4)), "nothing was added")
	require.Equal(t, 1.0, quantileSince(0.99, h(5, 0, 9, 0), h(105, 1, 9, 0)))
	require.Equal(t, 2.0, quantileSince(1, h(5, 0, 9, 0), h(105, 1, 9, 0)))
	require.Equal(t, 3.0, quantileSince(1, h(0, 0, 0, 0), h(0, 0, 0, 1)), "the lower bound where there is no upper one")
}

func TestParseSchedstat(t *testing.T) {
	require.Equal(t, queueing{waited: 500629641, times: 131, known: true}, parseSchedstat([]byte("499780212 500629641 131\n")))
	require.Equal(t, queueing{waited: 2, times: 3, known: true}, parseSchedstat([]byte("1 2 3 more")))
	require.Equal(t, queueing{waited: math.MaxInt64, known: true}, parseSchedstat([]byte("0 9223372036854775807 0\n")))
	for _, odd := range []string{"", "1 2", "1 x 3", "1 2 x"} {
		require.False(t, parseSchedstat([]byte(odd)).known, odd)
	}
	line := []byte("499780212 500629641 131\n")
	require.Zero(t, testing.AllocsPerRun(100, func() { parseSchedstat(line) }))
}

// TestMeter has a thread compute for a while, then sleep: only the first is processor time.
func TestMeter(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := newMeter()
	defer m.close()
	began := time.Now()
	m.begin()
	for m.processor()-m.cpu < int64(20*time.Millisecond) {
	}
	time.Sleep(30 * time.Millisecond)
	wall := int64(time.Since(began))
	u := m.since(wall, int64(5*time.Millisecond))
	require.InDelta(t, float64(15*time.Millisecond), float64(u.productive), float64(5*time.Millisecond))
	require.Equal(t, wall, u.wall)
	require.LessOrEqual(t, u.waited, int64(time.Since(began)))
	require.Zero(t, (*meter)(nil).since(7, 0).productive, "a loop without a thread of its own")
}

// A meter tells how long its thread waited since it began, and since the last look, if it could be read both times.
func TestWhatAMeterTells(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schedstat")
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write("1 200000 2\n")
	m := openMeter(path)
	flags, err := unix.FcntlInt(uintptr(m.schedstat), unix.F_GETFD, 0)
	require.NoError(t, err)
	require.Equal(t, unix.FD_CLOEXEC, flags, "other programs do not inherit it")
	_, known := m.kept()
	require.False(t, known)
	require.False(t, m.since(1, 0).waitKnown)
	write("1 1000000 3\n")
	m.begin()
	write("1 1500000 4\n")
	for _, want := range []int64{490_000, 0} {
		others, known := m.kept()
		require.True(t, known)
		require.Equal(t, want, others)
	}
	require.Equal(t, loopUse{waited: 490_000, waitKnown: true}, m.since(0, int64(time.Hour)), "it looked in vain for all of its time")
	write("1\n")
	_, known = m.kept()
	require.False(t, known)
	require.False(t, m.since(1, 0).waitKnown)
	m.cpu = m.processor() - int64(time.Hour)
	require.InDelta(t, time.Hour, m.since(0, 0).productive, float64(time.Minute))

	m.close()
	_, err = unix.FcntlInt(uintptr(m.schedstat), unix.F_GETFD, 0)
	require.ErrorIs(t, err, unix.EBADF)

	none := openMeter(filepath.Join(t.TempDir(), "none"))
	defer none.close()
	require.Negative(t, none.schedstat, "a kernel that does not count this")
	none.begin()
	require.False(t, none.since(1, 0).waitKnown)
}

// TestOthersOnTheProcessorAreSeen has another thread compute on the processor of a thread that watches the clock.
func TestOthersOnTheProcessorAreSeen(t *testing.T) {
	var allowed unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &allowed))
	cpu := 0
	for !allowed.IsSet(cpu) {
		cpu++
	}
	onIt := func(work func()) {
		release, err := ownThread([]int{cpu}, true)
		require.NoError(t, err)
		defer release()
		work()
	}
	var stop atomic.Bool
	var hog sync.WaitGroup
	defer hog.Wait()
	defer stop.Store(true)
	hog.Go(func() {
		onIt(func() {
			for !stop.Load() {
			}
		})
	})
	onIt(func() {
		m := newMeter()
		defer m.close()
		m.begin()
		if !m.queued.known {
			return // this kernel does not count it, and loops have no gaps then
		}
		var seen gaps
		began := time.Now()
		for last := began; seen.others < int64(20*time.Millisecond); {
			require.Less(t, time.Since(began), 10*time.Second)
			now := time.Now()
			if gap := int64(now.Sub(last)); gap > leastGap {
				others, known := m.kept()
				require.True(t, known)
				seen.enter(gap, others, true)
			}
			last = now
		}
		require.NotZero(t, seen.times)
		require.GreaterOrEqual(t, seen.total, seen.others)
		require.LessOrEqual(t, seen.total, int64(time.Since(began)))
		require.LessOrEqual(t, seen.longest, seen.total)
	})
}

func TestGaps(t *testing.T) {
	var g gaps
	for kept, times := range map[int64]uint64{199_999: 0, 200_000: 1} {
		g = gaps{}
		g.enter(kept, kept, false)
		require.Equal(t, times, g.times, "%d ns", kept)
	}
	g = gaps{}
	g.enter(leastGap, leastGap/2, false) // the loop's own work, for the other half
	require.Zero(t, g)
	g.enter(10*leastGap, 4*leastGap, false)
	g.enter(3*leastGap, 5*leastGap, true)
	g.enter(2*leastGap, 0, true)
	require.Equal(t, gaps{times: 3, total: 9 * leastGap, longest: 4 * leastGap, others: 7 * leastGap}, g)
}

func TestLoopsTakenTogether(t *testing.T) {
	var j joined
	j.add(loopUse{wall: 1000, productive: 250, waited: 10, waitKnown: true})
	j.add(loopUse{wall: 1000, productive: 500, gaps: &gaps{times: 2, total: 5e6, longest: 3e6, others: 4e6}})
	j.add(loopUse{wall: 1000, gaps: &gaps{times: 1, total: 5e6, longest: 5e6}})
	j.add(loopUse{})
	g := measure.Generator{CPUSeconds: 9}
	j.enter(&g, 1)
	waited, i := 0.01, measure.Interrupted{Times: 3, Seconds: 0.01, MaxSeconds: 0.005, OthersSeconds: 0.004}
	require.Equal(t, measure.Generator{CPUSeconds: 9, Busy: 0.5, ProductiveSeconds: 750e-9, RunQueueWait: &waited, Interrupted: &i}, g)

	g = measure.Generator{Executor: plan.Blocking, CPUSeconds: 0.9 * float64(runtime.NumCPU())}
	new(joined).enter(&g, 1)
	require.InDelta(t, 0.9, g.Busy, 1e-9, "others than the loops work there")
	require.InDelta(t, g.CPUSeconds, g.ProductiveSeconds, 0)
	require.Nil(t, g.RunQueueWait)
	g.Busy = 0
	new(joined).enter(&g, 0)
	require.Zero(t, g.Busy, "a step that took no time")
}

// What the process has spent is the difference: each figure reflects work done here.
func TestWhatAProcessHasSpent(t *testing.T) {
	const pages, objects = 2000, 10_000
	then := spent()
	room, err := unix.Mmap(-1, 0, pages<<12, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	require.NoError(t, unix.Madvise(room, unix.MADV_NOHUGEPAGE))
	for at := 0; at < len(room); at += 1 << 12 {
		room[at] = 1
	}
	require.NoError(t, unix.Munmap(room))
	list := make([]*[64]byte, objects)
	for i := range list {
		list[i] = new([64]byte)
	}
	runtime.KeepAlive(list)
	runtime.GC()
	g := spent().since(then)
	require.GreaterOrEqual(t, g.MinorFaults, uint64(pages))
	require.Less(t, g.MajorFaults, uint64(pages))
	require.GreaterOrEqual(t, g.Mallocs, uint64(objects))
	require.Positive(t, g.GCCycles)
	require.Less(t, g.GCCycles, uint32(100))
	require.Positive(t, g.GCPauseMaxSeconds)
	require.Positive(t, g.ElapsedSeconds)
	require.GreaterOrEqual(t, g.MaxRSSBytes, int64(pages<<12))
	of := func() []int64 {
		var r unix.Rusage
		require.NoError(t, unix.Getrusage(unix.RUSAGE_SELF, &r))
		return []int64{r.Utime.Nano(), r.Stime.Nano(), r.Minflt, r.Majflt, r.Inblock, r.Oublock, r.Maxrss * 1024}
	}
	before, x, after := of(), spent(), of()
	for i, is := range []int64{x.user, x.system, int64(x.minor), int64(x.major), int64(x.read), int64(x.written), x.maxRSS} {
		require.GreaterOrEqual(t, is, before[i], "figure %d", i)
		require.LessOrEqual(t, is, after[i], "figure %d", i)
	}
}

// Each figure of a step is the difference of two readings, of which only the largest size is none.
func TestWhatAStepHasSpent(t *testing.T) {
	h := func(counts ...uint64) *metrics.Float64Histogram {
		return &metrics.Float64Histogram{Counts: counts, Buckets: []float64{0, 1, 2, 4}}
	}
	began := time.Now()
	then := spending{
		at: began, user: 1e9, system: 2e9, minor: 3, major: 4, read: 5, written: 6, maxRSS: 700, cycles: 8, mallocs: 9,
		pauses: h(1, 1, 1), latencies: h(2, 2, 2),
	}
	now := spending{
		at: began.Add(3 * time.Second), user: 11e9, system: 22e9, minor: 33, major: 44, read: 55, written: 66, maxRSS: 777, cycles: 88, mallocs: 99,
		pauses: h(99, 1, 2), latencies: h(100, 4, 2),
	}
	require.Equal(t, measure.Generator{
		CPUSeconds: 30, GCCycles: 80, MaxRSSBytes: 777, Mallocs: 90, GCPauseMaxSeconds: 4, SchedLatencyP99Seconds: 2,
		Spent: measure.Spent{
			CPUUserSeconds: 10, CPUSystemSeconds: 20, MinorFaults: 30, MajorFaults: 40, BlocksRead: 50, BlocksWritten: 60, ElapsedSeconds: 3,
		},
	}, now.since(then))
}

// While nothing is collected goroutines wait for threads, and the collector stops nobody.
func TestWaitsAreNoPauses(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC() // so that none is under way
	then := spent()
	for range 1000 {
		done := make(chan struct{})
		go close(done)
		<-done
	}
	g := spent().since(then)
	require.Zero(t, g.GCPauseMaxSeconds)
	require.Positive(t, g.SchedLatencyP99Seconds)
}

// Memory that the runtime has returned to the system is not taken.
func TestMemoryThatIsTaken(t *testing.T) {
	const mib = 1 << 20
	room := make([]byte, 64*mib)
	for at := 0; at < len(room); at += 4096 {
		room[at] = 1
	}
	runtime.KeepAlive(room)
	room = nil
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	require.Greater(t, m.HeapReleased, uint64(60*mib))
	require.InDelta(t, m.Sys-m.HeapReleased, taken(), 8*mib)
}

// A step was throttled as often as its control group counted meanwhile; nothing is said where nobody counts.
func TestThrottlingOfAStep(t *testing.T) {
	root := fstest.MapFS{"proc/self/cgroup": {Data: []byte("0::/a\n")}}
	count := func(periods, micros int) {
		root["sys/fs/cgroup/a/cpu.stat"] = &fstest.MapFile{Data: fmt.Appendf(nil, "nr_throttled %d\nthrottled_usec %d\n", periods, micros)}
	}
	count(5, 1_000_000)
	u := startUsage(root, false, false)
	count(8, 1_250_000)
	require.Equal(t, &measure.Throttled{Periods: 3, Seconds: 0.25}, u.stop().Throttled)
	require.Nil(t, startUsage(fstest.MapFS{}, false, false).stop().Throttled)
}

// TestMemoryLimit compares how large a process may grow with what its surroundings have left.
func TestMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	root := fstest.MapFS{}
	limit, known := memoryLimit(root, 10*mib, 100*mib)
	require.False(t, known)
	require.EqualValues(t, 100*mib, limit)
	root["proc/meminfo"] = &fstest.MapFile{Data: []byte("MemAvailable: 1048576 kB\n")}
	for set, want := range map[int64]int64{math.MaxInt64: 522 * mib, 100 * mib: 100 * mib} {
		limit, known = memoryLimit(root, 10*mib, set)
		require.True(t, known)
		require.EqualValues(t, want, limit)
	}
	root["proc/self/cgroup"] = &fstest.MapFile{Data: []byte("4:memory:/a/b\n")}
	root["sys/fs/cgroup/memory/a/memory.limit_in_bytes"] = &fstest.MapFile{Data: []byte("37748736\n")}
	root["sys/fs/cgroup/memory/a/memory.usage_in_bytes"] = &fstest.MapFile{Data: []byte("27262976\n")}
	limit, _ = memoryLimit(root, 10*mib, math.MaxInt64)
	require.EqualValues(t, 15*mib, limit, "half of the 10 MiB that are left of 36")
}

// TestCollectionWhileMeasured checks how the collector is set in a measured step, and after it.
func TestCollectionWhileMeasured(t *testing.T) {
	const limit = int64(math.MaxInt64)
	root := os.DirFS("/")
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(limit))
	now := func() int {
		p := debug.SetGCPercent(77)
		debug.SetGCPercent(p)
		return p
	}
	for _, tt := range []struct {
		root             fs.FS
		measured, blocks bool
		want             int
	}{{root, false, false, 77}, {root, true, false, -1}, {root, true, true, 77}, {fstest.MapFS{}, true, false, 77}} {
		u := startUsage(tt.root, tt.measured, tt.blocks)
		require.Equal(t, tt.want, now(), "%+v", tt)
		if within := debug.SetMemoryLimit(-1); tt.measured && tt.root == root {
			require.Less(t, within, int64(math.MaxInt64))
			require.Greater(t, within, taken())
		}
		u.stop()
		require.Equal(t, 77, now(), "%+v", tt)
		require.Equal(t, limit, debug.SetMemoryLimit(-1))
	}
}

// A step that spends no time in the kernel reports none: a rounding error below zero would be refused as impossible on its way to the coordinator.
func TestTimesOfAClientAddUp(t *testing.T) {
	then := spent()
	for user := range int64(1000) {
		now := then
		now.user += user * 1_000_003
		g := now.since(then)
		require.Zero(t, g.CPUSystemSeconds)
		require.Equal(t, g.CPUSeconds, g.CPUUserSeconds)
	}
}

// TestLookingInVainIsNotWork runs an op a millisecond on a loop that never sleeps: the time between ops is not productive.
func TestLookingInVainIsNotWork(t *testing.T) {
	for _, spin := range []time.Duration{-1, 10 * time.Millisecond} {
		b := newBench(t, redisPlan(t, 1, "", `
			ops  = { get = 1 }
			open {
				rate     = "1k/s"
				duration = "20ms"
				sessions = 1
				arrivals = "constant"
			}`), "load", 20*time.Microsecond)
		b.l.spin = max(0, int64(spin))
		b.run(worker.Load)
		if spin < 0 {
			require.Zero(t, b.l.spun)
			continue
		}
		share := float64(b.l.spun) / float64(b.l.last-b.l.entered)
		require.InDelta(t, 0.98, share, 0.02, "all but 20 µs and a few steps of each millisecond")
	}
}

// Of the time that a thread waits for a processor, what waking up takes each time counts for nothing.
func TestWaitingBeyondWaking(t *testing.T) {
	earlier := queueing{waited: 1_000_000, times: 10}
	require.EqualValues(t, 70_000, queueing{waited: 1_100_000, times: 13}.beyond(earlier))
	require.Zero(t, queueing{waited: 1_030_000, times: 13}.beyond(earlier))
	require.Zero(t, queueing{waited: 1_020_000, times: 13}.beyond(earlier))
	require.Zero(t, earlier.beyond(earlier))
}

// No share of the time is above 1, however clocks are read.
func TestNoShareIsAboveOne(t *testing.T) {
	var j joined
	j.add(loopUse{productive: 500, waited: 900, waitKnown: true})
	require.Equal(t, joined{productive: 500}, j, "a loop that took no time has no shares")
	j.add(loopUse{wall: 1000, productive: 1100, waited: 1100, waitKnown: true})
	require.Equal(t, joined{productive: 1600, busy: 1, waited: 1, waitKnown: true}, j)
	g := measure.Generator{Executor: plan.Blocking, CPUSeconds: float64(runtime.NumCPU())}
	(&joined{}).enter(&g, 0.5)
	require.InDelta(t, 1, g.Busy, 0)
	(&joined{}).enter(&g, 4)
	require.InDelta(t, 0.25, g.Busy, 0)
}
