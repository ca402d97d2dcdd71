package pmlog

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
)

const benchFile = 128 << 20

// layouts are what is compared: each returns a function that makes the nth writer's write.
var layouts = map[string]func(b testing.TB, size, writers int) func(n int) func(p []byte) error{
	"raw":     rawBench(false),
	"raw+crc": rawBench(true),
	"append/strict": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		return appendBench(b, AppendOptions{Padding: 64})
	},
	"append/strict/8": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		return appendBench(b, AppendOptions{Padding: 8})
	},
	"append/relaxed": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		return appendBench(b, AppendOptions{Padding: 64, Order: Relaxed})
	},
	"append/length": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		return appendBench(b, AppendOptions{Padding: 64, Commit: ByLength})
	},
	"array": func(b testing.TB, size, _ int) func(int) func([]byte) error {
		o := ArrayOptions{Slots: (benchFile - dataStart) / 2 / int(span(int64(size), 64)), Capacity: size}
		l, err := CreateArray(file(b, benchFile, pmem.CLWB), o)
		require.NoError(b, err)
		return func(n int) func(p []byte) error {
			w, slot := l.Writer(), n
			return func(p []byte) error {
				slot = (slot + 2) % (o.Slots &^ 1)
				return w.Write(slot, p)
			}
		}
	},
	"channel": func(b testing.TB, _, _ int) func(int) func([]byte) error {
		l, err := CreateChannel(file(b, benchFile, pmem.CLWB), file(b, SideSize, pmem.CLWB))
		require.NoError(b, err)
		return func(int) func(p []byte) error {
			return func(p []byte) error {
				_, err := l.Append(p)
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

// BenchmarkWrite wants a processor that flushes. Whether the file is in memory is TMPDIR's to say.
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
