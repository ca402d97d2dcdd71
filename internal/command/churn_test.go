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
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// churnPlan renews connections after a number of ops, or of milliseconds.
const churnPlan = `plan "churn" {}
variable "driver" { default = "redis" }
variable "endpoints" { type = list(string) }
variable "executor" { default = "event loop" }
variable "sessions" { default = 1 }
variable "pipeline" { default = 1 }
variable "iterations" { default = 1000 }
variable "ops" { default = 10 }
variable "open" { default = false }
target "t" {
  driver    = var.driver
  endpoints = var.endpoints
  executor  = var.executor
  timeout   = "10s"
}
dataset "d" {
  keys { count = 100 }
  values { size = 20 }
}
phase "load" {
  target      = target.t
  dataset     = dataset.d
  ops         = { get = 1 }
  expect_hits = 0
  max_bad     = 1
  when        = !var.open
  closed {
    sessions   = var.sessions
    pipeline   = var.pipeline
    iterations = var.iterations
    reconnect { ops = var.ops }
  }
}
phase "open" {
  target      = target.t
  dataset     = dataset.d
  ops         = { get = 1 }
  expect_hits = 0
  when        = var.open
  open {
    rate     = 500
    duration = "2s"
    sessions = 2
    reconnect {
      every  = "100ms"
      jitter = 0.5
    }
  }
}
`

// TestConnectionsAreRenewed on every kind of transport, and the servers count as many: a connection that is due ends with its last reply, and is made
// again only if there is more to do.
func TestConnectionsAreRenewed(t *testing.T) {
	t.Parallel()
	redis, memcached := servertest.StartRedis(t).Addr, servertest.Memcached(t)
	web, db := servertest.Nginx(t, 0, nil), newDatabase(t)
	authority := servertest.NewAuthority(t)
	secure := servertest.StartRedisTLS(t, authority, authority.Issue("127.0.0.1", time.Hour), "--tls-auth-clients", "no").Addr
	for name, test := range map[string]struct {
		vars    []string
		opened  uint64
		counted string
	}{
		"five ops":  {[]string{nodes(redis), "iterations=5", "ops=5"}, 1, " 1 connect "},
		"redis":     {[]string{nodes(redis)}, 100, " 100 connect "},
		"pipelines": {[]string{nodes(redis), "sessions=3", "pipeline=7"}, 300, " 300 connect "},
		"blocking":  {[]string{nodes(redis), "executor=blocking", "pipeline=4"}, 100, " 100 connect "},
		"tls":       {[]string{nodes(secure)}, 100, " 100 connect "},
		"memcached": {[]string{nodes(memcached), "driver=memcached"}, 100, " 100 connect "},
		"postgres":  {[]string{nodes(db.place), "driver=postgres", "iterations=100"}, 10, " 10 connect (and 2 of loadgen's own)"},
		"web":       {[]string{nodes(web.Addr), "driver=web", "executor=blocking"}, 100, " 100 connect"},
		"untold":    {[]string{nodes(web.Addr), "driver=web", "executor=blocking"}, 100, "; nobody else counted connections"},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			for _, v := range test.vars {
				args = append(args, "-var", v)
			}
			text := churnPlan
			switch name {
			case "tls":
				text = strings.Replace(text, "executor  = var.executor", fmt.Sprintf("tls {\n    ca = %q\n  }", authority.CA), 1)
			case "postgres":
				text = strings.Replace(text, "executor  = var.executor", "user = \"loadgen\"\n  password = secret(\"PG\")\n  database = \"postgres\"", 1)
			}
			if status := map[string]string{"web": "[\"requests\", \"accepts\"]", "untold": "[\"requests\"]"}[name]; status != "" {
				text += fmt.Sprintf("observe \"status\" {\n  server {\n    target = target.t\n    fields = %s\n  }\n}\n", status)
			}
			var l *load
			var ph *run.Phase
			for tries := 0; ph == nil || tries < 4 && strings.Contains(ph.Counted[0].Said, "no answer in time"); tries++ { // it may take a busy server a second
				l = begin(t, text, args...)
				r := l.result(60 * time.Second)
				ph = r.Phase["load"]
				require.NotNil(t, ph, r.Verdict.Reasons)
			}
			got := *ph.Connections
			require.Equal(t, [7]uint64{test.opened, test.opened, test.opened}, [7]uint64{got.Attempted, got.Opened, got.Renewed, got.Refused, uint64(got.Making), uint64(got.Open), got.Lost})
			require.Equal(t, test.opened, got.Connect.Count)
			require.Equal(t, test.opened, got.TCP.Count)
			require.Equal(t, name == "tls", got.TLS.Count == test.opened)
			if got.Greeting.Count > 0 {
				stages := *got.TCP.Mean + *got.Greeting.Mean
				if got.TLS.Mean != nil {
					stages += *got.TLS.Mean
				}
				require.InEpsilon(t, *got.Connect.Mean, stages, 0.001)
			}
			require.Zero(t, ph.Reconnects)
			require.Equal(t, ph.Op["get"].Due, ph.Op["get"].OK+ph.Op["get"].Miss+ph.Op["get"].Error)
			require.Regexp(t, `connections +[0-9]+ attempted = [0-9]+ opened; [0-9]+ opened = 0 open \+ [0-9]+ renewed`, l.stdout.String())
			require.Contains(t, ph.Counted[0].Said, test.counted)
		})
	}
	l := begin(t, churnPlan, "-var", "open=true", "-var", nodes(redis))
	r := l.result(60 * time.Second)
	got := r.Phase["open"].Connections
	require.Greater(t, got.Renewed, uint64(10), "every connection lives for 50 to 100 ms")
	require.Less(t, got.Renewed, uint64(82))
	require.Equal(t, got.Opened, uint64(got.Open)+got.Renewed)
	require.EqualValues(t, 1000, r.Phase["open"].Op["get"].Miss)
	require.Contains(t, r.Phase["open"].Counted[0].Said, "redis counted the same")
}

// TestRenewalsNeedFewPorts where the kernel gives none a second time for a minute: the server closes first, or the client resets.
func TestRenewalsNeedFewPorts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(path, []byte(churnPlan), 0o600))
	n := newNetworked(t, 2, 1, path)
	n.Machines[0].Output("sysctl", "-w", "net.ipv4.ip_local_port_range=40000 40199", "net.ipv4.tcp_tw_reuse=0")
	for _, executor := range []string{"event loop", "blocking"} {
		r := n.run("-var", "executor="+executor, "-var", "sessions=4", "-var", "iterations=2500", "-var", "ops=1").result(120 * time.Second)
		require.Equal(t, run.Complete, r.Verdict.Completeness)
		require.NotEqual(t, exit.Failed, r.ExitCode)
		got := r.Phase["load"].Connections
		require.Equal(t, [4]uint64{10_000, 10_000, 10_000}, [4]uint64{got.Attempted, got.Opened, got.Renewed, got.Lost})
		require.EqualValues(t, 10_000, r.Phase["load"].Op["get"].Miss)
		require.Contains(t, r.Phase["load"].Counted[0].Said, " 10,000 connect (and 2 of loadgen's own)")
	}
}
