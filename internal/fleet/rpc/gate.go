package rpc

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/loadgen/loadgen/internal/fleet/identity"
)

// maxUnproved bounds the connections that have not yet proved who they are and begun to speak. A further one replaces the oldest, so a client that
// opens many silent connections closes its own.
const maxUnproved = 1024

// gate is the coordinator's listener. Its connections must prove who they are before anything they say is read. It tracks those that have not, so
// that closing the gate need not wait for them.
type gate struct {
	net.Listener
	credentials.TransportCredentials
	log      *slog.Logger
	refusals refusals

	mu       sync.Mutex
	shut     bool
	refused  string     // why the last connection that was refused was
	unproved []*entrant // oldest first
}

func newGate(lis net.Listener, proof credentials.TransportCredentials, log *slog.Logger) *gate {
	return &gate{Listener: lis, TransportCredentials: identity.Handshake(proof), log: log}
}

// entrant is a connection that may not have proved itself yet.
type entrant struct {
	net.Conn
	gate *gate
}

// Accept returns the next connection.
func (g *gate) Accept() (net.Conn, error) {
	conn, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	e := &entrant{conn, g}
	g.mu.Lock()
	g.unproved = append(g.unproved, e)
	oldest, shut := g.unproved[0], g.shut
	full := len(g.unproved) > maxUnproved
	g.mu.Unlock()
	switch {
	case shut:
		_ = e.Close() // the gate is closed
	case full:
		_ = oldest.Close() // it has had its chance
	}
	return e, nil
}

// ServerHandshake makes a connection prove itself. A connection that only asks for a worker's certificate ends here.
func (g *gate) ServerHandshake(conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	proved, info, err := g.TransportCredentials.ServerHandshake(conn)
	var enrolment *identity.Enrolment
	switch {
	case err == nil:
		return proved, info, nil
	case errors.As(err, &enrolment) && enrolment.Refused == nil:
		g.log.Info("issued a certificate to a worker", "from", conn.RemoteAddr(), "for", enrolment.By)
		return nil, nil, credentials.ErrConnDispatched
	}
	why := plain(err.Error())
	g.mu.Lock()
	g.refused = "a connection was refused: " + why
	g.mu.Unlock()
	if told, untold := g.refusals.tell(time.Now()); told {
		facts := []any{"from", conn.RemoteAddr(), "why", why}
		if untold > 0 {
			facts = append(facts, "others", untold)
		}
		g.log.Warn("refused a connection", facts...)
	}
	return nil, nil, err
}

// refusal says why the last connection that was refused was; "" for none, or if there is no gate.
func (g *gate) refusal() string {
	if g == nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

// Limits on how many refused connections are logged; otherwise anyone who can connect could fill a disk.
const (
	tellsAtOnce = 20
	tellsEvery  = time.Second // after this long, one more is logged
)

// refusals decides which refused connections are logged.
type refusals struct {
	mu     sync.Mutex
	caught time.Time // when a full burst may be logged again
	untold int
}

// tell says whether to log this refusal, and how many before it were not logged.
func (r *refusals) tell(now time.Time) (told bool, untold int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.caught.Sub(now) > (tellsAtOnce-1)*tellsEvery {
		r.untold++
		return false, 0
	}
	if r.caught.Before(now) {
		r.caught = now
	}
	r.caught = r.caught.Add(tellsEvery)
	untold, r.untold = r.untold, 0
	return true, untold
}

// Clone implements credentials.TransportCredentials. There is only one gate.
func (g *gate) Clone() credentials.TransportCredentials { return g }

// forget removes a connection from the unproved.
func (g *gate) forget(e *entrant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.unproved, e); i >= 0 {
		g.unproved = slices.Delete(g.unproved, i, i+1)
	}
}

// close shuts the gate and closes all unproved connections.
func (g *gate) close() {
	g.mu.Lock()
	g.shut = true
	unproved := slices.Clone(g.unproved)
	g.mu.Unlock()
	for _, e := range unproved {
		_ = e.Close() // nothing it has sent was accepted
	}
}

// SetDeadline is called by gRPC with a zero time once a connection has proved itself and begun to speak.
func (e *entrant) SetDeadline(t time.Time) error {
	if t.IsZero() {
		e.gate.forget(e)
	}
	return e.Conn.SetDeadline(t)
}

// Close ends the connection.
func (e *entrant) Close() error {
	e.gate.forget(e)
	return e.Conn.Close()
}

// SyscallConn gives access to the socket.
func (e *entrant) SyscallConn() (syscall.RawConn, error) {
	raw, ok := e.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.New("no socket")
	}
	return raw.SyscallConn()
}
