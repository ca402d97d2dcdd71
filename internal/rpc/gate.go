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

	"github.com/loadgen/loadgen/internal/identity"
)

// maxUnproved bounds the connections that have not proved yet whose they are, and begun to speak. One more takes the place of the oldest: whoever opens connections
// to say nothing on them closes their own.
const maxUnproved = 1024

// gate is the coordinator's door: a listener whose connections prove who they are before anything of what they say is read. It knows those
// that have not done so, so that nobody waits for them when it is shut.
type gate struct {
	net.Listener
	credentials.TransportCredentials
	log      *slog.Logger
	refusals refusals

	mu       sync.Mutex
	shut     bool
	unproved []*entrant // the oldest first
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
		_ = e.Close() // whoever it is comes too late
	case full:
		_ = oldest.Close() // it has had its time
	}
	return e, nil
}

// ServerHandshake has a connection prove itself. One that was for a worker's certificate is over.
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
	if told, untold := g.refusals.tell(time.Now()); told {
		facts := []any{"from", conn.RemoteAddr(), "why", plain(err.Error())}
		if untold > 0 {
			facts = append(facts, "others", untold)
		}
		g.log.Warn("refused a connection", facts...)
	}
	return nil, nil, err
}

// How many refused connections are logged: whoever can connect could fill a disk otherwise.
const (
	tellsAtOnce = 20
	tellsEvery  = time.Second // one more
)

// refusals decides which refused connections are logged.
type refusals struct {
	mu     sync.Mutex
	caught time.Time // when all that may be logged at once may be logged again
	untold int
}

// tell says whether one is to be logged, and how many before it were not.
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

// Clone is for gRPC; there is one gate.
func (g *gate) Clone() credentials.TransportCredentials { return g }

// forget takes a connection off the list of those that have not proved themselves.
func (g *gate) forget(e *entrant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.unproved, e); i >= 0 {
		g.unproved = slices.Delete(g.unproved, i, i+1)
	}
}

// close shuts the door on all who have not proved themselves.
func (g *gate) close() {
	g.mu.Lock()
	g.shut = true
	unproved := slices.Clone(g.unproved)
	g.mu.Unlock()
	for _, e := range unproved {
		_ = e.Close() // it has said nothing that counts
	}
}

// SetDeadline is called without a time by gRPC, once a connection has proved itself and has begun to speak.
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

// SyscallConn gives those who ask the kernel the socket.
func (e *entrant) SyscallConn() (syscall.RawConn, error) {
	raw, ok := e.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.New("no socket")
	}
	return raw.SyscallConn()
}
