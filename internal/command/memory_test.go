package command_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// smallPlan is a load for long enough that what is kept of each second shows.
const smallPlan = `
plan "small" {}
variable "endpoints" { type = list(string) }` + redisT + `
dataset "d" {
	keys { count = 1000 }
	values { size = 100 }
}
phase "load" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1, put = 1 }
	open {
		rate     = "5000/s"
		duration = "15s"
		sessions = 8
		pipeline = 16
	}
}
`

// memoryGroup is a control group whose processes may have so many bytes.
type memoryGroup struct {
	dir    string
	peak   string // the file with the most that was charged
	events string // the file with the number of processes that the kernel has killed, behind oom_kill
}

// newMemoryGroup makes one.
func newMemoryGroup(t *testing.T, limit int) *memoryGroup {
	t.Helper()
	name := fmt.Sprintf("loadgen-test-memory-%d", os.Getpid())
	g := &memoryGroup{filepath.Join("/sys/fs/cgroup/memory", name), "memory.max_usage_in_bytes", "memory.oom_control"} // version 1
	bound, swap := "memory.limit_in_bytes", "memory.swappiness"
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		g = &memoryGroup{filepath.Join("/sys/fs/cgroup", name), "memory.peak", "memory.events"}
		bound, swap = "memory.max", "memory.swap.max"
	}
	err := os.Mkdir(g.dir, 0o755)
	if err == nil {
		t.Cleanup(func() { // its processes have ended: those that the test starts later are cleaned up earlier
			require.Eventually(t, func() bool { return os.Remove(g.dir) == nil }, 10*time.Second, 10*time.Millisecond)
		})
		err = os.WriteFile(filepath.Join(g.dir, bound), []byte(strconv.Itoa(limit)), 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(g.dir, swap), []byte("0"), 0o644)
	}
	if err != nil {
		err = fmt.Errorf("make a control group with a limit of memory: %w", err)
	}
	servertest.Require(t, "memory-cgroup", err)
	return g
}

// enter has a command run in the group from its first instruction on.
func (g *memoryGroup) enter(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	program, err := exec.LookPath(cmd.Args[0])
	require.NoError(t, err)
	cmd.Args = append([]string{"sh", "-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs"), program}, cmd.Args[1:]...)
	cmd.Path, err = exec.LookPath("sh")
	require.NoError(t, err)
}

// number returns the number that follows a word in one of the group's files, or the file's only number if there is no word.
func (g *memoryGroup) number(t *testing.T, file, word string) int64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(strings.TrimSpace(line), word); found {
			n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			if err == nil {
				return n
			}
		}
	}
	t.Fatalf("%s: no number behind %q:\n%s", file, word, text)
	return 0
}

// predicted returns the MiB that plan check says of the whole plan.
func predicted(t *testing.T, path string, args ...string) int64 {
	t.Helper()
	check := start(t, command(t, append([]string{"plan", "check", path}, args...)...))
	require.Zero(t, check.wait(60*time.Second), "%s", &check.stderr)
	words := regexp.MustCompile(`(\d+) MiB\n`).FindStringSubmatch(check.stdout.String())
	require.NotNil(t, words, check.stdout.String())
	mib, err := strconv.ParseInt(words[1], 10, 64)
	require.NoError(t, err)
	return mib
}

// margin covers what a group is charged besides the program's own memory: pages of files that it reads and writes, and sockets.
const margin = 8 << 20

// TestRunInASmallControlGroup runs coordinator and worker in 64 MiB, with a server outside and no GOMEMLIMIT. The kernel kills nothing, and what it
// charges is within plan check's prediction plus a margin.
func TestRunInASmallControlGroup(t *testing.T) {
	t.Parallel()
	const limit = 64 << 20
	g := newMemoryGroup(t, limit)
	addr := servertest.Redis(t)
	dir := t.TempDir()
	path, out := filepath.Join(dir, "plan.hcl"), filepath.Join(dir, "run.json")
	require.NoError(t, os.WriteFile(path, []byte(smallPlan), 0o600))
	most := predicted(t, path, "-var", nodes(addr))

	cmd := command(t, "coordinator", "run", path, "--runs", filepath.Join(dir, "runs"), "--out", out, "-var", nodes(addr))
	cmd.Env = append(cmd.Env, "GOMEMLIMIT=") // as unset
	g.enter(t, cmd)
	l := &load{process: start(t, cmd), runs: filepath.Join(dir, "runs"), out: out}
	r := l.result(90 * time.Second)
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
	require.Zero(t, g.number(t, g.events, "oom_kill "))
	peak := g.number(t, g.peak, "")
	t.Logf("%d bytes charged at most, %d MiB predicted", peak, most)
	require.Less(t, peak, int64(limit))
	require.LessOrEqual(t, peak, most<<20+margin)
}
