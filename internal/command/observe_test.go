package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/servertest"
)

// observing observes a load of a target from all sides, one of which does not answer.
const observing = `
plan "observing" {}` + anyEndpoints + `
variable "driver" { default = "redis" }
variable "duration" { default = "4s" }
target "cache" {
	driver    = var.driver
	endpoints = var.endpoints
	builtin {}
}
dataset "items" {
	keys { count = 100 }
	values { size = "100B" }
}
observe "server" {
	timeout = "30s"
	server { target = target.cache }
}
observe "process" {
	process { target = target.cache }
}
observe "disk" {
	directory { path = "." }
}
observe "nobody" {
	prometheus {
		url    = "http://127.0.0.1:1/metrics"
		series = { up = "up" }
	}
}` + fillCache + `
phase "read" {
	target  = target.cache
	dataset = dataset.items
	ops     = { get = 1 }
	closed {
		sessions = 2
		duration = var.duration
		think    = "2ms"
	}
}
phase "empty" {
	target  = target.cache
	dataset = dataset.items
	clear {}
}
assert "the server's processor time is known" {
	that = phase.read.observe.process.cpu_seconds.rate >= 0
}
`

// What servers and the kernel count agrees with loadgen's counts; an observation that nobody answers does not fail the run.
func TestObservedSides(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ driver, nodes, hits string }{
		"redis":     {"redis", nodes(servertest.Redis(t)), "keyspace_hits"},
		"memcached": {"memcached", nodes(servertest.Memcached(t)), "get_hits"},
		"built in":  {"redis", "endpoints=[]", "keyspace_hits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, observing, "-var", "driver="+c.driver, "-var", c.nodes, "--http", "127.0.0.1:0")
			page := l.lastPage()
			r := l.result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			require.Equal(t, run.Pass, r.Verdict.Assertions, r.Verdict.Reasons)
			ph := r.Phase["read"]
			hits := ph.Observe["server"][c.hits]
			require.True(t, hits.Counter)
			require.InDelta(t, float64(ph.Op["get"].OK), *hits.Delta, 0, "each hit, and no other")
			require.Greater(t, *ph.Observe["process"]["cpu_seconds"].Delta, 0.0)
			require.Greater(t, *ph.Observe["process"]["rss_bytes"].Max, 1e6)
			require.GreaterOrEqual(t, len(ph.Probes["server"].Series), 3, "before, each second and after")
			require.Equal(t, 0, ph.Probes["process"].Failed)
			require.Equal(t, 2, ph.Probes["disk"].Taken)
			require.Equal(t, ph.Probes["nobody"].Taken, ph.Probes["nobody"].Failed)
			require.Contains(t, r.Why("phase", "read", "observe", "nobody", "up", "delta").Text, "connection refused")
			require.Contains(t, page, fmt.Sprintf("loadgen_assert{assert=\"the server's processor time is known\",run=%q} 1\n", r.ID))
			require.Contains(t, page, fmt.Sprintf("loadgen_assert_limit{assert=\"the server's processor time is known\",figure=\"phase.read.observe.process.cpu_seconds.rate\",run=%q} 0\n", r.ID))
			require.Contains(t, page, fmt.Sprintf("loadgen_observed{field=\"up\",observe=\"nobody\",run=%q} NaN\n", r.ID))
			files := fmt.Sprintf("loadgen_observed{field=\"files\",observe=\"disk\",run=%q}", r.ID)
			require.InDelta(t, *r.Phase["empty"].Observe["disk"]["files"].After, samplesOf(t, page)[files], 0, "as last read")
			require.Contains(t, r.Phase["empty"].Observe, "server", "a clear is observed, too")
			require.Contains(t, l.stdout.String(), "NOT REACHED in")
			var kept int
			require.NoError(t, rundir.Probes(l.runs, r.ID, func(p run.Probe) error {
				if !strings.HasPrefix(p.Observe, "counts of ") { // which nobody asked for
					kept++
				}
				return nil
			}))
			taken := 0
			for _, ph := range r.Phase {
				for _, how := range ph.Probes {
					taken += how.Taken
				}
			}
			require.Equal(t, taken, kept)
		})
	}
}

