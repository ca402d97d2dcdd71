package op

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// batchOf returns an op of n keys.
func batchOf(slot int32, n int) *Op {
	o := &Op{Slot: slot, Verb: driver.Get}
	for i := range n {
		o.Batch = append(o.Batch, driver.Item{Index: uint64(i), Key: fmt.Appendf(nil, "key:%012d", i)})
	}
	return o
}

func TestBatchIsDividedByEndpoint(t *testing.T) {
	ring := NewRing([]string{"n0", "n1", "n2"})
	p := NewBatch(ring)
	for _, n := range []int{1, 2, 16, 500} {
		o := batchOf(3, n)
		reqs := p.Start(nil, o)
		var seen []uint64
		last := -1
		for _, r := range reqs {
			require.Greater(t, r.Endpoint, last, "one request to an endpoint")
			last = r.Endpoint
			require.NotEmpty(t, r.Batch)
			for _, item := range r.Batch {
				require.Equal(t, r.Endpoint, ring.Home(item.Key))
				seen = append(seen, item.Index)
			}
		}
		slices.Sort(seen)
		require.Len(t, seen, n)
		require.Len(t, slices.Compact(seen), n, "each key once")
	}
	o := batchOf(0, 16)
	o.Target, o.Stream, o.N = 2, 3, 4
	alone := NewBatch(NewRing([]string{"n0"})).Start([]driver.Request{{Endpoint: -1}}, o)
	require.Equal(t, []driver.Request{{Endpoint: -1}, {Target: 2, Stream: 3, N: 4, Verb: driver.Get, Batch: o.Batch}}, alone)
}

func TestBatchOutcomes(t *testing.T) {
	answer := func(o driver.Outcome) Event { return Event{Kind: Replied, Reply: &driver.Reply{Outcome: o}} }
	timeout, lost, refused, deadline := Event{Kind: RequestTimeout}, Event{Kind: Lost}, Event{Kind: Refused}, Event{Kind: OpTimeout}
	ok, miss, bad := answer(driver.OK), answer(driver.Miss), answer(driver.Error)
	tests := []struct {
		name   string
		events []Event // of an op with two requests
		done   int     // by which of them
		want   driver.Outcome
	}{
		{"all there", []Event{ok, ok}, 1, driver.OK},
		{"some there", []Event{miss, ok}, 1, driver.OK},
		{"some there, the other way", []Event{ok, miss}, 1, driver.OK},
		{"none there", []Event{miss, miss}, 1, driver.Miss},
		{"one fails", []Event{bad, ok}, 0, driver.Error},
		{"the last fails", []Event{ok, bad}, 1, driver.Error},
		{"one times out", []Event{timeout, ok}, 0, driver.Timeout},
		{"one is lost", []Event{lost, timeout}, 0, driver.Error},
		{"one is refused", []Event{refused, miss}, 0, driver.Error},
		{"the op's own deadline", []Event{deadline, ok, ok}, 0, driver.Timeout},
	}
	ring := NewRing([]string{"n0", "n1"})
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, o := NewBatch(ring), batchOf(0, 16)
			require.Len(t, p.Start(nil, o), 2)
			for i, ev := range test.events {
				ev.Op = o
				reqs, step := p.On(nil, ev)
				require.Empty(t, reqs)
				require.Equal(t, i == test.done, step.Done, "event %d", i)
				if step.Done {
					require.Equal(t, test.want, step.Outcome)
				}
				require.Equal(t, i == len(test.events)-1, step.Settled, "event %d", i)
			}
		})
	}
}

// Requests already in dst belong to another op: they are left there and not waited for.
func TestBatchWaitsForItsOwnRequests(t *testing.T) {
	p, before := NewBatch(NewRing([]string{"n0", "n1"})), driver.Request{Endpoint: -1}
	o := batchOf(0, 16)
	reqs := p.Start([]driver.Request{before}, o)
	require.Len(t, reqs, 3)
	require.Equal(t, before, reqs[0])
	_, first := p.On(nil, Event{Kind: Replied, Op: o, Reply: &driver.Reply{}})
	_, second := p.On(nil, Event{Kind: Replied, Op: o, Reply: &driver.Reply{}})
	require.Equal(t, []Step{{}, {Done: true, Settled: true}}, []Step{first, second})
}

func TestBatchAllocatesNothing(t *testing.T) {
	p, o := NewBatch(NewRing([]string{"n0", "n1", "n2"})), batchOf(0, 64)
	dst := make([]driver.Request, 0, 8)
	reply := &driver.Reply{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		for range p.Start(dst, o) {
			p.On(dst, Event{Kind: Replied, Op: o, Reply: reply})
		}
	}))
}
