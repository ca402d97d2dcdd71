package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
)

// team is a run and the worker processes it waits for.
type team struct {
	*load
	addr    string
	workers []*process // w1, w2 and so on
}

// invitation matches what a waiting coordinator says.
var invitation = regexp.MustCompile(`loadgen worker --join (\S+)`)

// invite starts a coordinator that waits for n workers, and returns once it has said where they should connect.
func invite(t *testing.T, n int, begin func(args ...string) *load, args ...string) *team {
	t.Helper()
	tm := &team{load: begin(append([]string{"--listen", "127.0.0.1:0", "--workers", fmt.Sprint(n)}, args...)...)}
	tm.until(func() bool {
		match := invitation.FindStringSubmatch(tm.stderr.String())
		if match != nil {
			tm.addr = match[1]
		}
		return match != nil
	})
	return tm
}

// join starts the next worker, which connects to an address, for one run unless args say otherwise.
func (tm *team) join(addr string, args ...string) {
	tm.t.Helper()
	name := fmt.Sprintf("w%d", len(tm.workers)+1)
	args = append([]string{"worker", "--join", addr, "--name", name, "--once", "--loops", "1"}, args...)
	tm.workers = append(tm.workers, start(tm.t, tm.command(args...)))
}

// command returns a loadgen of the same user as the coordinator.
func (tm *team) command(args ...string) *exec.Cmd {
	cmd := command(tm.t, args...)
	for _, v := range tm.cmd.Env {
		if strings.HasPrefix(v, "XDG_STATE_HOME=") {
			cmd.Env = append(cmd.Env, v) // the last one counts
		}
	}
	return cmd
}

// again starts another coordinator of the same user at the same address, for one worker.
func (tm *team) again(src string) *load {
	tm.t.Helper()
	path := filepath.Join(tm.t.TempDir(), "plan.hcl")
	require.NoError(tm.t, os.WriteFile(path, []byte(src), 0o600))
	return beginBy(tm.t, tm.command, path, "--listen", tm.addr, "--workers", "1")
}

// beginTeam starts a coordinator, and n workers that come to it.
func beginTeam(t *testing.T, n int, begin func(args ...string) *load, args ...string) *team {
	t.Helper()
	tm := invite(t, n, begin, args...)
	for range n {
		tm.join(tm.addr)
	}
	return tm
}

// fixedPlan is a load of a known multiset of ops, on one server; the other is a lasting load.
const fixedPlan = `
plan "fixed" {}
variable "endpoints" { type = list(string) }` + redisT + `
dataset "pools" {
	keys {
		count = 20
		scope = "session"
	}
	values { size = 100 }
}
phase "mix" {
	target  = target.t
	dataset = dataset.pools
	ops = {
		get = 3
		put = 1
	}
	setup { ops = { put = 1 } }
	closed {
		sessions   = 7
		iterations = 1000
	}
}
`

// verifiedPlan goes on with keys that each have one writer, and reads them back.
const verifiedPlan = fixedPlan + `
dataset "own" {
	keys {
		count   = 500
		writers = "one"
		format  = "own:%d"
	}
	values { size = 100 }
}
phase "owned" {
	target  = target.t
	dataset = dataset.own
	ops     = { put = 1 }
	closed {
		sessions   = 7
		iterations = 50
	}
}
phase "check" {
	target  = target.t
	dataset = dataset.own
	verify {}
}
`

// TestThreeWorkersDoWhatOneDoes runs a plan with a known multiset of ops in one process, with one worker and with three, on a real server. All do the
// same, and the server counted it.
func TestThreeWorkersDoWhatOneDoes(t *testing.T) {
	t.Parallel()
	addr := addresses(cluster(t, 1))[0]
	ledger := func(r *run.Run) string {
		p := r.Phase["mix"]
		verified := *r.Phase["check"].Verify
		require.Zero(t, verified.Lost+verified.Newer+verified.Unread)
		require.Equal(t, verified.Keys, r.Phase["check"].Op["get"].OK)
		return fmt.Sprint(verified.Keys, p.Digest, p.Op["get"].OK, p.Op["put"].OK, p.Op["get"].Due, p.Op["put"].Due, p.Setup.Op["put"].OK, p.Requests)
	}
	want := ledger(begin(t, verifiedPlan, "-var", nodes(addr)).whole())
	for _, n := range []int{1, 3} {
		before := countCalls(t, addr)
		tm := beginTeam(t, n, func(args ...string) *load { return begin(t, verifiedPlan, args...) }, "-var", nodes(addr))
		r := tm.whole()
		require.Equal(t, want, ledger(r))
		after := countCalls(t, addr)
		require.Equal(t, r.Phase["mix"].Op["get"].Sent+r.Phase["check"].Op["get"].Sent, after["get"]-before["get"])
		require.Equal(t, r.Phase["mix"].Op["put"].Sent+r.Phase["mix"].Setup.Op["put"].Sent+r.Phase["owned"].Op["put"].Sent, after["put"]-before["put"])
		for _, w := range tm.workers {
			require.Zero(t, w.wait(60*time.Second), "%s", &w.stderr)
		}
		require.Len(t, r.Fleet, n)
		for _, w := range r.Fleet {
			require.Positive(t, w.CPUSeconds)
			require.Positive(t, w.ClockUncertaintySeconds)
		}
	}
}

