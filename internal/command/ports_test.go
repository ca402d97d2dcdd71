package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/judge"
	"github.com/loadgen/loadgen/internal/result/run"
)

// TestLocalPortsRunOut on the machine of the load, before it and in its middle, on either executor: that is the machine's fault, and is said to be.
func TestLocalPortsRunOut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(`plan "ports" {}
variable "endpoints" { default = ["n"] }
variable "executor" {}
variable "sessions" { default = 4 }
target "cache" {
	driver    = "redis"
	endpoints = var.endpoints
	executor  = var.executor
}
dataset "d" {
	keys { count = 100 }
	values { size = 10 }
}
phase "load" {
	target      = target.cache
	dataset     = dataset.d
	ops         = { get = 1 }
	expect_hits = 0
	max_bad     = 1
	closed {
		sessions = var.sessions
		duration = "4s"
		think    = "1ms"
	}
}
`), 0o600))
	n := newNetworked(t, 2, 1, path)
	here, server := n.Machines[0], n.servers[0]
	next := 40000
	ports := func(n int) { // none of which was used before
		here.Output("sysctl", "-w", fmt.Sprintf("net.ipv4.ip_local_port_range=%d %d", next, next+n-1))
		next += n
	}
	const remedy = "or widen net.ipv4.ip_local_port_range"
	for _, executor := range []string{"event loop", "blocking"} {
		ports(8)
		r := n.run("-var", "executor="+executor, "-var", "sessions=20").result(60 * time.Second)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Equal(t, judge.NoLocalPort, r.Verdict.Codes[0], r.Verdict.Reasons)
		require.Equal(t, 1, strings.Count(r.Verdict.Reasons[0], remedy), r.Verdict.Reasons[0])

		ports(100)
		l := n.run("-var", "executor="+executor)
		l.told("load ")
		ports(2)
		server.Output("redis-cli", "-h", server.Addr, "CLIENT", "KILL", "TYPE", "normal")
		r = l.result(60 * time.Second)
		p := r.Phase["load"]
		require.Positive(t, p.Generator.NoLocalPort, p.Errors)
		require.Equal(t, run.Complete, r.Verdict.Completeness)
		require.Contains(t, r.Verdict.Codes, judge.NoLocalPort)
		require.Contains(t, strings.Join(r.Verdict.Reasons, " "), remedy)
	}
}
