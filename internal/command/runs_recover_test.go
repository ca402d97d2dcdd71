package command_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/pkg/driver"
)

// trialsVariable says how often tests that kill at random times do so.
const trialsVariable = "LOADGEN_TEST_TRIALS"

// trials is how many times to do it; a few unless the variable says otherwise.
func trials(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv(trialsVariable)
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, trialsVariable)
	require.Positive(t, n, trialsVariable)
	return n
}

// killedPlan has every kind of step, and takes two seconds.
const killedPlan = `
plan "killed" {}
target "t" {
	driver = "redis"
	builtin { nodes = 2 }
}
dataset "d" {
	keys { count = 500 }
	values { size = 100 }
}
dataset "own" {
	keys {
		count = 5
		scope = "session"
	}
	values { size = 20 }
}` + fillD + `
phase "gets" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions = 4
		duration = "600ms"
		think    = "4ms"
	}
}
phase "empty" {
	target  = target.t
	dataset = dataset.d
	clear {}
}
phase "own" {
	target  = target.t
	dataset = dataset.own
	ops     = { get = 3, put = 1 }
	setup { ops = { put = 1 } }
	open {
		sessions = 4
		rate     = "2k/s"
		duration = "600ms"
	}
}
phase "steps" {
	target  = target.t
	dataset = dataset.own
	ops     = { put = 1 }
	stages {
		sessions = 4
		stage {
			rate     = "500/s"
			duration = "300ms"
		}
		stage {
			rate     = "1k/s"
			duration = "300ms"
		}
	}
}
`

// TestRecoverKilledRuns kills coordinators at random times. The result of loadgen runs recover counts what the run's snapshots do, to the op, and the
// exit code says that it is not complete.
func TestRecoverKilledRuns(t *testing.T) {
	t.Parallel()
	for seed := range uint64(trials(t, 5)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			var args []string
			if dice.IntN(3) == 0 {
				args = append(args, "--worker-process")
			}
			l := begin(t, killedPlan, args...)
			l.until(func() bool { return len(l.directories()) == 1 })
			time.Sleep(time.Duration(dice.Int64N(int64(2500 * time.Millisecond))))
			send(l.process, syscall.SIGKILL)
			l.wait(60 * time.Second)
			l.requireRecovered()
		})
	}
}

// directories lists those of the runs.
func (l *load) directories() []string {
	l.t.Helper()
	plans, err := filepath.Glob(filepath.Join(l.runs, "*", "snapshots.log"))
	require.NoError(l.t, err)
	return plans
}

// requireRecovered recovers the only run, unless it has its result, and holds the result against the snapshots.
func (l *load) requireRecovered() {
	l.t.Helper()
	id := filepath.Base(filepath.Dir(l.directories()[0]))
	_, err := rundir.Load(l.runs, id)
	finished := err == nil
	again := start(l.t, command(l.t, "runs", "recover", "--runs", l.runs, id))
	code := again.wait(60 * time.Second)
	switch {
	case finished:
		require.Equal(l.t, exit.Failed, code)
		require.Contains(l.t, again.stderr.String(), "it has its result")
		return
	case code == exit.Failed:
		require.Contains(l.t, again.stderr.String(), "has nothing to make a result from")
		require.Empty(l.t, l.counted(id), "there is something")
		return
	}
	r, err := rundir.Load(l.runs, id)
	require.NoError(l.t, err)
	require.Equal(l.t, exit.Degraded, code, "%s%s", &again.stdout, &again.stderr)
	require.Equal(l.t, run.Degraded, r.Verdict.Completeness)
	require.Contains(l.t, r.Verdict.Reasons[0], "the coordinator ended before the result was written")
	require.Contains(l.t, again.stdout.String(), "Exit code 3")
	require.Equal(l.t, l.counted(id), opsOf(r), "%v", r.Verdict.Reasons)
}

// counted adds up how ops ended by the snapshots of a run.
func (l *load) counted(id string) map[string]uint64 {
	l.t.Helper()
	n := map[string]uint64{}
	var s measure.Snapshot
	err := rundir.Snapshots(l.runs, id, func(_, b []byte) error {
		_, err := s.Decode(b)
		for verb, o := range s.Delta.Ops {
			if o == nil {
				continue
			}
			ledger := o.Ledger()
			n[fmt.Sprint(driver.Verb(verb), " due")] += ledger.Due
			for outcome, count := range ledger.Outcomes {
				n[fmt.Sprint(driver.Verb(verb), " ", driver.Outcome(outcome))] += count
			}
		}
		return err
	})
	require.NoError(l.t, err)
	maps.DeleteFunc(n, func(_ string, n uint64) bool { return n == 0 })
	return n
}

// opsOf is the same by the result.
func opsOf(r *run.Run) map[string]uint64 {
	n := map[string]uint64{}
	add := func(ops map[string]*run.Op) {
		for name, o := range ops {
			n[name+" due"] += o.Due
			for outcome, count := range []uint64{o.OK, o.Miss, o.Conflict, o.QuorumFailed, o.Timeout, o.Error, o.Shed} {
				n[fmt.Sprint(name, " ", driver.Outcome(outcome))] += count
			}
		}
	}
	for _, p := range r.Phase {
		add(p.Op)
		if p.Setup != nil {
			add(p.Setup.Op)
		}
	}
	maps.DeleteFunc(n, func(_ string, n uint64) bool { return n == 0 })
	return n
}

// TestRecoverAfterAFullDisk: there is no room for the result, nor for the last snapshots. Once there is room, what was acknowledged gives a result.
func TestRecoverAfterAFullDisk(t *testing.T) {
	t.Parallel()
	disk := mount(t, "2m")
	l := onDisk(t, disk, filepath.Join(t.TempDir(), "run.json"))
	l.underWay()
	fill(t, disk)
	require.Equal(t, exit.Failed, l.wait(60*time.Second), "%s", &l.stderr)
	results, err := filepath.Glob(filepath.Join(disk, "*", "result.json"))
	require.NoError(t, err)
	require.Empty(t, results)

	id := filepath.Base(filepath.Dir(l.directories()[0]))
	again := start(t, command(t, "runs", "recover", "--runs", disk, id))
	require.Equal(t, exit.Failed, again.wait(60*time.Second))
	require.Contains(t, again.stderr.String(), "no space left on device")
	require.NoError(t, os.Remove(filepath.Join(disk, "filler")))
	l.requireRecovered()
}

// TestRecoverLeavesALivingRunAlone while its coordinator is at work.
func TestRecoverLeavesALivingRunAlone(t *testing.T) {
	t.Parallel()
	l := begin(t, closedPlan, "-var", "duration=20s")
	l.underWay()
	id := filepath.Base(filepath.Dir(l.directories()[0]))
	other := start(t, command(t, "runs", "recover", "--runs", l.runs, id))
	require.Equal(t, exit.Failed, other.wait(60*time.Second))
	require.Contains(t, other.stderr.String(), "it is being written")
	l.signal(syscall.SIGINT)
	require.Equal(t, run.Aborted, l.result(60*time.Second).Verdict.Completeness)
}
