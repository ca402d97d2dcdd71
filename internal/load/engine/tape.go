package engine

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"sync"
	"time"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	chunkOps  = 4096      // lines of a trace that the reader hands over together
	chunks    = 8         // how many chunks the reader is ahead
	mostHeld  = 64 * 1024 // the most ops of a loop that wait for their sessions; at this number the loop takes no more from the trace
	arenaSize = chunkOps * 64
	mostBytes = 4 << 20 // of a chunk's keys, but for the last one's
)

// tape reads a trace for one loop.
//
// For every loop, a goroutine reads the whole trace, a few thousand lines ahead, and takes the lines of the loop's sessions. The key alone decides
// the session of a line, so the lines of a key stay in order; of whole requests, the client does, and chains go to the sessions in turn.
type tape struct {
	t     *plan.Trace
	timed bool
	words driver.Words
	value driver.Value
	fills bool // keys that gets miss are put, in the trace's sizes

	source *workload.Source
	chain  *plan.Chain // how lines that are chains are carried out; else nil
	verb   driver.Verb // of chains
	whole  op.Op       // scratch: the chain that starts
	file   func(context.Context) (io.ReadSeekCloser, error)
	from   int // the loop has the phase's sessions from ≤ i < from + here
	here   int
	all    int     // how many sessions the phase has
	rate   float64 // the rate of evenly spaced ops; 0 if ops are due when the trace says

	limit int64   // the most lines of a session; 0 for all
	taken []int64 // lines taken so far, by session; only the reader uses it
	spent int     // how many sessions have reached limit; only the reader uses it
	n     uint64  // lines read so far, of all sessions and laps; only the reader uses it

	reader sync.WaitGroup
	full   chan *chunk
	empty  chan *chunk
	quit   chan struct{}
	stop   context.CancelFunc // ends a read of the file
	ahead  chan struct{}      // closed once the reader has filled all chunks, or has read everything
	once   sync.Once          // closes ahead
	at     *chunk             // the current chunk: the next op is at pos
	pos    int
	over   bool  // no more chunks come
	fault  error // why the trace ended early
}

// reading is a feed that reads its trace ahead, on a goroutine.
type reading interface {
	// open starts the reader.
	open()
	// close ends the reader after the step, and returns why the trace ended early, if it did.
	close() error
}

// starved is how long a loop waits before it looks again for lines that were not read yet.
const starved = int64(20 * time.Microsecond)

// firstLines is the longest a step waits for the reader to be ahead.
const firstLines = time.Second

// chunk is consecutive ops of a trace.
type chunk struct {
	ops  []traced
	keys []byte
	err  error // why the trace ended after ops
}

func (c *chunk) full() bool { return len(c.ops) == chunkOps || len(c.keys) > mostBytes }

// traced is an op of a trace.
type traced struct {
	due     int64 // when it is due, from the step's start
	n       uint64
	session int32 // the session's index in the loop
	key     int32 // the key's offset in the chunk's keys
	length  int32
	size    int32
	ttl     uint32
	verb    driver.Verb
}

// newTape returns the tape of a loop's sessions, for a trace that all sessions replay.
func newTape(l *loop, source *workload.Source, t *plan.Trace, all int, words driver.Words, open func(context.Context) (io.ReadSeekCloser, error)) tape {
	here := len(l.sessions)
	verb, _ := words.Verb(plan.ChainOp)
	return tape{
		t: t, words: words, value: source.Value(), file: open, from: l.sessions[0].id, here: here, all: all, taken: make([]int64, here), fills: l.fills != nil,
		source: source, chain: t.Chain, verb: verb,
	}
}

func (p *tape) open() {
	p.full, p.empty = make(chan *chunk, chunks), make(chan *chunk, chunks)
	p.quit, p.ahead = make(chan struct{}), make(chan struct{})
	for range chunks {
		p.empty <- &chunk{ops: make([]traced, 0, chunkOps), keys: make([]byte, 0, arenaSize)}
	}
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.reader.Go(func() { p.read(ctx) })
}

// begin waits until the reader is ahead.
func (p *tape) begin() {
	limit := time.NewTimer(firstLines)
	defer limit.Stop()
	select {
	case <-p.ahead:
	case <-limit.C: // then the first lines are late
	}
}

