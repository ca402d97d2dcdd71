package command_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/fleet/runner"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// closedPlan is a closed load of gets, on built-in nodes unless there are others.
const closedPlan = `
plan "closed" {}` + anyEndpoints + `
variable "duration" { default = "10m" }
variable "delay" { default = "0s" }
variable "timeout" { default = "30s" }

target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	timeout   = var.timeout
	builtin {
		nodes = 3
		delay = var.delay
	}
}` + hundredItems + fillItems + `
phase "gets" {
	target  = target.t
	dataset = dataset.items
	ops     = { get = 1 }
	closed {
		sessions = 4
		duration = var.duration
		think    = "20ms"
	}
}
`

// proc is a process's line in /proc without its name: state, parent and so on; nil once it is gone.
func proc(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.Fields(rest)
}

// alive says whether a process runs; a zombie does not.
func alive(pid int) bool {
	stat := proc(pid)
	return len(stat) > 0 && stat[0] != "Z" && stat[0] != "X"
}

// children lists the processes that a process has started. Those that outlive the test are killed at its end.
func children(t testing.TB, parent int) []int {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	require.NoError(t, err)
	var list []int
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		require.NoError(t, err)
		if stat := proc(pid); len(stat) > 1 && stat[1] == strconv.Itoa(parent) {
			list = append(list, pid)
			t.Cleanup(func() {
				if alive(pid) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			})
		}
	}
	return list
}

// requireGone waits until none of the processes runs; on their own they would run forever.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, time.Minute, 2*time.Millisecond, "process %d is still there", pid)
	}
}

// TestCtrlCDrainsAndReports interrupts a run once: nothing more starts, outstanding ops are waited for, and the result covers the part that was run.
func TestCtrlCDrainsAndReports(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			l := begin(t, closedPlan, "-var", "delay=200ms")
			l.underWay()
			nodes := children(t, l.cmd.Process.Pid)
			require.Len(t, nodes, 3)
			l.signal(signal)
			r := l.result(60 * time.Second)
			require.Equal(t, exit.Aborted, r.ExitCode)
			require.Equal(t, run.Aborted, r.Verdict.Completeness)
			require.Contains(t, r.Verdict.Reasons, "stopped by the user")
			get := r.Phase["gets"].Op["get"]
			require.Positive(t, get.OK)
			require.Equal(t, get.Due, get.OK)
			require.Zero(t, get.InFlight)
			require.Contains(t, l.stdout.String(), "Exit code 5")
			requireGone(t, nodes)
			loadable(t, l)
		})
	}
}

// TestCtrlCAfterSilence stops the server, and interrupts the run two seconds later: the load lasts until then, and its rate is over all of that time.
func TestCtrlCAfterSilence(t *testing.T) {
	t.Parallel()
	const silence = 2 * time.Second
	server := beginTarget(t)
	l := begin(t, closedPlan, "-var", nodes(server.addr))
	l.until(func() bool { return l.acknowledged(runner.Local, driver.Get) > 40 }) // ten of each session
	send(server.process, syscall.SIGSTOP)
	time.Sleep(silence)
	l.signal(syscall.SIGINT)
	r := l.result(60 * time.Second)
	send(server.process, syscall.SIGCONT)
	get := r.Phase["gets"].Op["get"]
	require.Equal(t, exit.Aborted, r.ExitCode)
	require.EqualValues(t, 4, get.InFlight, "no session has its last answer")
	require.Greater(t, r.Phase["gets"].Seconds, silence.Seconds())
	require.Less(t, *get.Rate, float64(get.OK)/silence.Seconds())
	require.Less(t, *get.RateWall, float64(get.OK)/silence.Seconds())
}

// TestHangUpEndsAWorkerUnlessIgnored hangs up on two workers that wait for a coordinator. The second was started as nohup starts a command.
func TestHangUpEndsAWorkerUnlessIgnored(t *testing.T) {
	for _, ignored := range []bool{false, true} {
		cmd := command(t, "worker", "--name", "w")
		if ignored {
			cmd.Args = append([]string{"sh", "-c", `trap "" HUP; exec loadgen "$@"`}, cmd.Args...)
			path, err := exec.LookPath("sh")
			require.NoError(t, err)
			cmd.Path = path
		}
		w := start(t, cmd)
		require.Eventually(t, func() bool { return strings.Contains(w.stderr.String(), "no coordinator there") }, time.Minute, 10*time.Millisecond)
		send(w, syscall.SIGHUP)
		if ignored {
			time.Sleep(300 * time.Millisecond)
			require.True(t, alive(w.cmd.Process.Pid))
			send(w, syscall.SIGTERM)
		}
		require.Zero(t, w.wait(time.Minute))
	}
}

// TestAClosedPipeEndsTheProgressOnly has nobody read what a run says after its first line: the run goes on, and its result is kept.
func TestAClosedPipeEndsTheProgressOnly(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"lines", "json"} {
		dir := t.TempDir()
		path, runs := filepath.Join(dir, "plan.hcl"), filepath.Join(dir, "runs")
		require.NoError(t, os.WriteFile(path, []byte(patient(closedPlan)), 0o600))
		reader, writer, err := os.Pipe()
		require.NoError(t, err)
		cmd := command(t, "coordinator", "run", path, "--runs", runs, "--progress", form, "-var", "duration=3s")
		cmd.Stdout, cmd.Stderr = writer, writer
		p := start(t, cmd)
		require.NoError(t, writer.Close())
		_, err = bufio.NewReader(reader).ReadString('\n')
		require.NoError(t, err)
		require.NoError(t, reader.Close())
		p.wait(time.Minute)
		kept, err := filepath.Glob(filepath.Join(runs, "*", "result.json"))
		require.NoError(t, err)
		require.Len(t, kept, 1, form)
	}
}