// lasting starts a team of three on a node of our own that counts, and returns once the load is on.
func lasting(t *testing.T, duration string, args ...string) (*team, *server) {
	t.Helper()
	node := beginTarget(t)
	args = append(args, "-var", nodes(node.addr), "-var", "duration="+duration)
	tm := beginTeam(t, 3, func(all ...string) *load { return begin(t, closedPlan, all...) }, args...)
	tm.underWay()
	tm.until(func() bool { return countCalls(t, node.addr)["get"] > 100 })
	return tm, node
}

// requireWithin checks that what the node received is in the result, or within the bounds that the losses declare.
func requireWithin(t *testing.T, node *server, r *run.Run) {
	t.Helper()
	got, bound := countCalls(t, node.addr)["get"], uint64(0)
	for _, l := range r.Losses {
		bound += l.UnseenOps
	}
	sent := r.Phase["gets"].Requests[0].Sent
	require.LessOrEqual(t, sent, got)
	require.LessOrEqual(t, got, sent+bound)
	t.Logf("%d gets at the node, %d in the result, at most %d unseen", got, sent, bound)
}

// TestKilledWorkerIsNamed kills a worker with SIGKILL in mid-run: the others carry on, and the result says what is missing.
func TestKilledWorkerIsNamed(t *testing.T) {
	t.Parallel()
	tm, node := lasting(t, "14s")
	time.Sleep(1500 * time.Millisecond)
	require.NoError(t, tm.workers[1].cmd.Process.Kill())
	r := tm.result(60 * time.Second)
	require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
	require.Len(t, r.Losses, 1)
	require.Equal(t, "w2", r.Losses[0].Worker)
	require.Positive(t, r.Losses[0].Seq)
	require.Contains(t, strings.Join(strings.Fields(tm.stdout.String()), " "), "worker w2 was lost in phase gets: no heartbeat for 10s; its last snapshot is number ")
	requireWithin(t, node, r)
	for _, i := range []int{0, 2} {
		require.Zero(t, tm.workers[i].wait(60*time.Second))
	}
}

// TestLostBeforeThePlanIsAssigned stops a worker that has joined, while the coordinator waits for another. The result says what is missing: half of the
// keys that all sessions share, so nothing is loaded.
func TestLostBeforeThePlanIsAssigned(t *testing.T) {
	t.Parallel()
	node := beginTarget(t)
	r, tm := lostBeforeThePlan(t, closedPlan, "-var", nodes(node.addr), "-var", "duration=1s")
	require.Equal(t, exit.Failed, r.ExitCode, r.Verdict.Reasons)
	require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), "populate: 50 of 100 put ops were done: 50 were never begun")
	require.Contains(t, tm.stdout.String(), "LOST before the first phase: it sent no load")
}

// TestTheOtherWorkerDoesItsPart is the same with a plan that populates nothing: the part of the worker that is left is done.
func TestTheOtherWorkerDoesItsPart(t *testing.T) {
	t.Parallel()
	node := beginTarget(t)
	r, tm := lostBeforeThePlan(t, fixedPlan, "-var", nodes(node.addr))
	require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
	require.Contains(t, tm.stdout.String(), "LOST before the first phase: it sent no load")
	const sessions = 7 - 7/2 // those of the second of two workers
	p := r.Phase["mix"]
	require.EqualValues(t, sessions*20, p.Setup.Op["put"].OK)
	require.EqualValues(t, sessions*1000, p.Op["get"].Due+p.Op["put"].Due)
	require.EqualValues(t, sessions*1000, p.Op["get"].OK+p.Op["put"].OK)
	calls := countCalls(t, node.addr)
	require.Equal(t, p.Op["get"].Due, calls["get"])
	require.Equal(t, p.Op["put"].Due+sessions*20, calls["put"])
}