// read is the goroutine that reads ahead; close waits for it.
func (p *tape) read(ctx context.Context) {
	defer p.leads()
	defer close(p.full)
	file, err := p.file(ctx)
	if err != nil {
		p.pass(&chunk{err: err})
		return
	}
	defer file.Close()
	lines, err := trace.NewReader(file, p.t.Form, p.timed)
	if err != nil {
		p.pass(&chunk{err: err})
		return
	}
	if err := lines.Named(p.words); err != nil {
		p.pass(&chunk{err: fmt.Errorf("trace %s: %w", p.t.File, err)})
		return
	}
	lines.Lacking(p.value.Size, p.value.TTL)
	if p.fills {
		lines.Filling()
	}
	if p.chain != nil && p.chain.Spread {
		lines.Spread()
	}
	for c, more := p.blank(), true; c != nil && more; {
		if c, more, err = p.lap(c, lines); c == nil {
			return
		}
		if err == nil && more {
			if _, err = file.Seek(0, io.SeekStart); err == nil {
				err = lines.Reset(file)
			}
		}
		if err != nil {
			c.err, more = fmt.Errorf("trace %s:%w", p.t.File, err), false
		}
		if !more {
			p.pass(c)
		}
	}
}

// lap reads the trace to its end and returns the last chunk, which the caller passes on, and whether to read the trace again. It returns no chunk if
// the reader must stop.
func (p *tape) lap(c *chunk, lines *trace.Reader) (last *chunk, more bool, err error) {
	var rec trace.Record
	for found := false; ; {
		ok, err := lines.Next(&rec)
		switch {
		case err == io.EOF:
			return c, p.t.Loop && found, nil
		case err != nil:
			return c, false, err
		case !ok:
			continue
		}
		found = p.add(c, &rec) || found
		if p.n++; p.n%chunkOps == 0 && p.closing() {
			return nil, false, nil
		}
		if p.spent == p.here {
			return c, false, nil
		}
		if c.full() && p.pass(c) {
			c = p.blank()
		}
		if c == nil || c.full() {
			return nil, false, nil
		}
	}
}

// closing reports whether the reader must stop.
func (p *tape) closing() bool {
	select {
	case <-p.quit:
		return true
	default:
		return false
	}
}

// add takes a line if it is for one of the loop's sessions and that session may have more.
func (p *tape) add(c *chunk, rec *trace.Record) bool {
	of := uint64(rec.Client)
	switch p.t.Form {
	case trace.Requests:
	case trace.Mooncake:
		of, rec.Verb = p.n, p.verb
	default:
		h := fnv.New64a()
		_, _ = h.Write(rec.Key) // a hash never fails
		of = h.Sum64()
	}
	s := int(of%uint64(p.all)) - p.from
	if s < 0 || s >= p.here || p.limit > 0 && p.taken[s] == p.limit {
		return false
	}
	if p.taken[s]++; p.taken[s] == p.limit {
		p.spent++
	}
	c.ops = append(c.ops, traced{
		due: p.dueOf(rec), n: p.n, session: int32(s), key: int32(len(c.keys)), length: int32(len(rec.Key)), size: int32(rec.Size), ttl: rec.TTL, verb: rec.Verb,
	})
	c.keys = append(c.keys, rec.Key...)
	return true
}

// dueOf returns when a line is due, from the step's start. Sessions of a closed load ignore it.
func (p *tape) dueOf(rec *trace.Record) int64 {
	switch {
	case p.rate > 0:
		return int64(float64(p.n) / p.rate * 1e9)
	case !p.timed || p.t.Speed == 1:
		return rec.At
	}
	return int64(float64(rec.At) / p.t.Speed)
}

func (p *tape) blank() *chunk {
	select {
	case c := <-p.empty:
		c.ops, c.keys = c.ops[:0], c.keys[:0]
		return c
	case <-p.quit:
		return nil
	}
}

// leads signals that the reader is ahead.
func (p *tape) leads() { p.once.Do(func() { close(p.ahead) }) }

func (p *tape) pass(c *chunk) bool {
	select {
	case p.full <- c:
		if len(p.empty) == 0 {
			p.leads()
		}
		return true
	case <-p.quit:
		return false
	}
}

