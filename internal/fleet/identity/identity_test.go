package identity_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"

	"github.com/loadgen/loadgen/internal/fleet/identity"
)

// meet lets two ends shake hands over TCP, and returns each end's outcome.
func meet(t *testing.T, worker, coordinator credentials.TransportCredentials) (ofWorker, ofCoordinator error) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer lis.Close()
	var server sync.WaitGroup
	defer server.Wait()
	served := make(chan error, 1)
	server.Go(func() {
		conn, err := lis.Accept()
		if err != nil {
			served <- err
			return
		}
		defer conn.Close()
		_, _, err = identity.Handshake(coordinator).ServerHandshake(conn)
		served <- err
	})
	conn, err := net.Dial("tcp", lis.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	secured, _, ofWorker := identity.Handshake(worker).ClientHandshake(t.Context(), "x", conn)
	if ofWorker == nil {
		require.NoError(t, secured.SetReadDeadline(time.Now().Add(time.Second)))
		if _, err := secured.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			ofWorker = err // in TLS 1.3 a client hears later what the server made of it
		}
	} else {
		_ = conn.Close()
	}
	return ofWorker, <-served
}

func authority(t *testing.T) *identity.Authority {
	t.Helper()
	a, err := identity.NewAuthority()
	require.NoError(t, err)
	return a
}

// TestStrangersAreRefused lets ends meet that belong together, and ends that do not.
func TestStrangersAreRefused(t *testing.T) {
	own, other := authority(t), authority(t)
	ofWorker, ofCoordinator := meet(t, own.Credentials(identity.Worker), own.Credentials(identity.Coordinator))
	require.NoError(t, ofWorker)
	require.NoError(t, ofCoordinator)
	for name, ends := range map[string][2]credentials.TransportCredentials{
		"a false coordinator":            {own.Credentials(identity.Worker), other.Credentials(identity.Coordinator)},
		"a worker for a coordinator":     {own.Credentials(identity.Worker), own.Credentials(identity.Worker)},
		"a coordinator for a worker":     {own.Credentials(identity.Coordinator), own.Credentials(identity.Coordinator)},
		"a false worker for coordinator": {own.Credentials(identity.Coordinator), other.Credentials(identity.Worker)},
	} {
		t.Run(name, func(t *testing.T) {
			ofWorker, ofCoordinator := meet(t, ends[0], ends[1])
			require.Error(t, ofWorker)
			require.NotErrorIs(t, errors.Join(ofWorker, ofCoordinator), os.ErrDeadlineExceeded, "at once")
		})
	}
}

// TestSilenceIsNotBorne lets each end wait for a silent one.
func TestSilenceIsNotBorne(t *testing.T) {
	t.Parallel()
	a := authority(t)
	for name, shake := range map[string]func(net.Conn) error{
		"worker": func(c net.Conn) error {
			_, _, err := identity.Handshake(a.Credentials(identity.Worker)).ClientHandshake(t.Context(), "x", c)
			return err
		},
		"coordinator": func(c net.Conn) error {
			_, _, err := identity.Handshake(a.Credentials(identity.Coordinator)).ServerHandshake(c)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lis, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer lis.Close()
			conn, err := net.Dial("tcp", lis.Addr().String())
			require.NoError(t, err)
			began := time.Now()
			require.ErrorIs(t, shake(conn), os.ErrDeadlineExceeded)
			require.GreaterOrEqual(t, time.Since(began), identity.Silence)
		})
	}
}

// place returns one below a directory that is made for it.
func place(t *testing.T, dir, name string) identity.Place {
	t.Helper()
	p, err := identity.At(dir, name)
	require.NoError(t, err)
	return p
}

// TestOnlyLoopback refuses addresses that others could reach, without touching the network.
func TestOnlyLoopback(t *testing.T) {
	for _, address := range []string{"0.0.0.0:7464", ":7464", "10.0.0.1:7464", "[::]:7464", "example.org:7464"} {
		_, err := identity.At(t.TempDir(), address)
		require.ErrorContains(t, err, "not this machine's loopback", address)
	}
	for _, name := range []string{"127.0.0.1", "127.0.0.1:", "nowhere", "socket:", "socket:../x", "socket:A", "socket:a/b"} {
		_, err := identity.At(t.TempDir(), name)
		require.ErrorContains(t, err, "write ", name)
	}
}

// TestKeyIsMadeOnce opens it from many sides at the same time, and again.
func TestKeyIsMadeOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "fleet")
	var all sync.WaitGroup
	authorities := make([]*identity.Authority, 16)
	errs := make([]error, 16)
	for i := range authorities {
		all.Go(func() { authorities[i], errs[i] = identity.OpenAuthority(dir) })
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, a := range authorities[1:] {
		ofWorker, ofCoordinator := meet(t, authorities[0].Credentials(identity.Worker), a.Credentials(identity.Coordinator))
		require.NoError(t, errors.Join(ofWorker, ofCoordinator))
	}
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, left, 1)
	info, err := left[0].Info()
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
}

