package measure

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Others must have more than 5 % of the processors' time, and less than 10 % must be idle: both, and neither limit itself.
func TestMachineDoubt(t *testing.T) {
	for _, c := range []struct {
		others, idle float64
		want         bool
	}{
		{0.06, 0.09, true},
		{0.06, 0.10, false},
		{0.05, 0.09, false},
		{0.05, 0.10, false},
		{0.0501, 0.0999, true},
		{1, 0, true},
		{0, 0, false},
		{1, 1, false},
	} {
		m := &Machine{OthersShare: c.others, IdleShare: c.idle}
		require.Equal(t, c.want, m.Doubtful(), "%+v", c)
	}
	require.False(t, (*Machine)(nil).Doubtful())
}

// A doubtful machine is worse than one that is not, whatever the shares; of two alike, the one with the larger share of others is worse.
func TestWorseMachine(t *testing.T) {
	doubtful, more := &Machine{OthersShare: 0.06}, &Machine{OthersShare: 0.07}
	idle := &Machine{OthersShare: 0.9, IdleShare: 0.5}
	calm := &Machine{OthersShare: 0.01, IdleShare: 0.5}
	require.True(t, calm.Worse(nil), "than none at all")
	require.True(t, doubtful.Worse(idle))
	require.False(t, idle.Worse(doubtful))
	require.True(t, more.Worse(doubtful))
	require.False(t, doubtful.Worse(more))
	require.True(t, idle.Worse(calm))
	require.False(t, calm.Worse(idle))
	require.False(t, calm.Worse(calm), "than itself")
}
