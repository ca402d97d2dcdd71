package engine

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
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
	prepared(t, e, stepOf(e.plan.Phase("write"), worker.Load))
	e.group.loops[0].tr.(*thread).sessions[0] = working{func() error { return nil }, func() error {
		time.Sleep(5 * time.Millisecond)
		return nil
	}}
	final := ran(t, e)
	require.Less(t, final.Generator.ProductiveSeconds, 0.05, "of 0.1 s")

	own := thread{inside: 50, slept: 20}
	require.EqualValues(t, 30, own.own(100))
	require.EqualValues(t, 100, own.own(100), "it counts once")
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
	require.Equal(t, 65535, parseOnCPU([]byte("77 (loadgen)"+rest+" 65535 0\n")))
	for _, line := range []string{"", "loadgen" + rest + " 5", "77 (loadgen)" + rest, "77 (loadgen" + rest + " x 0", "77 (loadgen)" + rest + " 99999"} {
		require.Equal(t, -1, parseOnCPU([]byte(line)), line)
	}
}

// newThread is a loop of one session on files, which has so many puts to do. Its step has begun, and its clock moves only in puts.
func newThread(t *testing.T, puts int, put func(l *loop, reply *driver.Reply)) (*loop, *thread) {
	t.Helper()
	p := parsePlanFor(t, []driver.Driver{moodyFiles{}}, fmt.Sprintf(`
		target "t" {
			driver  = "paper"
			timeout = "500ms"
		}
		dataset "d" {
			keys { count = 8 }
			values { size = 100 }
		}
		phase "load" {
			target  = target.t
			dataset = dataset.d
			samples = 10
			ops     = { put = 1 }
			closed {
				iterations = %d
				pipeline   = 10
			}
		}`, puts))
	e := assigned(t, Config{Loops: 1, Drivers: []driver.Driver{moodyFiles{}}, LogRoot: func() (string, error) { return "/", nil }}, p)
	e.clock = &virtualClock{}
	loaded(t, e)
	l := e.group.loops[0]
	l.begin(0, make(chan part, 1))
	tr := l.tr.(*thread)
	tr.sessions[0] = carries(func(reply *driver.Reply) { put(l, reply) })
	return l, tr
}

// carries is a session on files that is a function, which never fails.
type carries func(reply *driver.Reply)

func (carries) Prepare(*driver.Request) error { return nil }

func (f carries) Do(_ *driver.Request, reply *driver.Reply) error {
	f(reply)
	return nil
}

// begin starts up to n ops of the session, and returns how many there were.
func (t *thread) begin(n int) int {
	return t.start(t.l.sessions[0], &t.l.sessions[0].stream, n, 0, t.l.clock.now())
}

// What a thread has done takes no room.
func TestRoomOfAThread(t *testing.T) {
	_, tr := newThread(t, 1000, func(*loop, *driver.Reply) {})
	for range 1000 {
		require.Equal(t, 1, tr.begin(1))
		require.True(t, tr.wait(0))
	}
	require.Less(t, cap(tr.calls), 10)
}

// A thread whose step is to end is not given up while its ops end, however long each takes.
func TestThreadThatStillAnswers(t *testing.T) {
	l, tr := newThread(t, 1, func(l *loop, _ *driver.Reply) { l.clock.sleep(400 * time.Millisecond) })
	l.stopped = true
	require.Equal(t, 1, tr.begin(1))
	require.True(t, tr.wait(0))
	require.False(t, l.givenUp(l.clock.now()+patience))
	require.True(t, l.givenUp(l.clock.now()+patience+1))
}

// A session that panics is lost, and the log says why.
func TestPanicOfASessionIsLogged(t *testing.T) {
	l, tr := newThread(t, 1, func(*loop, *driver.Reply) { panic("blown") })
	var said bytes.Buffer
	l.log = slog.New(slog.NewTextHandler(&said, nil))
	require.Equal(t, 1, tr.begin(1))
	require.True(t, tr.wait(0))
	require.Contains(t, said.String(), `msg="driver panicked" session=0 value=blown`)
	require.True(t, l.sessions[0].retired)
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
