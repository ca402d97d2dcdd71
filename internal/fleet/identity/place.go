// Package identity proves who is at the other end of a connection between a coordinator and its workers.
//
// A worker loads somebody's server on its coordinator's word, and a coordinator believes what a worker counts. So neither says anything before the
// other has proved who it is. That holds on the loopback too: anyone on a machine can reach its ports.
//
// Two ends meet in a [Place]. They prove that they belong to one user of one machine:
//
//   - by a Unix socket in a directory that only the user can enter. The kernel tells each end the other's user (SO_PEERCRED), which must be its own.
//   - by TCP on the loopback, with TLS 1.3 and certificates on both sides. Both ends read the key of an [Authority] from a file that only the user can
//     read, and issue themselves a certificate for their role. The key itself never leaves the process. A worker's certificate cannot serve as a
//     coordinator's, or the other way round.
//
// Or, on two machines, they prove that they belong together, again by TLS 1.3 with certificates on both sides:
//
//   - The coordinator's machine has the authority's key. With a [Token], a worker gets a certificate from there, and renews it while it can (enrol.go,
//     joined.go).
//   - Both ends have certificates of the user's own PKI, in [Files].
//
// [Handshake] bounds how long a connection may take to prove itself.
package identity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"google.golang.org/grpc/credentials"

	"github.com/loadgen/loadgen/internal/base/listen"
)

// Role is the part that one end of a connection plays.
type Role string

// The roles.
const (
	Coordinator Role = "coordinator"
	Worker      Role = "worker"
)

// Place is where a coordinator and its workers meet, and how each proves who it is to the other.
type Place struct {
	Name   string // as the user writes it: HOST:PORT or socket:NAME
	Listen func() (net.Listener, error)
	Dial   func(ctx context.Context) (net.Conn, error)
	Prove  func(Role) (credentials.TransportCredentials, error) // returns the credentials of the end with that role

	// Enrol makes sure that a worker has a certificate: it asks the coordinator for one if there is none, or if the current one should be renewed. A
	// *RefusedError says that trying again is pointless, a *RenewalError that the current certificate is still valid. If nil, nothing is needed.
	Enrol func(ctx context.Context) error
	// Beyond says whether other machines can reach the place.
	Beyond bool
	// Tokens says whether workers may enrol there with a token.
	Tokens bool
}

// Reach returns the place as workers should write it, given the address at which it was opened: with the actual port.
func (p Place) Reach(at net.Addr) string {
	if tcp, ok := at.(*net.TCPAddr); ok {
		return listen.Reach(tcp)
	}
	return p.Name
}

// Means are the credentials of an end of a connection, besides being the same user on the same machine.
type Means struct {
	Dir   string // directory of this user's fleets: sockets, key, tokens and certificates
	Token *Token // a worker's token; nil if it has none
	Name  string // a worker's name, as CheckName allows; certificates that a token gets are for it alone
	TLS   Files  // files of the user's own PKI
}

// ListenAt returns the place of a coordinator: that of [At], or HOST:PORT with another address of this machine, or with no host for all of them.
func (m Means) ListenAt(name string) (Place, error) {
	if strings.HasPrefix(name, socketPrefix) || name == "" {
		return m.socketAt(name)
	}
	beyond, err := listen.Beyond(name)
	if err != nil {
		return Place{}, advised(err)
	}
	p := Place{Name: name, Beyond: true, Listen: func() (net.Listener, error) { return net.Listen("tcp", name) }}
	if !beyond {
		p, err = At(m.Dir, name)
	}
	if err != nil {
		return Place{}, err
	}
	return m.prove(p, Coordinator, "")
}

// JoinAt returns the place of a worker: that of [At], or HOST:PORT on any machine. On the loopback, where a tunnel may lead elsewhere, a certificate
// that the worker has from there comes before this user's own key.
func (m Means) JoinAt(name string) (Place, error) {
	if strings.HasPrefix(name, socketPrefix) || name == "" {
		return m.socketAt(name)
	}
	host, port, err := net.SplitHostPort(name)
	if err != nil || port == "" || host == "" {
		return Place{}, advised(fmt.Errorf("%q: %w", name, listen.ErrForm))
	}
	if beyond, err := listen.Beyond(name); beyond || err != nil { // the name or address of another machine
		return m.join(Place{
			Name: name, Beyond: true,
			Dial: func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", name) },
		}, host)
	}
	p, err := At(m.Dir, name)
	if err != nil {
		return Place{}, err
	}
	if m.Token == nil && m.TLS.IsZero() && !hasJoined(m.Dir, name, m.Name) {
		return p, nil
	}
	return m.join(p, host)
}

