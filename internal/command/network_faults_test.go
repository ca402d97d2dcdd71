package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/rundir"
)

// harmedPlan has two sessions for each of thirteen workers, whose ops fall due at known times, whatever happens.
const harmedPlan = `
plan "harmed" {}
variable "endpoints" { type = list(string) }
variable "duration" { type = string }
target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	timeout   = "60s"
}` + hundredD + fillD + `
phase "gets" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	open {
		sessions = 26
		rate     = "260/s"
		arrivals = "constant"
		duration = var.duration
	}
}
`

// harmed is a fleet over TLS, with a worker on each machine between the coordinator's and the server's.
type harmed struct {
	*networked
	*load
	workers []*process
	before  calls
	offsets string // of the clocks of the worker whose clocks are ahead, as the kernel says
	paused  string // of the worker that is stopped for a while: its state before it goes on, as the kernel says
}

// harm starts one on a network, and returns once the load is on.
func harm(n *networked, lease, duration time.Duration) *harmed {
	n.t.Helper()
	n.plan = filepath.Join(n.t.TempDir(), "plan.hcl")
	require.NoError(n.t, os.WriteFile(n.plan, []byte(harmedPlan), 0o600))
	h := &harmed{networked: n, before: n.calls()[0]}
	machines := n.Machines[1 : len(n.Machines)-1]
	h.load = n.run("--listen", "0.0.0.0:7464", "--lease", lease.String(), "--workers", fmt.Sprint(len(machines)), "-var", "duration="+duration.String())
	line := invited(n.t, h.load)
	for i, m := range machines {
		h.workers = append(h.workers, n.worker(m, fmt.Sprintf("w%d", i+1), line))
	}
	h.underWay()
	return h
}

// tell sends signals to workers.
func (h *harmed) tell(s syscall.Signal, workers ...int) {
	h.networked.t.Helper()
	for _, w := range workers {
		h.workers[w-1].signal(s)
	}
}

// process is the PID of a worker's own process, below those that put it on its machine.
func (h *harmed) process(worker int) int {
	all := family(h.workers[worker-1].cmd.Process.Pid)
	return all[len(all)-1]
}

// received counts what the server has carried out since the fleet has started.
func (h *harmed) received() uint64 {
	now := h.calls()[0]
	return now["get"] + now["put"] - h.before["get"] - h.before["put"]
}

// Each worker of TestFaultsOnANetwork is named after what happens to it.
const (
	untouchedOne = iota + 1
	killedOne
	silentOne
	muteOne
	deafOne
	pausedOne
	stoppedOne
	unpluggedOne
	flappingOne
	lossyOne
	aheadOne
	leavingOne
	brokenOne
	harmedWorkers = iota
)

// TestFaultsOnANetwork has a fleet of thirteen workers over TLS, with a different fault for each while they load, as listed in docs/failures.md.
// Those that recover within the lease miss nothing. The others are lost, each with the reason, without any effect on the rest. What the server
// received is in the result, or within what the losses declare.
func TestFaultsOnANetwork(t *testing.T) {
	t.Parallel()
	n := newNetworked(t, harmedWorkers+2, 1, "")
	n.Machines[aheadOne].Ahead = 5 * time.Second
	const lease = 10 * time.Second // longer than the harm from which workers recover
	h := harm(n, lease, 24*time.Second)
	h.trouble(lease)
	r := h.result(60 * time.Second)
	require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
	lost := map[string]worker.Loss{}
	for _, loss := range r.Losses {
		lost[loss.Worker] = loss
	}
	for _, row := range []struct {
		fault  string
		worker int
		why    string             // of its loss; "": it is not lost
		sign   func(t *testing.T) // that it has happened
	}{
		{"nothing", untouchedOne, "", nil},
		{"killed", killedOne, "no heartbeat for 10s", nil},
		{"nothing arrives either way", silentOne, "no heartbeat for 10s", nil},
		{"nothing arrives at the coordinator", muteOne, "no heartbeat for 10s", nil},
		{"nothing arrives at the worker", deafOne, "no heartbeat for 10s", nil},
		{"stopped for longer than its lease", stoppedOne, "no heartbeat for 10s", nil},
		{"stopped by its user", leavingOne, "it was stopped on its own machine", nil},
		{"stopped for less than its lease", pausedOne, "", func(t *testing.T) { // then it finds that it waited for too long, or what it was sent meanwhile
			require.Regexp(t, `State:\tT `, h.paused)
		}},
		{"cable out and in again", unpluggedOne, "", func(t *testing.T) { requireTriedAgain(t, h.workers[unpluggedOne-1]) }},
		{"cable out and in, again and again", flappingOne, "", func(t *testing.T) {
			require.GreaterOrEqual(t, h.number(flappingOne, "cat /sys/class/net/eth0/carrier_changes"), 2*flaps)
		}},
		{"one packet in twenty is lost each way", lossyOne, "", func(t *testing.T) {
			require.Greater(t, h.number(lossyOne, "nstat -asz TcpRetransSegs | awk '/Retrans/ { print $2 }'"), 3)
		}},
		{"clock 5 s ahead", aheadOne, "", func(t *testing.T) {
			require.Regexp(t, `monotonic +5 `, h.offsets)
		}},
		{"connection broken", brokenOne, "", func(t *testing.T) { requireTriedAgain(t, h.workers[brokenOne-1]) }},
	} {
		t.Run(row.fault, func(t *testing.T) {
			loss, gone := lost[fmt.Sprintf("w%d", row.worker)]
			require.Equal(t, row.why != "", gone, "%+v", loss)
			if gone {
				require.Contains(t, loss.Why, row.why)
				require.Equal(t, "gets", loss.Phase)
			}
			if row.sign != nil {
				row.sign(t)
			}
		})
	}
	requireAccounted(t, h.load, r, h.received())
}

