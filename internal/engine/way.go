package engine

import (
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
)

// way carries ops of one kind from their start to their end. A step has one, chosen when it is prepared:
//
//	runs      plain ops over sockets: a place in the queue of replies, and no state
//	quorum    ops over sockets that ask all endpoints of their key at once: a share of a batch
//	thread    ops on files, which the loop's own thread carries out
//	programs  all others, each with a state, by its program
//
// What a way does and counts is what programs would: tests hold the snapshots equal, byte for byte. A loop calls its way once for the ops that
// start together and for the replies of one entry in a queue, so that inside a way every call is direct.
type way interface {
	// start begins the next n ops of a stream, or fewer when it ends, and returns how many.
	start(s *session, stream *workload.Stream, n int, due, now int64) int
	// sweep ends ops whose own deadline has passed, and returns when to look again.
	sweep(now int64) int64
	// census adds the ops in flight, and the keys of those that have several, to counts of them by verb.
	census(ops, keys *[driver.NumVerbs]int64)
}

// wireWay is a way over sockets.
type wireWay interface {
	way
	// answered takes the replies to the first entry of the connection's queue that b begins with. It returns the bytes they took, and whether they
	// were all that the entry is owed.
	answered(c *wireConn, b []byte, now int64) (took int, whole bool, err error)
	// failed ends requests that will not be answered. They are not in the queue any more, or dead.
	failed(c *wireConn, p *pending, kind op.EventKind, now int64)
}

// stateful is a way whose ops have a state each. It can begin one that has been drawn already, as those of traces and scenarios are.
type stateful interface {
	way
	launch(st *opState, now int64)
}

// choose gives a loop the way of a step whose ops come from a source, or from a trace.
func (g *group) choose(l *loop, source *workload.Source, step worker.Step) {
	traced := step.Kind.Timed() && g.trace != nil
	for _, la := range l.lanes {
		g.program(la, step.Kind)
		if w, ok := la.tr.(*wire); ok {
			w.use(la.programs)
			w.writer.begin(traced || len(g.datasetsOf(la.side)) > 1) // whose values may live for different times
		}
	}
	l.states = l.programs
	if t, ok := l.tr.(*thread); ok {
		l.states = t
	}
	l.way = l.states
	l.ordinals = 0
	if step.Kind.Timed() && g.phase.Growth != nil {
		l.ordinals = uint64(source.Sessions())
	}
	l.scenes = newScenes(l, source)
	l.sampling = nil
	if step.Kind.Timed() && g.phase.Samples > 0 {
		l.sampling = newSampling(g.phase.Samples, g.plan.Seed, step, l.index, l.wall)
	}
	w, wired := l.tr.(*wire)
	switch {
	case l.scenes != nil:
		l.way = l.scenes
	case wired && !traced && l.ordinals == 0: // ops that are counted together have no ordinals
		if fast := w.fast(l.programs.Program, source); fast != nil {
			w.use(fast)
			l.way = fast
		}
	}
}

// fast returns the way that is quicker than a program and does the same; nil: there is none.
func (w *wire) fast(prog op.Program, source *workload.Source) bulkWay {
	if !w.shared {
		return nil
	}
	switch prog := prog.(type) {
	case *op.Plain:
		return newRuns(w, prog, source)
	case *op.Quorum:
		if w.out.prompt() && (prog.AsksAll(driver.Get) || !source.Draws(driver.Get)) {
			return newQuorum(w, prog, source)
		}
	}
	return nil
}

// use has a way take what comes on the connections.
func (w *wire) use(x wireWay) {
	w.way, w.recalled = x, [driver.NumVerbs]int64{}
	w.bulk, _ = x.(bulkWay)
}
