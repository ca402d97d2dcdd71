package engine

import (
	"fmt"
	"hash/fnv"
	"io"
	"sync"

	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/trace"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	chunkOps  = 4096      // lines of a trace that are handed over together
	chunks    = 8         // that are read ahead
	mostHeld  = 64 * 1024 // ops of a loop that wait for their session; while there are so many, no more is taken from the trace
	arenaSize = chunkOps * 64
)

// replayFeed starts the ops of a trace when the trace says.
//
// Every loop reads the whole trace, on a goroutine of its own that is ahead of it by a few thousand lines, and takes what is for its sessions: the
// lines of a key belong to one session, which the key alone decides, so they stay in order. What waits for its session is held; beyond a bound the
// trace is not read further, and what comes then is late, but due when it was.
type replayFeed struct {
	l        *loop
	t        *plan.Trace
	pipeline int
	shed     bool
	lasts    int64
	drainAt  int64
	value    driver.Value

	open    func() (io.ReadCloser, error)
	from    int // sessions of the phase that are the loop's: from ≤ i < from + len(l.sessions)
	all     int // sessions of the phase
	rate    float64
	reader  sync.WaitGroup
	full    chan *chunk
	empty   chan *chunk
	quit    chan struct{}
	at      *chunk // taken from, at
	pos     int
	over    bool // nothing more comes
	ending  bool // nothing starts any more: what is held, and what was due by endBy, is shed, some with each turn
	endBy   int64
	waiting []held
	free    []int32
	queues  []queueOf // by session in the loop
	nheld   int
	busy    *session // an op of it is being started
	fault   error    // why the trace ended early
}

// chunk is ops of a trace in their order.
type chunk struct {
	ops  []traced
	keys []byte
	err  error // behind ops
}

// traced is an op of a trace.
type traced struct {
	due     int64 // from the step's start
	n       uint64
	session int32 // in the loop
	key     int32 // where it begins in the chunk's keys
	length  int32
	size    int32
	ttl     uint32
	verb    driver.Verb
}

// held is an op that is due and waits for its session.
type held struct {
	op   op.Op
	due  int64
	next int32
}

// queueOf is the ops of one session that wait, by their numbers; −1: none.
type queueOf struct{ first, last int32 }

// newReplay makes the feed of a step that replays a trace.
func newReplay(l *loop, source *workload.Source, o *plan.Open, open func() (io.ReadCloser, error)) *replayFeed {
	f := &replayFeed{
		l: l, t: o.Trace, pipeline: o.Pipeline, shed: o.OnFull == "shed", lasts: int64(o.Duration + o.Drain), value: source.Value(),
		open: open, from: l.sessions[0].id, all: o.Sessions, queues: make([]queueOf, len(l.sessions)),
	}
	if o.Trace.Even {
		f.rate = o.Rate
	}
	for i := range f.queues {
		f.queues[i] = queueOf{-1, -1}
	}
	return f
}

func (f *replayFeed) begin() {
	f.drainAt = f.l.origin + f.lasts
	f.full, f.empty, f.quit = make(chan *chunk, chunks), make(chan *chunk, chunks), make(chan struct{})
	for range chunks {
		f.empty <- &chunk{ops: make([]traced, 0, chunkOps), keys: make([]byte, 0, arenaSize)}
	}
	f.reader.Go(f.read)
	f.advance()
}

// read is the goroutine that reads ahead; close waits for it.
func (f *replayFeed) read() {
	defer close(f.full)
	file, err := f.open()
	if err != nil {
		f.pass(&chunk{err: err})
		return
	}
	defer file.Close()
	t, err := trace.NewReader(file, f.t.Form)
	if err != nil {
		f.pass(&chunk{err: err})
		return
	}
	c := f.blank()
	var n uint64
	for c != nil {
		var rec trace.Record
		ok, err := t.Next(&rec)
		if err != nil {
			if err != io.EOF {
				c.err = fmt.Errorf("trace %s:%w", f.t.File, err)
			}
			f.pass(c)
			return
		}
		if !ok {
			continue
		}
		f.add(c, &rec, n)
		n++
		if len(c.ops) == chunkOps {
			if !f.pass(c) {
				return
			}
			c = f.blank()
		}
	}
}

// add takes a line if it is for one of the loop's sessions.
func (f *replayFeed) add(c *chunk, rec *trace.Record, n uint64) {
	h := fnv.New64a()
	_, _ = h.Write(rec.Key) // it never fails
	s := int(h.Sum64()%uint64(f.all)) - f.from
	if s < 0 || s >= len(f.l.sessions) {
		return
	}
	due := int64(float64(rec.At) / f.t.Speed)
	if f.t.Speed == 1 {
		due = rec.At
	}
	if f.rate > 0 {
		due = int64(float64(n) / f.rate * 1e9)
	}
	c.ops = append(c.ops, traced{
		due: due, n: n, session: int32(s), key: int32(len(c.keys)), length: int32(len(rec.Key)), size: int32(rec.Size), ttl: rec.TTL, verb: rec.Verb,
	})
	c.keys = append(c.keys, rec.Key...)
}

func (f *replayFeed) blank() *chunk {
	select {
	case c := <-f.empty:
		c.ops, c.keys = c.ops[:0], c.keys[:0]
		return c
	case <-f.quit:
		return nil
	}
}

