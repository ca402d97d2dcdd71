package command_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// tracePlan replays a file on a target without a transport.
const tracePlan = `
plan "trace" {}
target "t" {
	driver    = "null"
	endpoints = ["a"]
}
dataset "d" {
	keys { count = 1 }
	values { size = 1 }
}
phase "p" {
	target  = target.t
	dataset = dataset.d
	open {
		trace { file = "trace" }
	}
}
`

// assignmentOf resolves a plan that names a file, with an invented length and digest.
func assignmentOf(src string, length int64) (worker.Assignment, error) {
	const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	parsed, diags := plan.Parse([]byte(src), "plan.hcl", drivers.All())
	if diags.HasErrors() {
		return worker.Assignment{}, diags
	}
	p, diags := parsed.Resolve(plan.Vars{
		Trace: func(string, string, bool) (plan.TraceFacts, error) {
			return plan.TraceFacts{
				SHA256: sum, Length: length, Lines: 1, Span: time.Second, Verbs: []int64{driver.Get: 1}, Ops: map[string]int64{"get": 1},
			}, nil
		},
		Keys: func(string, string, string) (plan.EntryFacts, error) {
			return plan.EntryFacts{SHA256: sum, Length: length, Count: 1, Bytes: length + 4, Least: 1, Largest: int(length)}, nil
		},
	})
	if diags.HasErrors() {
		return worker.Assignment{}, diags
	}
	canonical, err := p.Canonical()
	return worker.Assignment{RunID: "r", Plan: canonical, Digest: plan.Digest(canonical), Workers: 1, Zero: time.Now()}, err
}

// wiring is a listener whose connections can all be cut, or fall silent, at once.
type wiring struct {
	net.Listener
	silent atomic.Bool
	mu     sync.Mutex
	conns  []net.Conn
}

func (c *wiring) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return &wired{conn, c}, nil
}

