package experiment

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
)

// Noise can be such that no difference would be found, or none that anyone could ask for.
func TestFindingWhereNothingWouldBeFound(t *testing.T) {
	one, huge, small := 1.0, 26472.27, 0.12
	f := run.Figure{Score: &one, Ratio: &one, RatioHi: &one, Spread: &one}
	require.Equal(t, "no difference shown (MDE above 1,000 %)", finding(&f))
	f.MDE = &huge
	require.Equal(t, "no difference shown (MDE above 1,000 %)", finding(&f))
	f.MDE = &small
	require.Equal(t, "no difference shown (MDE 12.0 %)", finding(&f))
}
