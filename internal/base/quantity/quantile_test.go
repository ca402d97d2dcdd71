package quantity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/quantity"
)

func TestQuantiles(t *testing.T) {
	for name, want := range map[string]struct {
		share float64
		text  string
	}{"p50": {0.5, "p50"}, "p05": {0.05, "p05"}, "p95": {0.95, "p95"}, "p999": {0.999, "p99.9"}, "p001": {0.001, "p00.1"}, "p999999": {0.999999, "p99.9999"}} {
		share, ok := quantity.Quantile(name)
		require.True(t, ok, name)
		require.Equal(t, want.share, share)
		require.Equal(t, name, quantity.QuantileName(share))
		require.Equal(t, want.text, quantity.QuantileText(name))
	}
	for _, name := range []string{"", "p", "p5", "p100", "p990", "p00", "p9999999", "p9x", "95", "mean", "p-1", "p1e"} {
		_, ok := quantity.Quantile(name)
		require.False(t, ok, name)
	}
	for _, share := range []float64{0, 1, -0.5, 1.5, 0.1234567} {
		require.Empty(t, quantity.QuantileName(share))
	}
}
