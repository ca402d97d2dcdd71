package op_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// answers lists everything that can become of a request with the verb. No driver answers a put with a miss or a get with a conflict; a
// program must not fall over one that does.
func answers(verb driver.Verb) []answer {
	all := []answer{
		{name: "miss", outcome: driver.Miss},
		{name: "conflict", outcome: driver.Conflict},
		{name: "error", outcome: driver.Error},
		{name: "timeout", kind: op.RequestTimeout},
		{name: "lost", kind: op.Lost},
		{name: "refused", kind: op.Refused},
	}
	if verb != driver.Get {
		return append(all, answer{name: "ok"})
	}
	return append(all,
		answer{name: "ok new", writer: 1, version: 2},
		answer{name: "ok old", writer: 2, version: 1},
		answer{name: "ok foreign"})
}

var opTimeout = event{answer: answer{name: "op timeout", kind: op.OpTimeout}, endpoint: -1}

// configs returns every quorum of n replicas that makes a difference to the verb.
func configs(verb driver.Verb, n int) []op.NWR {
	var all []op.NWR
	for q := 1; q <= n; q++ {
		if verb != driver.Get {
			all = append(all, op.NWR{N: n, W: q, R: 1, GetsAskR: true})
			continue
		}
		all = append(all,
			op.NWR{N: n, W: 1, R: q},
			op.NWR{N: n, W: 1, R: q, GetsAskR: true},
			op.NWR{N: n, W: 1, R: q, GetsAskR: true, AtRandom: true, Seed: 7})
	}
	return all
}

// TestNWREveryInterleaving walks through all that can happen to an op of up to three replicas: every answer of every request, in
// every order, with and without the op's deadline at every point.
func TestNWREveryInterleaving(t *testing.T) {
	// Puts, deletes and gets that ask all: answers^n · n! orders · (n places for the deadline, or none), for each of n quorums.
	want := map[string]int{
		"get n=1": 54, "get n=2": 2150, "get n=3": 100228,
		"put n=1": 14, "put n=2": 588, "put n=3": 24696,
		"delete n=1": 14, "delete n=2": 588, "delete n=3": 24696,
	}
	got := map[string]int{}
	for _, verb := range []driver.Verb{driver.Get, driver.Put, driver.Delete} {
		for n := 1; n <= 3; n++ {
			name := fmt.Sprintf("%v n=%d", verb, n)
			for _, cfg := range configs(verb, n) {
				got[name] += interleave(t, cfg, verb)
			}
			t.Logf("%s: %d cases", name, got[name])
		}
	}
	require.Equal(t, want, got, "cases tried")
}

// interleave runs every case for one configuration and returns their number.
func interleave(t *testing.T, cfg op.NWR, verb driver.Verb) int {
	ring := op.NewRing(names(4))
	o := &op.Op{Slot: 3, Stream: 5, N: 11, Verb: verb, Key: []byte("key")}
	tr := &trial{t: t, program: op.NewNWR(cfg, ring), model: model{cfg, verb}, op: o}
	if !cfg.AtRandom {
		tr.order = ring.Place(nil, o.Key, cfg.N)
	}
	all, cases := answers(verb), 0
	var walk func(path []event)
	walk = func(path []event) {
		tr.start() // a program cannot be copied: each case is run from its start, in a slot that was used before
		for _, e := range path {
			tr.on(e)
		}
		if tr.settled() {
			tr.finish()
			cases++
			return
		}
		waiting, timedOut := slices.Clone(tr.waiting), tr.timedOut()
		for _, endpoint := range waiting {
			for _, a := range all {
				walk(append(path, event{a, endpoint}))
			}
		}
		if !timedOut {
			walk(append(path, opTimeout))
		}
	}
	walk(nil)
	return cases
}

// TestNWRAgainstModel mixes ops of every kind in several slots, with up to sixteen replicas.
func TestNWRAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := rapid.IntRange(1, 20).Draw(rt, "nodes")
		n := rapid.IntRange(1, min(nodes, 16)).Draw(rt, "n")
		cfg := op.NWR{
			N: n, W: rapid.IntRange(1, n).Draw(rt, "w"), R: rapid.IntRange(1, n).Draw(rt, "r"),
			GetsAskR: rapid.Bool().Draw(rt, "gets ask R"),
			AtRandom: rapid.Bool().Draw(rt, "at random"),
			Seed:     rapid.Uint64().Draw(rt, "seed"),
		}
		ring := op.NewRing(names(nodes))
		program := op.NewNWR(cfg, ring)
		free := []int32{0, 9, 2}
		var live []*trial
		for i := range rapid.IntRange(1, 300).Draw(rt, "events") {
			if len(live) == 0 || len(free) > 0 && rapid.Bool().Draw(rt, "start") {
				slot := free[len(free)-1]
				free = free[:len(free)-1]
				live = append(live, begin(rt, program, ring, cfg, slot, uint64(i)))
				continue
			}
			at := rapid.IntRange(0, len(live)-1).Draw(rt, "op")
			happen(rt, live[at])
			if tr := live[at]; tr.settled() {
				tr.finish()
				free = append(free, tr.op.Slot)
				live = slices.Delete(live, at, at+1)
			}
		}
		for _, tr := range live {
			for !tr.settled() {
				happen(rt, tr)
			}
			tr.finish()
		}
	})
}

