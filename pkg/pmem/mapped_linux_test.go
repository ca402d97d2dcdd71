package pmem

import (
	"context"
	"errors"
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

// Mapping pages ahead ends when nobody waits for it any more. Where stores do not go to memory by instructions, and the file is on a disk, it does nothing.
func TestPopulatingIsGivenUp(t *testing.T) {
	given, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	for mode, want := range map[Mode]string{CLWB: "map: given up after 0 of 4096 bytes: enough", Msync: ""} {
		f := &File{kernel: linux{}, mode: mode, data: make([]byte, 4096)}
		if want == "" {
			require.NoError(t, f.populate(given))
			continue
		}
		require.EqualError(t, f.populate(given), want)
		require.NoError(t, f.populate(t.Context()), "the kernel's own error is left to the first access")
	}
}

// What takes the file's place before it is opened may be a device: opening it neither waits for it nor makes it the process's terminal.
func TestOpeningDoesNotWait(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	defer root.Close()
	require.NoError(t, root.WriteFile("file", make([]byte, 4096), 0o600))
	f, err := OpenIn(root, "file", None)
	require.NoError(t, err)
	defer f.Close()
	conn, err := f.file.SyscallConn()
	require.NoError(t, err)
	var flags int
	require.NoError(t, conn.Control(func(fd uintptr) { flags, err = unix.FcntlInt(fd, unix.F_GETFL, 0) }))
	require.NoError(t, err)
	require.NotZero(t, flags&unix.O_NONBLOCK)
}
