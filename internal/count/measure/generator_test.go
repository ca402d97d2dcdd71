package measure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What workers used at the same time adds up; the elapsed time is the longest.
func TestGeneratorsAtTheSameTime(t *testing.T) {
	for _, c := range [][2]float64{{4, 8}, {8, 4}} {
		var one, two Generator
		one.ElapsedSeconds, two.ElapsedSeconds = c[0], c[1]
		one.MajorFaults, two.MajorFaults = 1, 2
		one.AddSpent(&two)
		require.Equal(t, []any{8.0, uint64(3)}, []any{one.ElapsedSeconds, one.MajorFaults})
	}
}

// TestClientsTimeIsSummed figure by figure.
func TestClientsTimeIsSummed(t *testing.T) {
	one := Spent{CPUUserSeconds: 1, CPUSystemSeconds: 2, MinorFaults: 3, MajorFaults: 4, BlocksRead: 5, BlocksWritten: 6, ElapsedSeconds: 7}
	sum := one
	sum.Add(&Spent{CPUUserSeconds: 10, CPUSystemSeconds: 20, MinorFaults: 30, MajorFaults: 40, BlocksRead: 50, BlocksWritten: 60, ElapsedSeconds: 5})
	require.Equal(t, Spent{CPUUserSeconds: 11, CPUSystemSeconds: 22, MinorFaults: 33, MajorFaults: 44, BlocksRead: 55, BlocksWritten: 66, ElapsedSeconds: 7}, sum)
}

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

func TestInterruptedAdds(t *testing.T) {
	a := Interrupted{Times: 1, Seconds: 0.5, MaxSeconds: 0.5, OthersSeconds: 0.25}
	b := Interrupted{Times: 4, Seconds: 0.75, MaxSeconds: 0.25, OthersSeconds: 0.5}
	sum := func(all ...Interrupted) (s Interrupted) {
		for i := range all {
			s.Add(&all[i])
		}
		return s
	}
	require.Equal(t, Interrupted{Times: 5, Seconds: 1.25, MaxSeconds: 0.5, OthersSeconds: 0.75}, sum(a, b))
	require.Equal(t, sum(a, b), sum(b, a))
	require.Equal(t, sum(sum(a, b), a), sum(a, sum(b, a)))
	require.Equal(t, a, sum(a, Interrupted{}))
	require.Equal(t, 20*time.Millisecond, LongGap, "as docs/truth.md has it")
}
