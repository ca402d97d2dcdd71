package engine

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
)

// lane is a loop's side of one of the phase's targets: the transport to it, and the program of the ops that go there. A request may go to another
// target than its op's, such as the put of a get that fills another target. It is sent, counted and answered in its own target's lane, and its end is
// reported to the op's program.
type lane struct {
	l         *loop
	side      *side
	tr        transport
	routes    *routes // nil if the target is not a cluster
	programs  *programs
	opTimeout int64 // 0 if the request's timeout is enough
	acks      bool  // record the latency of the k-th good answer
	confirms  bool  // replies say how many copies there are; they count as that many good answers
	whose
	hashes []uint64 // scratch of examineAll
}

// whose is what the values that a step's gets read say of whose they are.
type whose struct {
	checked bool   // they carry a header
	marked  bool   // they begin with a mark
	since   uint64 // values of other runs, of this version or a newer one, are amiss
}

// misplaced reports whether a get's reply holds another key's value. key is the hash of the key that was asked for.
func (w whose) misplaced(reply *driver.Reply, key uint64) bool {
	if w.checked && reply.Outcome == driver.OK {
		h, _ := reply.Header()
		return !h.Of(key)
	}
	return w.marked && reply.Outcome == driver.OK && driver.Misnamed(reply.Value, key)
}

// row returns the row in which requests to an endpoint are counted. All nodes that joined a cluster during the phase share the target's last row.
func (la *lane) row(endpoint int) int { return la.side.first + min(endpoint, la.side.rows()-1) }

// requests returns the ledger of requests to an endpoint with a verb.
func (la *lane) requests(endpoint int, v driver.Verb) *measure.Requests {
	return la.l.rec.Request(la.row(endpoint), v)
}

// named adds the target's name to an error of a phase with several targets.
func (la *lane) named(err error) error {
	return fmt.Errorf("target %q: %w", la.side.target.Name, err)
}

// blame appends the text of an error at an endpoint, with the target's name if there are several, and counts errors that are this machine's fault. It
// leaves out the connection's addresses: the local port differs each time, and one cause should give one text.
func (la *lane) blame(dst []byte, end *sockets.Endpoint, why error) []byte {
	if errors.Is(why, unix.EADDRNOTAVAIL) {
		la.l.noPort++
	}
	what := why.Error()
	if connection, ok := errors.AsType[*net.OpError](why); ok {
		what = strings.Replace(what, connection.Error(), connection.Err.Error(), 1)
	}
	if len(la.l.lanes) > 1 {
		dst = append(append(dst, la.side.target.Name...), " at "...)
	}
	dst = append(append(dst, end.String()...), ": "...)
	return append(dst, what...)
}