// flaps is how often a cable is unplugged and plugged in again.
const flaps = 4

// trouble is the workers' faults. Those that are to recover end after a fraction of the lease.
func (h *harmed) trouble(lease time.Duration) {
	for _, w := range []int{silentOne, muteOne} {
		h.Cut(h.Machines[w], h.Machines[0])
	}
	for _, w := range []int{silentOne, deafOne} {
		h.Cut(h.Machines[0], h.Machines[w])
	}
	h.Lose(h.Machines[lossyOne], 5)
	h.tell(syscall.SIGKILL, killedOne)
	h.tell(syscall.SIGTERM, leavingOne)
	h.Machines[brokenOne].Output("ss", "--kill", "--tcp", "dst", h.Machines[0].Addr)
	offsets, err := os.ReadFile(fmt.Sprintf("/proc/%d/timens_offsets", h.process(aheadOne)))
	require.NoError(h.networked.t, err)
	h.offsets = string(offsets)

	h.tell(syscall.SIGSTOP, pausedOne, stoppedOne)
	h.Plug(h.Machines[unpluggedOne], false)
	began := time.Now()
	for range flaps {
		h.Plug(h.Machines[flappingOne], false)
		time.Sleep(100 * time.Millisecond)
		h.Plug(h.Machines[flappingOne], true)
		time.Sleep(200 * time.Millisecond)
	}
	time.Sleep(time.Until(began.Add(lease * 4 / 10))) // a worker hangs up after three tenths of it without a word
	h.Plug(h.Machines[unpluggedOne], true)
	paused, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.process(pausedOne)))
	require.NoError(h.networked.t, err)
	h.paused = string(paused)
	h.tell(syscall.SIGCONT, pausedOne)
	time.Sleep(time.Until(began.Add(lease + 2*time.Second)))
	h.tell(syscall.SIGCONT, stoppedOne)
}

// number is what a command on a worker's machine prints.
func (h *harmed) number(worker int, command string) int {
	h.networked.t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(h.Machines[worker].Output("sh", "-c", command)))
	require.NoError(h.networked.t, err)
	return n
}

// requireTriedAgain checks that a worker lost its coordinator and tried to reconnect.
func requireTriedAgain(t *testing.T, w *process) {
	require.Contains(t, w.stderr.String(), "trying until there is one")
}

// TestCoordinatorFaultsOnANetwork stops a coordinator for less than the lease, which changes nothing, and then kills it: load ends with the lease,
// and what was acknowledged gives a result.
func TestCoordinatorFaultsOnANetwork(t *testing.T) {
	t.Parallel()
	n := newNetworked(t, 5, 1, "")
	const lease = 8 * time.Second
	h := harm(n, lease, 10*time.Minute)
	snapshots := func() int { return len(readAll(t, h.load)) }
	h.load.signal(syscall.SIGSTOP)
	time.Sleep(lease / 4)
	h.load.signal(syscall.SIGCONT)
	before := snapshots()
	h.load.until(func() bool { return snapshots() >= before+3*len(h.workers) })
	require.NotContains(t, h.stderr.String(), "lost")

	h.load.signal(syscall.SIGKILL)
	for _, w := range h.workers {
		require.Equal(t, exit.Failed, w.wait(60*time.Second), "%s", &w.stderr)
		require.Contains(t, w.stderr.String(), "not reached for longer than the lease, the run is given up")
	}
	got := h.received()
	h.requireRecovered()
	r, err := rundir.Load(h.runs, filepath.Base(filepath.Dir(h.directories()[0])))
	require.NoError(t, err)
	requireAccounted(t, h.load, r, got)
}
