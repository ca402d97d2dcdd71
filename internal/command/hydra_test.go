package command_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/driver"
)

// TestHydraOnThreeWorkers runs the README's plan in one process, and with three workers, on four Redis servers. Both do the same, to the digest of
// every op, and the servers counted it.
func TestHydraOnThreeWorkers(t *testing.T) {
	t.Parallel()
	addrs, plan := addresses(cluster(t, 4)), shortHydra(t)
	work := func(l *load) string {
		before := countAll(t, addrs)
		r := l.result(60 * time.Second)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		requireSent(t, r, addrs, before)
		return done(r, addrs)
	}
	alone := work(beginFile(t, plan, "-var", nodes(addrs...)))
	three := beginTeam(t, 3, func(args ...string) *load { return beginFile(t, plan, args...) }, "-var", nodes(addrs...))
	require.Equal(t, alone, work(three.load))
}

// done is what a run did on its servers, as text: the same for every run of the plan that goes through.
func done(r *run.Run, addrs []string) string {
	var b strings.Builder
	for _, name := range r.PhaseOrder {
		p := r.Phase[name]
		fmt.Fprintln(&b, name, p.Digest)
		for verb, o := range p.Op {
			fmt.Fprintln(&b, verb, o.Due, o.OK, o.Miss, o.QuorumFailed, o.Timeout, o.Error, o.InFlight)
		}
	}
	for _, addr := range addrs {
		for _, verb := range []string{"get", "put"} {
			q := sums(r)[addr][verb]
			fmt.Fprintln(&b, addr, verb, q.Sent+q.Refused, q.Timeout, q.Error) // W = 2 waits for no third ack, so a slow server's backlog can fill
		}
	}
	return b.String()
}

// acknowledged counts a verb's ops that ended ok, from a worker's snapshots in the run so far.
func (l *load) acknowledged(worker string, verb driver.Verb) (n uint64) {
	l.t.Helper()
	for _, path := range l.directories() {
		dir := filepath.Dir(path)
		var torn *rundir.TornError
		err := rundir.Snapshots(filepath.Dir(dir), filepath.Base(dir), func(of, b []byte) error {
			var s measure.Snapshot
			_, err := s.Decode(b)
			if o := s.Delta.Ops[verb]; string(of) == worker && o != nil {
				n += o.Ledger().Outcomes[driver.OK]
			}
			return err
		})
		if !errors.As(err, &torn) {
			require.NoError(l.t, err)
		}
	}
	return n
}

// TestHydraLosesAWorker kills one of three workers in the middle of its last session's puts. The gap is named by worker, snapshot and time, its bound
// holds on the servers, and everything else is exact.
func TestHydraLosesAWorker(t *testing.T) {
	t.Parallel()
	addrs, plan := addresses(cluster(t, 4)), shortHydra(t)
	before := countAll(t, addrs)
	sets := func() (sum uint64) {
		for i, after := range countAll(t, addrs) {
			sum += after["put"] - before[i]["put"]
		}
		return sum
	}
	// Session i starts its 300 puts after 2i seconds; sessions 3, 4 and 5 are w2's. It is killed as soon as a snapshot shows the end of session 3.
	tm := beginTeam(t, 3, func(args ...string) *load { return beginFile(t, plan, args...) },
		"-var", nodes(addrs...), "-var", "put_ramp=20s", "--lease", "8s")
	tm.until(func() bool { return tm.acknowledged("w2", driver.Put) >= 300 })
	require.NoError(t, tm.workers[1].cmd.Process.Kill())
	r := tm.result(60 * time.Second)

	require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
	require.Len(t, r.Losses, 1)
	loss := r.Losses[0]
	require.Equal(t, "w2", loss.Worker)
	require.Equal(t, "put", loss.Phase)
	require.Regexp(t, `worker w2 was lost in phase put: no heartbeat for 8s; its last snapshot is number \d+, up to [\d.]+ s of the run; `+
		`at most [\d,]+ ops that it may have sent after that, until [\d.]+ s, are not in the figures`, strings.Join(r.Verdict.Reasons, "\n"))
	require.Positive(t, loss.UnseenOps)
	require.LessOrEqual(t, loss.UnseenOps, uint64(600), "its first session was over, and that is known")
	put, get := r.Phase["put"].Op["put"], r.Phase["get"].Op["get"]
	require.Equal(t, 3000, int(put.Due+loss.UnseenOps))
	require.Equal(t, put.Due, put.OK+uint64(put.InFlight))
	require.EqualValues(t, 7*300, get.OK, "the sessions of the others")
	require.EqualValues(t, 7, r.Phase["get"].Setup.Op["put"].OK)

	var sent, left uint64
	for _, addr := range addrs {
		sent += sums(r)[addr]["put"].Sent
		left += uint64(sums(r)[addr]["put"].InFlight)
	}
	require.LessOrEqual(t, sent-left, sets())
	require.LessOrEqual(t, sets(), sent+3*loss.UnseenOps)
	for i, addr := range addrs {
		require.Equal(t, sums(r)[addr]["get"].Sent, countCalls(t, addr)["get"]-before[i]["get"], "no get was w2's")
	}
	requireKept(t, tm.load, r)
}
