package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestPinnedThread(t *testing.T) {
	var all, now unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	cpu := 0
	for !all.IsSet(cpu) {
		cpu++
	}
	release, err := ownThread(cpu)
	require.NoError(t, err)
	require.NoError(t, unix.SchedGetaffinity(0, &now))
	require.Equal(t, 1, now.Count())
	require.True(t, now.IsSet(cpu))
	release()

	_, err = ownThread(1023)
	require.ErrorContains(t, err, "run an event loop on CPU 1023: invalid argument")
}
