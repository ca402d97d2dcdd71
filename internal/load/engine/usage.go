package engine

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/pkg/plan"
)

// usage holds what the process had used when a step began.
type usage struct {
	root      fs.FS // has proc and sys
	now       spending
	throttled measure.Throttled
	percent   int
	limit     int64
	quiet     bool
}

// startUsage begins to count. While a step is measured, the garbage collector runs only to keep the process below [memoryLimit]; Prepare has left it
// a clean heap. Blocking clients allocate for each op, so with them it runs as usual.
func startUsage(root fs.FS, measured, blocks bool) usage {
	u := usage{root: root, quiet: measured}
	if measured {
		limit, known := memoryLimit(root, taken(), debug.SetMemoryLimit(-1))
		u.limit = debug.SetMemoryLimit(limit)
		u.percent = debug.SetGCPercent(-1)
		if blocks || !known {
			debug.SetGCPercent(u.percent)
		}
	}
	u.throttled, _ = machine.Throttled(root) // stop would get the same error
	u.now = spent()
	return u
}

// stop returns what was used since startUsage.
func (u usage) stop() measure.Generator {
	now := spent()
	if u.quiet {
		debug.SetGCPercent(u.percent)
		debug.SetMemoryLimit(u.limit)
	}
	g := now.since(u.now)
	if t, err := machine.Throttled(u.root); err == nil {
		g.Throttled = &measure.Throttled{Periods: t.Periods - u.throttled.Periods, Seconds: max(0, t.Seconds-u.throttled.Seconds)}
	}
	return g
}

// since returns what was used since an earlier reading. It subtracts times as integers: a difference of rounded seconds could be negative.
func (s spending) since(then spending) measure.Generator {
	user, system := s.user-then.user, s.system-then.system
	g := measure.Generator{
		CPUSeconds:             seconds(user + system),
		MaxRSSBytes:            s.maxRSS,
		GCCycles:               uint32(s.cycles - then.cycles),
		Mallocs:                s.mallocs - then.mallocs,
		GCPauseMaxSeconds:      quantileSince(1, then.pauses, s.pauses),
		SchedLatencyP99Seconds: quantileSince(0.99, then.latencies, s.latencies),
	}
	g.CPUUserSeconds, g.CPUSystemSeconds = seconds(user), seconds(system)
	g.MinorFaults, g.MajorFaults = s.minor-then.minor, s.major-then.major
	g.BlocksRead, g.BlocksWritten = s.read-then.read, s.written-then.written
	g.ElapsedSeconds = s.at.Sub(then.at).Seconds()
	return g
}

// tidy collects garbage before the step rather than during it. A heap too small for a collection to start by itself is left alone.
func tidy() {
	const small = 3 << 20 // collections begin at 4 MiB
	var m runtime.MemStats
	if runtime.ReadMemStats(&m); m.HeapAlloc > small {
		runtime.GC()
	}
}

// spending holds the processor time and other resources that the process has used since it began.
type spending struct {
	at        time.Time
	user      int64  // nanoseconds
	system    int64  // nanoseconds
	minor     uint64 // page faults without a read
	major     uint64 // page faults with a read
	read      uint64 // blocks of 512 bytes
	written   uint64
	maxRSS    int64  // bytes
	cycles    uint64 // of the garbage collector
	mallocs   uint64
	pauses    *metrics.Float64Histogram // seconds for which the collector stopped the process
	latencies *metrics.Float64Histogram // seconds for which goroutines waited for a thread
}

func spent() spending {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err) // only for a wrong address or selector
	}
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/allocs:objects"},
		{Name: "/sched/pauses/total/gc:seconds"},
		{Name: "/sched/latencies:seconds"},
	}
	metrics.Read(s)
	return spending{
		at: time.Now(), user: r.Utime.Nano(), system: r.Stime.Nano(), maxRSS: r.Maxrss << 10,
		minor: uint64(r.Minflt), major: uint64(r.Majflt), read: uint64(r.Inblock), written: uint64(r.Oublock),
		cycles: s[0].Value.Uint64(), mallocs: s[1].Value.Uint64(),
		pauses: s[2].Value.Float64Histogram(), latencies: s[3].Value.Float64Histogram(),
	}
}

