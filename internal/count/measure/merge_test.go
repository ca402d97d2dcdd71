package measure

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

func TestAnyPartitionMergesToTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := drawEvents(t, 60)
		parts := make([]*Totals, rapid.IntRange(1, 6).Draw(t, "parts"))
		for i := range parts {
			parts[i] = count()
		}
		part := rapid.IntRange(0, len(parts)-1)
		for _, e := range events {
			e(parts[part.Draw(t, "part")])
		}
		want := bytesOf(t, count(events...))
		for _, p := range parts {
			require.NoError(t, p.CheckValid())
		}
		for len(parts) > 1 {
			i := rapid.IntRange(1, len(parts)-1).Draw(t, "merge")
			parts[i-1].Merge(parts[i])
			parts = append(parts[:i], parts[i+1:]...)
		}
		require.Equal(t, want, bytesOf(t, parts[0]))
		require.NoError(t, parts[0].CheckValid())
	})
}

func TestMergeAlgebra(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := drawTotals(t), drawTotals(t), drawTotals(t)
		before := bytesOf(t, b)
		require.Equal(t, bytesOf(t, merged(a, b)), bytesOf(t, merged(b, a)), "commutative")
		require.Equal(t, bytesOf(t, merged(merged(a, b), c)), bytesOf(t, merged(a, merged(b, c))), "associative")
		require.Equal(t, bytesOf(t, a), bytesOf(t, merged(a, new(Totals))), "identity on the right")
		require.Equal(t, bytesOf(t, a), bytesOf(t, merged(new(Totals), a)), "identity on the left")
		require.Equal(t, before, bytesOf(t, b), "what was merged is left alone")
	})
}

func TestMergeSharesNoMemory(t *testing.T) {
	a := sampleTotals()
	sum := merged(a)
	want := bytesOf(t, sum)
	a.Merge(sampleTotals())
	require.Equal(t, want, bytesOf(t, sum))
}

func TestMergeOfDifferentOriginsPanics(t *testing.T) {
	require.PanicsWithValue(t, "measure: merge totals with origin 2 into totals with origin 1", func() {
		NewTotals(1, 0).Merge(NewTotals(2, 0))
	})
}

func TestMergeTakesTheLongerRequests(t *testing.T) {
	short, long := NewTotals(1, 1), NewTotals(1, 2)
	short.Request(0, driver.Put).Sent = 3
	long.Request(0, driver.Put).Sent = 4
	long.Request(1, driver.Delete).Error = 5
	for _, sum := range []*Totals{merged(short, long), merged(long, short)} {
		require.Equal(t, 2, sum.Endpoints())
		require.EqualValues(t, 7, sum.Request(0, driver.Put).Sent)
		require.EqualValues(t, 5, sum.Request(1, driver.Delete).Error)
	}
}

// A recorder that was used before is as good as a new one.
func TestResetLeavesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		used := drawTotals(t)
		used.Reset()
		require.Equal(t, bytesOf(t, count()), bytesOf(t, used))
		events := drawEvents(t, 12)
		for _, e := range events {
			e(used)
		}
		want := count(events...)
		require.Equal(t, bytesOf(t, want), bytesOf(t, used))
		sum := merged(used)
		for v, o := range want.Ops {
			require.Equal(t, o == nil, sum.Ops[v] == nil, "a verb without an op has none after a merge")
		}
	})
}

func TestSpan(t *testing.T) {
	var s Span
	s.Session(10, 90)
	require.Equal(t, Span{Sessions: 1, First: 10, LastFirst: 10, FirstLast: 90, Last: 90, FirstOut: 90, Turn: 80}, s)
	s.Session(5, 100)
	s.Session(30, 80)
	require.Equal(t, Span{Sessions: 3, First: 5, LastFirst: 30, FirstLast: 80, Last: 100, FirstOut: 80, Turn: 225}, s)
	s.Merge(&Span{})
	require.Equal(t, Span{Sessions: 3, First: 5, LastFirst: 30, FirstLast: 80, Last: 100, FirstOut: 80, Turn: 225}, s)
}

func TestCountersFollowTotals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawTotals(t), drawTotals(t)
		var sum Counters
		sum.Add(a)
		sum.Add(b)
		whole := merged(a, b).Counters()
		require.True(t, sum.Equal(&whole))

		ca, cb := a.Counters(), b.Counters()
		ca.Merge(&cb)
		require.True(t, ca.Equal(&whole))
		require.Equal(t, bytesOf(t, &whole), bytesOf(t, &ca))

		ca.Ops[driver.Delete].InFlight++
		require.False(t, ca.Equal(&whole))
		ca.Reset()
		none := count().Counters()
		require.True(t, ca.Equal(&none))
	})
}
