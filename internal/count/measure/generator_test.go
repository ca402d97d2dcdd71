package measure

import (
	"testing"

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
