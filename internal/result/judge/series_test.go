package judge

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/count/stat"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

func TestSeries(t *testing.T) {
	first := measure.NewTotals(origin, 1)
	first.AddDue(driver.Put)
	first.AddDue(driver.Put)
	first.AddInFlight(driver.Put, 1)
	first.AddInFlight(driver.Put, 1)
	second := measure.NewTotals(origin, 1)
	second.AddInFlight(driver.Put, -1)
	second.Record(&measure.Sample{Verb: driver.Put, Due: origin, Start: origin, End: origin + 3*ms})
	record(second, measure.Sample{Verb: driver.Get, Outcome: driver.Timeout, Cause: measure.Cause(op.RequestTimeout), End: origin})
	second.EndKeys(driver.Put, driver.OK, 5, origin, origin+3*ms)
	second.EndKeys(driver.Put, driver.Miss, 2, origin, origin+3*ms)
	second.AddDue(driver.Get)
	second.Shed(driver.Get, 1)

	var s Series
	s.Add(1, first)
	s.Add(1.5, second)
	rows := s.Rows()
	require.Equal(t, run.Row{T: 1, Due: 2, Sent: 2, InFlight: 2}, rows[0])
	require.Nil(t, rows[1].Response.Mean, "an op failed")
	require.Nil(t, rows[1].Response.P50, "one sample is no median")
	rows[1].Response = run.Row{}.Response
	require.Equal(t, run.Row{T: 1.5, Due: 2, Sent: 1, OK: 1, Bad: 1, KeysOK: 5, InFlight: 1}, rows[1])
}

// An interval without length, such as the end of a lost worker's, is not a row of its own.
func TestSeriesWithoutSplinters(t *testing.T) {
	one := measure.NewTotals(origin, 1)
	one.AddDue(driver.Put)
	var s Series
	for _, at := range []float64{1, 1, 2, 2, 3} {
		s.Add(at, one)
	}
	require.Equal(t, []run.Row{{T: 1, Due: 2, Sent: 2}, {T: 2, Due: 2, Sent: 2}, {T: 3, Due: 1, Sent: 1}}, s.Rows())
}

// TestLongSeriesJoinsRows counts second by second, three times as many as there may be rows: rows then have four seconds, and each equals one Totals of
// these.
func TestLongSeriesJoinsRows(t *testing.T) {
	const most, seconds = 360, 3 * 360
	counted := func(i int) *measure.Totals {
		delta := measure.NewTotals(origin, 1)
		delta.AddInFlight(driver.Get, int64(i%3-1))
		delta.EndKeys(driver.Get, driver.OK, uint64(i%7), origin, origin)
		for k := range 20 {
			record(delta, measure.Sample{Verb: driver.Get, Outcome: driver.Outcome(k % 2), Due: origin, Start: origin, End: origin + int64(i%100*k)*µs})
		}
		return delta
	}
	s := Series{Quantiles: []string{"p40", "p50"}, Most: most}
	for i := range seconds {
		s.Add(0.5+float64(i), counted(i))
		if i%most < 2 { // before and after rows are joined
			require.LessOrEqual(t, len(s.Rows()), most)
		}
	}
	rows := s.Rows()
	require.Len(t, rows, seconds/4)
	require.InDelta(t, 4, stat.Spacing(rows, run.Row.End), 0)
	inFlight := int64(0)
	for at, row := range rows {
		sum := measure.NewTotals(origin, 1)
		for i := 4 * at; i < 4*at+4; i++ {
			sum.Merge(counted(i))
		}
		want := Series{Quantiles: s.Quantiles}
		want.Add(0.5+float64(4*at+3), sum)
		wanted := want.Rows()[0]
		inFlight += wanted.InFlight
		wanted.InFlight = inFlight
		require.Equal(t, wanted, row)
	}
	require.NotNil(t, rows[7].Response.P50)
	require.Equal(t, rows[7].Response.P50, rows[7].Response.Quantiles["p50"])
	require.Less(t, *rows[7].Response.Quantile("p40"), *rows[7].Response.P50)
}

// TestSeriesLeavesLittleBehind adds as many rows as are kept: growing leaves behind no more than is kept, because the garbage collector rests while a
// load is measured.
func TestSeriesLeavesLittleBehind(t *testing.T) {
	var s Series
	delta := measure.NewTotals(origin, 1)
	left := 0
	for i := range mostRows {
		had := cap(s.rows.Cells)
		s.Add(float64(i+1), delta)
		if cap(s.rows.Cells) > had {
			left += had
		}
	}
	require.LessOrEqual(t, left, mostRows)
}

// However many loads a plan has, the rows of all fit into one result, as far as possible.
func TestRowsOfManyLoads(t *testing.T) {
	for loads, want := range map[int]int{0: mostRows, 1: mostRows, 6: mostRows, 7: 3510, 100: 244, 1000: 24, 1_000_000: leastRows} {
		each := RowsEach(loads, 0)
		require.Equal(t, want, each, loads)
		require.Zero(t, each%2)
		require.True(t, each == leastRows || loads*each <= runRows)
	}
	require.Equal(t, 94, RowsEach(100, 16), "a plan's quantiles take room")
	one := measure.NewTotals(origin, 1)
	one.AddDue(driver.Put)
	s := Series{Most: 24}
	for at := range 1000 {
		s.Add(float64(at+1), one)
		require.LessOrEqual(t, len(s.Rows()), 24)
	}
	due := uint64(0)
	for _, row := range s.Rows() {
		due += row.Due
	}
	require.EqualValues(t, 1000, due, "nothing is lost")
}