// A web server's own count of requests is loadgen's plus the probes.
func TestObservedWebServer(t *testing.T) {
	t.Parallel()
	plan := strings.Replace(observing, "builtin {}", "", 1)
	server := servertest.Nginx(t, 0, nil)
	r := begin(t, plan, "-var", "driver=web", "-var", nodes(server.Addr)).clean(60 * time.Second)
	ph := r.Phase["read"]
	told := ph.Observe["server"]
	require.True(t, told["requests"].Counter)
	require.EqualValues(t, ph.Op["get"].OK+uint64(ph.Probes["server"].Taken-1), *told["requests"].Delta, "each get, and each look after the first")
	require.GreaterOrEqual(t, *told["active_connections"].Max, 3.0, "two sessions and the one that asks")
	require.Zero(t, *told["accepts"].Delta-*told["handled"].Delta)

	elsewhere := strings.Replace(plan, "endpoints = var.endpoints", "endpoints = var.endpoints\n\tstatus = \"/nowhere\"", 1)
	r = begin(t, elsewhere, "-var", "driver=web", "-var", nodes(server.Addr)).clean(60 * time.Second)
	require.Contains(t, r.Why("phase", "read", "observe", "server", "requests", "delta").Text, `the status page: the server says 404 Not Found: name its own with status = "/…" in the target`)
}

// A coordinator that is killed leaves what it has observed so far.
func TestKilledCoordinatorLeavesWhatItObserved(t *testing.T) {
	t.Parallel()
	l := begin(t, observing, "-var", "duration=10m")
	during := func(id string) (n int) {
		require.NoError(t, rundir.Probes(l.runs, id, func(p run.Probe) error {
			if p.Phase == "read" && p.Observe == "server" && p.When == "during" {
				require.Greater(t, p.Value["total_commands_processed"], 0.0)
				n++
			}
			return nil
		}))
		return n
	}
	l.underWay()
	id := only(t, l.runs)
	l.until(func() bool { return during(id) >= 2 })
	l.signal(syscall.SIGKILL)
	require.Equal(t, -1, l.wait(60*time.Second))
	dirs, err := filepath.Glob(filepath.Join(l.runs, "*"))
	require.NoError(t, err)
	require.Len(t, dirs, 1)
	require.NoFileExists(t, filepath.Join(dirs[0], "result.json"))
	require.GreaterOrEqual(t, during(id), 2, "one for each second that was over for one")
}

// shortObserved is the example in plans with one run of each variant, whose loads last so long.
func shortObserved(t *testing.T, lasts string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "plans", "observed.hcl"))
	require.NoError(t, err)
	return strings.NewReplacer(`duration = "2s"`, `duration = "`+lasts+`"`, "repeat = 5", "repeat = 1").Replace(string(text))
}

// The example in plans observes a real server.
func TestObservedPlan(t *testing.T) {
	t.Parallel()
	s := servertest.StartRedis(t)
	x := begin(t, shortObserved(t, "1s"), "-var", nodes(s.Addr)).experiment(60 * time.Second)
	require.Equal(t, run.Complete, x.Verdict.Completeness, x.Verdict.Reasons)
	table := x.Tables[0]
	require.Equal(t, "server", table.Title)
	for _, row := range table.Rows {
		for i, cell := range row.Cells {
			require.NotNil(t, cell.Value, "%s: %s", table.Columns[i].Name, cell.Reason)
		}
		require.Greater(t, *row.Cells[1].Value, 0.0)
		require.Less(t, *row.Cells[1].Value**row.Cells[0].Value, float64(runtime.NumCPU()), "processor time of a get, of so many processors")
		// By wall time, including waits for a processor: one thread is in one
		// call at a time, however long a get has kept it on a processor.
		require.Greater(t, *row.Cells[2].Value, 0.0)
		require.LessOrEqual(t, *row.Cells[2].Value**row.Cells[0].Value, 1.0, "in calls for no longer than there is time")
	}
	require.InDelta(t, 0, *table.Rows[0].Cells[5].Value, 1e-9, "of the variant itself")
	require.Contains(t, fmt.Sprint(table.Rows[1].Name), "pipeline=16")
}
