package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// denseLoad is closedPlan with enough ops that what happens to the generator is seen in them.
var denseLoad = strings.Replace(closedPlan, `"20ms"`, `"4ms"`, 1)

// doubts returns the texts of a phase's reasons, one per line.
func doubts(p *run.Phase) string {
	var b strings.Builder
	for _, why := range p.Reasons {
		fmt.Fprintf(&b, "%s: %s\n", why.Validity, why.Text)
	}
	return b.String()
}

// processors are those that the test may use.
func processors(t *testing.T) (cpus []int) {
	t.Helper()
	var all unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	for cpu := range 1024 {
		if all.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// on starts processes on one processor, which they share.
func on(t *testing.T, cpu int, starts func()) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	one.Set(cpu)
	require.NoError(t, unix.SchedSetaffinity(0, &one)) // of this thread, which its children inherit
	defer func() { require.NoError(t, unix.SchedSetaffinity(0, &all)) }()
	starts()
}

// compute starts a program that computes until the test ends.
func compute(t *testing.T) *process {
	t.Helper()
	return start(t, exec.Command("sh", "-c", "while :; do :; done"))
}

// TestStarvedGeneratorIsCaught: two other programs compute on the generator's only processor.
func TestStarvedGeneratorIsCaught(t *testing.T) {
	node := beginTarget(t)
	var open, closed *load
	on(t, processors(t)[0], func() {
		others := []*process{compute(t), compute(t)}
		open = begin(t, openPlan, "-var", nodes(node.addr), "-var", "rate=10k/s", "-var", "duration=2s")
		r := open.result(60 * time.Second)
		gets := r.Phase["gets"]
		require.Equal(t, exit.Invalid, r.ExitCode, doubts(gets))
		require.Contains(t, doubts(gets), "invalid: the generator's loop waited ")
		require.Equal(t, run.Invalid, gets.ValidityOf("op.get.response.p99"))
		require.Regexp(t, `! .*: the generator's loop waited .*\[run_queue\]`, open.stdout.String())

		closed = begin(t, denseLoad, "-var", nodes(node.addr), "-var", "duration=2s")
		gets = closed.result(60 * time.Second).Phase["gets"]
		requireSuspect(t, gets)
		require.Contains(t, doubts(gets), "suspect: the generator's loop waited ")
		for _, other := range others {
			require.NoError(t, other.cmd.Process.Kill())
		}
	})
}

// TestStarvedTargetIsCaught: another program computes on the target's only processor. The generator waits for replies then, and its own processor is idle,
// which is no excuse.
func TestStarvedTargetIsCaught(t *testing.T) {
	cpus := processors(t)
	var node *server
	var other *process
	on(t, cpus[0], func() { node, other = beginTarget(t), compute(t) })
	var closed *load
	on(t, cpus[len(cpus)-1], func() {
		closed = begin(t, denseLoad, "-var", nodes(node.addr), "-var", "duration=3s")
	})
	gets := closed.result(60 * time.Second).Phase["gets"]
	require.NotEqual(t, run.Valid, gets.Validity)
	require.True(t, slices.ContainsFunc(gets.Reasons, func(why run.Reason) bool { return why.Code == reason.Neighbours }), doubts(gets))
	require.Greater(t, gets.Generator.Machine.OthersShare, 0.2)
	require.NotEqual(t, run.Valid, gets.ValidityOf("op.get.rate"))
	require.NotEqual(t, run.Valid, gets.ValidityOf("op.get.response.p99"))
	require.NoError(t, other.cmd.Process.Kill())
}

// requireSuspect checks that a phase is suspect or, if a quota of the machine has held loadgen back, worse.
func requireSuspect(t *testing.T, p *run.Phase) {
	t.Helper()
	if throttled(p) {
		require.Equal(t, run.Invalid, p.Validity, doubts(p))
		return
	}
	require.Equal(t, run.Suspect, p.Validity, doubts(p))
}

// quota creates a control group that gets a tenth of the time, and returns the file through which processes enter it.
func quota(t *testing.T) string {
	t.Helper()
	name := fmt.Sprintf("loadgen-test-%d", os.Getpid())
	write := func(dir string, files map[string]string) error {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		t.Cleanup(func() { // its processes have ended: those that the test starts later are cleaned up earlier
			require.Eventually(t, func() bool { return os.Remove(dir) == nil }, time.Minute, 10*time.Millisecond)
		})
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				return err
			}
		}
		return nil
	}
	dir := filepath.Join("/sys/fs/cgroup/cpu", name) // version 1
	files := map[string]string{"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "10000"}
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		dir, files = filepath.Join("/sys/fs/cgroup", name), map[string]string{"cpu.max": "10000 100000"}
	}
	if err := write(dir, files); err != nil {
		servertest.Require(t, "cgroup", fmt.Errorf("make a control group with a CPU quota: %w", err))
	}
	servertest.Require(t, "cgroup", nil)
	return filepath.Join(dir, "cgroup.procs")
}

