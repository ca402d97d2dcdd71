// Package identity says who is at the other end of a connection between a coordinator and its workers.
//
// A worker loads somebody's server on its coordinator's word, and a coordinator believes what a worker counts. So neither says anything
// before the other has proved who it is, on the loopback too: everybody on a machine can reach its ports.
//
// Two ends that belong to one user meet in a [Place] and prove that in one of two ways:
//
//   - by a Unix socket in a directory that only the user can enter. The kernel tells each end the other's user (SO_PEERCRED), which has
//     to be its own.
//   - by TCP on the loopback, with TLS 1.3 and certificates on both sides. Both ends read the key of an [Authority] from a file that only
//     the user can read, and issue themselves a certificate for their role. The key itself never leaves the process. A worker's
//     certificate does not make a coordinator, nor the other way round.
//
// [Handshake] bounds how long a connection may take to prove itself.
package identity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"google.golang.org/grpc/credentials"

	"github.com/loadgen/loadgen/internal/listen"
)

// Role is what an end of a connection is.
type Role string

// The roles.
const (
	Coordinator Role = "coordinator"
	Worker      Role = "worker"
)

// Place is where a coordinator and its workers meet, and how each proves to the other who it is.
type Place struct {
	Name   string // as people write it: HOST:PORT or socket:NAME
	Listen func() (net.Listener, error)
	Dial   func(ctx context.Context) (net.Conn, error)
	Prove  func(Role) (credentials.TransportCredentials, error) // for the end of a role
}

const (
	socketPrefix = "socket:"
	// DefaultName is the place where both ends meet unless they are told another.
	DefaultName = socketPrefix + "coordinator"
)

var socketName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// At returns the place of a name: "socket:NAME" for a socket in a directory, HOST:PORT for TCP on the loopback, with a key in that
// directory. "" stands for DefaultName. The directory is made when it is needed.
func At(dir, name string) (Place, error) {
	if name == "" {
		name = DefaultName
	}
	if socket, ok := strings.CutPrefix(name, socketPrefix); ok {
		if !socketName.MatchString(socket) {
			return Place{}, fmt.Errorf("%q: write socket: and up to 32 lower-case letters, digits and hyphens", name)
		}
		s := socketPlace{dir: dir, name: socket}
		return Place{Name: name, Listen: s.listen, Dial: s.dial, Prove: func(Role) (credentials.TransportCredentials, error) { return sameUser{}, nil }}, nil
	}
	if _, err := listen.Resolve(context.Background(), name); err != nil {
		return Place{}, advised(err)
	}
	return Place{
		Name:   name,
		Listen: func() (net.Listener, error) { return listenTCP(name) },
		Dial:   func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, name) },
		Prove: func(role Role) (credentials.TransportCredentials, error) {
			a, err := OpenAuthority(dir)
			if err != nil {
				return nil, err
			}
			return a.Credentials(role), nil
		},
	}, nil
}

// listenTCP listens on the loopback.
func listenTCP(address string) (net.Listener, error) {
	lis, err := listen.Loopback(address)
	return lis, advised(err)
}

// dialTCP connects to an address of the loopback: nothing leaves the machine before the name is known to mean one.
func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	at, err := listen.Resolve(ctx, address)
	if err != nil {
		return nil, advised(err)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", at.String())
}

// advised says what to write instead of an address that is none, or that others could reach.
func advised(err error) error {
	switch {
	case errors.Is(err, listen.ErrForm):
		return fmt.Errorf("%w, or socket:NAME", err)
	case !errors.Is(err, listen.ErrBeyond):
		return err
	}
	return fmt.Errorf("%w: between machines workers and coordinator have to prove who they are by TLS with certificates on both sides, "+
		"which this version cannot do by itself; docs/fleet.md says how two machines meet through an ssh tunnel", err)
}

// openDir makes the directory unless it is there, and refuses one that others can enter.
func openDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no directory: move it out of the way", path)
	}
	return private(path, info)
}

// private refuses what belongs to somebody else, or what somebody else may read or write.
func private(path string, info os.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("%s: its owner cannot be told", path)
	case int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to you (%d): set XDG_STATE_HOME to a directory of your own", path, owner.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (mode %04o): chmod go= %s; if somebody may have read what is in it, delete it, and it is made anew",
			path, info.Mode().Perm(), path)
	}
	return nil
}
