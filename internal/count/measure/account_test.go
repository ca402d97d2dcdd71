package measure

import (
	"fmt"
	"math"
	"reflect"
	"strings"
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

// TestAccountTellsTotalsApart changes one thing at a time.
func TestAccountTellsTotalsApart(t *testing.T) {
	sample := Sample{Verb: driver.Get, Outcome: driver.Timeout, Cause: 1, Due: testOrigin, Start: testOrigin + 10, End: testOrigin + 1000}
	with := func(change func(*Totals, *Sample)) *Account {
		totals, s := NewTotals(testOrigin, testEndpoints), sample
		change(totals, &s)
		totals.Record(&s)
		totals.Ack(driver.Get, 2, 900)
		return accountOf(totals)
	}
	same := with(func(*Totals, *Sample) {})
	require.True(t, same.Equal(with(func(*Totals, *Sample) {})))
	for name, change := range map[string]func(*Totals, *Sample){
		"verb":           func(_ *Totals, s *Sample) { s.Verb = driver.Put },
		"outcome":        func(_ *Totals, s *Sample) { s.Outcome = driver.Error },
		"cause":          func(_ *Totals, s *Sample) { s.Cause = 2 },
		"lag":            func(_ *Totals, s *Sample) { s.Due--; s.End-- },
		"service time":   func(_ *Totals, s *Sample) { s.Start++ },
		"within buckets": func(_ *Totals, s *Sample) { s.End++ },
		"bytes in":       func(t *Totals, _ *Sample) { t.AddBytes(driver.Get, 1, 0) },
		"bytes out":      func(t *Totals, _ *Sample) { t.AddBytes(driver.Get, 0, 1) },
		"due":            func(t *Totals, _ *Sample) { t.AddDue(driver.Get) },
		"in flight":      func(t *Totals, _ *Sample) { t.AddInFlight(driver.Get, 1) },
		"ack":            func(t *Totals, _ *Sample) { t.Ack(driver.Get, 1, 900) },
		"request":        func(t *Totals, _ *Sample) { t.Request(1, driver.Get).Sent++ },
		"digest":         func(t *Totals, _ *Sample) { t.Mix(1) },
		"span":           func(t *Totals, _ *Sample) { t.Span.Session(1, 2) },
		"stall":          func(t *Totals, _ *Sample) { t.Stalls, t.MaxStall = 1, 3 },
		"error":          func(t *Totals, _ *Sample) { t.Errors.Add([]byte("ERR")) },
		"origin":         func(t *Totals, _ *Sample) { t.Origin-- },
	} {
		require.False(t, same.Equal(with(change)), name)
	}
}

// TestEachFigureHasItsOwnPlaceInAPrint counts one thing at a time of a step: no two prints are equal, and they add up, so no count can stand in for
// another.
func TestEachFigureHasItsOwnPlaceInAPrint(t *testing.T) {
	const of = "Totals.Scenarios[0]."
	all, sum := NewTotals(testOrigin, 1), uint64(0)
	seen := map[uint64]string{0: "nothing"}
	count := func(name string, one func(t *Totals)) {
		alone := NewTotals(testOrigin, 1)
		one(alone)
		one(all)
		print := alone.Scenarios[0].print()
		require.Empty(t, seen[print], "%s looks like it", name)
		seen[print] = name
		sum += print
	}
	for _, f := range counted() {
		if strings.HasPrefix(f.name, of) && !f.bins {
			count(f.name, f.count)
		}
	}
	for k := 1; k <= 3; k++ {
		count(fmt.Sprintf("ack %d", k), func(t *Totals) { o := t.scenario(0); o.growAcks(k); o.Acks[k-1].Record(5) })
		count(fmt.Sprintf("service of kind %d", k), func(t *Totals) { t.scenario(0).kind(k).Service.Record(5) })
		count(fmt.Sprintf("response of kind %d", k), func(t *Totals) { t.scenario(0).kind(k).Response.Record(5) })
	}
	count("ordinal", func(t *Totals) { t.GrowScenario(0, &Sample{End: 5}, 1) })
	count("ordinal of one that failed", func(t *Totals) { t.GrowScenario(0, &Sample{Outcome: driver.Error}, 2) })
	require.Equal(t, sum, all.Scenarios[0].print())
	require.Greater(t, len(seen), 40)
}

func TestWeightsAreOddAndDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	for place := range uint64(2 * firstStep) {
		w := weightOf(place)
		require.EqualValues(t, 1, w%2, "of place %d", place)
		require.False(t, seen[w], "of place %d", place)
		seen[w] = true
	}
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
	totals.Errors = Errors{}
	require.Nil(t, accountOf(totals).errors, "4 KiB less")
}