// TestCtrlCTwiceEndsAtOnce interrupts a run twice whose target has come to take a minute: it ends with what it has, without waiting for answers, and what was outstanding
// stays in the ledgers as in flight.
func TestCtrlCTwiceEndsAtOnce(t *testing.T) {
	t.Parallel()
	slow := "\tevent \"slow\" {\n\t\tat    = \"100ms\"\n\t\tdo    = \"delay\"\n\t\tdelay = \"1m\"\n\t}\n"
	l := begin(t, strings.TrimSuffix(closedPlan, "}\n")+slow+"}\n")
	l.underWay()
	nodes := children(t, l.cmd.Process.Pid)
	require.Len(t, nodes, 3)
	l.signal(syscall.SIGINT)
	time.Sleep(50 * time.Millisecond)
	at := time.Now()
	send(l.process, syscall.SIGINT)
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Aborted, r.ExitCode)
	get := r.Phase["gets"].Op["get"]
	require.Positive(t, get.InFlight, "the second time, replies are not awaited")
	require.EqualValues(t, get.Due, get.OK+uint64(get.InFlight))
	requireGone(t, nodes)
	loadable(t, l)
	t.Logf("ended %v after the second interrupt; %d in flight", l.ended.Sub(at), get.InFlight)
}

// TestCtrlCTwiceWithStoppedNodes interrupts a run twice whose built-in nodes cannot end on their own: they are killed.
func TestCtrlCTwiceWithStoppedNodes(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan)
	l.underWay()
	nodes := children(t, l.cmd.Process.Pid)
	require.Len(t, nodes, 3)
	for _, pid := range nodes {
		require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	}
	l.signal(syscall.SIGINT)
	time.Sleep(50 * time.Millisecond)
	send(l.process, syscall.SIGINT) // or while it reports, having found by itself that nobody answers
	require.Equal(t, exit.Aborted, l.result(60*time.Second).ExitCode)
	requireGone(t, nodes)
}

// TestNodeThatEndsIsNamed kills a built-in node in mid-run: the run goes on, counts errors, and says which node ended.
func TestNodeThatEndsIsNamed(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan, "-var", "duration=6s")
	l.underWay()
	require.NoError(t, syscall.Kill(children(t, l.cmd.Process.Pid)[0], syscall.SIGKILL))
	r := l.result(60 * time.Second)
	require.Positive(t, r.Phase["gets"].Op["get"].Error)
	require.Regexp(t, `loadgen: cache node \d \(127\.0\.0\.1:\d+\) ended: signal: killed`, l.stderr.String())
}

// TestCtrlCOfATargetThatStandsStill interrupts a run once whose target will never answer: the run does not wait until requests time out.
func TestCtrlCOfATargetThatStandsStill(t *testing.T) {
	t.Parallel()
	node := beginTarget(t)
	l := begin(t, closedPlan, "-var", nodes(node.addr), "-var", "timeout=10m")
	l.underWay()
	node.signal(syscall.SIGSTOP)
	time.Sleep(500 * time.Millisecond)
	l.signal(syscall.SIGINT)
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Aborted, r.ExitCode)
	get := r.Phase["gets"].Op["get"]
	require.Positive(t, get.InFlight)
	require.Equal(t, get.Due, get.OK+uint64(get.InFlight))
}

// TestCtrlCBeforeTheLoad interrupts a run that waits for a server: it stops waiting.
func TestCtrlCBeforeTheLoad(t *testing.T) {
	t.Parallel()
	node := beginTarget(t, "--stall", "1h@0s")
	l := begin(t, closedPlan, "-var", nodes(node.addr))
	l.until(func() bool {
		dirs, err := filepath.Glob(filepath.Join(l.runs, "*", "snapshots.log"))
		return err == nil && len(dirs) == 1
	})
	time.Sleep(100 * time.Millisecond)
	l.signal(syscall.SIGINT)
	r := l.result(60 * time.Second)
	require.Equal(t, exit.Aborted, r.ExitCode)
	require.Empty(t, r.PhaseOrder)
}

// TestNodesEndWithAKilledCoordinator kills the coordinator with SIGKILL: the nodes notice on their own.
func TestNodesEndWithAKilledCoordinator(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan)
	l.underWay()
	nodes := children(t, l.cmd.Process.Pid)
	require.Len(t, nodes, 3)
	require.NoError(t, l.cmd.Process.Kill())
	at := time.Now()
	requireGone(t, nodes)
	t.Logf("gone after %v", time.Since(at))
	<-l.done
	p := start(t, command(t, "runs", "list", "--runs", l.runs))
	require.Zero(t, p.wait(60*time.Second))
	require.Contains(t, p.stdout.String(), "no result yet", "a run that was cut off is listed as that")
}

// TestTargetServeEndsOnCtrlC is about a node started by hand.
func TestTargetServeEndsOnCtrlC(t *testing.T) {
	t.Parallel()
	node := beginTarget(t)
	ask(t, node.addr, "SET", "k", "v")
	node.signal(syscall.SIGINT)
	require.Zero(t, node.wait(60*time.Second))
}

// loadable checks that what was kept can be shown.
func loadable(t *testing.T, l *load) {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join(l.runs, "*"))
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	p := start(t, command(t, "runs", "show", filepath.Base(dirs[0]), "--runs", l.runs))
	require.Zero(t, p.wait(60*time.Second), "%s", &p.stderr)
	require.Contains(t, p.stdout.String(), "Exit code 5")
}
