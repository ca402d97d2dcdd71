package op_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// clusterOf is a program on a map in which endpoint 0 has all slots.
func clusterOf(endpoints int, checked bool) (op.Program, *op.Slots) {
	slots := op.NewSlots(endpoints)
	for i := range op.NumSlots {
		slots.Set(i, 0)
	}
	return op.NewCluster(slots, checked), slots
}

func redirected(o *op.Op, from int, to op.Redirect) op.Event {
	return op.Event{Kind: op.Replied, Op: o, Endpoint: from, Reply: &driver.Reply{Outcome: driver.Error}, Redirect: &to}
}

func TestClusterFollowsRedirects(t *testing.T) {
	program, slots := clusterOf(3, false)
	o := &op.Op{Stream: 2, N: 3, Verb: driver.Put, Key: []byte("foo")}
	request := func(endpoint int, asking bool) []driver.Request {
		return []driver.Request{{Endpoint: endpoint, Verb: driver.Put, Stream: 2, N: 3, Key: o.Key, Value: &o.Value, Asking: asking}}
	}
	require.Equal(t, request(0, false), program.Start(nil, o))

	reqs, step := program.On(nil, redirected(o, 0, op.Redirect{Endpoint: 1, Ask: true}))
	require.Equal(t, request(1, true), reqs)
	require.Zero(t, step)
	require.Equal(t, 0, slots.Home(o.Key), "asking changes no map")

	reqs, step = program.On(nil, redirected(o, 1, op.Redirect{Endpoint: 2}))
	require.Equal(t, request(2, false), reqs)
	require.Zero(t, step)
	require.Equal(t, 2, slots.Home(o.Key))
	require.Equal(t, 1, slots.Held(2), "no other slot has moved")

	reqs, step = program.On(nil, op.Event{Kind: op.Replied, Op: o, Endpoint: 2, Reply: &driver.Reply{}})
	require.Empty(t, reqs)
	require.Equal(t, op.Step{Done: true, Outcome: driver.OK, Settled: true}, step)
}

// TestGetsAskReaders: gets for an endpoint's slots go to those that take them, by stream, and other ops to the endpoint.
func TestGetsAskReaders(t *testing.T) {
	program, slots := clusterOf(4, false)
	slots.Share([][]int{{1, 3}, nil, nil, nil})
	copied := op.NewSlots(4)
	copied.Copy(slots)
	for at, serves := range []bool{true, true, false, true} {
		require.Equal(t, [2]bool{serves, serves}, [2]bool{slots.Serves(at), copied.Serves(at)})
	}
	for stream, want := range []int{1, 3, 1, 3} {
		require.Equal(t, want, program.Start(nil, &op.Op{Stream: uint32(stream), Verb: driver.Get, Key: []byte("foo")})[0].Endpoint)
		require.Zero(t, program.Start(nil, &op.Op{Stream: uint32(stream), Verb: driver.Delete, Key: []byte("foo")})[0].Endpoint)
	}
	for i := range op.NumSlots {
		slots.Set(i, 2)
	}
	require.Equal(t, 2, program.Start(nil, &op.Op{Verb: driver.Get, Key: []byte("foo")})[0].Endpoint, "nobody takes gets for the new one")
}

func TestClusterEndsWithErrors(t *testing.T) {
	failed := op.Step{Done: true, Outcome: driver.Error, Settled: true}
	o := &op.Op{Slot: 3, Verb: driver.Get, Key: []byte("foo")}

	t.Run("unknown endpoint", func(t *testing.T) {
		program, slots := clusterOf(2, false)
		program.Start(nil, o)
		reqs, step := program.On(nil, redirected(o, 0, op.Redirect{Endpoint: -1}))
		require.Empty(t, reqs)
		require.Equal(t, failed, step)
		require.Equal(t, 0, slots.Home(o.Key))
	})
	t.Run("redirects without end", func(t *testing.T) {
		program, _ := clusterOf(2, false)
		for range 2 { // an op's redirects are not those of the next in its slot
			program.Start(nil, o)
			for i := range op.MaxRedirects {
				reqs, step := program.On(nil, redirected(o, i%2, op.Redirect{Endpoint: (i + 1) % 2}))
				require.Len(t, reqs, 1)
				require.Zero(t, step)
			}
			reqs, step := program.On(nil, redirected(o, 0, op.Redirect{Endpoint: 1}))
			require.Empty(t, reqs)
			require.Equal(t, failed, step)
		}
	})
	t.Run("after the deadline", func(t *testing.T) {
		program, slots := clusterOf(2, true)
		program.Start(nil, o)
		_, step := program.On(nil, op.Event{Kind: op.OpTimeout, Op: o})
		require.Equal(t, op.Step{Done: true, Outcome: driver.Timeout}, step)
		reqs, step := program.On(nil, redirected(o, 0, op.Redirect{Endpoint: 1}))
		require.Empty(t, reqs)
		require.Equal(t, op.Step{Settled: true}, step)
		require.Equal(t, 1, slots.Home(o.Key))
	})
	for kind, outcome := range map[op.EventKind]driver.Outcome{op.Lost: driver.Error, op.Refused: driver.Error, op.RequestTimeout: driver.Timeout} {
		t.Run("redirected, then "+kind.String(), func(t *testing.T) {
			program, _ := clusterOf(2, true)
			program.Start(nil, o)
			program.On(nil, redirected(o, 0, op.Redirect{Endpoint: 1}))
			reqs, step := program.On(nil, op.Event{Kind: kind, Op: o, Endpoint: 1})
			require.Empty(t, reqs)
			require.Equal(t, op.Step{Done: true, Outcome: outcome, Settled: true}, step)
		})
	}
}