// begin starts an op of any verb.
func begin(rt *rapid.T, program op.Program, ring *op.Ring, cfg op.NWR, slot int32, n uint64) *trial {
	o := &op.Op{
		Slot: slot, Stream: rapid.Uint32Range(0, 9).Draw(rt, "stream"), N: n,
		Verb: rapid.SampledFrom([]driver.Verb{driver.Get, driver.Put, driver.Delete}).Draw(rt, "verb"),
		Key:  rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(rt, "key"),
	}
	tr := &trial{t: rt, program: program, model: model{cfg, o.Verb}, op: o}
	asksAll := o.Verb != driver.Get || !cfg.GetsAskR
	if asksAll && cfg.N < ring.Endpoints() || !asksAll && !cfg.AtRandom {
		tr.order = ring.Place(nil, o.Key, cfg.N)
	}
	tr.start()
	return tr
}

// happen draws the next event of an op.
func happen(rt *rapid.T, tr *trial) {
	if !tr.timedOut() && rapid.IntRange(0, 9).Draw(rt, "deadline") == 0 {
		tr.on(opTimeout)
		return
	}
	a := rapid.SampledFrom(answers(tr.op.Verb)).Draw(rt, "answer")
	if a.version != 0 {
		a.writer = rapid.Uint64Range(0, 3).Draw(rt, "writer")
		a.version = rapid.Uint64Range(1, 4).Draw(rt, "version")
	}
	tr.on(event{a, rapid.SampledFrom(tr.waiting).Draw(rt, "endpoint")})
}

// TestNWRReadsAtRandom checks that the draw depends on the seed and the op alone, and prefers no replica.
func TestNWRReadsAtRandom(t *testing.T) {
	const ops = 30_000
	cfg := op.NWR{N: 3, W: 1, R: 1, GetsAskR: true, AtRandom: true, Seed: 1}
	ring := op.NewRing(names(4))
	o := op.Op{Verb: driver.Get, Key: []byte("key")}
	holders := ring.Place(nil, o.Key, cfg.N)

	// asked returns the endpoints that each op tries in turn when all refuse.
	asked := func(cfg op.NWR, stream uint32) [][3]int {
		program := op.NewNWR(cfg, ring)
		all := make([][3]int, ops)
		o.Stream = stream
		for i := range all {
			o.N = uint64(i)
			requests := program.Start(nil, &o)
			for j := 0; j < len(requests); j++ {
				all[i][j] = requests[j].Endpoint
				requests, _ = program.On(requests, op.Event{Kind: op.Refused, Op: &o, Endpoint: requests[j].Endpoint})
			}
		}
		return all
	}
	first := asked(cfg, 1)
	require.Equal(t, first, asked(cfg, 1), "the same op asks the same endpoints")
	require.NotEqual(t, first, asked(cfg, 2), "another stream draws otherwise")
	reseeded := cfg
	reseeded.Seed = 2
	require.NotEqual(t, first, asked(reseeded, 1), "another seed draws otherwise")

	orders := map[[3]int]int{}
	for _, order := range first {
		require.ElementsMatch(t, holders, order[:])
		orders[order]++
	}
	require.Len(t, orders, 6)
	for order, n := range orders { // binomial(30,000, 1/6): sd 64.5
		require.InDelta(t, ops/6, n, 5*64.5, "%v", order)
	}
}

func TestNewNWRRefusesWhatAPlanMustNotSay(t *testing.T) {
	good := op.NWR{N: 3, W: 2, R: 1, GetsAskR: true}
	require.NotPanics(t, func() { op.NewNWR(good, op.NewRing(names(3))) })
	for name, change := range map[string]func(*op.NWR){
		"N over endpoints": func(c *op.NWR) { c.N = 4 },
		"N 0":              func(c *op.NWR) { c.N, c.W, c.R = 0, 0, 0 },
		"W over N":         func(c *op.NWR) { c.W = 4 },
		"W 0":              func(c *op.NWR) { c.W = 0 },
		"R over N":         func(c *op.NWR) { c.R = 4 },
		"R 0":              func(c *op.NWR) { c.R = 0 },
	} {
		cfg := good
		change(&cfg)
		require.Panics(t, func() { op.NewNWR(cfg, op.NewRing(names(3))) }, name)
	}
	require.Panics(t, func() { op.NewNWR(op.NWR{N: 17, W: 1, R: 1}, op.NewRing(names(20))) }, "N over 16")
}
