package op_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// stores is a cache and a source that are maps, and ops that read through them. Each request is answered at a random time, or is lost, or times out,
// before or after it was carried out.
type stores struct {
	t       *testing.T
	random  *rand.Rand
	program *op.Through
	cfg     op.Cache
	cache   map[string]string
	source  map[string]string
	room    int                 // most entries of the cache
	wait    map[string][]flying // by key: asks that wait for a load under way; there is one for a key that is being loaded
	out     []flying
	live    int // ops that have not settled
	faults  bool

	kinds  [5]uint64
	failed uint64 // gets that were not OK
	sent   map[uint8]uint64
}

// flying is a request that has no answer yet.
type flying struct {
	o     *op.Op
	req   driver.Request
	value string // of a put
}

const (
	self = iota
	source
	remote
)

func newStores(t *testing.T, seed uint64) *stores {
	w := &stores{
		t: t, random: rand.New(rand.NewPCG(seed, 1)), cache: map[string]string{}, source: map[string]string{}, wait: map[string][]flying{}, sent: map[uint8]uint64{},
	}
	w.faults, w.room = seed%2 == 0, 1+w.random.IntN(6)
	w.cfg = op.Cache{Self: self, Look: []int{self, remote, -1}[w.random.IntN(3)], Source: source, OnPut: op.OnPut(w.random.IntN(3)), TTL: uint32(w.random.IntN(2)), Fails: w.random.IntN(3) == 0, Coalesce: w.random.IntN(2) == 0}
	w.program = op.NewThrough(w.cfg, func(int) op.Program { return op.NewPlain(op.NewRing([]string{"n0"}), false) })
	for i := range 6 {
		w.source[fmt.Sprint("key", i)] = fmt.Sprint("value", i)
	}
	return w
}

// take sends requests.
func (w *stores) take(o *op.Op, reqs []driver.Request) {
	for _, r := range reqs {
		f := flying{o: o, req: r}
		if r.Verb == driver.Put {
			f.value = string(r.Value.AppendTo(nil))
		}
		w.sent[r.Tag]++
		if r.Tag == op.TagFill {
			require.Equal(w.t, w.cfg.TTL, r.Value.TTL, "the cache is told how long it is good for")
		}
		at := map[uint8]int{op.TagLook: w.cfg.Look, op.TagFill: w.cfg.Look, op.TagLoad: source, op.TagWrite: source, op.TagDrop: max(w.cfg.Look, self)}[r.Tag]
		require.Equal(w.t, at, r.Target, "tag %d", r.Tag)
		w.out = append(w.out, f)
	}
}

// carry carries out a request, and returns its reply; false if there is none yet.
func (w *stores) carry(f flying) (driver.Reply, bool) {
	key, store := string(f.req.Key), w.cache
	if f.req.Target == source {
		store = w.source
	}
	asks := f.req.Target == self && w.cfg.Coalesce && (f.req.Tag == op.TagAsk || f.req.Tag == op.TagLook)
	switch value, there := store[key]; {
	case f.req.Tag == op.TagShare || f.req.Tag == op.TagFill && f.req.Target == self && w.cfg.Coalesce:
		if f.req.Tag == op.TagFill {
			w.put(key, f.value)
		}
		for _, waits := range w.wait[key] {
			w.end(waits, op.Replied, driver.Reply{Value: []byte(f.value), Code: op.Waited})
		}
		delete(w.wait, key)
		return driver.Reply{}, true
	case f.req.Tag == op.TagRelease:
		if list := w.wait[key]; len(list) > 0 {
			w.wait[key] = list[1:]
			w.end(list[0], op.Replied, driver.Reply{Outcome: driver.Miss})
		} else {
			delete(w.wait, key)
		}
		return driver.Reply{}, true
	case f.req.Verb == driver.Put:
		if f.req.Target == source {
			store[key] = f.value
		} else if w.faults && w.random.IntN(10) == 0 {
			return driver.Reply{Outcome: driver.Conflict}, true
		} else {
			w.put(key, f.value)
		}
		return driver.Reply{}, true
	case f.req.Verb == driver.Delete:
		delete(store, key)
		return driver.Reply{}, true
	case there && f.req.Tag != op.TagAsk:
		return driver.Reply{Value: []byte(value)}, true
	case asks:
		if list, loading := w.wait[key]; loading {
			w.wait[key] = append(list, f)
			return driver.Reply{}, false
		}
		w.wait[key] = nil
	}
	return driver.Reply{Outcome: driver.Miss}, true
}

