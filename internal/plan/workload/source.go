package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/pace"
	"github.com/loadgen/loadgen/internal/plan/values"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// unbounded is the length of a stream that a duration or a schedule ends.
const unbounded = math.MaxUint64

// Source holds the streams of one step. It does not change after New, so any number of goroutines may use it.
type Source struct {
	streams  int
	sessions int
	seed     uint64 // seed of the step
	chance   uint64 // seed of the executor's draws
	limit    uint64 // ops per stream, unless its part of a walk is shorter; or unbounded
	mix      mixture
	supply              // the phase's own dataset
	grows    bool       // its values are records that grow by an element with each put of a stream
	batch    int        // keys per op
	distinct bool       // no key twice in an op
	misses   bool       // some gets ask for keys that are never put
	hits     uint64     // 2⁶⁴ × the share of gets that ask for other keys
	shape    pace.Shape // rate over time of an open load
	poisson  bool
	arrivals uint64 // seed of the arrivals

	scenarios []scenario // streams draw from these instead of mix; empty if they draw ops
	upto      []uint64   // 2⁶⁴ × the share of scenarios[0..i]; unused for the last
	longest   int        // ops of the longest scenario
	setup     bool       // they are a session's setup
	rows      *rows      // nil if scenarios take none
}

// Kind is a step's purpose, in the words of package worker.
type Kind string

const (
	Load     Kind = "load"     // the measured load
	Setup    Kind = "setup"    // puts of the session pools before a load
	Populate Kind = "populate" // puts of the shared key range
	Clear    Kind = "clear"    // deletes
	Verify   Kind = "verify"   // gets of what was put
)

// Step identifies a step of a phase.
type Step struct {
	Kind  Kind
	Level int        // from 0, for a load with several levels, each with its own ops
	Shape pace.Shape // rate over time of a load with a schedule

	// Repetition is the number of the repetition, from 1, whose draws a load makes; 0 stands for 1. The other kinds make the dataset, which is the
	// same in all repetitions.
	Repetition int

	Files map[string]Files // by dataset, for datasets with files
}

// New returns the source of one step of phase ph of plan p. It fails if the phase has no such step, or if its keys would not be
// distinct.
func New(p *plan.Plan, ph *plan.Phase, step Step) (*Source, error) {
	kind := step.Kind
	weights, ok := weightsOf(ph, kind)
	if !ok {
		return nil, fmt.Errorf("phase %q has no %s step", ph.Name, kind)
	}
	mix, err := newMixture(weights, p.Words())
	if err != nil {
		return nil, fmt.Errorf("%s of phase %q: %w", kind, ph.Name, err)
	}
	own, err := newSupply(p, ph, ph.Dataset, step)
	if err != nil {
		return nil, err
	}
	seed := step.repeated(p.Seed)
	s := &Source{
		streams: ph.Sessions(), sessions: ph.Sessions(),
		seed:   seedOf(seed, step.path("phase", ph.Name, string(kind))...),
		chance: seed,
		limit:  unbounded, mix: mix, supply: *own, batch: 1,
		grows: p.Dataset(ph.Dataset).Values.Elements > 0,
	}
	if step.Level > 0 {
		s.chance = seedOf(seed, step.path("chance")...)
	}
	if kind == Load {
		s.batch, s.distinct = ph.Batch, ph.Distinct
		supplies := map[string]*supply{ph.Dataset: &s.supply}
		for _, name := range ph.Datasets()[1:] {
			if supplies[name], err = newSupply(p, ph, name, step); err != nil {
				return nil, err
			}
		}
		if err := s.setScenarios(p, ph, ph.Scenarios, supplies); err != nil {
			return nil, fmt.Errorf("phase %q: %w", ph.Name, err)
		}
	}
	if kind == Setup && len(ph.SetupSteps) > 0 {
		s.limit, s.setup = 1, true
		if err := s.setScenarios(p, ph, []plan.Scenario{{Weight: 1, Steps: ph.SetupSteps}}, map[string]*supply{ph.Dataset: &s.supply}); err != nil {
			return nil, fmt.Errorf("setup of phase %q: %w", ph.Name, err)
		}
	}
	if len(s.scenarios) > 0 {
		if s.rows, err = newRows(p.Dataset(ph.Dataset).Rows, step.Files[ph.Dataset].Rows); err != nil {
			return nil, fmt.Errorf("phase %q: %w", ph.Name, err)
		}
	}
	if h := ph.HitRatio; h != nil && kind == Load {
		if !(*h > 0 && *h <= 1) {
			return nil, fmt.Errorf("phase %q: a hit ratio of %v", ph.Name, *h)
		}
		s.misses, s.hits = *h < 1, word(*h)
	}
	if c := ph.Closed; c != nil && kind == Load && c.Iterations > 0 {
		s.limit = uint64(c.Iterations)
	}
	if o := ph.As(plan.Shape(step.Shape)).Schedule(); o != nil && kind == Load {
		s.streams = o.Streams
		s.shape = step.Shape
		s.poisson = o.Poisson()
		s.arrivals = seedOf(seed, step.path("arrivals", ph.Name)...)
	}
	return s, nil
}