// lostBeforeThePlan runs a plan on two workers, the first of which stops before it is given the plan.
func lostBeforeThePlan(t *testing.T, src string, args ...string) (*run.Run, *team) {
	t.Helper()
	tm := invite(t, 2, func(all ...string) *load { return begin(t, src, all...) }, append([]string{"--lease", "6s"}, args...)...)
	tm.join(tm.addr)
	tm.told("1 of 2 workers: w1")
	tm.workers[0].signal(syscall.SIGSTOP)
	tm.join(tm.addr)
	r := tm.result(60 * time.Second)
	require.Equal(t, []worker.Loss{{Worker: "w1", Why: "no heartbeat for 6s, before it had taken the plan"}}, r.Losses)
	return r, tm
}

// TestStoppedWorkerComesBack stops a worker for 2 s: the run is complete, and says that the worker stood still.
func TestStoppedWorkerComesBack(t *testing.T) {
	t.Parallel()
	tm, node := lasting(t, "12s")
	tm.workers[0].signal(syscall.SIGSTOP)
	time.Sleep(2 * time.Second)
	tm.workers[0].signal(syscall.SIGCONT)
	r := tm.whole()
	require.Empty(t, r.Losses)
	require.Positive(t, r.Phase["gets"].Stalls)
	require.Contains(t, strings.Join(r.Verdict.Reasons, "; "), "the generator stood still")
	requireWithin(t, node, r)
	require.Equal(t, r.Phase["gets"].Requests[0].Sent, countCalls(t, node.addr)["get"])
}

// TestSecondsOfAStoppedWorkerAreFilledIn stops one of three workers for some seconds, less than its lease. Progress and metrics go on each second
// with what the others do. The series has a row for each second, and matches the ledger.
func TestSecondsOfAStoppedWorkerAreFilledIn(t *testing.T) {
	t.Parallel()
	tm, node := lasting(t, "24s", "--http", "127.0.0.1:0", "--lease", "60s")
	address, ops := tm.page(), regexp.MustCompile(`(?m)^loadgen_ops_due_total\{.*\} (\S+)$`)
	counted := func() (sum float64) {
		page, err := fetch(address, "/metrics")
		require.NoError(t, err)
		for _, line := range ops.FindAllStringSubmatch(page, -1) {
			n, err := strconv.ParseFloat(line[1], 64)
			require.NoError(t, err)
			sum += n
		}
		return sum
	}
	tm.workers[0].signal(syscall.SIGSTOP)
	before := counted()
	for n := range 5 {
		tm.until(func() bool { return strings.Count(tm.stderr.String(), "  without w1  ") > n })
		tm.until(func() bool { return counted() > before }) // the others go on
		before = counted()
	}
	tm.workers[0].signal(syscall.SIGCONT)
	r := tm.whole()
	require.Empty(t, r.Losses)
	requireWithin(t, node, r)

	p, at, ok, due := r.Phase["gets"], 0.0, uint64(0), uint64(0)
	for _, row := range p.Series {
		require.Less(t, row.T-at, 4.0, "the row that ends at %v s does not wait for the worker", row.T)
		at, ok, due = row.T, ok+row.OK, due+row.Due
	}
	require.Equal(t, p.Op["get"].OK, ok)
	require.Equal(t, p.Op["get"].Due, due)
}

// TestWorkerThatWakesLateSendsNothing stops a worker for longer than its lease.
func TestWorkerThatWakesLateSendsNothing(t *testing.T) {
	t.Parallel()
	node := beginTarget(t)
	tm := beginTeam(t, 1, func(all ...string) *load { return begin(t, closedPlan, all...) }, "-var", nodes(node.addr))
	tm.underWay()
	tm.workers[0].signal(syscall.SIGSTOP)
	r := tm.result(60 * time.Second)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "no worker is left")
	gets := func() uint64 { return countCalls(t, node.addr)["get"] }
	comesToRest(t, gets)
	before := gets()
	tm.workers[0].signal(syscall.SIGCONT)
	tm.workers[0].wait(60 * time.Second)
	comesToRest(t, gets)
	require.LessOrEqual(t, gets()-before, uint64(4), "one write for each connection")
	requireWithin(t, node, r)
}

