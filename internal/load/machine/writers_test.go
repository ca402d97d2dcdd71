package machine

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// A neighbour that writes is named; one whose figures are hidden, or that only reads, is not.
func TestWritersAreNamed(t *testing.T) {
	look := func(dd, hidden string) map[int]Writer {
		return Writers(fstest.MapFS{
			"proc/self/comm": {},
			"proc/17/comm":   {Data: []byte("dd\n")}, "proc/17/io": {Data: []byte("rchar: 9\nread_bytes: 7\nwrite_bytes: " + dd + "\ncancelled_write_bytes: 0\n")},
			"proc/18/comm": {Data: []byte("reader\n")}, "proc/18/io": {Data: []byte("read_bytes: 70\nwrite_bytes: 5000\n")},
			"proc/19/comm": {Data: []byte("root's\n")}, "proc/19/io": {Data: []byte(hidden)},
		})
	}
	before := look("4096", "")
	require.Empty(t, MostWritten(before, look("4096", "write_bytes")))
	require.Equal(t, "dd (process 17)", MostWritten(before, look("8192", "\nwrite_bytes: much\n")))
}