// TestKeyOfOthersIsRefused checks which keys are refused, and what the error says.
func TestKeyOfOthersIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir, key string)
		says  string
	}{
		"readable by others": {func(t *testing.T, _, key string) { require.NoError(t, os.Chmod(key, 0o640)) }, "is open to others (mode 0640): chmod go= "},
		"directory is open":  {func(t *testing.T, dir, _ string) { require.NoError(t, os.Chmod(dir, 0o755)) }, "is open to others (mode 0755): chmod go= "},
		"of another user": {func(t *testing.T, _, key string) {
			if os.Geteuid() != 0 {
				require.NoError(t, os.Chmod(key, 0o604)) // no other user can be had
				return
			}
			require.NoError(t, os.Chown(key, 65534, 65534))
		}, "o"},
		"fifo": {func(t *testing.T, _, key string) {
			require.NoError(t, os.Remove(key))
			require.NoError(t, syscall.Mkfifo(key, 0o600))
		}, "is not a regular file"},
		"link": {func(t *testing.T, dir, key string) {
			require.NoError(t, os.Rename(key, filepath.Join(dir, "elsewhere")))
			require.NoError(t, os.Symlink("elsewhere", key))
		}, "too many levels of symbolic links"},
		"garbage": {func(t *testing.T, _, key string) { require.NoError(t, os.WriteFile(key, []byte("no key"), 0o600)) }, "holds no key: delete it"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "fleet")
			_, err := identity.OpenAuthority(dir)
			require.NoError(t, err)
			c.spoil(t, dir, filepath.Join(dir, "authority.pem"))
			_, err = identity.OpenAuthority(dir)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestSocketIsOfOneCoordinator takes a place, and takes it again once it is free, even after a coordinator that could not clean up.
func TestSocketIsOfOneCoordinator(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "fleet")
	first, err := place(t, dir, "").Listen()
	require.NoError(t, err)
	info, err := os.Lstat(filepath.Join(dir, "coordinator.sock"))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	_, err = place(t, dir, "").Listen()
	require.ErrorContains(t, err, "another coordinator of yours is at socket:coordinator (process ")
	second, err := place(t, dir, "socket:other").Listen()
	require.NoError(t, err)
	require.NoError(t, second.Close())
	require.NoError(t, first.Close())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	for _, name := range []string{"coordinator", "child-1"} { // killed: their locks are released, their files stay
		stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, name+".sock"), Net: "unix"})
		require.NoError(t, err)
		stale.SetUnlinkOnClose(false)
		require.NoError(t, stale.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".lock"), []byte("1\n"), 0o600))
	}
	again, err := place(t, dir, "").Listen()
	require.NoError(t, err)
	conn, err := place(t, dir, "").Dial(t.Context())
	require.NoError(t, err)
	require.NoError(t, errors.Join(conn.Close(), again.Close()))
	left, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "what child-1 left behind is gone, too")
}

// TestSocketKnowsItsUser: both ends of a socket learn the other's user; over TCP they cannot.
func TestSocketKnowsItsUser(t *testing.T) {
	p := place(t, filepath.Join(t.TempDir(), "fleet"), "")
	lis, err := p.Listen()
	require.NoError(t, err)
	defer lis.Close()
	conn, err := p.Dial(t.Context())
	require.NoError(t, err)
	defer conn.Close()
	served, err := lis.Accept()
	require.NoError(t, err)
	defer served.Close()
	proof, err := p.Prove(identity.Worker)
	require.NoError(t, err)
	_, _, err = identity.Handshake(proof).ClientHandshake(t.Context(), "", conn)
	require.NoError(t, err)
	_, _, err = identity.Handshake(proof).ServerHandshake(served)
	require.NoError(t, err)
	a, b := net.Pipe()
	defer b.Close()
	_, _, err = identity.Handshake(proof).ServerHandshake(a)
	require.ErrorContains(t, err, "no socket")
}

// TestLongPathIsRefused says what to do if the path is too long for a socket.
func TestLongPathIsRefused(t *testing.T) {
	long := filepath.Join(t.TempDir(), "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789")
	_, err := place(t, long, "").Listen()
	require.ErrorContains(t, err, "set XDG_STATE_HOME to a shorter one")
	_, err = place(t, long, "").Dial(context.Background())
	require.ErrorContains(t, err, "set XDG_STATE_HOME to a shorter one")
}

// TestReplayedWordsProveNothing replays to a coordinator what a worker sent it before.
func TestReplayedWordsProveNothing(t *testing.T) {
	a := authority(t)
	here, there := net.Pipe()
	tape := &tapped{Conn: here}
	shaken := make(chan error, 1)
	go func() {
		_, _, err := a.Credentials(identity.Coordinator).ServerHandshake(there)
		shaken <- err
	}()
	_, _, err := a.Credentials(identity.Worker).ClientHandshake(t.Context(), "", tape)
	require.NoError(t, err)
	require.NoError(t, <-shaken)
	here, there = net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, here) }() // ends with the pipe
	go func() { _, _ = here.Write(tape.said) }()
	_, _, err = identity.Handshake(a.Credentials(identity.Coordinator)).ServerHandshake(there)
	require.Error(t, err)
	require.NoError(t, here.Close())
}

// tapped keeps what is written.
type tapped struct {
	net.Conn
	said []byte
}

func (c *tapped) Write(b []byte) (int, error) {
	c.said = append(c.said, b...)
	return c.Conn.Write(b)
}
