package rpc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Both ends check these limits, so a build with other ones speaks another protocol: if you change one, change the protocol's number, too.
func TestNumbersOfTheProtocol(t *testing.T) {
	require.Equal(t, []int{5, 16 << 20, 1 << 20, 256, 255}, []int{protocol, maxMessage, windowBytes, windowCount, maxLine})
	require.Equal(t, []int{10_000, 1 << 24, 1 << 20, 4096, 256}, []int{maxWorkers, maxSessions, maxLevels, maxServers, maxFacts})
	require.Equal(t, 87_600*time.Hour, maxRunTime)
	require.EqualValues(t, 1_000_000_000, maxRate)
}
