package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
)

const (
	lockSuffix   = ".lock"
	socketSuffix = ".sock"
)

// maxSocketPath is the kernel's limit on a socket's path, in bytes (unix(7)).
const maxSocketPath = 107

// socketPlace is a Unix socket in a directory that only its user can enter.
type socketPlace struct{ dir, name string }

func (s socketPlace) path() (string, error) {
	path := filepath.Join(s.dir, s.name+socketSuffix)
	if len(path) > maxSocketPath {
		return "", fmt.Errorf("socket %s: its path is longer than the %d bytes that the system allows: set XDG_STATE_HOME to a shorter one", path, maxSocketPath)
	}
	return path, openDir(s.dir)
}

// dial connects to the socket. The credentials find out who made it.
func (s socketPlace) dial(ctx context.Context) (net.Conn, error) {
	path, err := s.path()
	if err != nil {
		return nil, err
	}
	return new(net.Dialer).DialContext(ctx, "unix", path)
}

// listen makes the socket. A lock file beside it shows whether its coordinator is alive, since the kernel releases the lock when the process ends. So a
// socket left behind is recognised and removed.
func (s socketPlace) listen() (net.Listener, error) {
	path, err := s.path()
	if err != nil {
		return nil, err
	}
	s.sweep()
	lock, err := take(s.dir, s.name)
	if err != nil {
		return nil, err
	}
	lis, err := net.Listen("unix", path)
	if err != nil {
		return nil, errors.Join(err, lock.leave())
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, lis.Close(), lock.leave())
	}
	return &locked{lis, lock}, nil
}

// sweep removes what killed coordinators have left behind.
func (s socketPlace) sweep() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // listening reports why
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), lockSuffix); ok && name != s.name {
			if lock, err := take(s.dir, name); err == nil {
				_ = lock.leave() // a leftover file does no harm
			}
		}
	}
}

// place is a socket's name, taken by this process.
type place struct {
	file         *os.File
	lock, socket string // paths
}

// take takes a name, or says who has it. Any socket of that name is then a leftover, and is removed.
func take(dir, name string) (*place, error) {
	p := &place{lock: filepath.Join(dir, name+lockSuffix), socket: filepath.Join(dir, name+socketSuffix)}
	for {
		file, err := os.OpenFile(p.lock, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
		if err != nil {
			return nil, err
		}
		if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			return nil, errors.Join(taken(file, name), file.Close())
		}
		if p.file = file; p.stands() {
			break
		}
		_ = file.Close() // its owner has just removed it
	}
	_, err := p.file.WriteAt(fmt.Appendf(nil, "%-10d\n", os.Getpid()), 0) // overwrites another process's
	if err == nil {
		err = os.Remove(p.socket)
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

// taken says who holds a lock.
func taken(file *os.File, name string) error {
	pid, _ := io.ReadAll(io.LimitReader(file, 20)) // the PID, if it can be read
	return fmt.Errorf("another coordinator of yours is at %s%s (process %s): wait for its end, or give this one and its workers another place, by "+
		"--listen and --join %[1]sNAME", socketPrefix, name, strings.TrimSpace(string(pid)))
}

// stands says whether the lock file is still the one at its path.
func (p *place) stands() bool {
	held, err := p.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(p.lock)
	return err == nil && os.SameFile(held, there)
}

// leave frees the name.
func (p *place) leave() error { return errors.Join(os.Remove(p.lock), p.file.Close()) }

// locked is a listener on a socket whose name this process has taken.
type locked struct {
	net.Listener
	place *place
}

// Close removes the socket, then frees its name.
func (l *locked) Close() error { return errors.Join(l.Listener.Close(), l.place.leave()) }

// sameUser accepts the other end of a Unix socket if the kernel says that it belongs to the user of this process.
type sameUser struct{}

// userInfo describes the process at an end of a Unix socket.
type userInfo struct{ credentials.CommonAuthInfo }

// AuthType names how the end was identified.
func (userInfo) AuthType() string { return "same user" }

func (sameUser) ClientHandshake(_ context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return checkUser(conn)
}

func (sameUser) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return checkUser(conn)
}

func (sameUser) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "same user"}
}

func (sameUser) Clone() credentials.TransportCredentials { return sameUser{} }

// OverrideServerName does nothing: there is no name.
func (sameUser) OverrideServerName(string) error { return nil }

func checkUser(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	uid, err := peerUser(conn)
	if err == nil && uid != os.Geteuid() {
		err = fmt.Errorf("the other end runs as user %d, this one as user %d: run both as the same", uid, os.Geteuid())
	}
	if err != nil {
		return nil, nil, errors.Join(err, conn.Close())
	}
	return conn, userInfo{credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity}}, nil
}

// peerUser asks the kernel for the user of the other end.
func peerUser(conn net.Conn) (int, error) {
	control, err := socketOf(conn)
	if err != nil {
		return 0, fmt.Errorf("whose connection this is cannot be told: %w", err)
	}
	var cred *unix.Ucred
	var asked error
	if err := control.Control(func(fd uintptr) { cred, asked = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if asked != nil {
		return 0, os.NewSyscallError("SO_PEERCRED", asked)
	}
	return int(cred.Uid), nil
}
