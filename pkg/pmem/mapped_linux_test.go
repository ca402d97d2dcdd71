package pmem

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// If a file cannot be mapped, nothing that other threads map meanwhile is taken from them. The kernel removes what was at an address before it asks
// the file system, which then refuses MAP_SYNC on ext4 and XFS without DAX.
func TestRefusedMappingsLeaveOthersAlone(t *testing.T) {
	const size = 1 << 20
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(size))

	var over atomic.Bool
	taken := make(chan error, 1)
	go func() {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if fault, ok := recover().(error); ok {
				taken <- fault
			}
			close(taken)
		}()
		for !over.Load() {
			p, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err != nil {
				taken <- err
				return
			}
			for range 100 {
				p[0]++
				p[size-1]++
			}
			if err := unix.Munmap(p); err != nil {
				taken <- err
				return
			}
		}
	}()
	for end := time.Now().Add(time.Second); time.Now().Before(end) && len(taken) == 0; {
		p, err := mapped(int(f.Fd()), size, unix.MAP_SHARED_VALIDATE|unix.MAP_SYNC)
		if err == nil { // it has DAX
			require.NoError(t, unmap(p))
		}
	}
	over.Store(true)
	require.NoError(t, <-taken)
}
