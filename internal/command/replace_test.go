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
)

// replacedPlan has a load of known length before and after the one in which a worker is lost.
const replacedPlan = `
plan "replaced" { %s }
variable "endpoints" { type = list(string) }` + redisT + hundredD + `
phase "puts" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	open {
		sessions = 6
		rate     = "500/s"
		arrivals = "constant"
		duration = "8s"
	}
}
phase "gets" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions   = 6
		iterations = 300
	}
}
`

// TestReplaceAKilledWorker: a worker is killed in the first phase, and another joins, over any transport. It does in the second phase what the first
// one would have done.
func TestReplaceAKilledWorker(t *testing.T) {
	for called, listen := range map[string]string{"w4": "0.0.0.0:0", "w2": "socket:replace-test"} {
		t.Run(called+" at "+listen, func(t *testing.T) {
			t.Parallel()
			node := beginTarget(t)
			tm := &team{load: begin(t, fmt.Sprintf(replacedPlan, `on_worker_loss = "replace"`), "--listen", listen, "--workers", "3", "--lease", "6s", "--wait", "1m", "-var", nodes(node.addr))}
			var how []string
			tm.until(func() bool {
				for l := range strings.Lines(tm.stderr.String()) {
					if _, said, there := strings.Cut(l, "start each with loadgen worker"); there {
						how = strings.Fields(said)
						return true
					}
				}
				return false
			})
			come := func(name string) *process {
				return start(t, tm.command(append([]string{"worker", "--name", name, "--once", "--loops", "1"}, how...)...))
			}
			workers := []*process{come("w1"), come("w2"), come("w3")}
			tm.until(func() bool { return len(readAll(t, tm.load)) > 3 })
			send(workers[1], syscall.SIGKILL)
			workers[1].wait(60 * time.Second)
			workers = append(workers, come(called))
			r := tm.result(60 * time.Second)
			require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
			require.Len(t, r.Losses, 1)
			require.Equal(t, []string{"w2", "puts", called, "gets"}, []string{r.Losses[0].Worker, r.Losses[0].Phase, r.Losses[0].ReplacedBy, r.Losses[0].ReplacedFrom})
			require.EqualValues(t, 1800, r.Phase["gets"].Op["get"].OK+r.Phase["gets"].Op["get"].Miss, "of all sessions")
			calls := countCalls(t, node.addr)
			require.EqualValues(t, 1800, calls["get"])
			puts := r.Phase["puts"].Op["put"]
			require.LessOrEqual(t, calls["put"], puts.Sent+r.Losses[0].UnseenOps)
			require.GreaterOrEqual(t, calls["put"], puts.OK)
			require.Contains(t, strings.Join(strings.Fields(tm.stdout.String()), " "), "from phase gets on, "+called+" had its sessions")
			for i, w := range workers {
				if i != 1 {
					require.Zero(t, w.wait(60*time.Second), "%s", &w.stderr)
				}
			}
		})
	}
}

// readAll returns the snapshots that a run has kept so far, of any step.
func readAll(t *testing.T, l *load) (steps []int) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(l.runs, "*", "snapshots.log"))
	require.NoError(t, err)
	for _, path := range logs {
		for _, s := range readSnapshots(t, path) {
			steps = append(steps, s.Step)
		}
	}
	return steps
}

// TestReplaceIsRefused if no other worker has what a phase needs: for a plan's setting, at its line; for a flag, before any load.
func TestReplaceIsRefused(t *testing.T) {
	t.Parallel()
	const logs = `
plan "logs" { %s }
target "log" {
	driver = "log"
	layout = "append"
}
dataset "d" {
	keys { count = 1 }
	values { size = 100 }
}
phase "write" {
	target  = target.log
	dataset = dataset.d
	ops     = { append = 1 }
	closed {
		sessions   = 1
		iterations = 10
	}
}
phase "more" {
	target  = target.log
	dataset = dataset.d
	ops     = { append = 1 }
	closed {
		sessions   = 1
		iterations = 10
	}
}
`
	write := func(attribute string) string {
		path := filepath.Join(t.TempDir(), "plan.hcl")
		require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, logs, attribute), 0o600))
		return path
	}
	check := start(t, command(t, "plan", "check", write(`on_worker_loss = "replace"`)))
	require.Equal(t, 2, check.wait(60*time.Second), "%s", &check.stdout)
	require.Contains(t, check.stderr.String(), `phase "more" needs the log files that phase "write" leaves on a worker's machine`)
	flagged := start(t, command(t, "coordinator", "run", write(""), "--workers", "2", "--on-worker-loss", "replace"))
	require.Equal(t, 2, flagged.wait(60*time.Second))
	require.Contains(t, flagged.stderr.String(), `phase "more" needs the log files that phase "write" leaves`)
}