// quantileSince returns the quantile q, 0 < q ≤ 1, of the values added to a histogram since an earlier state, as the upper bound of their bucket (the
// lower bound if the upper is infinite); 0 if none were added.
func quantileSince(q float64, before, now *metrics.Float64Histogram) float64 {
	var total uint64
	for i, n := range now.Counts {
		total += n - before.Counts[i]
	}
	rank := uint64(math.Ceil(q * float64(total)))
	var seen uint64
	for i, n := range now.Counts {
		seen += n - before.Counts[i]
		if seen >= rank && total > 0 {
			if upper := now.Buckets[i+1]; !math.IsInf(upper, 1) {
				return upper
			}
			return now.Buckets[i]
		}
	}
	return 0
}

// memoryLimit returns how large the process may grow before its garbage is collected: taken plus half of the room that the machine and the control
// groups have left, but never beyond the limit already set (GOMEMLIMIT). known is false if the room is not known. The other half is for what the
// runtime does not count, such as the kernel's socket buffers, and for other processes.
func memoryLimit(root fs.FS, taken, set int64) (limit int64, known bool) {
	room, known := machine.Room(root)
	if !known {
		return set, false
	}
	return min(set, taken+room/2), true
}

// taken returns how much memory the runtime has from the system, counted as for its limit.
func taken() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() - s[1].Value.Uint64())
}

// heldBytes returns how many bytes the process holds, on the heap and outside of it. If they are more than most, it collects garbage and counts again: while
// a step is measured, nothing else may have.
func heldBytes(most int64) (n int64) {
	for _, last := range []bool{false, true} {
		s := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
		metrics.Read(s)
		n = taken()
		var all, shared int64 // pages; 0 where the kernel does not say
		if b, err := os.ReadFile("/proc/self/statm"); err == nil {
			_, _ = fmt.Sscan(string(b), new(int64), &all, &shared)
		}
		n = max(n, (all-shared)*int64(os.Getpagesize())) - int64(s[0].Value.Uint64())
		if n <= most || last {
			break
		}
		runtime.GC()
	}
	return n
}

// joined holds what all loops of a worker together used in a step.
type joined struct {
	busy, waited float64 // the largest share of any loop
	waitKnown    bool
	productive   int64 // nanoseconds, the sum over loops
	gaps         *measure.Interrupted

	rateWait, bytesWait float64 // the largest share of any loop
}

func (j *joined) add(u loopUse) {
	j.productive += u.productive
	if u.wall <= 0 {
		return
	}
	if g := u.gaps; g != nil {
		i := measure.Interrupted{Times: g.times, Seconds: seconds(g.total), MaxSeconds: seconds(g.longest), OthersSeconds: seconds(g.others)}
		if j.gaps != nil {
			i.Add(j.gaps)
		}
		j.gaps = &i
	}
	j.rateWait = max(j.rateWait, min(1, float64(u.rateWait)/float64(u.wall)))
	j.bytesWait = max(j.bytesWait, min(1, float64(u.bytesWait)/float64(u.wall)))
	j.busy = max(j.busy, min(1, float64(u.productive)/float64(u.wall)))
	if u.waitKnown {
		j.waited, j.waitKnown = max(j.waited, min(1, float64(u.waited)/float64(u.wall))), true
	}
}

func seconds(ns int64) float64 { return time.Duration(ns).Seconds() }

// enter adds what the loops used to the process's own report. On the blocking executor, goroutines other than the loops do the work.
func (j *joined) enter(g *measure.Generator, elapsed float64) {
	g.Busy, g.ProductiveSeconds = j.busy, float64(j.productive)/1e9
	if g.Executor == plan.Blocking {
		g.ProductiveSeconds = g.CPUSeconds
		if elapsed > 0 {
			g.Busy = max(g.Busy, min(1, g.CPUSeconds/elapsed/float64(runtime.NumCPU())))
		}
	}
	g.Interrupted, g.RateWait, g.BytesWait = j.gaps, j.rateWait, j.bytesWait
	if j.waitKnown {
		g.RunQueueWait = &j.waited
	}
}

// threads returns where loops that carry out their ops themselves have run.
func (g *group) threads() []measure.Thread {
	list, root := []measure.Thread{}, os.DirFS("/")
	for _, l := range g.loops {
		if t, ok := l.tr.(*thread); ok {
			list = append(list, measure.Thread{
				Session: l.sessions[0].id, Sessions: len(l.sessions), Pinned: t.ran.pinned,
				CPU: t.ran.began, CPUAtEnd: t.ran.end, Node: machine.NodeOf(root, t.ran.began), NodeAtEnd: machine.NodeOf(root, t.ran.end),
			})
		}
	}
	return list
}
