package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/loadgen/loadgen/internal/run"
)

// BenchmarkLoop is all that an op costs the event loop but for the kernel, and what the scripted server costs that answers it. path=program
// leaves plain ops to their program.
func BenchmarkLoop(b *testing.B) {
	for _, path := range []string{"direct", "program"} {
		for _, pipeline := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("load=closed/path=%s/pipeline=%d", path, pipeline), func(b *testing.B) {
				benchmarkLoop(b, path == "program", fmt.Sprintf("closed {\n sessions = 50\n duration = \"1000h\"\n pipeline = %d\n}", pipeline))
			})
		}
	}
	for _, arrivals := range []string{"constant", "poisson"} {
		b.Run("load=open/arrivals="+arrivals, func(b *testing.B) {
			benchmarkLoop(b, false, fmt.Sprintf("open {\n rate = 100000\n duration = \"1000h\"\n arrivals = %q\n sessions = 50\n pipeline = 16\n}", arrivals))
		})
	}
}

func benchmarkLoop(b *testing.B, indirect bool, load string) {
	v := newBench(b, redisPlan(b, 1, "", "ops = { get = 1 }\n"+load), "load", 100*time.Microsecond)
	v.indirect = indirect
	v.equip(run.Load)
	v.l.enter()
	got := v.server(0).got["GET"]
	for *got < 100_000 {
		v.l.cycle()
	}
	from := *got
	b.ReportAllocs()
	b.ResetTimer()
	for *got-from < b.N {
		v.l.cycle()
	}
}
