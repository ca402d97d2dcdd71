package engine

import (
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestRoomIsNotTakenBack takes all CPUs but one from the process, as a self-check or taskset -p does, after GOMAXPROCS was raised for a loop. If
// nobody has set GOMAXPROCS, the runtime adapts it within a second; a held loop would then keep everything else from running.
func TestRoomIsNotTakenBack(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	runtime.SetDefaultGOMAXPROCS()
	leaveRoom(1)
	room := runtime.GOMAXPROCS(0)
	require.GreaterOrEqual(t, room, 2)
	var all, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	move := func(to *unix.CPUSet) {
		threads, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		for _, thread := range threads {
			id, err := strconv.Atoi(thread.Name())
			require.NoError(t, err)
			if err := unix.SchedSetaffinity(id, to); err != unix.ESRCH {
				require.NoError(t, err)
			}
		}
	}
	move(&one)
	defer move(&all)
	require.Never(t, func() bool { return runtime.GOMAXPROCS(0) != room }, 2500*time.Millisecond, 50*time.Millisecond)
}

// Beside loops that keep their threads there is room for one more goroutine. Other loops need none, and what there is stays.
func TestRoomBesideLoops(t *testing.T) {
	defer runtime.SetDefaultGOMAXPROCS()
	p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }")
	for _, tt := range []struct {
		had  int
		cfg  Config
		want int
	}{
		{1, Config{Loops: 3}, 4}, {3, Config{Loops: 3}, 4}, {4, Config{Loops: 3}, 4}, {5, Config{Loops: 3}, 5}, {1, Config{Loops: 3, Sleep: time.Sleep}, 1},
	} {
		runtime.GOMAXPROCS(tt.had)
		assigned(t, tt.cfg, p)
		require.Equal(t, tt.want, runtime.GOMAXPROCS(0), "%d loops beside %d processors", tt.cfg.Loops, tt.had)
	}
}
