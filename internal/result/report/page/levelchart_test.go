package page

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/report/chart"
	"github.com/loadgen/loadgen/internal/result/run"
)

// A search tries a rate again before it says no: the curve goes through the median of the tries, and each of them is a dot.
func TestTriesOfOneRateAreNoZigzag(t *testing.T) {
	level := func(rate, p99 float64) run.Level {
		return run.Level{Rate: rate, Op: map[string]*run.Op{"get": {Figures: run.Figures{Response: run.Latency{P99: &p99}}}}}
	}
	ph := &run.Phase{
		Op:     map[string]*run.Op{"get": {}},
		Levels: []run.Level{level(1000, 1e-3), level(2000, 9e-3), level(2000, 2e-3), level(2000, 4e-3), level(1500, 1.5e-3)},
	}
	_, c := levelChart(ph)
	require.Equal(t, "p99", c.Lines[0].Name)
	require.Equal(t, []chart.Point{{X: 1000, Y: 1e-3}, {X: 1500, Y: 1.5e-3}, {X: 2000, Y: 4e-3}}, c.Lines[0].Points)
	require.True(t, c.Lines[1].Loose)
	require.Empty(t, c.Lines[1].Name)
	require.Len(t, c.Lines[1].Points, 5)
	require.Len(t, c.Hits, 3)
	require.Contains(t, c.Hits[2].Text, "asked 2,000/s, 3 times; medians\np99 4.00 ms")
}