// repeated returns the seed that a step's draws come from: the plan's own in the first repetition.
func (s *Step) repeated(plan uint64) uint64 {
	if s.Kind != Load || s.Repetition <= 1 {
		return plan
	}
	return seedOf(plan, "repetition", strconv.Itoa(s.Repetition))
}

// path returns the path to seed the step from. The first level adds nothing to it.
func (s *Step) path(names ...string) []string {
	if s.Level > 0 {
		names = append(names, strconv.Itoa(s.Level))
	}
	return names
}

// weightsOf returns the mix of a phase's step of a kind, and whether the phase has that step.
func weightsOf(ph *plan.Phase, kind Kind) ([]plan.Weight, bool) {
	switch kind {
	case Load:
		return ph.Ops, ph.Closed != nil || ph.Schedule() != nil
	case Setup:
		return ph.Setup, len(ph.Setup) > 0
	case Populate:
		return ph.Ops, ph.Populate != nil
	case Clear:
		return ph.Ops, ph.Clear != nil
	case Verify:
		return ph.Ops, ph.Verify != nil
	}
	return nil, false
}

// Setup reports whether the step's scenarios set sessions up: each carries out one.
func (s *Source) Setup() bool { return s.setup }

// Chance returns the seed of the executor's own draws: which replicas an op reads, and which ops are kept.
func (s *Source) Chance() uint64 { return s.chance }

// Value returns the fields that all values have in common.
func (s *Source) Value() driver.Value { return s.value }

// Draws reports whether a step without scenarios may draw the verb.
func (s *Source) Draws(verb driver.Verb) bool { return slices.Contains(s.mix.verbs[:s.mix.n], verb) }

// Stores reports whether ops of a step without scenarios may store values.
func (s *Source) Stores() bool { return slices.ContainsFunc(s.mix.verbs[:s.mix.n], driver.Verb.Stores) }

// Falls draws whether an event of the given probability happens to an op, independently of all other draws.
func (s *Source) Falls(stream uint32, n uint64, probability float64) bool {
	r := generator(s.chance^uint64(stream)<<32, int(n))
	return float64(r.Uint64()>>11)/(1<<53) < probability
}

// AppendKey appends the key with an index, of a phase whose sessions share their keys.
func (s *Source) AppendKey(dst []byte, index uint64) []byte {
	return s.keys.appendKey(dst, s.keys.pool(0), index)
}

// Refill makes a get that has missed a put of the same key. Its value is the same each time that the key is missed.
func (s *Source) Refill(o *op.Op) { s.refill(o, s.keys.pool(int(o.Stream)%s.sessions)) }

// RefillStep is Refill for a get of a scenario.
func (s *Source) RefillStep(o *op.Op, scenario, op int) {
	from := s.scenarios[scenario].steps[op].from
	from.refill(o, from.keys.pool(int(o.Stream)%s.sessions))
}

// Streams returns the number of streams of the step, over all workers.
func (s *Source) Streams() int { return s.streams }

// Sessions returns the number of sessions of the step, over all workers. Stream i is driven by session i mod Sessions.
func (s *Source) Sessions() int { return s.sessions }

// Ops returns the number of ops of stream i, and true, if the plan determines it: by iterations, or because the stream walks keys.
// Otherwise it returns false.
func (s *Source) Ops(i int) (n int64, bounded bool) {
	st := s.Stream(i)
	switch {
	case st.end == unbounded:
		return 0, false
	case len(s.scenarios) == 0:
		return int64(st.end), true
	}
	for _, c := range s.scenarios {
		if len(c.steps) != s.longest {
			return 0, false
		}
	}
	return int64(st.end) * int64(s.longest), true
}

