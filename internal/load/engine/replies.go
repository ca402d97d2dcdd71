package engine

import (
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
	_, _, ok := reply.Header()
	return !ok
}