// TestLoadEndsWithAKilledCoordinator kills the coordinator with SIGKILL: load ends with the lease, on its own and not before.
func TestLoadEndsWithAKilledCoordinator(t *testing.T) {
	t.Parallel()
	tm, node := lasting(t, "10m", "-var", "timeout=1s")
	require.NoError(t, tm.cmd.Process.Kill())
	at := time.Now()
	for _, w := range tm.workers {
		require.Equal(t, exit.Failed, w.wait(60*time.Second))
		require.Contains(t, w.stderr.String(), "not reached for longer than the lease, the run is given up")
		require.Greater(t, w.ended.Sub(at), 5*time.Second, "a lease of 10 s, which each second renews, is not given up early")
	}
	comesToRest(t, func() uint64 { return countCalls(t, node.addr)["get"] })
}

// TestWorkersThatDoNotCome waits for workers that are not there.
func TestWorkersThatDoNotCome(t *testing.T) {
	l := begin(t, closedPlan, "--listen", "127.0.0.1:0", "--workers", "2", "--wait", "300ms")
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, r.Verdict.Reasons[0], "no worker has come to 127.0.0.1:")
}

// TestWorkerProcess loads from a child process: it is in the result with its own processor time, and it ends with the run, however that ends.
func TestWorkerProcess(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan, "-var", "duration=1s", "--worker-process")
	r := l.clean(60 * time.Second)
	require.Len(t, r.Fleet, 1)
	require.Positive(t, r.Fleet[0].CPUSeconds)
	require.Positive(t, r.CoordinatorCPUSeconds)
	require.NotEmpty(t, r.Fleet[0].Host)

	l = begin(t, closedPlan, "--worker-process")
	l.underWay()
	all := children(t, l.cmd.Process.Pid)
	require.Len(t, all, 4, "a worker and three nodes")
	require.NoError(t, l.cmd.Process.Kill())
	requireGone(t, all)
}

// TestCtrlCDrainsAFleet interrupts the coordinator: the workers end what is outstanding.
func TestCtrlCDrainsAFleet(t *testing.T) {
	t.Parallel()
	tm, node := lasting(t, "10m")
	tm.signal(syscall.SIGINT)
	r := tm.result(60 * time.Second)
	require.Equal(t, exit.Aborted, r.ExitCode)
	require.Zero(t, r.Phase["gets"].Op["get"].InFlight)
	require.Equal(t, r.Phase["gets"].Requests[0].Sent, countCalls(t, node.addr)["get"])
	for _, w := range tm.workers {
		require.Zero(t, w.wait(60*time.Second))
	}
}

// TestNetworkWantsAToken: a worker joins another machine without one, and is told what it needs before anything is sent there.
func TestNetworkWantsAToken(t *testing.T) {
	w := start(t, command(t, "worker", "--join", "192.0.2.1:7464", "--name", "w"))
	require.Equal(t, 2, w.wait(60*time.Second))
	require.Contains(t, w.stderr.String(), "has not joined 192.0.2.1:7464 yet")
	require.Contains(t, w.stderr.String(), "loadgen token create")
}

// TestStoppedCoordinator stops the coordinator for 5 s: the workers go on, and all their counts are in the result. For 15 s: their leases run out,
// and they say so when it wakes.
func TestStoppedCoordinator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stop         time.Duration
		completeness run.Completeness
	}{{5 * time.Second, run.Complete}, {15 * time.Second, run.Failed}} {
		t.Run(c.stop.String(), func(t *testing.T) {
			t.Parallel()
			tm, node := lasting(t, "24s")
			tm.signal(syscall.SIGSTOP)
			time.Sleep(c.stop)
			tm.signal(syscall.SIGCONT)
			r := tm.result(60 * time.Second)
			require.Equal(t, c.completeness, r.Verdict.Completeness, r.Verdict.Reasons)
			if c.completeness == run.Complete {
				require.Empty(t, r.Losses)
				require.Equal(t, r.Phase["gets"].Requests[0].Sent, countCalls(t, node.addr)["get"])
				return
			}
			require.Len(t, r.Losses, 3)
			for _, l := range r.Losses {
				require.Contains(t, l.Why, "it stopped by itself")
				require.Zero(t, l.UnseenOps)
			}
			requireWithin(t, node, r)
		})
	}
}
