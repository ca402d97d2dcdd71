package engine

import (
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/load/op"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// way carries ops of one kind from start to end. A step has one, chosen when it is prepared:
//
//	runs      plain ops over sockets: a place in the queue of replies, and no state
//	quorum    ops over epoll that ask all endpoints of their key at once: a share of a batch
//	thread    ops on files, which the loop's own thread carries out
//	programs  all others, each with a state, by its program
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

// wireWay is a way over sockets.
type wireWay interface {
	way
	// answered takes the replies at the front of b that belong to the first entry of the connection's queue. It returns how many bytes it took, and
	// whether the entry is owed no more.
	answered(c *wireConn, b []byte, now int64) (took int, whole bool, err error)
	// failed ends requests that will not be answered. They have left the queue already, or are dead.
	failed(c *wireConn, p *pending, kind op.EventKind, now int64)
}

// stateful is a way that keeps a state for each op. It can begin an op that was drawn already, such as one of a trace or a scenario.
type stateful interface {
	way
	launch(st *opState, now int64)
}

// choose sets the way of a loop for a step whose ops come from a source, or from a trace.
func (g *group) choose(l *loop, source *workload.Source, step worker.Step) {
	traced := step.Kind.Timed() && g.trace != nil
	for _, la := range l.lanes {
		g.program(la, step.Kind, source.Chance())
		if w, ok := la.tr.(*wire); ok {
			w.use(la.programs)
			w.writer.begin(traced || len(g.datasetsOf(la.side)) > 1) // whose values may have different TTLs
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
	l.fills = nil
	width := g.width(step.Kind)
	if step.Kind.Timed() && g.phase.OnMiss == plan.PutOnMiss {
		l.fills = &fills{l: l, source: source, width: width}
		width += width
	}
	l.gate.begin(width)
	l.sampling = nil
	if step.Kind.Timed() && g.phase.Samples > 0 {
		l.sampling = newSampling(g.phase.Samples, source.Chance(), step, l.index, l.wall)
	}
	w, wired := l.tr.(*wire)
	switch {
	case l.scenes != nil:
		l.way = l.scenes
	case wired && !traced && l.fills == nil && l.ordinals == 0: // ops that are counted together have no ordinals
		if fast := w.fast(l.programs.Program, source); fast != nil {
			w.use(fast)
			l.way = fast
		}
	}
}

// fast returns a way that is faster than prog and does the same; nil if there is none.
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

// use makes x the way that takes what comes on the connections.
func (w *wire) use(x wireWay) {
	w.way, w.recalled = x, [driver.NumVerbs]int64{}
	w.bulk, _ = x.(bulkWay)
}
