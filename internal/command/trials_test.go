package command_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
)

// trialPlan has three phases of known work, between which workers are replaced.
const trialPlan = `
plan "trial" { on_worker_loss = "replace" }
variable "endpoints" { type = list(string) }
target "t" {
	driver    = "redis"
	endpoints = var.endpoints
	timeout   = "500ms"
}` + hundredD + `
phase "puts" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	open {
		sessions = 6
		rate     = "1000/s"
		arrivals = "constant"
		duration = "1s"
	}
}
phase "gets" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions   = 6
		iterations = 200
		think      = "2ms"
	}
}
phase "more" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	closed {
		sessions = 6
		duration = "600ms"
		think    = "2ms"
	}
}
`

// TestTrials kills, stops and ends anything that takes part in a run, at random times: its workers, its node, its coordinator. New workers replace
// lost ones. Whatever happens, the run ends in time, with its result's exit code; what the node received is in the figures, or within what the losses
// declare; what a killed coordinator has left gives a result that counts what its snapshots do; and no process is left behind.
func TestTrials(t *testing.T) {
	t.Parallel()
	for seed := range uint64(trials(t, 8)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			tr := &trial{t: t, dice: rand.New(rand.NewPCG(seed, 3))}
			tr.begin()
			tr.trouble()
			tr.end()
		})
	}
}

// trial is a run to which faults happen.
type trial struct {
	t    *testing.T
	dice *rand.Rand
	c    *cabled

	killed bool // the coordinator
	harmed bool // the node
	ended  bool // somebody wanted an early end
}

func (tr *trial) begin() {
	tr.c = &cabled{node: beginTarget(tr.t)}
	tr.c.team = invite(tr.t, 3, func(all ...string) *load { return begin(tr.t, trialPlan, all...) }, "--lease", "1s", "--wait", "5s", "-var", nodes(tr.c.node.addr))
	for range 3 {
		tr.c.join(tr.c.addr)
	}
	tr.c.told("3 of 3 workers")
}

// trouble is the faults, one after another.
func (tr *trial) trouble() {
	for range 1 + tr.dice.IntN(3) {
		time.Sleep(time.Duration(tr.dice.Int64N(int64(1200 * time.Millisecond))))
		i := tr.dice.IntN(len(tr.c.workers))
		switch what := tr.dice.IntN(12); what {
		case 0, 1, 2:
			tr.t.Log("worker killed", i+1)
			send(tr.c.workers[i], syscall.SIGKILL)
			tr.c.join(tr.c.addr)
		case 3:
			tr.t.Log("worker ended", i+1)
			send(tr.c.workers[i], syscall.SIGTERM)
			tr.c.join(tr.c.addr)
		case 4, 5:
			tr.pause("worker", tr.c.workers[i])
		case 6:
			tr.pause("node", tr.c.node.process)
		case 7:
			tr.t.Log("node killed")
			tr.harmed = true
			send(tr.c.node.process, syscall.SIGKILL)
		case 8:
			tr.pause("coordinator", tr.c.process)
		case 9, 10:
			tr.t.Log("coordinator killed")
			tr.killed = true
			send(tr.c.process, syscall.SIGKILL)
		case 11:
			tr.t.Log("coordinator ended")
			tr.killed = tr.killed || tr.ended // a second signal that comes behind its last word kills it
			tr.ended = true
			send(tr.c.process, syscall.SIGTERM)
		}
	}
}

// pause stops a process for up to two leases.
func (tr *trial) pause(who string, p *process) {
	lasts := time.Duration(tr.dice.Int64N(int64(2 * time.Second)))
	tr.t.Log(who, "stopped for", lasts.Round(time.Millisecond))
	send(p, syscall.SIGSTOP)
	time.Sleep(lasts)
	send(p, syscall.SIGCONT)
}

