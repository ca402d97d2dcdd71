package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// openPlan is an open load of gets, on built-in nodes unless there are others.
const openPlan = `
plan "open" {}` + anyEndpoints + `
variable "rate" { default = "1k/s" }
variable "arrivals" { default = "constant" }
variable "duration" { default = "5s" }
variable "sessions" { default = 4 }
variable "pipeline" { default = 4 }
variable "timeout" { default = "10s" }
variable "drain" { default = "10s" }

target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	timeout   = var.timeout
	builtin {}
}
dataset "items" {
	keys { count = 1000 }
	values { size = 100 }
}` + fillItems + `
phase "gets" {
	target  = target.t
	dataset = dataset.items
	ops     = { get = 1 }
	open {
		rate     = var.rate
		duration = var.duration
		arrivals = var.arrivals
		sessions = var.sessions
		pipeline = var.pipeline
		drain    = var.drain
	}
}
`

// server is a built-in node started by hand.
type server struct {
	*process
	addr string
}

// beginTarget starts loadgen target serve on a free port.
func beginTarget(t testing.TB, args ...string) *server {
	t.Helper()
	return serving(start(t, command(t, append([]string{"target", "serve", "--listen", "127.0.0.1:0"}, args...)...)))
}

// serving waits until a node reports its address.
func serving(p *process) *server {
	p.t.Helper()
	p.said("\n")
	addr, ok := strings.CutPrefix(strings.TrimSpace(p.stdout.String()), "cache node at ")
	require.True(p.t, ok, p.stdout.String())
	return &server{p, addr}
}

func (s *server) kill() {
	s.t.Helper()
	require.NoError(s.t, s.cmd.Process.Kill())
	<-s.done
}

// totals adds up the gets of the last phase from the snapshots in a run's directory.
func (l *load) totals(t *testing.T) *measure.Op {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(l.runs, "*", "snapshots.log"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	last := measure.Snapshot{Step: -1}
	for _, next := range readSnapshots(t, logs[0]) {
		if next.Step == last.Step {
			require.NoError(t, last.Merge(&next))
		} else {
			last = next
		}
	}
	require.NoError(t, last.CheckValid())
	require.True(t, last.Final)
	return last.Delta.Ops[driver.Get]
}

// over counts the samples of a histogram above a time.
func over(classes [measure.NumClasses]hist.Hist, limit time.Duration) (n uint64) {
	for i := range classes {
		for upper, count := range classes[i].Buckets() {
			if upper > int64(limit) {
				n += count
			}
		}
	}
	return n
}

// TestOpenLoopKeepsItsRate offers 20,000 Poisson arrivals per second to a Redis server. The sustained rate is the offered rate, to half a per cent,
// and the offered rate is the plan's, within chance. It may differ only if one of the two waited for a processor, and if it is lower, the run says
// so.
func TestOpenLoopKeepsItsRate(t *testing.T) {
	s := cluster(t, 1)[0]
	l := begin(t, openPlan, "-var", nodes(s.Addr), "-var", "rate=20k/s", "-var", "arrivals=poisson",
		"-var", "sessions=16", "-var", "pipeline=64")
	r := l.result(60 * time.Second)
	gets := r.Phase["gets"]
	get := gets.Op["get"]
	require.InDelta(t, 100_000, get.Due, 5*317, "five standard deviations of a Poisson count")
	require.Equal(t, get.Due, get.OK+get.Timeout+get.Error+get.Shed)
	waits := wanting(t, gets, s.Pid())
	if get.OK != get.Due {
		require.True(t, waits, "both had their processors: %+v", get)
		return
	}
	require.Equal(t, get.Due, get.Lag.Count)
	require.NotNil(t, get.Lag.P99)
	lag := l.totals(t).Lag
	require.Equal(t, get.Due, lag.Count())
	t.Logf("offered %.0f/s, achieved %.0f/s (%+.3f %%), lag p50 %v p99 %v, busy %.0f %%, one of the two waited: %t\n%s", *gets.OfferedRate,
		*gets.AchievedRate, 100*(*gets.AchievedRate / *gets.OfferedRate - 1), time.Duration(lag.Quantile(0.5)), time.Duration(lag.Quantile(0.99)),
		100*gets.Generator.Busy, waits, doubts(gets))
	ratio := *gets.AchievedRate / *gets.OfferedRate
	if ratio < 0.995 || ratio > 1.005 {
		require.True(t, waits, "both had their processors")
	}
	if ratio < 0.995 {
		require.Contains(t, doubts(gets), ", sustained ")
	}
}

// TestStallIsInResponsesNotInServices stops a node for a second under 1,000 arrivals per second. The 750 that fall due more than 250 ms before the
// stall's end wait for longer than that, whether they can be sent at once (there is room in flight) or must queue in the generator (there is none).
// Arrivals that fall due later do not. Service times show no more of the stall than what was in flight. Other programs would have to occupy a
// processor for 250 ms to look like a stall.
func TestStallIsInResponsesNotInServices(t *testing.T) {
	const limit, late = 250 * time.Millisecond, 750
	for name, pipeline := range map[string]int{"room in flight": 512, "no room": 64} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // 1,000 arrivals a second each leave most of the processors free
			const sessions = 4
			node := beginTarget(t, "--stall", "1s@3s")
			l := begin(t, openPlan, "-var", nodes(node.addr), "-var", fmt.Sprintf("sessions=%d", sessions), "-var", fmt.Sprintf("pipeline=%d", pipeline))
			r := l.result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness)
			get := r.Phase["gets"].Op["get"]
			require.EqualValues(t, 5000, get.OK)
			all := l.totals(t)
			responses, services := over(all.Response, limit), over(all.Service, limit)
			t.Logf("%d responses and %d services over %v; response max %.3f s, service max %.3f s", responses, services, limit,
				*get.Response.Max, *get.Service.Max)
			require.GreaterOrEqual(t, responses, uint64(late-1), "one may be due as the limit is reached")
			require.Positive(t, services)
			if !wanting(t, r.Phase["gets"], node.cmd.Process.Pid) { // then there may have been other stalls
				require.LessOrEqual(t, float64(responses), 1000**get.Response.Max)
				require.LessOrEqual(t, services, uint64(sessions*pipeline))
			}
			require.GreaterOrEqual(t, *get.Response.Max, 0.998, "who was due as it began, or within a millisecond")
		})
	}
}