// socketAt returns the place of a socket, where the kernel identifies both ends.
func (m Means) socketAt(name string) (Place, error) {
	if m.Token != nil || !m.TLS.IsZero() {
		return Place{}, fmt.Errorf("%q is a socket of this machine, where neither tokens nor certificates are needed: leave them out, or write HOST:PORT", name)
	}
	return At(m.Dir, name)
}

// prove sets how the ends of a place prove themselves.
func (m Means) prove(p Place, role Role, host string) (Place, error) {
	if m.TLS.IsZero() {
		p.Tokens, p.Prove = true, ownKey(m.Dir)
		return p, nil
	}
	keys, err := openFiles(m.TLS, role, host)
	if err != nil {
		return Place{}, err
	}
	p.Prove = certifiedBy(keys)
	return p, nil
}

// certifiedBy returns the proof of an end that has its certificate from elsewhere.
func certifiedBy(keys keyring) func(Role) (credentials.TransportCredentials, error) {
	return func(role Role) (credentials.TransportCredentials, error) {
		return &certificates{keys: keys, role: role}, nil
	}
}

// join sets how a worker proves itself at its place.
func (m Means) join(p Place, host string) (Place, error) {
	if !m.TLS.IsZero() {
		if m.Token != nil {
			return Place{}, errors.New("a token and --tls-cert are two ways to prove who this worker is: use one of them")
		}
		return m.prove(p, Worker, host)
	}
	keys, err := m.openJoined(p.Name, p.Dial)
	if err != nil {
		return Place{}, err
	}
	p.Enrol, p.Prove = keys.enrol, certifiedBy(keys)
	return p, nil
}

// ownKey returns the proof of an end that has this user's key.
func ownKey(dir string) func(Role) (credentials.TransportCredentials, error) {
	return func(role Role) (credentials.TransportCredentials, error) {
		a, err := OpenAuthority(dir)
		if err != nil {
			return nil, err
		}
		return a.Credentials(role), nil
	}
}

const (
	socketPrefix = "socket:"
	// DefaultName is the place where both ends meet by default.
	DefaultName = socketPrefix + "coordinator"
)

var socketName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// At returns the place of a name: "socket:NAME" for a socket in a directory, HOST:PORT for TCP on the loopback, with a key in that directory. ""
// stands for DefaultName. The directory is made when needed.
func At(dir, name string) (Place, error) {
	if name == "" {
		name = DefaultName
	}
	if socket, ok := strings.CutPrefix(name, socketPrefix); ok {
		if !socketName.MatchString(socket) {
			return Place{}, fmt.Errorf("%q: write socket: and up to 32 lower-case letters, digits and hyphens", name)
		}
		s := socketPlace{dir: dir, name: socket}
		return Place{Name: name, Listen: s.listen, Dial: s.dial, Prove: func(Role) (credentials.TransportCredentials, error) {
			_, err := s.path() // waiting for a coordinator would not help if the directory is wrong
			return sameUser{}, err
		}}, nil
	}
	if _, err := listen.Resolve(context.Background(), name); err != nil {
		return Place{}, advised(err)
	}
	return Place{
		Name: name,
		Listen: func() (net.Listener, error) {
			lis, err := listen.Loopback(name)
			return lis, advised(err)
		},
		Dial:  func(ctx context.Context) (net.Conn, error) { return dialTCP(ctx, name) },
		Prove: ownKey(dir),
	}, nil
}

// dialTCP connects to a loopback address. Nothing leaves the machine before the name is known to resolve to one.
func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	at, err := listen.Resolve(ctx, address)
	if err != nil {
		return nil, advised(err)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", at.String())
}

// advised explains what to write instead of an address that is invalid or that others could reach.
func advised(err error) error {
	switch {
	case errors.Is(err, listen.ErrForm):
		return fmt.Errorf("%w, or socket:NAME", err)
	case !errors.Is(err, listen.ErrBeyond):
		return err
	}
	return fmt.Errorf("%w: this user's own key proves nothing to other machines", err)
}
