package measure

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestWithoutBinsLeavesThemToTheOriginal: only the copy loses the bins of ops, of their keys and of scenarios.
func TestWithoutBinsLeavesThemToTheOriginal(t *testing.T) {
	of := sampleTotals()
	before := bytesOf(t, of)
	flat := of.WithoutBins()
	require.Zero(t, flat.Origin)
	for _, o := range append(flat.Ops[:], flat.Scenarios...) {
		require.Zero(t, o.Bins)
		require.Zero(t, o.Keys.Bins)
	}
	require.Equal(t, of.Ops[driver.Get].Outcomes, flat.Ops[driver.Get].Outcomes)
	require.Equal(t, before, bytesOf(t, of))

	later := sampleTotals()
	later.Origin++
	sum := merged(flat, later.WithoutBins())
	require.Equal(t, 2*of.Ops[driver.Get].Due, sum.Ops[driver.Get].Due)
}
