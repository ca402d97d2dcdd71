package engine

import (
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// way carries ops of one kind from start to end. A step has one, chosen when it is prepared:
//
//	runs          plain ops over sockets: a place in the queue of replies, and no state
//	followedRuns  the same, if the versions that gets return are compared with those that were acknowledged
//	quorum        ops over epoll that ask all endpoints of their key at once: a share of a batch
//	thread        ops on files, which the loop's own thread carries out
//	programs      all others, each with a state, by its program
//
// A way does and counts exactly what programs would: tests compare the snapshots byte for byte. A loop calls its way once for ops that start together
// and once for the replies of one queue entry, so that inside a way every call is direct.
type way interface {
	// start begins the next n ops of a stream, or fewer if it ends, and returns how many.
	start(s *session, stream *workload.Stream, n int, due, now int64) int
	// sweep ends ops whose own deadline has passed, and returns when to look again.
	sweep(now int64) int64
	// census adds the ops in flight, and the keys of those that have several, to counts by verb.
	census(ops, keys *[driver.NumVerbs]int64)
}

// stateful is a way that keeps a state for each op. It can begin an op that was drawn already, such as one of a trace or a scenario.
type stateful interface {
	way
	launch(st *opState, now int64)
}
