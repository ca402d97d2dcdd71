package engine

import (
	"runtime"
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
	runtime.LockOSThread() // what is asked of it is asked of one thread
	defer runtime.UnlockOSThread()
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	require.NoError(t, err)
	slack := func() int {
		ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		require.NoError(t, err)
		return ns
	}
	want := priority
	if unix.Setpriority(unix.PRIO_PROCESS, 0, pinnedNice) == nil { // the process may
		want = 20 - pinnedNice
		require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, 0, 20-priority))
	}
	before := slack()
	require.Greater(t, before, 1, "what ran on this thread before has put it back")
	release, err := ownThread(cpu)
	require.NoError(t, err)
	require.Equal(t, 1, slack(), "the kernel wakes it when it asked to be woken")
	require.NoError(t, unix.SchedGetaffinity(0, &now))
	require.Equal(t, 1, now.Count())
	require.True(t, now.IsSet(cpu))
	pinned, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	require.NoError(t, err)
	require.Equal(t, want, pinned, "a nice value of -10, which is counted from 20 down, where the process may have it")
	release()
	require.Equal(t, before, slack())
	after, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	require.NoError(t, err)
	require.Equal(t, priority, after)
	require.NoError(t, unix.SchedGetaffinity(0, &now))
	require.Equal(t, all, now)

	var one unix.CPUSet // what only this thread is restricted to
	one.Set(cpu)
	require.NoError(t, unix.SchedSetaffinity(0, &one))
	release, err = ownThread(cpu)
	require.NoError(t, err)
	release()
	require.NoError(t, unix.SchedGetaffinity(0, &now))
	require.Equal(t, one, now)
	require.NoError(t, unix.SchedSetaffinity(0, &all))

	_, err = ownThread(1023)
	require.ErrorContains(t, err, "run a thread on CPU 1023: invalid argument: write CPUs in --pin that are in /sys/devices/system/cpu/online")
}
