package engine

import (
	"errors"
	"slices"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// wireWay is a way over sockets.
type wireWay interface {
	way
	// answered handles the replies at the front of b that belong to the first entry of the connection's queue. It returns how many bytes it took, and
	// whether the entry is complete.
	answered(c *wireConn, b []byte, now int64) (took int, whole bool, err error)
	// failed ends requests that will not be answered. They have left the queue already, or are dead.
	failed(c *wireConn, p *pending, kind op.EventKind, now int64)
}

// bulkWay is a way whose ops have no state.
type bulkWay interface {
	wireWay
	// settle records the next answers to the first entry of the connection's queue, and removes them from it. The freed slots are added to c.freed.
	settle(c *wireConn, got *answers, now int64)
}

// answers are replies to the requests of one entry in a queue.
type answers struct {
	n, bytes int
	failed   int                        // how many have an outcome that is a failure of the target
	foreign  int                        // how many hold a value that loadgen did not write, if values are checked
	ended    [driver.NumOutcomes]uint64 // how many have each outcome
	runs     []answerRun                // their outcomes in order
}

// answerRun is consecutive answers with the same outcome.
type answerRun struct {
	outcome driver.Outcome
	n       int
}

// begin empties a for the answers of another read.
func (a *answers) begin() { *a = answers{runs: a.runs[:0]} }

func (a *answers) add(outcome driver.Outcome, n int) {
	a.n += n
	a.ended[outcome] += uint64(n)
	if last := len(a.runs) - 1; last >= 0 && a.runs[last].outcome == outcome {
		a.runs[last].n += n
		return
	}
	a.runs = append(a.runs, answerRun{outcome, n})
}

// foreign reports whether a reply holds a value that loadgen did not write.
func foreign(v driver.Verb, reply *driver.Reply) bool {
	if v != driver.Get || reply.Outcome != driver.OK {
		return false
	}
	_, ok := reply.Header()
	return !ok
}

// errMisled ends a connection: the replies behind another key's value may be those to other requests, too.
var errMisled = errors.New("a reply held another key's value")

// examine counts and reports a get's reply that holds another key's value, or one of another run that is amiss.
func (la *lane) examine(reply *driver.Reply, key uint64) bool {
	if la.checked && reply.Outcome == driver.OK {
		h, _ := reply.Header()
		return la.anothers(&h, key)
	}
	astray := la.misplaced(reply, key)
	if astray {
		la.l.rec.Misplaced++
	}
	return astray
}

// examineAll is examine for the replies to a request for the keys of items, which come in any order.
func (la *lane) examineAll(replies []driver.Reply, items []driver.Item) {
	if !la.checked && !la.marked || len(items) == 0 {
		return
	}
	la.hashes = la.hashes[:0]
	for i := range items {
		la.hashes = append(la.hashes, driver.KeyHash(items[i].Key))
	}
	for i := range replies {
		reply, at := &replies[i], min(i, len(items)-1)
		if la.misplaced(reply, la.hashes[at]) {
			at = max(0, slices.IndexFunc(la.hashes, func(key uint64) bool { return !la.misplaced(reply, key) }))
		}
		la.examine(reply, la.hashes[at])
	}
}

// anothers is examine for a header.
func (la *lane) anothers(h *driver.Header, key uint64) bool {
	switch rec := la.l.rec; {
	case !h.Of(key):
		rec.Misplaced++
		return true
	case h.Run != 0 && h.Run != la.l.runBits && h.Version >= la.since:
		rec.AnotherRun++
		return true
	}
	return false
}