// Pacer returns the schedule of stream i of an open load. Its ops are due in the order that Next yields them. For any other step the
// pacer yields nothing.
func (s *Source) Pacer(i int) pace.Pacer {
	if s.poisson {
		return pace.NewPoisson(s.shape, s.streams, i, s.arrivals)
	}
	return pace.NewConstant(s.shape, s.streams, i)
}

// Stream returns stream i from its beginning, 0 ≤ i < Streams.
func (s *Source) Stream(i int) Stream {
	st := Stream{source: s, number: uint32(i), end: s.limit, random: generator(s.seed, i)}
	st.window = s.seed + uint64(i)*max(s.cut, driver.TextOf(s.value.Size)/uint64(s.streams)) // streams that go on side by side do not overlap
	session := i % s.sessions
	st.pool = s.keys.pool(session)
	if s.grows {
		st.base = seedOf(s.seed, strconv.Itoa(i))
	}
	if s.keys.pick == walk {
		part, parts := i, s.streams
		if s.keys.perSession {
			part, parts = i/s.sessions, (s.streams-session+s.sessions-1)/s.sessions
		}
		st.from = share(s.keys.count, part, parts)
		st.end = min(st.end, share(s.keys.count, part+1, parts)-st.from)
	}
	if s.keys.pick == stride {
		st.from = uint64(session)
		st.end = min(st.end, (s.keys.count-st.from+s.keys.writers-1)/s.keys.writers)
	}
	if s.rows != nil && s.rows.once {
		st.end = min(st.end, s.rows.of(i, s.streams))
	}
	return st
}

// Stream yields the ops of one stream in order. It is a plain value: a copy continues independently from the same place. One goroutine
// may use it at a time.
type Stream struct {
	source *Source
	number uint32
	n      uint64 // number of the next op
	end    uint64 // number of ops, or unbounded
	pool   uint64 // number of the key with index 0
	from   uint64 // for a walk or a stride: index of op 0
	random rand.PCG
	newest newest
	reach  [2]uint64 // if gets go only to keys of some sessions: the first of these sessions, and the one after the last
	base   uint64    // for growing records: the common part of their seeds
	puts   uint32    // for growing records: how often one was stored
	row    uint64    // the row of the last scenario
	window uint64    // where in the long text the last value began
}

// Ended reports whether the stream has no op left.
func (st *Stream) Ended() bool { return st.n == st.end }

// Draw fills ops with the stream's next ones as Next does, and returns how many there were before the stream's end.
func (st *Stream) Draw(ops []op.Op) int {
	for i := range ops {
		if !st.Next(&ops[i]) {
			return i
		}
	}
	return len(ops)
}

// Next fills o with the stream's next op, or returns false at the stream's end. It sets Stream, N, Verb, Index, Key, whose array it reuses,
// and Value: size, seed and kind for a verb that stores, zero for any other. The executor sets Writer and Version of a checked value; Next
// leaves Slot alone. If ops have several keys, it sets Batch, too. It allocates nothing once o.Key and o.Batch have room.
func (st *Stream) Next(o *op.Op) bool {
	if st.Ended() {
		return false
	}
	s := st.source
	o.Stream, o.N = st.number, st.n
	o.Verb = s.mix.draw(&st.random)
	st.fill(o, st.pick(o.Verb))
	st.n++
	if s.batch > 1 {
		st.gather(o)
	}
	return true
}

// fill sets the key and value of an op whose verb and index are drawn.
func (st *Stream) fill(o *op.Op, index uint64) {
	s := st.source
	o.Index = index
	if s.misses && o.Verb == driver.Get && st.random.Uint64() >= s.hits {
		o.Index += absent // a different key, which may be on another endpoint
		o.Key = s.keys.appendAbsent(o.Key[:0], st.pool, index)
	} else {
		o.Key = s.keys.appendKey(o.Key[:0], st.pool, index)
	}
	o.Value = driver.Value{}
	if o.Verb.Stores() {
		st.store(&o.Value, &o.Key, index)
	}
}

