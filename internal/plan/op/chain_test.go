package op_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// In whatever order several endpoints answer, a chain finds the keys before the first that is not there, or whose request fails, and wastes every other
// that it was given. No more requests are under way than it may have.
func TestChainsInAnyOrder(t *testing.T) {
	all := keys(400)
	rapid.Check(t, func(rt *rapid.T) {
		ahead := rapid.IntRange(1, 128).Draw(rt, "ahead")
		program := op.NewChain(op.NewRing(names(3)), ahead, 0, false)
		o := &op.Op{Verb: rapid.SampledFrom([]driver.Verb{driver.Get, driver.Put}).Draw(rt, "verb"), Slot: 2}
		n := rapid.IntRange(1, len(all)).Draw(rt, "keys")
		bad := map[int]op.EventKind{}
		for range rapid.IntRange(0, 4).Draw(rt, "bad") {
			bad[rapid.IntRange(0, n-1).Draw(rt, "at")] = rapid.SampledFrom([]op.EventKind{op.Replied, op.Lost, op.RequestTimeout}).Draw(rt, "how")
		}
		for i := range n {
			o.Batch = append(o.Batch, driver.Item{Index: uint64(i), Key: all[i]})
		}
		first, want := n, driver.OK
		for i, how := range bad {
			if i < first {
				first, want = i, map[op.EventKind]driver.Outcome{op.Replied: driver.Miss, op.Lost: driver.Error, op.RequestTimeout: driver.Timeout}[how]
			}
		}
		if want == driver.Miss && first > 0 && o.Verb == driver.Get {
			want = driver.OK
		}
		flying, had, wasted, done := program.Start(nil, o), 0, 0, 0
		for settled := false; !settled; {
			require.LessOrEqual(rt, len(flying), ahead)
			k := rapid.IntRange(0, len(flying)-1).Draw(rt, "which")
			r := flying[k]
			flying = append(flying[:k], flying[k+1:]...)
			require.Equal(rt, r.Index, program.Item(o, r.Tag).Index)
			ev := op.Event{Kind: op.Replied, Op: o, Verb: r.Verb, Tag: r.Tag, Endpoint: r.Endpoint, Reply: &driver.Reply{}}
			if how, is := bad[int(r.Index)]; is {
				ev.Kind, ev.Reply.Outcome = how, driver.Miss
			} else {
				had++
			}
			var step op.Step
			flying, step = program.On(flying, ev)
			wasted, settled = wasted+step.Wasted, step.Settled
			if step.Done {
				done++
				require.Equal(rt, []any{first, want}, []any{step.Good, step.Outcome})
			}
		}
		require.Equal(rt, 1, done)
		require.Empty(rt, flying)
		if o.Verb == driver.Get {
			require.Equal(rt, had-first, wasted)
		}
	})
}