// TestThrottledGeneratorIsCaught gives the generator a tenth of a processor. Instant answers make it use all that it gets.
func TestThrottledGeneratorIsCaught(t *testing.T) {
	procs := quota(t)
	dir := t.TempDir()
	path, out := filepath.Join(dir, "plan.hcl"), filepath.Join(dir, "run.json")
	require.NoError(t, os.WriteFile(path, []byte(nothing), 0o600))
	cmd := command(t, "coordinator", "run", path, "--runs", filepath.Join(dir, "runs"), "--out", out, "-var", "latency=0s", "-var", "duration=2s")
	program, err := exec.LookPath("loadgen")
	require.NoError(t, err)
	cmd.Args = append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, procs, program}, cmd.Args[1:]...)
	cmd.Path, err = exec.LookPath("sh")
	require.NoError(t, err)
	l := &load{process: start(t, cmd), runs: filepath.Join(dir, "runs"), out: out}
	r := l.result(60 * time.Second)
	gets := r.Phase["load"]
	require.Equal(t, exit.Invalid, r.ExitCode, doubts(gets))
	require.Contains(t, doubts(gets), "invalid: a CPU quota kept the generator from running ")
	require.Positive(t, gets.Generator.Throttled.Periods)
	require.Equal(t, run.Invalid, gets.ValidityOf("op.get.rate"))
}

// TestLightLoads has loads beside each other, each of which leaves most of the processors free: those that are partly slow are caught, and good ones
// are not accused.
func TestLightLoads(t *testing.T) {
	t.Run("sleeping generators", sleepingGenerators)
	t.Run("unsettled target", unsettledTarget)
	t.Run("faultless", faultless)
}

// sleepingGenerators stops generators for 600 ms of 5 s, which delays more than one in twenty ops.
func sleepingGenerators(t *testing.T) {
	t.Parallel()
	for model, src := range map[string]string{"open": openPlan, "closed": denseLoad} {
		t.Run(model, func(t *testing.T) {
			node := beginTarget(t)
			l := begin(t, src, "-var", nodes(node.addr), "-var", "duration=5s")
			l.underWay()
			l.signal(syscall.SIGSTOP)
			time.Sleep(600 * time.Millisecond) // the length of the stop is what the test is about
			l.signal(syscall.SIGCONT)
			gets := l.result(60 * time.Second).Phase["gets"]
			require.Regexp(t, `the generator stood still \d+ times? for more than 250 ms, at most `, doubts(gets))
			require.GreaterOrEqual(t, gets.MaxStallSeconds, 0.55, "a step of the loop before it is no part of it")
			if model == "open" {
				require.Equal(t, run.Invalid, gets.Validity, doubts(gets))
				require.GreaterOrEqual(t, *gets.Op["get"].Response.P99, 0.4, "who waits for the generator waits")
			} else {
				requireSuspect(t, gets)
			}
			require.NotEqual(t, run.Valid, gets.ValidityOf("op.get.response.p99"))
		})
	}
}