// end waits for the run and looks at what it has left.
func (tr *trial) end() {
	code := tr.c.wait(90 * time.Second)
	time.Sleep(100 * time.Millisecond) // what was in sockets has come
	id := filepath.Base(filepath.Dir(tr.c.directories()[0]))
	r, err := rundir.Load(tr.c.runs, id)
	switch {
	case err != nil && tr.killed:
		time.Sleep(1500 * time.Millisecond) // leases are over
		tr.recovered(id)
	default:
		require.NoError(tr.t, err, "%s", &tr.c.stderr)
		if !tr.killed { // it may have been killed behind its last word
			require.Equal(tr.t, r.ExitCode, code, "%s", &tr.c.stderr)
		}
		tr.requireVerdict(r)
		tr.requireCounts(r)
	}
	for _, w := range tr.c.workers { // those that wait for another run are told to go
		send(w, syscall.SIGCONT)
		send(w, syscall.SIGTERM)
		w.wait(60 * time.Second)
	}
	require.Empty(tr.t, children(tr.t, tr.c.cmd.Process.Pid))
}

// recovered makes a result of what a killed coordinator has left.
func (tr *trial) recovered(id string) {
	again := start(tr.t, command(tr.t, "runs", "recover", "--runs", tr.c.runs, id))
	code := again.wait(60 * time.Second)
	if strings.Contains(again.stderr.String(), "has nothing to make a result from") {
		require.Equal(tr.t, exit.Failed, code)
		require.Empty(tr.t, tr.c.counted(id))
		return
	}
	r, err := rundir.Load(tr.c.runs, id)
	require.NoError(tr.t, err, "%s", &again.stderr)
	require.Equal(tr.t, r.ExitCode, code)
	require.Contains(tr.t, []int{exit.Degraded, exit.Aborted, exit.Failed}, code)
	require.Equal(tr.t, tr.c.counted(id), opsOf(r), "%v", r.Verdict.Reasons)
	tr.requireCounts(r)
}

// requireVerdict compares the result's verdict with what happened.
func (tr *trial) requireVerdict(r *run.Run) {
	switch r.Verdict.Completeness {
	case run.Complete:
		require.Empty(tr.t, r.Losses)
		require.NotContains(tr.t, []int{exit.Degraded, exit.Aborted, exit.Failed}, r.ExitCode)
	case run.Degraded:
		require.NotEmpty(tr.t, r.Losses)
		require.Equal(tr.t, exit.Degraded, r.ExitCode)
	case run.Aborted:
		require.True(tr.t, tr.ended)
		require.Equal(tr.t, exit.Aborted, r.ExitCode)
	case run.Failed:
		require.True(tr.t, tr.harmed || len(r.Losses) > 0 || len(r.PhaseOrder) < 3, "%v", r.Verdict.Reasons)
		require.Equal(tr.t, exit.Failed, r.ExitCode)
	}
	for i, w := range r.Fleet {
		if w.Replaces != "" {
			require.True(tr.t, slices.ContainsFunc(r.Losses, func(l worker.Loss) bool { return l.ReplacedBy == w.Name && l.Worker == w.Replaces }), "fleet[%d]", i)
		}
	}
}

// requireCounts compares the result with what the node received.
func (tr *trial) requireCounts(r *run.Run) {
	if tr.harmed {
		return
	}
	var sent, left, bound uint64
	for _, verbs := range sums(r) {
		for _, q := range verbs {
			sent += q.Sent
			left += uint64(q.InFlight)
		}
	}
	for _, l := range r.Losses {
		bound += l.UnseenOps
	}
	got := tr.c.received()
	tr.t.Logf("%d requests at the node, %d in the result, of them %d in flight, at most %d unseen; %s", got, sent, left, bound, r.Verdict.Completeness)
	require.LessOrEqual(tr.t, sent-left, got+tr.timedOut(r))
	require.LessOrEqual(tr.t, got, sent+bound)
}

// timedOut counts requests that ended without an answer: a node that stood still may hold them unread when they are given up.
func (tr *trial) timedOut(r *run.Run) (n uint64) {
	for _, p := range r.Phase {
		for _, q := range p.Requests {
			n += q.Timeout + q.Error
		}
	}
	return n
}
