package measure

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/varint"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
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
	b, err := all.append(nil)
	require.NoError(t, err)
	require.Less(t, len(b), len(verbs)*32<<10)
	if len(verbs) > 9 {
		_, err = all.AppendBinary(nil)
		require.EqualError(t, err, fmt.Sprintf("encode histograms of %d MiB, want at most 128: fewer scenarios, steps or replicas would do", all.held()/(1<<20)))
	}
	return b
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
	whole := bomb(t, verbs...)
	before := inUse()
	var all Totals
	_, err := all.Decode(whole)
	require.ErrorContains(t, err, "histograms that take more than 128 MiB")
	require.Less(t, inUse()-before, int64(mostHeld+16<<20))
	for _, form := range forms {
		_, err := all.Decode(form)
		require.NoError(t, err)
		require.LessOrEqual(t, all.held(), mostHeld+16<<20)
	}
	require.Less(t, inUse()-before, int64(mostHeld+32<<20))
	runtime.KeepAlive(&all)
}

// TestEachHistogramIsHeld: each histogram of an op counts when it alone grows.
func TestEachHistogramIsHeld(t *testing.T) {
	o := Op{Kinds: make([]Kind, 2), Acks: make([]hist.Hist, 1), Growth: &Growth{Bins: make([]GrowthBin, 1)}, Steps: []*Op{{}}, Split: new(Split)}
	hists := o.hists()
	all := append(hists[:], &o.Kinds[0].Service, &o.Kinds[1].Response, &o.Acks[0], &o.Growth.Bins[0].Answered, &o.Steps[0].Lag, &o.Split.Write, &o.Split.Sync)
	for i, h := range all {
		before, of := o.held(), h.Bytes()
		h.Record(math.MaxInt64)
		require.Greater(t, h.Bytes(), of)
		require.Equal(t, before+h.Bytes()-of, o.held(), "%d", i)
	}
}

func TestSizes(t *testing.T) {
	require.EqualValues(t, reflect.TypeFor[Op]().Size(), opBytes)
	require.EqualValues(t, reflect.TypeFor[Bins]().Size(), binsBytes)
	require.EqualValues(t, reflect.TypeFor[Requests]().Size(), requestsBytes)
}

// The limit itself is granted, and not a byte more.
func TestMemoryThatADecoderGives(t *testing.T) {
	var r reader
	r.take(mostHeld - 1)
	r.take(1)
	require.NoError(t, r.Err)
	r.take(1)
	require.EqualError(t, r.Err, "histograms that take more than 128 MiB: fewer scenarios, steps or replicas would do")
}

// Memory of an op other than histograms counts, too: its bins and its steps.
func TestBinsAndStepsAreHeld(t *testing.T) {
	var o Op
	require.Zero(t, (*Op)(nil).held())
	require.Equal(t, opBytes, o.held())
	for i, all := range []*[driver.NumOutcomes]*Bins{&o.Bins, &o.Turns, &o.Keys.Bins, &o.Keys.Turns} {
		all[i] = new(Bins)
		require.Equal(t, opBytes+(i+1)*binsBytes, o.held())
	}
	o.Steps = []*Op{{}, {}}
	require.Equal(t, 3*opBytes+4*binsBytes, o.held())
	all := Totals{Scenarios: []*Op{{}}}
	all.Ops[driver.Get] = &o
	require.Equal(t, o.held()+opBytes, all.held())
	all.Requests = make([]Requests, 2)
	require.Equal(t, all.held()+2*requestsBytes, all.bytes())
}

// A decoder counts the steps that it makes, including those before the one written, and bins.
func TestBinsAndStepsThatADecoderGives(t *testing.T) {
	var totals Totals
	totals.AddStep(Step{0, MaxSteps - 1})
	steps, err := appendSteps(nil, totals.Scenarios[0].Steps)
	require.NoError(t, err)
	r := reader{Reader: varint.Reader{Rest: steps}}
	r.steps(new(Op))
	require.NoError(t, r.Err)
	require.Equal(t, MaxSteps*opBytes, r.held)

	var bins, into [driver.NumOutcomes]*Bins
	madeBins(&bins, driver.OK).Add(1)
	madeBins(&bins, driver.Error).Add(1)
	r = reader{Reader: varint.Reader{Rest: appendBins(nil, &bins)}}
	r.allBins(&into)
	require.NoError(t, r.Err)
	require.Equal(t, 2*binsBytes, r.held)
}
