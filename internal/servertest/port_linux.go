package servertest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// freePort returns a port of the loopback that is t's until it ends. It is below those that the kernel gives to connections and to listeners that name
// none, so that a server which is started later, or anew, still gets it. Test processes of one user tell each other by locks in a file which ports they have.
func freePort(t testing.TB) string {
	t.Helper()
	const lowest = 12000
	end := 32768
	if text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(text), &end) // else the usual
	}
	taken, err := os.OpenFile(filepath.Join(os.TempDir(), fmt.Sprintf("loadgen-test-ports-%d", os.Geteuid())), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // which gives the port back
	for range 1000 {
		port := lowest + rand.IntN(max(end, lowest+1000)-lowest)
		lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(port), Len: 1}
		if unix.FcntlFlock(taken.Fd(), unix.F_OFD_SETLK, &lock) != nil {
			continue
		}
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			_ = listener.Close() // nobody has come to it
			return strconv.Itoa(port)
		}
		lock.Type = unix.F_UNLCK
		_ = unix.FcntlFlock(taken.Fd(), unix.F_OFD_SETLK, &lock) // it is this process' own
	}
	t.Fatal("find a free port: none of 1000 is")
	return ""
}