// TestShortStopsOfAClosedGeneratorAreCaught stops the generator eight times during a load, each time for less than a stall; or its target, which is
// not the generator's fault. If other programs also had the processor, a stop may become a stall, mostly of their making: then that is the reason
// given.
func TestShortStopsOfAClosedGeneratorAreCaught(t *testing.T) {
	const reason = `the generator's loop was kept from its processor \d+ times, for `
	for _, think := range []string{"0s", "4ms"} {
		src := strings.Replace(closedPlan, `"20ms"`, `"`+think+`"`, 1)
		beside := func(t *testing.T) {
			if think != "0s" { // it leaves most of the processors free
				t.Parallel()
			}
		}
		t.Run("generator, think "+think, func(t *testing.T) {
			beside(t)
			node := beginTarget(t)
			l := begin(t, src, "-var", nodes(node.addr))
			l.underWay()
			stopAndGo(l.process, 8, 100*time.Millisecond)
			l.signal(syscall.SIGINT)
			gets := l.result(60 * time.Second).Phase["gets"]
			switch {
			case gets.Stalls > 0:
				require.Contains(t, doubts(gets), "the generator stood still ")
			case *gets.Generator.RunQueueWait > 0.01:
				require.Regexp(t, reason+"|the generator's loop waited ", doubts(gets))
			default:
				require.Regexp(t, reason, doubts(gets))
			}
			require.GreaterOrEqual(t, gets.Generator.Interrupted.MaxSeconds, 0.08)
			require.NotEqual(t, run.Valid, gets.ValidityOf("op.get.response.p99"))
			require.NotEqual(t, run.Valid, gets.ValidityOf("op.get.rate"))
		})
		t.Run("target, think "+think, func(t *testing.T) {
			beside(t)
			node := beginTarget(t)
			l := begin(t, src, "-var", nodes(node.addr))
			l.underWay()
			stopAndGo(node.process, 2, 300*time.Millisecond)
			l.signal(syscall.SIGINT)
			gets := l.result(60 * time.Second).Phase["gets"]
			require.GreaterOrEqual(t, *gets.Op["get"].Response.Max, 0.25)
			if wanting(t, gets, node.cmd.Process.Pid) {
				return // what kept the generator from its processor as well is counted, too
			}
			require.NotRegexp(t, reason, doubts(gets))
			require.Less(t, gets.Generator.Interrupted.Seconds-gets.Generator.Interrupted.OthersSeconds, 0.2, "of 0.6 s that the target was stopped for")
		})
	}
}

// stopAndGo stops a process several times, for so long each.
func stopAndGo(p *process, times int, each time.Duration) {
	for range times {
		p.signal(syscall.SIGSTOP)
		time.Sleep(each) // the length of the stop is what the test is about
		p.signal(syscall.SIGCONT)
		time.Sleep(100 * time.Millisecond)
	}
}

// TestTooFewSamplesMakeNoQuantile asserts on a quantile of 500 ops.
func TestTooFewSamplesMakeNoQuantile(t *testing.T) {
	t.Parallel()
	l := begin(t, openPlan+`
assert "quick" { that = phase.gets.op.get.response.p99 < duration("10s") }
`, "-var", "rate=500/s", "-var", "duration=1s")
	r := l.result(60 * time.Second)
	get := r.Phase["gets"].Op["get"]
	require.NotNil(t, get.Response.P90)
	require.Nil(t, get.Response.P99)
	require.Equal(t, run.Undecided, r.Verdict.Assertions)
	require.Equal(t, "phase.gets.op.get.response.p99 is null: 5 of 500 samples lie beyond it; a quantile needs 10: 1,000 would do", r.Asserts[0].Reason)
	require.Contains(t, l.stdout.String(), "–")
}

