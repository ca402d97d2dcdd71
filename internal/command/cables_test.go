package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/faultproxy"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/driver"
)

// cabled is a team of three workers, each connected to the coordinator through its own proxy, and the node that they load.
type cabled struct {
	*team
	cables []*faultproxy.Proxy
	node   *server
}

// lay starts a cabled team on a plan whose nodes are a variable.
func lay(t *testing.T, plan string, args ...string) *cabled {
	t.Helper()
	c := &cabled{node: beginTarget(t)}
	args = append(args, "-var", nodes(c.node.addr))
	c.team = invite(t, 3, func(all ...string) *load { return begin(t, plan, all...) }, args...)
	for range 3 {
		proxy, err := faultproxy.Start(c.addr)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, proxy.Close()) })
		c.cables = append(c.cables, proxy)
		c.join(proxy.Addr())
	}
	return c
}

// received counts what the node has carried out so far.
func (c *cabled) received() uint64 {
	c.t.Helper()
	all := countCalls(c.t, c.node.addr)
	return all["get"] + all["put"]
}

// receivedFrom counts what came from a worker's connections, by their local ports.
func (c *cabled) receivedFrom(worker int) (sum uint64) {
	c.t.Helper()
	mine := ports(c.t, c.workers[worker].cmd.Process.Pid)
	for line := range strings.Lines(ask(c.t, c.node.addr, "INFO", "peers")) {
		peer, counts, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "peer_127.0.0.1:"), ":")
		if mine[peer] {
			for part := range strings.SplitSeq(counts, ",") {
				if name, digits, _ := strings.Cut(part, "="); name != "other" {
					n, err := strconv.ParseUint(digits, 10, 64)
					require.NoError(c.t, err)
					sum += n
				}
			}
		}
	}
	return sum
}

// ports lists the local ports of a process' TCP connections.
func ports(t testing.TB, pid int) map[string]bool {
	t.Helper()
	own := map[string]bool{}
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	require.NoError(t, err)
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, "socket:[") { // else it was closed meanwhile
			own[strings.Trim(to, "socket:[]")] = true
		}
	}
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/tcp", pid))
	require.NoError(t, err)
	list := map[string]bool{}
	for line := range strings.Lines(string(table)) {
		words := strings.Fields(line) // sl local_address rem_address st … inode is the tenth
		if len(words) > 9 && own[words[9]] {
			_, hex, _ := strings.Cut(words[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			require.NoError(t, err)
			list[strconv.FormatUint(port, 10)] = true
		}
	}
	return list
}

// comesToRest waits until the node receives nothing more: what was in sockets when its senders stopped is carried out once the node gets a processor.
func comesToRest(t testing.TB, received func() uint64) {
	t.Helper()
	before, since := received(), time.Now()
	require.Eventually(t, func() bool {
		if now := received(); now != before {
			before, since = now, time.Now()
		}
		return time.Since(since) > 500*time.Millisecond
	}, time.Minute, 100*time.Millisecond)
}

// requireKept checks what is kept of a run: every snapshot once and in order, up to the final report of every worker that was not lost, and up to the
// number in the loss of one that was.
func requireKept(t testing.TB, l *load, r *run.Run) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(l.runs, "*", "snapshots.log"))
	require.NoError(t, err)
	require.Len(t, logs, 1)
	last := map[string]measure.Snapshot{}
	require.NoError(t, rundir.Snapshots(l.runs, filepath.Base(filepath.Dir(logs[0])), func(worker, b []byte) error {
		var s measure.Snapshot
		_, err := s.Decode(b)
		require.Equal(t, last[string(worker)].SeqLast+1, s.SeqFirst, "%s", worker)
		last[string(worker)] = s
		return err
	}))
	lost := map[string]worker.Loss{}
	for _, loss := range r.Losses {
		lost[loss.Worker] = loss
	}
	for _, worker := range r.Workers {
		loss, gone := lost[worker]
		switch {
		case !gone && r.Verdict.Completeness != run.Failed:
			require.True(t, last[worker].Final, "%s has not said its last word", worker)
		case gone && loss.Seq > 0:
			require.Equal(t, loss.Seq, last[worker].SeqLast, "%s", worker)
		}
	}
}