// cut closes the port and its connections, as the kernel does when the process is killed.
func (c *wiring) cut() {
	_ = c.Listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

type wired struct {
	net.Conn
	wiring *wiring
}

func (c *wired) Write(b []byte) (int, error) {
	if c.wiring.silent.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// ordering is a coordinator in this process with one worker: a loadgen that opens files in a directory.
type ordering struct {
	wiring *wiring
	worker *process
	orders worker.Worker
	ended  chan error // of the step that is prepared
}

// order has a new worker take a plan on.
func order(t *testing.T, src string, length int64, files string, lease time.Duration) *ordering {
	t.Helper()
	cmd := command(t)
	state := ""
	for _, v := range cmd.Env {
		if path, ok := strings.CutPrefix(v, "XDG_STATE_HOME="); ok {
			state = path // the last one counts
		}
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := &ordering{wiring: &wiring{Listener: lis}, ended: make(chan error, 1)}
	place, err := identity.At(filepath.Join(state, "loadgen", "fleet"), lis.Addr().String())
	require.NoError(t, err)
	place.Listen = func() (net.Listener, error) { return o.wiring, nil }
	server, err := rpc.Listen(rpc.Config{Place: place, Run: "r", Version: "v1", Timing: rpc.TimingOf(lease), Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() {
		o.wiring.cut()
		server.Close()
	})
	cmd.Args = append(cmd.Args, "worker", "--join", lis.Addr().String(), "--name", "w1", "--once", "--files", files)
	o.worker = start(t, cmd)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	members, err := server.Wait(ctx, 1)
	require.NoError(t, err)
	o.orders = members[0].Worker
	a, err := assignmentOf(src, length)
	require.NoError(t, err)
	require.NoError(t, o.orders.Assign(ctx, a))
	return o
}

// prepare orders the step of the plan.
func (o *ordering) prepare(ctx context.Context) {
	go func() { // ends with the server at the latest
		_, err := o.orders.Prepare(ctx, worker.Step{Phase: "p", Kind: worker.Load, Last: true, To: 16})
		o.ended <- err
	}()
}

// reads says whether the worker has a file open.
func (o *ordering) reads(path string) bool {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", o.worker.cmd.Process.Pid)) // the pattern is right
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == path {
			return true
		}
	}
	return false
}

// TestPreparingAHugeFileEnds: a worker reads a file that takes an hour, which ends in each possible way: by a signal to the worker, with its lease,
// and with its coordinator.
func TestPreparingAHugeFileEnds(t *testing.T) {
	t.Parallel()
	files, err := os.MkdirTemp("/dev/shm", "loadgen-test-") // where nothing is kept of the holes of a file that are read
	if err != nil {
		files = t.TempDir()
	}
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(files)) })
	const huge = 4 << 40
	path := filepath.Join(files, "trace")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, huge))
	const lease = 6 * time.Second
	waits := func(o *ordering) { // for most of the lease, in which the worker would read as fast as it can
		o.worker.signal(syscall.SIGSTOP)
		time.Sleep(lease * 3 / 4)
		o.worker.signal(syscall.SIGCONT)
	}
	for how, end := range map[string]func(o *ordering, stop context.CancelFunc){
		"SIGTERM to the worker":     func(o *ordering, _ context.CancelFunc) { o.worker.signal(syscall.SIGTERM) },
		"Ctrl-C at the worker":      func(o *ordering, _ context.CancelFunc) { o.worker.signal(syscall.SIGINT) },
		"no word for the lease":     func(o *ordering, _ context.CancelFunc) { o.wiring.silent.Store(true); waits(o) },
		"the coordinator's end":     func(o *ordering, _ context.CancelFunc) { o.wiring.cut(); waits(o) },
		"a step that is called off": func(_ *ordering, stop context.CancelFunc) { stop() },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			o := order(t, tracePlan, huge, files, lease)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			o.prepare(ctx)
			require.Eventually(t, func() bool { return worker.Progress(o.orders) > 0 }, time.Minute, time.Millisecond)
			require.True(t, o.reads(path))
			began := time.Now()
			end(o, stop)
			require.Eventually(t, func() bool { return !o.reads(path) }, time.Minute, time.Millisecond, "%s", &o.worker.stderr)
			t.Logf("ended after %v", time.Since(began))
			if strings.HasSuffix(how, "the worker") {
				o.worker.wait(60 * time.Second)
			}
		})
	}
}

// TestWhatIsNoFileIsRefusedAtOnce: a worker prepares steps whose file would never end, is not a file, or is elsewhere.
func TestWhatIsNoFileIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "passwd")
	require.NoError(t, os.WriteFile(outside, []byte("0,"+canary+",1,1,1,get,0\n"), 0o600))
	for name, make := range map[string]func(path string) error{
		"FIFO":              func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link to a device":  func(path string) error { return os.Symlink("/dev/zero", path) },
		"device":            func(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|5) }, // that of /dev/zero
		"directory":         func(path string) error { return os.Mkdir(path, 0o700) },
		"link out of it":    func(path string) error { return os.Symlink(outside, path) },
		"link to /proc":     func(path string) error { return os.Symlink("/proc/self/environ", path) },
		"nothing":           func(string) error { return nil },
		"longer than said":  func(path string) error { return os.WriteFile(path, []byte(canary+canary), 0o600) },
		"shorter than said": func(path string) error { return os.WriteFile(path, []byte(canary[:1]), 0o600) },
		"another":           func(path string) error { return os.WriteFile(path, []byte(canary), 0o600) },
		"socket": func(path string) error {
			lis, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { _ = lis.Close() })
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := t.TempDir()
			if err := make(filepath.Join(files, "trace")); err != nil {
				require.Equal(t, "device", name, "only some may make these: %v", err)
				return
			}
			o := order(t, tracePlan, int64(len(canary)), files, 10*time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			o.prepare(ctx)
			err := <-o.ended
			require.NoError(t, ctx.Err())
			require.ErrorContains(t, err, `trace "trace"`)
			require.NotContains(t, err.Error(), canary)
			require.NotRegexp(t, "[0-9a-f]{32}", err.Error(), "no hash of it")
		})
	}
}
