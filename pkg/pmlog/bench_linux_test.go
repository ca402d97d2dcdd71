package pmlog

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
)

func BenchmarkWrite(b *testing.B) {
	for _, size := range []int{1024, 1801, 1 << 20} {
		p := make([]byte, size)
		for _, crc := range []bool{false, true} {
			b.Run(fmt.Sprintf("layout=raw/crc=%t/size=%d", crc, size), func(b *testing.B) {
				f := file(b, 256<<20, pmem.CLWB)
				w, err := NewRaw(f, crc).Writer(8192, f.Size())
				require.NoError(b, err)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := w.Write(p); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		for _, o := range forms() {
			b.Run(fmt.Sprintf("layout=append/%s/size=%d", o.name(), size), func(b *testing.B) {
				l, err := CreateAppend(file(b, 256<<20, pmem.CLWB), o)
				require.NoError(b, err)
				w := l.Writer()
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					_, err := w.Append(p)
					if errors.Is(err, ErrFull) {
						err = l.Clear()
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
