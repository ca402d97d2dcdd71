package op

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// maxN bounds the replicas of a key: more than stores keep, and few enough for Place to search linearly.
const maxN = 16

// NWR sets how many endpoints hold a key and how many answers complete an op: 1 ≤ W, R ≤ N ≤ 16, and N is at most the number of endpoints.
//
// W applies to puts and deletes alike. Setup, populate and clear steps must reach every replica, so their program has W = N.
type NWR struct {
	N, W, R  int
	GetsAskR bool   // a get asks R endpoints, and one more on each failure; else it asks all N
	AtRandom bool   // those R are drawn at random; else they are the first in the placement's order
	Seed     uint64 // seed of the random draw
	Keys     int64  // how many keys an op's Index can name; 0 if an index does not name one key
}

// Quorum is the program of client-side quorums. An op that asks all of its N endpoints at once needs only a Tally as state, so an executor can carry
// such ops out without the program.
type Quorum struct {
	NWR
	place  memo
	states []state // by slot
	order  []int   // N entries for each slot: the replicas in asking order
}

// state is the state of an op.
type state struct {
	Tally
	asked uint8 // requests made, to as many replicas in the slot's order

	writer, version uint64 // the newest value found
}

// Tally counts how an op's requests have ended so far. Quorum.Tally returns its initial value.
type Tally struct {
	pending uint8 // requests that have not ended
	good    uint8
	failed  uint8

	done     bool
	found    bool // a good answer was OK, not a miss
	conflict bool // a write was refused
}

// NewNWR returns the quorum program over the endpoints of a placement. It panics if cfg breaks the bounds of NWR: plans are checked long before.
func NewNWR(cfg NWR, place Placement) *Quorum {
	legal := 1 <= cfg.W && cfg.W <= cfg.N && 1 <= cfg.R && cfg.R <= cfg.N && cfg.N <= min(maxN, place.Endpoints())
	if !legal {
		panic(fmt.Sprintf("op: %+v over %d endpoints", cfg, place.Endpoints()))
	}
	return &Quorum{NWR: cfg, place: newMemo(place, cfg.Keys, cfg.N)}
}

// AsksAll reports whether ops with the verb send all their requests at once.
func (p *Quorum) AsksAll(verb driver.Verb) bool { return verb != driver.Get || !p.GetsAskR }

// Place sets dst to the N endpoints that hold an op's key, in asking order, which is the placement's. If an op asks all and all hold every key, there
// is nothing to look up; the order is then drawn for each op.
func (p *Quorum) Place(dst []int, o *Op) {
	if !p.AsksAll(o.Verb) || p.N < p.place.Endpoints() {
		p.place.of(dst, o)
		return
	}
	for i := range dst {
		dst[i] = i
	}
	shuffle(dst, p.Seed, o)
}

// Tally returns the tally of an op that has just asked all of its endpoints.
func (p *Quorum) Tally() Tally { return Tally{pending: uint8(p.N)} }

// Start implements Program.
func (p *Quorum) Start(dst []driver.Request, o *Op) []driver.Request {
	p.states = grown(p.states, o.Slot)
	p.order = grown(p.order, o.Slot*int32(p.N)+int32(p.N)-1)
	order := p.replicas(o.Slot)
	p.Place(order, o)

	ask := p.N
	if !p.AsksAll(o.Verb) {
		ask = p.R
		if p.AtRandom {
			shuffle(order, p.Seed, o)
		}
	}
	for _, endpoint := range order[:ask] {
		dst = append(dst, request(o, endpoint))
	}
	p.states[o.Slot] = state{Tally: Tally{pending: uint8(ask)}, asked: uint8(ask)}
	return dst
}

// On implements Program.
func (p *Quorum) On(dst []driver.Request, ev Event) ([]driver.Request, Step) {
	s := &p.states[ev.Op.Slot]
	if ev.Kind == OpTimeout {
		if !s.Expire() {
			return dst, Step{}
		}
		return dst, Step{Done: true, Outcome: driver.QuorumFailed}
	}
	var step Step
	answer := driver.Error
	if ev.Kind == Replied {
		answer = ev.Reply.Outcome
		step.Foreign = s.newer(ev)
	}
	step.Ack, step.Done, step.Outcome = p.Count(&s.Tally, ev.Op.Verb, answer)
	if step.Done && step.Outcome == driver.OK {
		step.Writer, step.Version = s.writer, s.version
	}
	if step.Ack == 0 && !s.done && int(s.asked) < p.N { // a get that has not asked all: R good answers are still possible, so ask another replica
		dst = append(dst, request(ev.Op, p.replicas(ev.Op.Slot)[s.asked]))
		s.asked++
		s.pending++
	}
	step.Settled = s.pending == 0
	return dst, step
}

// newer keeps the value of a get's reply if it is the newest so far. It reports whether the value is foreign: not written by loadgen.
func (s *state) newer(ev Event) (foreign bool) {
	writer, version, foreign := header(ev)
	if version > s.version || version == s.version && writer > s.writer {
		s.writer, s.version = writer, version
	}
	return foreign
}

// Count records the end of a request: its answer, or driver.Error if there was none. k is the number of good answers if this was one, else 0; done
// reports that it decided the op.
func (p *Quorum) Count(t *Tally, verb driver.Verb, answer driver.Outcome) (k uint8, done bool, outcome driver.Outcome) {
	t.pending--
	if good(verb, answer) {
		t.good++
		k = t.good
		t.found = t.found || answer == driver.OK
	} else {
		t.failed++
		t.conflict = t.conflict || answer == driver.Conflict && verb != driver.Get
	}
	if t.done {
		return k, false, 0
	}
	outcome, t.done = p.decide(t, verb)
	return k, t.done, outcome
}

// Expire records that the op's own deadline has passed. It reports whether that decided the op, which has then failed.
func (t *Tally) Expire() bool {
	first := !t.done
	t.done = true
	return first
}

// Running reports whether the op is still undecided.
func (t *Tally) Running() bool { return !t.done }

// decide returns how the op ends once its quorum is reached or out of reach.
func (p *Quorum) decide(t *Tally, verb driver.Verb) (outcome driver.Outcome, done bool) {
	need := p.W
	if verb == driver.Get {
		need = p.R
	}
	switch {
	case int(t.good) == need && t.found:
		return driver.OK, true
	case int(t.good) == need:
		return driver.Miss, true
	case p.N-int(t.failed) >= need:
		return 0, false
	case t.conflict:
		return driver.Conflict, true
	default:
		return driver.QuorumFailed, true
	}
}

// replicas returns the endpoints of the slot's op in asking order.
func (p *Quorum) replicas(slot int32) []int {
	at := int(slot) * p.N
	return p.order[at : at+p.N]
}

// good reports whether an answer counts towards a quorum. A missing key is an answer to a get and to a delete; a conflict is a refusal.
func good(verb driver.Verb, o driver.Outcome) bool {
	return o == driver.OK || o == driver.Miss && verb != driver.Put
}

// shuffle permutes the endpoints by the seed and the op alone (Fisher and Yates; Knuth, TAOCP 2, §3.4.2, algorithm P).
func shuffle(endpoints []int, seed uint64, o *Op) {
	x := mix(mix(mix(seed)^uint64(o.Stream)) ^ o.N)
	for i := len(endpoints) - 1; i > 0; i-- {
		x = mix(x)
		j := x >> 32 * uint64(i+1) >> 32
		endpoints[i], endpoints[j] = endpoints[j], endpoints[i]
	}
}

// mix is one step of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