// TestDelayIsInEveryService holds a node's replies back: no service time is shorter, and few are much longer.
func TestDelayIsInEveryService(t *testing.T) {
	node := beginTarget(t, "--delay", "20ms")
	gets := begin(t, denseLoad, "-var", nodes(node.addr), "-var", "duration=2s").whole().Phase["gets"]
	get := gets.Op["get"]
	require.GreaterOrEqual(t, *get.Service.Min, 0.020)
	require.LessOrEqual(t, get.OK, uint64(4*(2000/21+1)), "four sessions, a millisecond between their ops")
	if !wanting(t, gets, node.cmd.Process.Pid) {
		require.Less(t, *get.Service.P50, 0.025)
		require.InDelta(t, 4*2/0.0215, get.OK, 60)
	}
}

// TestTargetDiesInMidRun kills the target of an open load: the errors are counted, the ledgers balance, and the run ends on schedule, invalid because
// of its errors.
func TestTargetDiesInMidRun(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"open", "closed"} {
		t.Run(model, func(t *testing.T) {
			t.Parallel()
			node := beginTarget(t)
			src := openPlan
			if model == "closed" {
				src = closedPlan
			}
			l := begin(t, src, "-var", nodes(node.addr), "-var", "duration=8s", "-var", "timeout=500ms")
			l.underWay()
			node.kill()
			r := l.result(60 * time.Second)
			gets := r.Phase["gets"]
			get := gets.Op["get"]
			require.Equal(t, exit.Invalid, r.ExitCode, r.Verdict.Reasons)
			require.Equal(t, run.Complete, r.Verdict.Completeness)
			require.Greater(t, gets.Seconds, 4.0, "it is not ended early")
			require.Positive(t, get.OK)
			require.Positive(t, get.Error)
			require.Equal(t, get.Error, get.Causes.Lost+get.Causes.Refused)
			require.Equal(t, get.Due, get.OK+get.Error+get.Timeout+get.Shed)
			why := "of the sessions' time was lost, by 4 of 4 sessions"
			if model == "open" {
				require.EqualValues(t, 8000, get.Due)
				why = "more than max_bad = 1 %"
			}
			require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), why)
			t.Logf("%+v", get.Causes)
		})
	}
}

// TestTargetThatStopsAnswering stops the target, which still accepts connections and bytes. The schedule goes on, requests time out, memory does not
// grow, and Ctrl-C ends it all without waiting for answers as long as the plan would.
func TestTargetThatStopsAnswering(t *testing.T) {
	node := beginTarget(t)
	l := begin(t, openPlan, "-var", nodes(node.addr), "-var", "duration=10m", "-var", "drain=10m", "-var", "rate=50k/s", "-var", "timeout=300ms")
	l.underWay()
	node.signal(syscall.SIGSTOP)
	time.Sleep(3 * time.Second)
	most := peakMemory(t, l.cmd.Process.Pid)
	l.signal(syscall.SIGINT)
	r := l.result(60 * time.Second)
	node.signal(syscall.SIGCONT)
	require.Equal(t, exit.Aborted, r.ExitCode, r.Verdict.Reasons)
	get := r.Phase["gets"].Op["get"]
	require.Positive(t, get.Timeout)
	require.Equal(t, get.Due, get.OK+get.Error+get.Timeout+get.Shed)
	if !wanting(t, r.Phase["gets"], node.cmd.Process.Pid) {
		require.Greater(t, get.Due, uint64(140_000), "in 3 s, ops became due as if nothing had happened")
	}
	require.Less(t, most, 300<<10, "kB")
	t.Logf("%d kB, %d due, %+v", most, get.Due, get.Causes)
}

// peakMemory returns the peak resident memory of a process since it became this program, in kB. wait4's ru_maxrss is at least that of the process that
// started it.
func peakMemory(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		var kB int
		if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kB); n == 1 {
			return kB
		}
	}
	require.Fail(t, "no VmHWM", "%s", status)
	return 0
}
