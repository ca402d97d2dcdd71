package command_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/servertest"
)

// putsOnly is an open plan whose first op is a put on every loop.
const putsOnly = `plan "puts" {
  description = "Puts and nothing else"
}
target "cache" {
  driver = "redis"
  builtin {}
}
dataset "items" {
  keys { count = 1000 }
  values { size = "100B" }
}
phase "puts" {
  target  = target.cache
  dataset = dataset.items
  ops     = { put = 1 }
  open {
    sessions = 16
    pipeline = 64
    rate     = "100k/s"
    duration = "300ms"
  }
}
`

// onLoops runs a plan and requires that the process ends by itself, with an exit code of a run.
func onLoops(t *testing.T, plan string, loops int, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	args = append([]string{"coordinator", "run", plan, "--once", "--loops", fmt.Sprint(loops), "--runs", t.TempDir(), "--log-root", t.TempDir()}, args...)
	cmd := exec.CommandContext(ctx, "loadgen", args...)
	cmd.Env = append(os.Environ(), "LOADGEN_SECRET_PG="+servertest.PostgresPassword)
	out, err := cmd.CombinedOutput()
	require.NoError(t, ctx.Err())
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
		require.Contains(t, []int{1, 3, 4, 5}, exit.ExitCode(), "%s", out)
	}
	require.NoError(t, err)
	require.NotContains(t, string(out), "fatal error")
}

// Loops whose first puts came at the same time once crashed the process.
func TestPutsOnSeveralLoops(t *testing.T) {
	t.Parallel()
	plan := filepath.Join(t.TempDir(), "puts.hcl")
	require.NoError(t, os.WriteFile(plan, []byte(putsOnly), 0o600))
	for _, loops := range []int{2, 3, 4} {
		t.Run(fmt.Sprint(loops), func(t *testing.T) {
			t.Parallel()
			for range 3 {
				onLoops(t, plan, loops)
			}
		})
	}
}

// allowedCPUs returns the CPUs that a process or thread may use, as the kernel lists them.
func allowedCPUs(t *testing.T, dir string) string {
	t.Helper()
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	require.NoError(t, err)
	_, list, found := strings.Cut(string(status), "Cpus_allowed_list:\t")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n")
	return list
}

// Built-in nodes and the loops of a worker here, or in its own process, keep to a half of the processors each, and the result says so. On a machine
// with one processor, or with --pin, all share what there is.
func TestLoopsAndNodesKeepApart(t *testing.T) {
	loops, nodes := machine.Halves(os.DirFS("/"))
	for name, tt := range map[string]struct {
		args         []string
		loops, nodes string
	}{
		"here":             {[]string{"--loops", "1"}, machine.List(loops), machine.List(nodes)},
		"a worker process": {[]string{"--loops", "1", "--worker-process"}, machine.List(loops), machine.List(nodes)},
		"pinned":           {[]string{"--pin", strings.Split(allowedCPUs(t, "/proc/self"), "-")[0]}, "", ""},
		"too many loops":   {[]string{"--loops", strconv.Itoa(len(loops) + 1)}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := begin(t, closedPlan, tt.args...)
			l.underWay()
			everywhere, processes, threads := allowedCPUs(t, "/proc/self"), map[string]int{}, map[string]int{}
			for _, pid := range append(children(t, l.cmd.Process.Pid), l.cmd.Process.Pid) {
				dir := fmt.Sprintf("/proc/%d", pid)
				processes[allowedCPUs(t, dir)]++
				tasks, err := filepath.Glob(filepath.Join(dir, "task", "[0-9]*"))
				require.NoError(t, err)
				for _, task := range tasks {
					threads[allowedCPUs(t, task)]++
				}
			}
			require.GreaterOrEqual(t, processes[cmp.Or(tt.nodes, everywhere)], 3, processes)
			require.Positive(t, threads[cmp.Or(tt.loops, everywhere)], threads)
			require.NoError(t, l.cmd.Process.Signal(os.Interrupt))
			r := l.result(time.Minute)
			require.Equal(t, [2]string{tt.loops, tt.nodes}, [2]string{r.Environment.LoopCPUs, r.Environment.NodeCPUs})
		})
	}
}

// targetsFor returns a directory with the files of plans/vegeta.hcl, for a server elsewhere.
func targetsFor(t *testing.T, addr string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"targets.http", "item.json"} {
		text, err := os.ReadFile(filepath.Join("..", "..", "plans", name))
		require.NoError(t, err)
		text = bytes.ReplaceAll(text, []byte("127.0.0.1:8080"), []byte(addr))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	return dir
}

// Every plan of this repository runs on four loops, each for a short time.
func TestPlansOnFourLoops(t *testing.T) {
	t.Parallel()
	plans, err := filepath.Glob(filepath.Join("..", "..", "plans", "*.hcl"))
	require.NoError(t, err)
	require.NotEmpty(t, plans)
	for _, plan := range plans {
		t.Run(filepath.Base(plan), func(t *testing.T) {
			t.Parallel()
			args := []string{"--timeout", "400ms"}
			switch filepath.Base(plan) {
			case "cluster.hcl":
				args = append(args, "--var", nodes(addresses(servertest.RedisCluster(t, 3, 0))...))
			case "commands.hcl":
				args = append(args, "--var", "endpoints="+servertest.Redis(t), "--var", "duration=200ms")
			case "bench.hcl", "memtier-default.hcl": // for servers of one's own
				args = append(args, "--var", "endpoints="+servertest.Redis(t))
			case "failover.hcl":
				args = append(args, beginSentinels(t, 17300)...)
			case "olric.hcl":
				servertest.Require(t, "olric", servertest.Olric())
				command, _ := beginServers(t, "olric.sh", "17500")
				args = append(args, "--once", "--allow-exec", "servers="+command, "--var", "endpoints=127.0.0.1:17500")
			case "hydra-server.hcl":
				args = append(args, "--var", "iterations=50")
			case "web.hcl":
				args = append(args, "--var", fmt.Sprintf("endpoints=[%q]", servertest.Nginx(t, 0, nil).Addr), "--var", "duration=300ms")
			case "vegeta.hcl":
				addr := servertest.Nginx(t, 0, nil).Addr
				args = append(args, "--var", "endpoints="+addr, "--var", "duration=300ms", "--files", targetsFor(t, addr))
			case "shop.hcl":
				_, behind := newShop(t)
				a := servertest.NewAuthority(t)
				shows := a.Issue("127.0.0.1", time.Hour)
				args = append(args, "--var", "endpoint="+servertest.Proxy(t, behind, &shows).Addr, "--var", "ca="+a.CA, "--var", "orders=5")
			case "ignite.hcl":
				args = append(args, "--var", "endpoints="+servertest.StartIgnite(t).Addr, "--var", "duration=200ms")
			case "aldica.hcl", "cache-size.hcl", "postgres.hcl", "valkyrie.hcl", "nuxeo.hcl":
				u, err := url.Parse(servertest.Postgres(t))
				require.NoError(t, err)
				args = append(args, "--var", fmt.Sprintf(map[string]string{"postgres.hcl": "endpoints=%s", "aldica.hcl": "endpoints=%s", "nuxeo.hcl": "endpoints=%s", "cache-size.hcl": "endpoints=%s", "valkyrie.hcl": `postgres=["%s"]`}[filepath.Base(plan)], u.Host))
			}
			onLoops(t, plan, 4, args...)
		})
	}
}