// store makes a value for the key with an index.
func (st *Stream) store(v *driver.Value, key *[]byte, index uint64) {
	*v = st.source.value
	v.Seed, v.Key = st.seed(), driver.KeyHash(*key)
	if st.source.grows {
		st.puts++
		v.Seed = values.Grown(st.base, st.puts)
	}
	if st.source.varied {
		st.source.vary(v, key, index)
	}
}

// seed draws a value's seed. Its low bits say where in the long text the value begins: behind the stream's last one, where the processor has read ahead.
func (st *Stream) seed() uint64 {
	x := st.random.Uint64()
	if st.source.cut > 0 {
		st.window += st.source.cut
		x = x&^(driver.LongText-1) | st.window&(driver.LongText-1)
	}
	return x
}

// gather draws the further keys of an op that has several.
func (st *Stream) gather(o *op.Op) {
	s := st.source
	if len(o.Batch) != s.batch {
		o.Batch = make([]driver.Item, s.batch)
	}
	first := &o.Batch[0]
	first.Index, first.Key, first.Value = o.Index, append(first.Key[:0], o.Key...), o.Value
	for i := 1; i < s.batch; i++ {
		item := &o.Batch[i]
		item.Index = st.pick(o.Verb)
		if s.distinct {
			item.Index = st.another(item.Index, o.Batch[:i], o.Verb)
		}
		item.Key = s.keys.appendKey(item.Key[:0], st.pool, item.Index)
		item.Value = driver.Value{}
		if o.Verb.Stores() {
			st.store(&item.Value, &item.Key, item.Index)
		}
	}
}

// another returns the index of a key that is not among some: as drawn, or drawn again or, after many draws, the next free one.
func (st *Stream) another(index uint64, among []driver.Item, verb driver.Verb) uint64 {
	const most = 1000
	taken := func(item driver.Item) bool { return item.Index == index }
	for n := 0; slices.ContainsFunc(among, taken); n++ {
		if index = (index + 1) % st.source.keys.count; n < most {
			index = st.pick(verb)
		}
	}
	return index
}

// pick returns the index of the next key for a verb.
func (st *Stream) pick(verb driver.Verb) uint64 {
	k := &st.source.keys
	switch k.pick {
	case uniform:
		return below(&st.random, k.count)
	case zipfian:
		return k.popular(&st.random)
	case walk:
		return st.from + st.n
	default:
		return st.other(verb)
	}
}

// other picks a key's index in one of the less common ways.
func (st *Stream) other(verb driver.Verb) uint64 {
	k := &st.source.keys
	switch {
	case k.pick == hotspot:
		return k.warm(&st.random)
	case k.pick == ycsb:
		return ycsbIndex(&st.random, k.count)
	case k.pick == stride:
		return st.from + st.n*k.writers
	case k.pick == owned:
		return st.single(verb)
	case verb.Stores():
		return st.insert()
	}
	return st.recent()
}

// single picks a key's index where each key has one writer. It picks in the dataset's own way; for a write, it then takes the nearest key that the
// session writes.
func (st *Stream) single(verb driver.Verb) uint64 {
	s := st.source
	index := s.draw(&st.random)
	switch from, to := st.reach[0], st.reach[1]; {
	case verb != driver.Get:
		return s.keys.nearest(index, uint64(int(st.number)%s.sessions))
	case to > 0:
		if of := index % s.keys.writers; of < from || of >= to {
			return s.keys.nearest(index, from+of%(to-from))
		}
	}
	return index
}

// Reach restricts the stream's gets to keys that certain sessions write, from ≤ session < to, if each key has one writer. A key of another session is
// replaced by a near key of these sessions. Only then do a stream's ops depend on how sessions are divided between workers and loops.
func (st *Stream) Reach(from, to int) { st.reach = [2]uint64{uint64(from), uint64(to)} }

// vary sets the size of a value. A record's size is known only once the record is made, so vary makes it in the spare capacity after the key.
func (s *supply) vary(v *driver.Value, key *[]byte, index uint64) {
	if s.paired {
		v.Seed = index
	}
	if s.sizes != nil {
		v.Size = s.sizes.of(v.Seed)
		return
	}
	length := len(*key)
	*key = s.value.Maker.Append(*key, v.Seed)
	v.Size = len(*key) - length
	if v.Checked {
		v.Size += driver.HeaderSize
	}
	*key = (*key)[:length]
}
