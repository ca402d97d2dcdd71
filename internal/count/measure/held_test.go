package measure

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// bomb counts, for each verb, one op in as many ack histograms as possible, each as wide as it gets: 15 MB per verb, in a form of some kilobytes.
func bomb(t *testing.T, verbs ...driver.Verb) []byte {
	t.Helper()
	var all Totals
	for _, v := range verbs {
		for k := 1; k <= MaxAcks; k++ {
			all.Ack(v, k, math.MaxInt64)
		}
	}
	var unbound form
	unbound.totals(&all)
	b := unbound.out
	require.Less(t, len(b), len(verbs)*32<<10)
	if len(verbs) > 9 {
		_, err := all.AppendBinary(nil)
		require.EqualError(t, err, fmt.Sprintf("encode histograms of %d MiB, want at most 128: fewer scenarios, steps or replicas would do", all.held()/(1<<20)))
	}
	return b
}

// bombOfBins counts an op of each outcome in many steps: bins of 1,024 ends for each, of which one is not 0.
func bombOfBins(t *testing.T) []byte {
	var all Totals
	for i := range 20 * MaxSteps {
		for o := range driver.Shed {
			all.RecordStep(Step{i / MaxSteps, i % MaxSteps}, &Sample{Outcome: o, End: 1}, 0)
		}
	}
	var unbound form
	unbound.totals(&all)
	require.Less(t, len(unbound.out), 512<<10)
	return unbound.out
}

// inUse returns the live heap.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestBucketBombs decodes forms of some kilobytes that stand for hundreds of times their size: at once, and one after another into the same place.
func TestBucketBombs(t *testing.T) {
	var forms [][]byte
	var verbs []driver.Verb
	for v := range driver.Verb(12) {
		forms, verbs = append(forms, bomb(t, v)), append(verbs, v)
	}
	whole, steps := bomb(t, verbs...), bombOfBins(t)
	before := inUse()
	var all Totals
	_, err := all.Decode(whole)
	require.ErrorContains(t, err, "histograms that take more than 128 MiB")
	require.Less(t, inUse()-before, int64(mostHeld+16<<20))
	_, err = new(Totals).Decode(steps)
	require.ErrorContains(t, err, "histograms that take more than 128 MiB")
	for _, form := range forms {
		_, err := all.Decode(form)
		require.NoError(t, err)
		require.LessOrEqual(t, all.held(), mostHeld+16<<20)
	}
	require.Less(t, inUse()-before, int64(mostHeld+32<<20))
	runtime.KeepAlive(&all)
}

func TestSizes(t *testing.T) {
	require.EqualValues(t, reflect.TypeFor[Op]().Size(), opBytes)
	require.EqualValues(t, reflect.TypeFor[Bins]().Size(), binsBytes)
	require.EqualValues(t, reflect.TypeFor[Requests]().Size(), requestsBytes)
}
