package pmem

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestInstructionsKeepTheBytes runs each instruction that an amd64 processor may be without only where it is there.
func TestInstructionsKeepTheBytes(t *testing.T) {
	flushes := map[string]func([]byte){"CLFLUSH": clflush}
	switch detect().name {
	case "CLWB":
		flushes["CLWB"], flushes["CLFLUSHOPT"] = clwb, clflushopt
	case "CLFLUSHOPT":
		flushes["CLFLUSHOPT"] = clflushopt
	}
	for name, flush := range flushes {
		p := bytes.Repeat([]byte("abc"), 1000)
		for from := range 130 {
			flush(p[from : from+1])
			flush(p[from : len(p)-from])
		}
		sfence()
		require.Equal(t, bytes.Repeat([]byte("abc"), 1000), p, name)
	}
}

// TestStoresPastTheCaches runs those that this processor has.
func TestStoresPastTheCaches(t *testing.T) {
	stores := map[string]processor{"16": {aside: movnt, line: lineByWords}, "detected": detect()}
	from := make([]byte, 1000)
	for i := range from {
		from[i] = byte(i*7/3 + 1)
	}
	for name, store := range stores {
		to := make([]byte, 64<<10) // which begins with a page
		for lines := range 13 {
			for at := range 70 {
				clear(to)
				store.aside(to[line:line+lines*line], from[at:])
				sfence()
				require.Equal(t, make([]byte, line), to[:line])
				require.Equal(t, from[at:at+lines*line], to[line:line+lines*line], name)
				require.Equal(t, make([]byte, line), to[line+lines*line:][:line])
			}
		}
		for _, head := range []int{0, headSize} {
			for n := range line - head + 1 {
				for _, size := range []int{n, line, 200} {
					for _, at := range []int{0, (size - n) / 2, size - n} {
						if at < 0 {
							continue
						}
						front, p, sum := from[:head], from[100:100+size], uint32(0x01020304*head)
						whole := slices.Concat(front, p[at:at+n], make([]byte, line-head-n))
						binary.LittleEndian.PutUint32(whole, binary.LittleEndian.Uint32(whole)^sum)
						clear(to[:3*line])
						store.line(to[line:2*line], front, p, at, n, sum)
						sfence()
						require.Equal(t, slices.Concat(make([]byte, line), whole, make([]byte, line)), to[:3*line], "%s: %d from %d of %d behind %d", name, n, at, size, head)
					}
				}
			}
		}
	}
}

// TestCopyOfAnything copies pieces of all alignments, through the caches and past them, in small and in large mappings.
func TestCopyOfAnything(t *testing.T) {
	from := make([]byte, 2*leastAside)
	for i := range from {
		from[i] = byte(i*7/3 + 1)
	}
	for _, p := range []processor{{}, {aside: movnt}, {aside: detect().aside}} {
		for _, size := range []int{1 << 20, largerThanCaches} {
			mapping := make([]byte, size)
			for at := range 70 {
				for _, n := range []int{1, 63, leastAside - 1, leastAside, leastAside + 1, leastAside + at, len(from)} {
					off := int64(8192 + at)
					around := mapping[off-64:][:n+128]
					clear(around)
					p.copy(mapping, off, from[:n])
					require.Equal(t, make([]byte, 64), around[:64])
					require.Equal(t, from[:n], around[64:64+n])
					require.Equal(t, make([]byte, 64), around[64+n:])
				}
			}
			end := int64(size - leastAside - 7)
			p.copy(mapping, end, from[:leastAside+7])
			require.Equal(t, from[:leastAside+7], mapping[end:])
		}
	}
}

// TestPrefetchOfAnything reaches no byte.
func TestPrefetchOfAnything(t *testing.T) {
	p := bytes.Repeat([]byte("abc"), 1000)
	for n := range 130 {
		prefetch(p[n:n])
		prefetch(p[n : 2*n])
	}
	require.Equal(t, bytes.Repeat([]byte("abc"), 1000), p)
}
