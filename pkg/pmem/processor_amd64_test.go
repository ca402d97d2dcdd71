package pmem

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
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
	stores := map[string]processor{"16": {aside: movnt, begin: movntFirst}}
	if cpu.X86.HasAVX512F {
		stores["64"] = processor{aside: movnt512, begin: movntFirst512}
	}
	from := make([]byte, 1000)
	for i := range from {
		from[i] = byte(i*7/3 + 1)
	}
	for name, p := range stores {
		to := make([]byte, 64<<10) // which begins with a page
		for lines := range 13 {
			for at := range 70 {
				clear(to)
				p.aside(to[line:line+lines*line], from[at:])
				sfence()
				require.Equal(t, make([]byte, line), to[:line])
				require.Equal(t, from[at:at+lines*line], to[line:line+lines*line], name)
				require.Equal(t, make([]byte, line), to[line+lines*line:][:line])
			}
		}
		p.begin(to[line:2*line], (*[line]byte)(from), 0x0807060504030201)
		sfence()
		require.Equal(t, append(binary.LittleEndian.AppendUint64(nil, 0x0807060504030201), from[8:line]...), to[line:2*line], name)
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