// unsettledTarget loads a node that slows down: a connection gets 100 replies a second at first, and 7 fewer with each second. The delays are long
// compared with those that other programs cause.
func unsettledTarget(t *testing.T) {
	t.Parallel()
	in, orders, err := os.Pipe()
	require.NoError(t, err)
	defer in.Close()
	defer orders.Close()
	cmd := command(t, "target", "serve", "--listen", "127.0.0.1:0", "--parent-pipe", "--delay", "10ms")
	cmd.Stdin = in
	node := start(t, cmd)
	node.said("\n")
	addr, ok := strings.CutPrefix(strings.TrimSpace(node.stdout.String()), "ready ")
	require.True(t, ok, node.stdout.String())
	l := begin(t, denseLoad, "-var", nodes(addr), "-var", "duration=12s")
	for begun, ended := time.Now(), false; !ended; {
		rate := max(10, 100-7*time.Since(begun).Seconds())
		_, err := fmt.Fprintf(orders, "delay %v\n", time.Duration(1e9/rate))
		require.NoError(t, err)
		select {
		case <-l.done:
			ended = true
		case <-time.After(100 * time.Millisecond):
		}
	}
	gets := l.result(60 * time.Second).Phase["gets"]
	require.NotEqual(t, run.Valid, gets.Validity)
	require.NotEqual(t, run.Valid, gets.ValidityOf("op.get.rate"))
	if wanting(t, gets, node.cmd.Process.Pid) {
		return // what others took of the rate may hide what the node did
	}
	require.Contains(t, doubts(gets), "suspect: the rate fell by ")
	require.Less(t, *gets.Steady.Rate.Drift, -0.5)
}

// ofTheMachine says whether a reason comes from the machine: other programs kept the generator or its packets waiting. Consequences of that count as
// well if the generator or its node is known to have waited.
func ofTheMachine(why reason.Code, waited bool) bool {
	switch why {
	case reason.Neighbours, reason.RunQueue, reason.CpuQuota, reason.StartedLate, reason.Retransmits:
		return true
	case reason.StoodStill, reason.Interrupted, reason.GoScheduler, reason.Overloaded, reason.Drift:
		return waited
	}
	return false
}

// faultless runs loads that are long enough for each check to run. Only the machine's doing may be held against them.
func faultless(t *testing.T) {
	t.Parallel()
	open := []string{"-var", "rate=1k/s", "-var", "duration=14s", "-var", "arrivals=poisson"}
	for model, test := range map[string]struct {
		src, warmUp string
		args        []string
	}{
		"open":   {openPlan, "none", open},
		"warmed": {strings.Replace(openPlan, "drain    = var.drain", "drain = var.drain\nwarmup = \"3s\"", 1), "plan", open},
		"closed": {denseLoad, "none", []string{"-var", "duration=14s"}},
	} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			node := beginTarget(t)
			r := begin(t, test.src, append(test.args, "-var", nodes(node.addr))...).result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness)
			gets := r.Phase["gets"]
			waited := wanting(t, gets, node.cmd.Process.Pid)
			t.Logf("one of the two waited: %t\n%s", waited, doubts(gets))
			require.Equal(t, test.warmUp, gets.WarmUp.By)
			if gets.Steady.Rate.Drift == nil {
				require.True(t, waited, "too little of it was steady")
			}
			require.Positive(t, gets.Generator.TCP.BytesSent)
			if !waited {
				require.Less(t, gets.Generator.Busy, 0.5)
			}
			for _, why := range gets.Reasons {
				require.True(t, ofTheMachine(why.Code, waited), "accused: %s", why.Text)
			}
		})
	}
}

// wanting says whether the kernel saw that the generator or its target, a process that nobody has loaded for longer, lacked a processor: they were in
// a run queue, a quota was spent, or other programs had the machine.
func wanting(t *testing.T, p *run.Phase, target int) bool {
	t.Helper()
	require.NotNil(t, p.Generator.RunQueueWait)
	return slowed(p) || waited(t, target).Seconds()/p.Seconds > 0.01
}

// waited returns how long the threads of a process have waited for a processor.
func waited(t *testing.T, pid int) (sum time.Duration) {
	t.Helper()
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	require.NoError(t, err)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		var ran, queued time.Duration
		_, err = fmt.Sscan(string(b), &ran, &queued)
		require.NoError(t, err)
		sum += queued
	}
	return sum
}
