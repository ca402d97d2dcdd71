package pmlog

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
)

const benchFile = 128 << 20

// layouts are compared: each returns a function that makes the nth writer's write.
var layouts = map[string]func(b testing.TB, size, writers int) func(n int) func(p []byte) error{
	"raw":     rawBench(false),
	"raw+crc": rawBench(true),
	"append": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		return appendBench(b, AppendOptions{Padding: 64})
	},
	"append-8": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		return appendBench(b, AppendOptions{Padding: 8})
	},
	"append-relaxed": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		return appendBench(b, AppendOptions{Padding: 64, Order: Relaxed})
	},
	"append-length": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		return appendBench(b, AppendOptions{Padding: 64, Commit: ByLength})
	},
	"array":     arrayBench(1 << 20),
	"array-100": arrayBench(100),
	"channel": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		l, err := CreateChannel(file(b, benchFile, pmem.CLWB), file(b, SideSize, pmem.CLWB))
		require.NoError(b, err)
		return func(int) func(p []byte) error {
			w := l.Writer()
			return func(p []byte) error {
				_, err := w.Append(p)
				if errors.Is(err, ErrFull) {
					return l.Clear()
				}
				return err
			}
		}
	},
}

func rawBench(crc bool) func(b testing.TB, size, writers int) func(int) func([]byte) error {
	return func(b testing.TB, _, writers int) func(int) func([]byte) error {
		l := NewRaw(file(b, benchFile, pmem.CLWB), crc)
		part := int64(benchFile / writers)
		return func(n int) func(p []byte) error {
			w, err := l.Writer(int64(n)*part, int64(n+1)*part)
			require.NoError(b, err)
			return func(p []byte) error {
				_, err := w.Write(p)
				return err
			}
		}
	}
}

func appendBench(b testing.TB, o AppendOptions) func(int) func([]byte) error {
	l, err := CreateAppend(file(b, benchFile, pmem.CLWB), o)
	require.NoError(b, err)
	return func(int) func(p []byte) error {
		w := l.Writer()
		return func(p []byte) error {
			_, err := w.Append(p)
			if errors.Is(err, ErrFull) {
				return l.Clear()
			}
			return err
		}
	}
}

// BenchmarkWrite needs a processor that flushes. TMPDIR decides whether the file is in memory.
func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{1024, 1801, 1 << 20} {
		for name, layout := range layouts {
			for _, writers := range []int{1, 2} {
				b.Run(fmt.Sprintf("layout=%s/size=%d/writers=%d", name, size, writers), func(b *testing.B) {
					writer := layout(b, size, writers)
					b.SetBytes(int64(size))
					b.ReportAllocs()
					b.ResetTimer()
					var wait sync.WaitGroup
					for n := range writers {
						write, p := writer(n), make([]byte, size)
						wait.Go(func() {
							for range b.N / writers {
								if err := write(p); err != nil {
									b.Error(err)
									return
								}
							}
						})
					}
					wait.Wait()
				})
			}
		}
	}
}

// BenchmarkBesideRaw runs each layout in turn with raw, a millisecond each, and gives the median of the ratios of their speeds. Disturbances affect
// both.
func BenchmarkBesideRaw(b *testing.B) {
	for _, size := range []int{1024, 1801, 1 << 20} {
		for _, name := range slices.Sorted(maps.Keys(layouts)) {
			bound := "raw+crc"
			if name == "channel" {
				bound = "raw"
			}
			b.Run(fmt.Sprintf("layout=%s/size=%d", name, size), func(b *testing.B) {
				raw, write, p := layouts[bound](b, size, 1)(0), layouts[name](b, size, 1)(0), make([]byte, size)
				ops := 1 + 4<<20/(size+1024)
				var ratios []float64
				for b.Loop() {
					bare := spent(b, raw, p, ops)
					ratios = append(ratios, bare/spent(b, write, p, ops))
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "of-raw")
			})
		}
	}
}

// spent returns how many seconds it takes to write p that many times.
func spent(b *testing.B, write func([]byte) error, p []byte, times int) float64 {
	start := time.Now()
	for range times {
		if err := write(p); err != nil {
			b.Fatal(err)
		}
	}
	return time.Since(start).Seconds()
}

// arrayBench makes at most the given number of slots; each writer takes its own in turn.
func arrayBench(slots int) func(b testing.TB, size, writers int) func(int) func([]byte) error {
	return func(b testing.TB, size, _ int) func(int) func([]byte) error {
		o := ArrayOptions{Slots: min(slots, (benchFile-dataStart)/2/int(span(int64(size), 64))), Capacity: size}
		l, err := CreateArray(file(b, benchFile, pmem.CLWB), o)
		require.NoError(b, err)
		return func(n int) func(p []byte) error {
			w, slot := l.Writer(), n
			return func(p []byte) error {
				slot = (slot + 2) % (o.Slots &^ 1)
				return w.Write(slot, p)
			}
		}
	}
}
