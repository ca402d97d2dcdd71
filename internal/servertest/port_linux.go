package servertest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// freePort returns a loopback port that belongs to t until it ends. It is below the ports that the kernel assigns to connections and to listeners
// that name none, so a server that starts later, or again, still gets it. Test processes of one user reserve ports by locks in a file.
func freePort(t testing.TB) string {
	t.Helper()
	const lowest = 12000
	end := 32768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &end) // on an error, the default
	}
	taken, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("loadgen-test-ports-%d", os.Geteuid())), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err, "find a free port")
	t.Cleanup(func() { _ = taken.Close() }) // releases the port
	for range 1000 {
		port := lowest + rand.IntN(max(end, lowest+1000)-lowest)
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(port), Len: 1}
		if unix.FcntlFlock(taken.Fd(), unix.F_OFD_SETLK, &lock) != nil {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = listener.Close() // nobody has connected to it
			return strconv.Itoa(port)
		}
		lock.Type = unix.F_UNLCK
		_ = unix.FcntlFlock(taken.Fd(), unix.F_OFD_SETLK, &lock) // the lock is this process' own
	}
	t.Fatal("find a free port: none of 1000 is")
	return ""
}
