package measure

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// grown counts ops with ordinals; op n takes n microseconds, and every seventh fails.
func grown(ordinals ...uint64) *Totals {
	t := NewTotals(testOrigin, testEndpoints)
	for _, n := range ordinals {
		s := Sample{Verb: driver.Put, Cause: 1, Due: testOrigin, Start: testOrigin, End: testOrigin + int64(n%1e6)*1000}
		if n%7 == 0 {
			s.Outcome = driver.Error
		}
		t.AddDue(driver.Put)
		t.Record(&s)
		t.Grow(&s, n)
	}
	return t
}

func TestGrowthCoarsens(t *testing.T) {
	var all []uint64
	for n := range uint64(1000) {
		all = append(all, n+1)
	}
	g := grown(all...).Ops[driver.Put].Growth
	require.EqualValues(t, 3, g.Shift)
	require.Len(t, g.Used(), 125)
	require.EqualValues(t, 1000, g.Ended())
	for i, b := range g.Used() {
		require.EqualValues(t, 8, b.Ended())
		largest := uint64(i+1) * 8
		if largest%7 == 0 {
			largest--
		}
		require.EqualValues(t, largest*1000, b.Answered.Max())
	}
	for _, c := range []struct {
		ordinals []uint64
		shift    uint8
		bins     int
	}{
		{[]uint64{0}, 0, 1}, // an op without an ordinal counts as the first
		{[]uint64{1}, 0, 1},
		{[]uint64{2}, 0, 2},
		{[]uint64{1, 128}, 0, 128},
		{[]uint64{1, 129}, 1, 65},
		{[]uint64{math.MaxUint64}, maxOrdinalShift, NumOrdinals},
	} {
		g := grown(c.ordinals...).Ops[driver.Put].Growth
		require.Equal(t, c.shift, g.Shift, "%v", c.ordinals)
		require.Len(t, g.Used(), c.bins, "%v", c.ordinals)
		require.EqualValues(t, len(c.ordinals), g.Ended())
	}
}

// Ordinals that stand alone, as in a snapshot of another version, are not lost.
func TestGrowthAloneIsKept(t *testing.T) {
	for _, outcome := range []driver.Outcome{driver.OK, driver.Error} {
		whole := NewTotals(testOrigin, testEndpoints)
		whole.Grow(&Sample{Verb: driver.Put, Outcome: outcome, Cause: 1, Due: testOrigin, Start: testOrigin, End: testOrigin + 1}, 3)
		into := NewTotals(testOrigin, testEndpoints)
		_, err := into.Decode(bytesOf(t, whole))
		require.NoError(t, err)
		require.EqualValues(t, 1, into.Ops[driver.Put].Growth.Ended())
	}
}