// world is a cluster as its nodes see it: who has each slot, and where it moves to. A node answers as the specification says.
type world struct {
	owner  map[int]int
	target map[int]int     // of slots that move
	moved  map[string]bool // keys that have gone ahead of their slot
}

// answer returns where a node sends a request; nil: it carries it out.
func (w *world) answer(node int, r driver.Request) *op.Redirect {
	slot := op.SlotOf(r.Key)
	to, moving := w.target[slot]
	switch {
	case node == w.owner[slot] && moving && w.moved[string(r.Key)]:
		return &op.Redirect{Endpoint: to, Ask: true}
	case node == w.owner[slot], moving && node == to && r.Asking:
		return nil
	}
	return &op.Redirect{Endpoint: w.owner[slot]}
}

// TestClusterFindsKeysWhileSlotsMove lets slots begin to move, keys go ahead and moves end at any time between two events. An op always ends, and ok
// unless the world changed under it more often than it follows. In a world that rests, it takes no more than two redirects, and one the next time.
func TestClusterFindsKeysWhileSlotsMove(t *testing.T) {
	all := keys(20)
	rapid.Check(t, func(rt *rapid.T) {
		const nodes = 4
		program, slots := clusterOf(nodes, false)
		w := &world{owner: map[int]int{}, target: map[int]int{}, moved: map[string]bool{}}
		change := func() (changed bool) {
			key := all[rapid.IntRange(0, len(all)-1).Draw(rt, "key")]
			slot := op.SlotOf(key)
			switch rapid.IntRange(0, 3).Draw(rt, "change") {
			case 0:
				if to := rapid.IntRange(0, nodes-1).Draw(rt, "to"); to != w.owner[slot] && len(w.target) == 0 {
					w.target[slot] = to
					return true
				}
			case 1:
				w.moved[string(key)] = true
				return true
			case 2:
				if to, moving := w.target[slot]; moving {
					w.owner[slot] = to
					delete(w.target, slot)
					clear(w.moved)
					return true
				}
			}
			return false
		}
		carryOut := func(key []byte, restless bool) (redirects, changes int, outcome driver.Outcome) {
			o := &op.Op{Verb: driver.Get, Key: key}
			reqs := program.Start(nil, o)
			for {
				require.Len(rt, reqs, 1, "one request at a time")
				if restless && change() {
					changes++
				}
				r := reqs[0]
				ev := op.Event{Kind: op.Replied, Op: o, Endpoint: r.Endpoint, Reply: &driver.Reply{}}
				if ev.Redirect = w.answer(r.Endpoint, r); ev.Redirect != nil {
					ev.Reply = &driver.Reply{Outcome: driver.Error}
					redirects++
				}
				var step op.Step
				if reqs, step = program.On(nil, ev); step.Done {
					require.True(rt, step.Settled)
					return redirects, changes, step.Outcome
				}
			}
		}
		for range rapid.IntRange(1, 30).Draw(rt, "ops") {
			key := all[rapid.IntRange(0, len(all)-1).Draw(rt, "op")]
			redirects, changes, outcome := carryOut(key, true)
			require.LessOrEqual(rt, redirects, op.MaxRedirects+1)
			if outcome != driver.OK {
				require.Equal(rt, op.MaxRedirects+1, redirects)
				require.Positive(rt, changes)
			}
		}
		for _, key := range all {
			redirects, _, outcome := carryOut(key, false)
			require.Equal(rt, driver.OK, outcome)
			require.LessOrEqual(rt, redirects, 2)
			require.Equal(rt, w.owner[op.SlotOf(key)], slots.Home(key), "the map is right for what was asked for")
			again, _, _ := carryOut(key, false)
			require.LessOrEqual(rt, again, 1, "only what moves is redirected again")
		}
	})
}

// The first endpoint may be the one that a slot has moved to.
func TestClusterMovesASlotToTheFirstEndpoint(t *testing.T) {
	program, slots := clusterOf(3, false)
	o := &op.Op{Verb: driver.Get, Key: []byte("foo")}
	slot := op.SlotOf(o.Key)
	slots.Set(slot, 2)
	program.Start(nil, o)
	reqs, _ := program.On(nil, redirected(o, 2, op.Redirect{Endpoint: 0}))
	require.Equal(t, 0, reqs[0].Endpoint)
	require.Equal(t, op.NumSlots, slots.Held(0))
	require.Zero(t, slots.Held(2))
}
