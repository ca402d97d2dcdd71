package command_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// doorbell accepts connections and counts them.
func doorbell(t *testing.T) (addr string, rung *atomic.Int64) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	rung = new(atomic.Int64)
	ended := make(chan struct{})
	go func() { // ends with the listener
		defer close(ended)
		for {
			conn, err := lis.Accept()
			if err != nil {
				return
			}
			rung.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = lis.Close(); <-ended })
	return lis.Addr().String(), rung
}

func writePolicy(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "policy.hcl")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const boundedPlan = `
plan "bounded" {}
variable "endpoints" { type = list(string) }
target "t" {
  driver    = "redis"
  endpoints = var.endpoints
  %s
}
dataset "d" {
  keys { count = 100 }
  values { size = 1000 }
}
phase "p" {
  target  = target.t
  dataset = dataset.d
  ops     = { put = 1 }
  %s
}
`

const oneLogPlan = `
plan "logs" {}
variable "endpoints" { type = list(string) }
target "t" {
  driver    = "log"
  file_size = "64MiB"
}
dataset "d" {
  keys { count = 100 }
  values { size = 1000 }
}
phase "p" {
  target  = target.t
  dataset = dataset.d
  ops     = { append = 1 }
  closed {
    sessions   = 1
    iterations = 10
  }
}
`

// runUnder runs a plan on a worker with a policy, and returns the result.
func runUnder(t *testing.T, policyFile, plan, node string) *run.Run {
	t.Helper()
	tm := invite(t, 1, func(args ...string) *load { return begin(t, plan, args...) }, "-var", nodes(node))
	tm.join(tm.addr, "--policy", policyFile, "--log-root", t.TempDir())
	return tm.result(60 * time.Second)
}

// TestPolicyRefusesBeforeTheLoad asks a worker for what its owner does not allow: the run fails, names the argument, and connects to nothing.
func TestPolicyRefusesBeforeTheLoad(t *testing.T) {
	t.Parallel()
	addr, rung := doorbell(t)
	closed := "closed {\n    sessions = 4\n    duration = \"2s\"\n  }"
	open := "open {\n    sessions = 4\n    rate = \"2k/s\"\n    duration = \"2s\"\n  }"
	elsewhere, here := `targets = ["10.0.0.0/8:6379", "127.0.0.1:1"]`, fmt.Sprintf("targets = [%q]\n", addr)
	own := strings.Replace(fmt.Sprintf(boundedPlan, `op "x" {
    request { command = ["EVAL", "return 1", "0"] }
  }`, closed), "put = 1", "x = 1", 1)
	for name, c := range map[string]struct{ policy, plan, want string }{
		"script":           {here + `rate = "1k/s"`, own, "this worker's policy: commands: the rate does not bound what EVAL does"},
		"command":          {here + `commands = ["GET"]`, own, `this worker's policy: commands: "EVAL" is not among them`},
		"no command":       {here + `commands = []`, own, `this worker's policy: commands: "EVAL" is not among them`},
		"target":           {elsewhere, fmt.Sprintf(boundedPlan, "", closed), "this worker's policy: targets: " + addr + " is not among them"},
		"target by TLS":    {elsewhere, fmt.Sprintf(boundedPlan, "tls {}", closed), "this worker's policy: targets: " + addr + " is not among them"},
		"target, blocking": {elsewhere, fmt.Sprintf(boundedPlan, `executor = "blocking"`, closed), "this worker's policy: targets: " + addr + " is not among them"},
		"cluster":          {elsewhere, fmt.Sprintf(boundedPlan, "cluster = true", closed), "this worker's policy: targets: " + addr + " is not among them"},
		"rate":             {here + `rate = "1k/s"`, fmt.Sprintf(boundedPlan, "", open), "this worker's policy: rate: 2000/s is more than 1000/s"},
		"sessions":         {here + "sessions = 3", fmt.Sprintf(boundedPlan, "", closed), "this worker's policy: sessions: 4 is more than 3"},
		"connections":      {here + "connections = 3", fmt.Sprintf(boundedPlan, "", closed), "this worker's policy: connections: 4 is more than 3"},
		"duration":         {here + `duration = "1s"`, fmt.Sprintf(boundedPlan, "", closed), "this worker's policy: duration: 2s is more than 1s"},
		"log bytes":        {`targets = []` + "\nlog_bytes = \"1MiB\"", oneLogPlan, "this worker's policy: log_bytes: 64MiB is more than 1MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			r := runUnder(t, writePolicy(t, c.policy), c.plan, addr)
			require.Equal(t, exit.Failed, r.ExitCode, r.Verdict.Reasons)
			require.Contains(t, r.Verdict.Reasons[0], c.want)
			require.Zero(t, rung.Load())
		})
	}
}