func (p *tape) close() error {
	close(p.quit)
	p.stop()
	p.reader.Wait()
	return p.fault
}

// ready reports whether there is a current op. It does not wait for one to be read: the loop has replies to read meanwhile.
func (p *tape) ready() bool {
	for p.used() {
		select {
		case c := <-p.full:
			p.load(c)
		default:
			return false
		}
	}
	return !p.over
}

// used reports whether another chunk must be loaded. It returns a used-up chunk to the reader.
func (p *tape) used() bool {
	c := p.at
	switch {
	case p.over || c != nil && p.pos < len(c.ops):
		return false
	case c == nil:
		return true
	case c.err != nil:
		p.fault, p.over = c.err, true
		return false
	}
	p.at = nil
	select {
	case p.empty <- c:
	default:
		panic("more chunks of a trace than were made")
	}
	return true
}

// load makes c the current chunk; nil if there are no more.
func (p *tape) load(c *chunk) { p.at, p.pos, p.over = c, 0, c == nil }

func (p *tape) head() *traced { return &p.at.ops[p.pos] }

// fill makes the op of a line.
func (p *tape) fill(o *op.Op, x *traced) {
	o.Stream, o.N, o.Verb, o.Index = uint32(p.from)+uint32(x.session), x.n, x.verb, x.n
	o.Key = append(o.Key[:0], p.at.keys[x.key:x.key+x.length]...)
	o.Value = driver.Value{Size: int(x.size)}
	if x.verb.Stores() {
		o.Value = p.value
		o.Value.Size, o.Value.TTL, o.Value.Seed = int(x.size), x.ttl, x.n*0x9E3779B97F4A7C15
		o.Value.Key = driver.KeyHash(o.Key)
		if o.Value.Checked {
			o.Value.Size = max(o.Value.Size, driver.ShortHeader)
		}
	}
}

// begins returns the op that is to start: o or, if o is a chain of which only the numbers of its keys were held, the chain with its keys.
func (p *tape) begins(o *op.Op) *op.Op {
	if p.chain == nil {
		return o
	}
	key, batch := p.whole.Key, atLeast(p.whole.Batch, len(o.Key)/4)
	for i := range batch {
		item := &batch[i]
		item.Index = uint64(trace.ID(o.Key, i))
		item.Key, item.Value = p.source.AppendKey(item.Key[:0], item.Index), driver.Value{}
	}
	p.whole = *o
	p.whole.Index, p.whole.Key, p.whole.Batch = batch[0].Index, append(key[:0], batch[0].Key...), batch
	return &p.whole
}

// waiters holds ops that wait for their sessions, in order for each session.
type waiters struct {
	waiting []held
	free    []int32
	queues  []queueOf // by session in the loop
	n       int
}

// held is an op that waits for its session.
type held struct {
	op   op.Op
	due  int64
	next int32
}

// queueOf is the queue of one session's waiting ops: indices into waiters.waiting; −1 if there are none.
type queueOf struct{ first, last int32 }

func newWaiters(sessions int) waiters {
	b := waiters{queues: make([]queueOf, sessions)}
	for i := range b.queues {
		b.queues[i] = queueOf{-1, -1}
	}
	return b
}

// none reports whether no op waits for the session.
func (b *waiters) none(s *session) bool { return b.queues[s.index].first < 0 }

// hold returns room for an op at the end of the session's queue.
func (b *waiters) hold(s *session, due int64) *op.Op {
	if len(b.free) == 0 {
		b.waiting = append(b.waiting, held{})
		b.free = append(b.free, int32(len(b.waiting)-1))
	}
	i := b.free[len(b.free)-1]
	b.free = b.free[:len(b.free)-1]
	w := &b.waiting[i]
	w.due, w.next = due, -1
	q := &b.queues[s.index]
	if q.first < 0 {
		q.first = i
	} else {
		b.waiting[q.last].next = i
	}
	q.last = i
	b.n++
	return &w.op
}

// release removes the session's first op from those that wait. The result is valid until the next hold.
func (b *waiters) release(s *session) *held {
	q := &b.queues[s.index]
	i := q.first
	w := &b.waiting[i]
	q.first = w.next
	b.free = append(b.free, i)
	b.n--
	return w
}
