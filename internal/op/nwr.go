package op

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/driver"
)

// maxN bounds the replicas of a key: more than stores keep, and few enough that Place may search those it has found one by one.
const maxN = 16

// NWR says on how many endpoints a key lives and how many answers make an op: 1 ≤ W, R ≤ N ≤ 16, and no more than endpoints.
//
// W is of puts and deletes alike. A program for setup, populate or clear steps, which are to reach every replica, has W = N.
type NWR struct {
	N, W, R    int
	ReadFanout string // "n": a get asks all N; "r": it asks R of them, and one more on each failure
	ReadFrom   string // for ReadFanout "r": "first" in the placement's order, or "random"
	Seed       uint64 // of the random draw
	Keys       int64  // that an op's Index can name, where it names one key; 0 where it does not
}

// nwr is the program of client-side quorums.
type nwr struct {
	NWR
	place  memo
	states []state // by slot
	order  []int   // by slot, N each: the replicas in the order in which they are asked
}

// state is how far an op has come.
type state struct {
	asked   uint8 // requests made, the first so many of the slot's order
	pending uint8 // of these, without an event yet
	good    uint8
	failed  uint8

	done     bool
	found    bool // a good answer was OK, not a miss
	conflict bool // a write was refused

	writer, version uint64 // the newest value found
}

// NewNWR returns the quorum program over the endpoints of a placement. It panics when cfg is not as NWR says: a plan is checked long before.
func NewNWR(cfg NWR, place Placement) Program {
	legal := 1 <= cfg.W && cfg.W <= cfg.N && 1 <= cfg.R && cfg.R <= cfg.N && cfg.N <= min(maxN, place.Endpoints()) &&
		(cfg.ReadFanout == "n" || cfg.ReadFanout == "r" && (cfg.ReadFrom == "first" || cfg.ReadFrom == "random"))
	if !legal {
		panic(fmt.Sprintf("op: %+v over %d endpoints", cfg, place.Endpoints()))
	}
	return &nwr{NWR: cfg, place: newMemo(place, cfg.Keys, cfg.N)}
}

func (p *nwr) Start(dst []driver.Request, o *Op) []driver.Request {
	p.states = grown(p.states, o.Slot)
	p.order = grown(p.order, o.Slot*int32(p.N)+int32(p.N)-1)
	order := p.replicas(o.Slot)
	p.place.of(order, o)

	ask := p.N
	if o.Verb == driver.Get && p.ReadFanout == "r" {
		ask = p.R
		if p.ReadFrom == "random" {
			shuffle(order, p.Seed, o)
		}
	}
	for _, endpoint := range order[:ask] {
		dst = append(dst, request(o, endpoint))
	}
	p.states[o.Slot] = state{asked: uint8(ask), pending: uint8(ask)}
	return dst
}

func (p *nwr) On(dst []driver.Request, ev Event) ([]driver.Request, Step) {
	s := &p.states[ev.Op.Slot]
	if ev.Kind == OpTimeout {
		if s.done {
			return dst, Step{}
		}
		s.done = true
		return dst, Step{Done: true, Outcome: driver.QuorumFailed}
	}
	s.pending--
	var step Step
	answered := ev.Kind == Replied && good(ev.Op.Verb, ev.Reply.Outcome)
	if answered {
		step = s.accept(ev)
	} else {
		s.reject(ev)
	}
	if !s.done {
		p.decide(s, ev.Op.Verb, &step)
	}
	if !answered && !s.done && int(s.asked) < p.N { // a get that does not ask all: with R in reach there is another to try
		dst = append(dst, request(ev.Op, p.replicas(ev.Op.Slot)[s.asked]))
		s.asked++
		s.pending++
	}
	step.Settled = s.pending == 0
	return dst, step
}

// accept takes in a good answer.
func (s *state) accept(ev Event) Step {
	s.good++
	step := Step{Ack: s.good}
	if ev.Reply.Outcome != driver.OK {
		return step
	}
	if ev.Op.Verb == driver.Get {
		var writer, version uint64
		writer, version, step.Foreign = header(ev)
		if version > s.version || version == s.version && writer > s.writer {
			s.writer, s.version = writer, version
		}
	}
	s.found = true
	return step
}

// reject takes in a request that ended without a good answer.
func (s *state) reject(ev Event) {
	s.failed++
	if ev.Kind == Replied && ev.Reply.Outcome == driver.Conflict && ev.Op.Verb != driver.Get {
		s.conflict = true
	}
}

// decide ends the op when its quorum is reached or out of reach.
func (p *nwr) decide(s *state, verb driver.Verb, step *Step) {
	need := p.W
	if verb == driver.Get {
		need = p.R
	}
	switch {
	case int(s.good) == need && s.found:
		step.Outcome = driver.OK
		step.Writer, step.Version = s.writer, s.version
	case int(s.good) == need:
		step.Outcome = driver.Miss
	case p.N-int(s.failed) >= need:
		return
	case s.conflict:
		step.Outcome = driver.Conflict
	default:
		step.Outcome = driver.QuorumFailed
	}
	step.Done, s.done = true, true
}

// replicas returns the endpoints of the slot's op in the order in which they are asked.
func (p *nwr) replicas(slot int32) []int {
	at := int(slot) * p.N
	return p.order[at : at+p.N]
}

// good reports whether an answer counts towards a quorum. That a key is not there is an answer to a get and to a delete; a
// conflict is a refusal.
func good(verb driver.Verb, o driver.Outcome) bool {
	return o == driver.OK || o == driver.Miss && verb != driver.Put
}

// shuffle brings the endpoints into an order that depends on nothing but the seed and the op (Fisher and Yates; Knuth, TAOCP 2,
// §3.4.2, algorithm P).
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