// TestPolicyOfAClustersNodes lets a worker ask a cluster's first node, which names others that the worker may not connect to.
func TestPolicyOfAClustersNodes(t *testing.T) {
	t.Parallel()
	c := servertest.RedisCluster(t, 3, 0)
	addr := c[0].Addr
	plan := fmt.Sprintf(boundedPlan, "cluster = true", "closed {\n    sessions = 1\n    iterations = 100\n  }")
	r := runUnder(t, writePolicy(t, fmt.Sprintf("targets = [%q]", addr)), plan, addr)
	require.Equal(t, exit.Failed, r.ExitCode, r.Verdict.Reasons)
	require.Contains(t, r.Verdict.Reasons[0], "is not among them")
}

// TestPolicyHoldsALoadBack limits a closed load, which would do as much as it can: the server gets no more, and the figures are invalid, by name.
func TestPolicyHoldsALoadBack(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t)
	plan := fmt.Sprintf(boundedPlan, "", "closed {\n    sessions = 4\n    duration = \"3s\"\n  }")
	for name, c := range map[string]struct {
		bound string
		puts  uint64 // at most
	}{
		"rate":             {`rate = "250/s"`, 1000},
		"bytes_per_second": {`bytes_per_second = "250kB"`, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			r := runUnder(t, writePolicy(t, fmt.Sprintf("targets = [%q]\n%s", addr, c.bound)), plan, addr)
			ph := r.Phase["p"]
			require.LessOrEqual(t, ph.Op["put"].Due, c.puts)
			require.Greater(t, ph.Op["put"].Due, c.puts/2)
			require.Equal(t, run.Invalid, ph.Validity)
			require.Equal(t, reason.PolicyLimit, ph.Reasons[0].Code, ph.Reasons)
			require.Contains(t, ph.Reasons[0].Text, "a worker's policy held the load back: ops that were due waited for its "+name)
			require.Equal(t, exit.Invalid, r.ExitCode)
		})
	}
}

// TestPolicyEndsALoad limits how long a closed load goes on, which nobody knows beforehand.
func TestPolicyEndsALoad(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t)
	plan := fmt.Sprintf(boundedPlan, "", "closed {\n    sessions = 1\n    iterations = 10000000\n  }")
	r := runUnder(t, writePolicy(t, fmt.Sprintf("targets = [%q]\nduration = \"1s\"", addr)), plan, addr)
	require.Contains(t, fmt.Sprint(r.Verdict.Reasons), "this worker's policy: duration: the load was not over after 1s")
	require.Equal(t, []any{run.Invalid, reason.NotCarriedOut}, []any{r.Phase["p"].Validity, r.Phase["p"].Reasons[0].Code})
	require.NotEqual(t, exit.OK, r.ExitCode)
	r = runUnder(t, writePolicy(t, fmt.Sprintf("targets = [%q]\nrate = \"1M/s\"\nsessions = 1\nmemory = \"1GiB\"\nlease = \"20s\"", addr)),
		fmt.Sprintf(boundedPlan, "", "closed {\n    sessions = 1\n    iterations = 1000\n  }"), addr)
	require.EqualValues(t, 1000, r.Phase["p"].Op["put"].OK, r.Verdict.Reasons)
}

func TestPolicyIsPrintedAndChecked(t *testing.T) {
	path := writePolicy(t, "targets = [\"10.0.0.0/8:6379\"]\nrate = \"1k/s\"\n")
	p := start(t, command(t, "worker", "--policy", path, "--print-policy"))
	require.Zero(t, p.wait(60*time.Second))
	require.Contains(t, p.stdout.String(), "targets = [\"10.0.0.0/8:6379\"]\n# commands: not bounded\nrate = \"1000/s\"\n# sessions: not bounded\n")
	for text, want := range map[string]string{
		"rate = \"1k/s\"":                    "targets is missing",
		"targets = [\"10.0.0.0/8\"]":         "is not a place",
		"targets = []\nfiles = \"/nowhere\"": "/nowhere",
	} {
		p := start(t, command(t, "worker", "--policy", writePolicy(t, text)))
		require.Equal(t, 2, p.wait(60*time.Second), text)
		require.Contains(t, p.stderr.String(), want)
	}
	p = start(t, command(t, "worker", "--policy", path, "--policy", "/dev/zero"))
	require.Equal(t, 2, p.wait(60*time.Second))
	require.Contains(t, p.stderr.String(), "/dev/zero")
}
