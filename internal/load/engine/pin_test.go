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
		defer func(nice int) { require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, 0, nice)) }(20 - priority)
		require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, 0, 3)) // as no other thread
		want, priority = 20+10, 20-3
	}
	before := slack()
	require.Greater(t, before, 1, "what ran on this thread before has put it back")
	release, err := ownThread([]int{cpu}, true)
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
	release, err = ownThread([]int{cpu}, true)
	require.NoError(t, err)
	release()
	require.NoError(t, unix.SchedGetaffinity(0, &now))
	require.Equal(t, one, now)
	require.NoError(t, unix.SchedSetaffinity(0, &all))

	_, err = ownThread([]int{1023}, true)
	require.ErrorContains(t, err, "run a thread on CPU 1023: invalid argument: write CPUs in --pin that are in /sys/devices/system/cpu/online")
}

// threadsOf returns how many threads goroutines have that work one after another.
func threadsOf(n int, work func()) int {
	seen := map[int]bool{}
	for range n {
		on := make(chan int)
		go func() {
			work()
			on <- unix.Gettid()
		}()
		seen[<-on] = true
	}
	return len(seen)
}

// A goroutine has its thread to itself until it releases it. Then, and if it did not get one, others go on with that thread; else the thread ends.
func TestThreadsAreReleased(t *testing.T) {
	var all unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	cpu := 0
	for !all.IsSet(cpu) {
		cpu++
	}
	const n = 60
	for name, tt := range map[string]struct {
		cpus []int
		want int
	}{"anywhere": {nil, n}, "pinned": {[]int{cpu}, n}, "refused": {[]int{1023}, 0}} {
		require.Less(t, threadsOf(n, func() {
			if release, err := ownThread(tt.cpus, true); err == nil {
				release()
			}
		}), n/2, name)
		if tt.want > 0 {
			require.Equal(t, tt.want, threadsOf(n, func() { _, _ = ownThread(tt.cpus, true) }), "%s: never released", name)
		}
	}
}

// Whether loops can have their CPUs is tried when a plan is assigned, on a thread that is left as it was.
func TestAssigningLeavesTheThreadAsItWas(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	of := func() (cpus unix.CPUSet, slack int) {
		require.NoError(t, unix.SchedGetaffinity(0, &cpus))
		slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		require.NoError(t, err)
		return cpus, slack
	}
	cpus, slack := of()
	cpu := 0
	for !cpus.IsSet(cpu) {
		cpu++
	}
	assigned(t, Config{Loops: 1, Pin: []int{cpu}}, nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }"))
	now, nowSlack := of()
	require.Equal(t, cpus, now)
	require.Equal(t, slack, nowSlack)
}
