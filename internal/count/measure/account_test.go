package measure

import (
	"math"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/pkg/driver"
)

func accountOf(parts ...*Totals) *Account {
	var a Account
	for _, t := range parts {
		a.Add(t)
	}
	return &a
}

// TestAccountOfPartsIsThatOfTheWhole adds the parts of a step up, in any order, and compares them with their sum.
func TestAccountOfPartsIsThatOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var parts []*Totals
		whole := NewTotals(testOrigin, testEndpoints)
		for _, events := range rapid.SliceOfN(anyEvents, 0, 20).Draw(t, "events") {
			part := count(events...)
			parts = append(parts, part)
			whole.Merge(part)
		}
		want := accountOf(whole)
		got := accountOf(append(rapid.Permutation(parts).Draw(t, "order"), NewTotals(testOrigin, testEndpoints))...)
		require.True(t, want.Equal(got))
		counters, ledgers := got.Counters(), whole.Counters()
		require.True(t, counters.Equal(&ledgers))
		require.True(t, got.HasCounted(&ledgers))
		ledgers.Ops[driver.Get].Due++
		require.False(t, got.HasCounted(&ledgers))
		require.False(t, got.HasCounted(&Counters{Ops: counters.Ops}), "of other endpoints")
		least := int64(math.MaxInt64)
		for _, o := range whole.Ops {
			for i := range NumClasses {
				if o != nil && o.Service[i].Count() > 0 {
					least = min(least, o.Service[i].Min())
				}
			}
		}
		require.Equal(t, least, got.Quickest())
	})
}

// TestManyWorkersCostLittle bounds what a coordinator keeps for each worker, and checks that checking its counts leaves no garbage.
func TestManyWorkersCostLittle(t *testing.T) {
	require.Less(t, reflect.TypeFor[Account]().Size(), uintptr(1<<10))
	totals := sampleTotals()
	totals.Scenarios = nil // places are made for each
	require.NoError(t, totals.CheckValid())
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = totals.CheckValid() }))
	counters := totals.Counters()
	account := accountOf(totals)
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = account.HasCounted(&counters) }))
}
