package engine

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/pkg/plan"
)

// farewell is how long a server has to close a connection after a goodbye. Who closes first keeps the port for a minute, so that a client would run out
// of ports; after that time it resets the connection, which keeps none.
const farewell = time.Second

var errStays = errors.New("the server has not closed a connection within a second of loadgen's goodbye")

// churn renews a loop's connections and counts them. Without a plan nothing is renewed, and nobody asks for the counts.
//
// A connection that is due takes no more requests: they wait (wireConn.later). When the last reply is there, it says goodbye, and the next request
// makes it again.
type churn struct {
	plan   *plan.Reconnect     // nil if connections stay
	noRoom bool                // the op that begins found no free slot when it was due, and is not late because of the loop
	counts measure.Connections // since the last census
	making int64               // at the last census
	open   int64               // likewise
	dialed sync.Map            // by a connection's token: the sockets.Steps of one that was made on a goroutine of its own
}

// ops is after how many requests a connection is due; 0 if their number does not matter.
func (x *churn) ops() int64 {
	if x.plan == nil {
		return 0
	}
	return x.plan.Ops
}

// life returns for how long a new connection is used; 0 for ever.
func (x *churn) life(rand *rand.Rand) time.Duration {
	if x.plan == nil || x.plan.Every == 0 {
		return 0
	}
	return x.plan.Every - time.Duration(rand.Float64()*x.plan.Jitter*float64(x.plan.Every))
}

// due returns when the client of a new connection is due; nil for never.
func (x *churn) due(rand *rand.Rand) <-chan time.Time {
	if life := x.life(rand); life > 0 {
		return time.After(life)
	}
	return nil
}

// waited reports whether the target, rather than the loop, delayed the start of an op.
func (x *churn) waited(st *opState, start int64) bool {
	return x.plan != nil && (st.noRoom || st.delayed && st.begun-st.due < max(leastGap, (start-st.due)/2))
}

// took are the stages of a connection on which requests may be sent at now.
func took(s sockets.Steps, greets bool, now int64) (all [measure.NumStages]int64) {
	all[measure.StageAll], all[measure.StageTCP], all[measure.StageTLS] = now-s.Began, s.TCP-s.Began, s.Made-s.TCP
	if greets {
		all[measure.StageGreeting] = now - s.Made
	}
	return all
}

// connecting is a transport that makes connections.
type connecting interface {
	// links adds what happened to its connections since the last call, and returns how many are being made, and are open.
	links(since *measure.Connections) (making, open int64)
}

// links gathers what happened to the loop's connections.
func (l *loop) links() (making, open int64) {
	for _, la := range l.lanes {
		if t, ok := la.tr.(connecting); ok {
			m, o := t.links(&l.churn.counts)
			making, open = making+m, open+o
		}
	}
	return making, open
}

// countLinks counts the loop's connections.
func (l *loop) countLinks() {
	x := &l.churn
	making, open := l.links()
	x.counts.Making, x.counts.Open = making-x.making, open-x.open
	x.making, x.open = making, open
	if x.plan != nil {
		l.rec.Linked().Merge(&x.counts)
	}
	x.counts.Reset()
}
