package engine

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/machine"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestPinnedLogThreads pins both threads of a load to the first CPU that there is, and to the last.
func TestPinnedLogThreads(t *testing.T) {
	var all unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	var cpus []int
	for cpu := range len(all) * 64 {
		if all.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	for _, cpu := range []int{cpus[0], cpus[len(cpus)-1]} {
		e, _ := localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 1 }\n closed {\n sessions = 2\n iterations = 1000\n}")))
		e.cfg.Pin = []int{cpu}
		threads := carryOut(t, e, "write", nil).Log.Threads
		require.Len(t, threads, 2)
		node := machine.NodeOf(os.DirFS("/"), cpu)
		for _, thread := range threads {
			require.True(t, thread.Pinned)
			require.Equal(t, []int{cpu, cpu, node, node}, []int{thread.CPU, thread.CPUAtEnd, thread.Node, thread.NodeAtEnd})
		}
	}
}

// Time in the sessions is not the generator's, however little else there is to do.
func TestTimeInSessionsIsTheTargets(t *testing.T) {
	e, _ := localEngine(t, logPlan(t, "", logPhase("write", "ops = { append = 1 }\nclosed {\n sessions = 1\n iterations = 20\n}")))
	_, err := e.Prepare(t.Context(), stepOf(e.plan.Phase("write"), worker.Load))
	require.NoError(t, err)
	e.group.loops[0].tr.(*thread).sessions[0] = working{func() error { return nil }, func() error {
		time.Sleep(5 * time.Millisecond)
		return nil
	}}
	final, err := e.Run(t.Context(), e.now(), func(*measure.Snapshot) (func() error, error) { return func() error { return nil }, nil })
	require.NoError(t, err)
	require.Less(t, final.Generator.ProductiveSeconds, 0.05, "of 0.1 s")

	require.EqualValues(t, 30, (&thread{inside: 50, slept: 20}).own(100))
	require.Zero(t, (&thread{inside: 70, slept: 40}).own(100), "the clock was read at different times")
}

// A meter tells how long its thread waited for a processor if the kernel counts that.
func TestMeterTellsWaitsThatItKnows(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	m := newMeter()
	defer m.close()
	m.begin()
	use := m.since(time.Hour.Nanoseconds(), 0)
	_, err := os.ReadFile("/proc/thread-self/schedstat")
	require.Equal(t, err == nil, use.waitKnown)
	require.EqualValues(t, time.Hour, use.wall)
	require.True(t, 0 <= use.waited && use.waited < use.wall)
}

func TestParseOnCPU(t *testing.T) {
	const rest = " S 1 1 1 0 -1 4194560 7 0 0 0 0 0 0 0 20 0 8 0 100 1000 10 18446744073709551615 1 1 0 0 0 0 0 0 2143420159 0 0 0 17"
	require.Equal(t, 5, parseOnCPU([]byte("77 (loadgen)"+rest+" 5 0 0 0 0 0\n")))
	require.Equal(t, 6, parseOnCPU([]byte("77 (a (b) c)"+rest+" 6")))
	require.Equal(t, 127, parseOnCPU([]byte("77 (loadgen)"+rest+" 127 0\n")))
	for _, line := range []string{"", "loadgen" + rest + " 5", "77 (loadgen)" + rest, "77 (loadgen" + rest + " x 0", "77 (loadgen)" + rest + " 99999"} {
		require.Equal(t, -1, parseOnCPU([]byte(line)), line)
	}
}

// working is a session on files that does what it is told.
type working struct{ prepare, do func() error }

func (w working) Prepare(*driver.Request) error { return w.prepare() }

func (w working) Do(*driver.Request, *driver.Reply) error { return w.do() }

// A request begins when its preparation ends, whatever comes of it, even if the driver panics.
func TestWhenWorkOnFilesBegins(t *testing.T) {
	gone := errors.New("gone")
	fine, fails, panics := func() error { return nil }, func() error { return gone }, func() error { panic("what") }
	for name, tt := range map[string]struct {
		session working
		says    string
	}{
		"fine":              {working{fine, fine}, ""},
		"not prepared":      {working{fails, panics}, "gone"},
		"not done":          {working{fine, fails}, "gone"},
		"a panic before it": {working{panics, fine}, "driver panicked at thread_test.go:"},
		"a panic in it":     {working{fine, panics}, "driver panicked at thread_test.go:"},
	} {
		c := &virtualClock{tick: 10}
		start, err := (&thread{l: &loop{clock: c}}).work(tt.session, nil, nil)
		require.Equal(t, int64(10), start, name)
		require.Equal(t, start, c.t, "%s: nobody looks at the clock again", name)
		if tt.says == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, tt.says, name)
	}
}
