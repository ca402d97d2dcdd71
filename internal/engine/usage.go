package engine

import (
	"math"
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/run"
)

// usage is what the process had spent when a step began.
type usage struct {
	cpu     float64
	cycles  uint32
	mallocs uint64
	percent int
	limit   int64
	quiet   bool
}

// startUsage begins to count. While a measured step runs, the garbage collector works only to keep the heap below half of the
// machine's memory; Prepare has left it a clean one.
func startUsage(measured bool) usage {
	u := usage{quiet: measured}
	if measured {
		u.limit = debug.SetMemoryLimit(heapLimit())
		u.percent = debug.SetGCPercent(-1)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	u.cycles, u.mallocs = m.NumGC, m.Mallocs
	u.cpu, _ = spent()
	return u
}

// stop returns what was spent since.
func (u usage) stop() run.Generator {
	cpu, rss := spent()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if u.quiet {
		debug.SetGCPercent(u.percent)
		debug.SetMemoryLimit(u.limit)
	}
	return run.Generator{CPUSeconds: cpu - u.cpu, GCCycles: m.NumGC - u.cycles, MaxRSSBytes: rss, Mallocs: m.Mallocs - u.mallocs}
}

// spent returns the processor time of the process in seconds and its largest resident size in bytes.
func spent() (cpu float64, maxRSS int64) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		panic(err) // only for a wrong address or selector
	}
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9, r.Maxrss << 10
}

// heapLimit is half of the machine's memory.
func heapLimit() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return math.MaxInt64
	}
	return int64(uint64(info.Totalram) * uint64(info.Unit) / 2)
}
