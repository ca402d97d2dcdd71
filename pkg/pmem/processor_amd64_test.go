package pmem

import (
	"bytes"
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