// put makes room and puts an entry.
func (w *stores) put(key, value string) {
	for other := range w.cache {
		if len(w.cache) >= w.room {
			delete(w.cache, other)
		}
	}
	w.cache[key] = value
}

// end tells the program how a request has ended.
func (w *stores) end(f flying, kind op.EventKind, reply driver.Reply) {
	ev := op.Event{Kind: kind, Op: f.o, Target: f.req.Target, Verb: f.req.Verb, Tag: f.req.Tag}
	if kind == op.Replied {
		ev.Reply = &reply
	}
	reqs, step := w.program.On(nil, ev)
	w.judge(f.o, step)
	w.take(f.o, reqs)
}

func (w *stores) judge(o *op.Op, step op.Step) {
	if step.Done && o.Verb == driver.Get {
		if step.Outcome == driver.OK {
			require.Positive(w.t, step.Kind)
			w.kinds[step.Kind]++
		} else {
			require.Zero(w.t, step.Kind)
			w.failed++
		}
	}
	if step.Settled {
		w.live--
		o.N = 0
	}
}

// step lets one request end.
func (w *stores) step() {
	i := w.random.IntN(len(w.out))
	f := w.out[i]
	w.out = append(w.out[:i], w.out[i+1:]...)
	if own := f.req.Target == self; w.faults && !own && w.random.IntN(8) == 0 {
		if w.random.IntN(2) == 0 {
			w.carry(f)
		}
		w.end(f, []op.EventKind{op.RequestTimeout, op.Lost, op.Refused}[w.random.IntN(3)], driver.Reply{})
		return
	}
	if reply, now := w.carry(f); now {
		w.end(f, op.Replied, reply)
	}
}

// TestThroughSchedules runs schedules of gets and puts through caches of every sort, in which requests end in any order, or badly. Each get is a hit or a
// miss, each miss loads or waits for another's load, and the source gets exactly as many gets as the program counts loads.
func TestThroughSchedules(t *testing.T) {
	for seed := range uint64(1500) {
		w := newStores(t, seed)
		ops := make([]op.Op, 8)
		var gets, begun uint64
		for round := 0; round < 200 || len(w.out) > 0; round++ {
			slot := w.random.IntN(len(ops))
			if o := &ops[slot]; o.N == 0 && round < 200 {
				begun++
				*o = op.Op{Slot: int32(slot), N: begun, Verb: driver.Get, Key: fmt.Append(nil, "key", w.random.IntN(7))}
				if w.random.IntN(6) == 0 {
					o.Verb, o.Value = driver.Put, driver.Value{Size: 4, Seed: w.random.Uint64()}
				} else {
					gets++
				}
				w.live++
				w.take(o, w.program.Start(nil, o))
			}
			if o := &ops[w.random.IntN(len(ops))]; w.faults && o.N > 0 && w.random.IntN(50) == 0 {
				reqs, step := w.program.On(nil, op.Event{Kind: op.OpTimeout, Op: o})
				w.judge(o, step)
				w.take(o, reqs)
			}
			for len(w.out) > 0 && w.random.IntN(3) > 0 {
				w.step()
			}
		}
		for key, list := range w.wait {
			require.Empty(t, list, "seed %d: gets wait for a load of %s that nobody does", seed, key)
		}
		c := w.program.CacheCounts
		require.Zero(t, w.live, "seed %d", seed)
		require.Equal(t, c.Gets, c.Hits+c.Misses, "seed %d", seed)
		require.Equal(t, c.Misses+c.Unavailable, c.Loads+c.Coalesced, "seed %d: %+v", seed, c)
		require.Equal(t, c.Loads, w.sent[op.TagLoad], "seed %d", seed)
		require.Equal(t, gets, w.kinds[op.KindHit]+w.kinds[op.KindFilled]+w.kinds[op.KindWaited]+w.kinds[op.KindSource]+w.failed)
		if !w.faults {
			require.Equal(t, c.Gets, gets)
			require.Equal(t, c.Hits, w.kinds[op.KindHit])
			require.Equal(t, c.Coalesced, w.kinds[op.KindWaited])
			require.Zero(t, c.Uncached)
		}
	}
}
