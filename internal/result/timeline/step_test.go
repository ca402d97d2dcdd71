package timeline

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCoarserColumns hold the same values, in fewer columns.
func TestCoarserColumns(t *testing.T) {
	p := &Step{Seconds: 1}
	for second := range 100_000 {
		p.at(float64(second) + 0.5).Answered.Record(int64(second))
	}
	require.Equal(t, 300, p.Seconds)
	require.Len(t, p.Columns, 334)
	var n uint64
	for i := range p.Columns {
		n += p.Columns[i].Count()
		require.Equal(t, int64(i*300), p.Columns[i].Answered.Min())
	}
	require.Equal(t, uint64(100_000), n)
}