// requireAccounted compares what the node received with the result: the same if that is complete, otherwise within what the losses declare. Whether
// ops in flight when a worker stopped were ever sent is unknown.
func (c *cabled) requireAccounted(r *run.Run) {
	c.t.Helper()
	requireAccounted(c.t, c.load, r, c.received())
}

// requireAccounted does that with the number of requests that the node received.
func requireAccounted(t testing.TB, l *load, r *run.Run, got uint64) {
	t.Helper()
	var sent, left, bound uint64
	for _, verbs := range sums(r) {
		for _, q := range verbs {
			sent += q.Sent
			left += uint64(q.InFlight)
		}
	}
	for _, loss := range r.Losses {
		bound += loss.UnseenOps
	}
	t.Logf("%d requests at the node, %d in the result, of them %d in flight, at most %d unseen; %s", got, sent, left, bound, r.Verdict.Completeness)
	require.LessOrEqual(t, sent-left, got)
	require.LessOrEqual(t, got, sent+bound)
	if r.Verdict.Completeness == run.Complete {
		require.Empty(t, r.Losses)
		require.Equal(t, sent, got)
	}
	requireKept(t, l, r)
}

// TestCutCableEndsTheLoad cuts a worker's cable for good, one way and both ways: the others carry on, the result names the worker and bounds
// what it may have done unseen, and its load ends with the lease.
func TestCutCableEndsTheLoad(t *testing.T) {
	t.Parallel()
	const lease = 6 * time.Second // of the others, too, which wait for their turn on a busy machine
	for name, fault := range map[string]faultproxy.Fault{
		"worker to coordinator": {DropUp: true},
		"coordinator to worker": {DropDown: true},
		"both ways":             {DropUp: true, DropDown: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := lay(t, closedPlan, "--lease", lease.String(), "-var", "duration=16s")
			c.until(func() bool { return c.acknowledged("w2", driver.Get) > 0 }) // a snapshot of the step that is cut off is kept
			c.cables[1].Set(fault)
			comesToRest(t, func() uint64 { return c.receivedFrom(1) })
			require.True(t, alive(c.cmd.Process.Pid), "the load of the others goes on")
			r := c.result(60 * time.Second)
			require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
			require.Len(t, r.Losses, 1)
			require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), "worker w2 was lost in phase gets: no heartbeat for 6s; its last snapshot is number ")
			require.Positive(t, r.Losses[0].UnseenOps)
			c.requireAccounted(r)
		})
	}
}

// TestSlowCable: a worker behind 64 kbit/s and a round trip of half a second. Its counts come later, but all of them come.
func TestSlowCable(t *testing.T) {
	t.Parallel()
	c := lay(t, closedPlan, "-var", "duration=8s")
	c.cables[0].Set(faultproxy.Fault{Rate: 64_000 / 8, Delay: 250 * time.Millisecond})
	r := c.whole()
	require.GreaterOrEqual(t, r.Fleet[0].ClockUncertaintySeconds, 0.25)
	c.requireAccounted(r)
}

// TestFlappingCable takes a worker's cable away for a second in every two: it attaches again and again, and nothing is missing or twice.
func TestFlappingCable(t *testing.T) {
	t.Parallel()
	c := lay(t, closedPlan, "-var", "duration=12s")
	c.underWay()
	for range 5 {
		c.cables[2].Set(faultproxy.Fault{Down: true})
		c.cables[2].Reset()
		time.Sleep(time.Second)
		c.cables[2].Set(faultproxy.Fault{})
		time.Sleep(time.Second)
	}
	r := c.whole()
	c.requireAccounted(r)
}

// TestDiskOfAFleetFillsUp takes the coordinator's disk away during a run of three workers: the run ends there, on all of them, and the result matches
// what was kept.
func TestDiskOfAFleetFillsUp(t *testing.T) {
	t.Parallel()
	disk := mount(t, "2m")
	c := lay(t, closedPlan, "--runs", disk)
	c.runs = disk
	c.underWay()
	fill(t, disk)
	r := c.result(60 * time.Second)
	require.Equal(t, exit.Failed, r.ExitCode)
	require.Contains(t, strings.Join(r.Verdict.Reasons, "\n"), "no space left on device")
	require.Positive(t, r.Phase["gets"].Op["get"].OK)
	comesToRest(t, c.received)
	for _, w := range c.workers {
		require.Zero(t, w.wait(60*time.Second), "%s", &w.stderr)
	}
}