func (f *replayFeed) pass(c *chunk) bool {
	select {
	case f.full <- c:
		return true
	case <-f.quit:
		return false
	}
}

// close ends the reading and waits for its end. It returns why the trace ended early, if it did.
func (f *replayFeed) close() error {
	close(f.quit)
	f.reader.Wait()
	return f.fault
}

// advance goes on to the next op, and waits for it to be read where it is not yet.
func (f *replayFeed) advance() {
	f.pos++
	for f.at == nil || f.pos >= len(f.at.ops) {
		if f.at != nil {
			if f.at.err != nil {
				f.fault, f.over = f.at.err, true
				return
			}
			f.empty <- f.at
		}
		var more bool
		if f.at, more = <-f.full; !more {
			f.over = true
			return
		}
		f.pos = 0
	}
}

func (f *replayFeed) fire(timer, int64) {}

func (f *replayFeed) head() *traced { return &f.at.ops[f.pos] }

func (f *replayFeed) due(now int64) {
	if now >= f.drainAt && !f.done() && !f.ending {
		f.end(never)
	}
	if f.ending {
		f.shedSome()
		return
	}
	for !f.over && f.nheld < mostHeld && f.l.origin+f.head().due <= now {
		x := f.head()
		s, due := f.l.sessions[x.session], f.l.origin+x.due
		switch room := s.active < f.pipeline && f.queues[s.index].first < 0; {
		case room:
			st := f.l.take()
			f.fill(&st.Op, x)
			f.start(s, st, due, now)
		case f.shed:
			f.drop(x)
		default:
			f.hold(s, x, due)
		}
		f.advance()
	}
}

// fill makes the op of a line.
func (f *replayFeed) fill(o *op.Op, x *traced) {
	o.Stream, o.N, o.Verb, o.Index = uint32(f.from)+uint32(x.session), x.n, x.verb, x.n
	o.Key = append(o.Key[:0], f.at.keys[x.key:x.key+x.length]...)
	o.Value = driver.Value{}
	if x.verb.Stores() {
		o.Value = f.value
		o.Value.Size, o.Value.TTL, o.Value.Seed = int(x.size), x.ttl, x.n*0x9E3779B97F4A7C15
		if o.Value.Checked {
			o.Value.Size = max(o.Value.Size, driver.HeaderSize)
		}
	}
}

// start begins an op in a free slot of the session.
func (f *replayFeed) start(s *session, st *opState, due, now int64) {
	before := f.busy
	f.busy = s
	st.scene = nil
	f.l.occupy(s, 1, now)
	f.l.launch(st, s, due, now)
	f.busy = before
}

// hold keeps an op until its session has room.
func (f *replayFeed) hold(s *session, x *traced, due int64) {
	if len(f.free) == 0 {
		f.waiting = append(f.waiting, held{})
		f.free = append(f.free, int32(len(f.waiting)-1))
	}
	i := f.free[len(f.free)-1]
	f.free = f.free[:len(f.free)-1]
	w := &f.waiting[i]
	f.fill(&w.op, x)
	w.due, w.next = due, -1
	q := &f.queues[s.index]
	if q.first < 0 {
		q.first = i
	} else {
		f.waiting[q.last].next = i
	}
	q.last = i
	f.nheld++
}

// release takes the session's first op out of those that wait.
func (f *replayFeed) release(s *session) *held {
	q := &f.queues[s.index]
	i := q.first
	w := &f.waiting[i]
	q.first = w.next
	f.free = append(f.free, i)
	f.nheld--
	return w
}

func (f *replayFeed) freed(s *session, _ int, now int64, _ bool) {
	if s == f.busy || f.ending {
		return // whoever starts goes on itself
	}
	for s.active < f.pipeline && f.queues[s.index].first >= 0 {
		w := f.release(s)
		st := f.l.take()
		slot, key := st.Slot, st.Key
		st.Op = w.op
		st.Slot, w.op.Key = slot, key
		f.start(s, st, w.due, now)
	}
}

func (f *replayFeed) next() int64 {
	switch {
	case f.done():
		return never
	case f.ending:
		return 0 // at once
	case f.over || f.nheld >= mostHeld:
		return f.drainAt
	}
	return min(f.l.origin+f.head().due, f.drainAt)
}

func (f *replayFeed) stop(now int64) {
	f.end(now)
	f.shedSome()
}

// end has what is held and what was due by a time shed, and the rest forgotten.
func (f *replayFeed) end(by int64) { f.ending, f.endBy = true, by }

// shedSome goes on with the end, as that of [openFeed] does.
func (f *replayFeed) shedSome() {
	for i, s := range f.l.sessions {
		for f.queues[i].first >= 0 {
			f.shedOp(&f.release(s).op)
		}
	}
	for left := shedEach; !f.over && f.l.origin+f.head().due <= f.endBy; left-- {
		if left == 0 {
			return
		}
		f.drop(f.head())
		f.advance()
	}
	f.over = true
}

// drop sheds an op that was not held.
func (f *replayFeed) drop(x *traced) {
	st := f.l.take()
	f.fill(&st.Op, x)
	f.shedOp(&st.Op)
	f.l.release(st)
}

func (f *replayFeed) shedOp(o *op.Op) {
	f.l.count(o)
	f.l.rec.Shed(o.Verb, 1)
}

func (f *replayFeed) done() bool { return f.over && f.nheld == 0 }
