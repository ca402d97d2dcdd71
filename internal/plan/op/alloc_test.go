package op_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestProgramsAllocateNothing carries out whole ops, with good answers and with failures.
func TestProgramsAllocateNothing(t *testing.T) {
	ring := op.NewRing(names(4))
	first := op.NWR{N: 3, W: 2, R: 2, GetsAskR: true}
	random := op.NWR{N: 3, W: 2, R: 2, GetsAskR: true, AtRandom: true}
	all := op.NWR{N: 3, W: 2, R: 2}
	value := driver.Value{Size: 200, Checked: true, Version: 1}
	good := op.Event{Kind: op.Replied, Reply: &driver.Reply{Value: value.AppendTo(nil)}}

	for name, program := range map[string]op.Program{
		"plain, one endpoint": op.NewPlain(op.NewRing(names(1)), true),
		"plain":               op.NewPlain(ring, true),
		"nwr, all":            op.NewNWR(all, ring),
		"nwr, first":          op.NewNWR(first, ring),
		"nwr, random":         op.NewNWR(random, ring),
		"nwr, rendezvous":     op.NewNWR(all, op.NewRendezvous(names(4))),
	} {
		requests := make([]driver.Request, 0, 16)
		o := &op.Op{Key: []byte("key:000000000042"), Value: value}
		settled := 0
		carryOut := func() {
			for _, o.Verb = range []driver.Verb{driver.Get, driver.Put, driver.Delete} {
				for _, ev := range []op.Event{good, {Kind: op.Lost}} {
					o.N++
					o.Slot = int32(o.N % 100)
					requests = program.Start(requests[:0], o)
					for i := 0; i < len(requests); i++ {
						var step op.Step
						ev.Op, ev.Endpoint = o, requests[i].Endpoint
						if requests, step = program.On(requests, ev); step.Settled {
							settled++
						}
					}
				}
			}
		}
		for range 20 { // every slot once
			carryOut()
		}
		before := settled
		require.Zero(t, testing.AllocsPerRun(100, carryOut), name)
		require.Equal(t, 101*6, settled-before, "%s: ops settled", name) // AllocsPerRun runs once more, to warm up
	}
}

// TestRedirectsAllocateNothing carries out ops that are sent from one endpoint to another.
func TestRedirectsAllocateNothing(t *testing.T) {
	program, _ := clusterOf(2, false)
	o := &op.Op{Key: []byte("foo")}
	requests := make([]driver.Request, 0, 16)
	to := op.Redirect{}
	ev := op.Event{Kind: op.Replied, Op: o, Reply: &driver.Reply{Outcome: driver.Error}}
	done := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		o.Slot = (o.Slot + 1) % 5
		requests = program.Start(requests[:0], o)
		for i := 0; i < len(requests); i++ {
			to.Endpoint, to.Ask = 1-requests[i].Endpoint, i%2 == 0
			ev.Endpoint, ev.Redirect = requests[i].Endpoint, &to
			if i == op.MaxRedirects {
				ev.Redirect = nil
			}
			var step op.Step
			if requests, step = program.On(requests, ev); step.Settled {
				done++
			}
		}
	}))
	require.Equal(t, 101, done)
}

func TestPlaceAllocatesNothing(t *testing.T) {
	key := []byte("key:000000000042")
	for _, place := range []op.Placement{op.NewRing(names(100)), op.NewRendezvous(names(100))} {
		dst := make([]int, 0, 3)
		require.Zero(t, testing.AllocsPerRun(100, func() { dst = place.Place(dst[:0], key, 3) }))
		require.Len(t, dst, 3)
		require.Zero(t, testing.AllocsPerRun(100, func() { place.Home(key) }))
	}
}
