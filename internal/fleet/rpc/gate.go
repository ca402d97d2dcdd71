package rpc

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/loadgen/loadgen/internal/fleet/identity"
)

// maxUnproved bounds the connections that have not yet proved who they are and begun to speak. A client that opens many silent connections closes its
// own.
const maxUnproved = 1024

// gate is the coordinator's listener. Its connections must prove who they are before anything they say is read. Shutting it does not wait for those
// that have not.
type gate struct {
	*identity.Hall
	credentials.TransportCredentials
	log      *slog.Logger
	refusals refusals

	mu      sync.Mutex
	refused string // why the last connection that was refused was
}

func newGate(lis net.Listener, proof credentials.TransportCredentials, log *slog.Logger) *gate {
	return &gate{Hall: identity.NewHall(lis, maxUnproved), TransportCredentials: identity.Handshake(proof), log: log}
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
