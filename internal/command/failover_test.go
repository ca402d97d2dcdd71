package command_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// beginServers starts servers by the script of an example, and returns the script as a hook's command. They end with the test. What call does is tell the
// script of an event.
func beginServers(t *testing.T, name string, args ...string) (command string, call func(event string)) {
	t.Helper()
	script, err := filepath.Abs(filepath.Join("..", "..", "plans", name))
	require.NoError(t, err)
	call = func(event string) {
		cmd := exec.Command("timeout", append([]string{"90", script}, args...)...)
		cmd.Env = append(os.Environ(), "LOADGEN_EVENT="+event)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	t.Cleanup(func() { call("end") })
	call("")
	return fmt.Sprintf("'%s' %s", script, strings.Join(args, " ")), call
}

// beginSentinels starts the servers of plans/failover.hcl at a port and the nine after it, and returns the arguments for a run on them.
func beginSentinels(t *testing.T, port int) (args []string) {
	t.Helper()
	_, err := exec.LookPath("redis-server")
	servertest.Require(t, "redis", err)
	command, _ := beginServers(t, "failover.sh", fmt.Sprint(port), "500")
	return []string{
		"--once", "--allow-exec", "servers=" + command,
		"--var", nodes(fmt.Sprintf("127.0.0.1:%d", port+10), fmt.Sprintf("127.0.0.1:%d", port+11), fmt.Sprintf("127.0.0.1:%d", port+12)),
	}
}

// TestOlricQuorums has nodes of Olric leave: its quorums are met with all of them, and fail with one left, in Olric's own words.
func TestOlricQuorums(t *testing.T) {
	t.Parallel()
	servertest.Require(t, "olric", servertest.Olric())
	_, call := beginServers(t, "olric.sh", "17400")
	example, err := os.ReadFile(filepath.Join("..", "..", "plans", "olric.hcl"))
	require.NoError(t, err)
	filled, _, _ := strings.Cut(string(example), `phase "four"`)
	target, _, _ := strings.Cut(filled, `phase "fill"`)
	load := func(plan string) map[string]*run.Op {
		r := begin(t, plan+`phase "load" {
  target      = target.olric
  dataset     = dataset.items
  ops         = { get = 1, put = 1 }
  max_bad     = 1
  expect_hits = 0
  closed {
    sessions   = 4
    iterations = 500
  }
}`, "--var", nodes("127.0.0.1:17400")).result(2 * time.Minute)
		require.NotNil(t, r.Phase["load"], r.Verdict.Reasons)
		return r.Phase["load"].Op
	}

	four := load(filled)
	require.Positive(t, four["put"].OK)
	require.Equal(t, four["put"].Due, four["put"].OK)
	require.Equal(t, four["get"].Due, four["get"].OK)

	for _, event := range []string{"three", "two", "one"} {
		call(event)
	}
	one := load(target)
	require.Positive(t, one["put"].QuorumFailed)
	require.Equal(t, one["put"].Due, one["put"].OK+one["put"].QuorumFailed)
	require.Positive(t, one["get"].Miss)
	require.Equal(t, one["get"].Due, one["get"].OK+one["get"].Miss)
}

// TestFailoverLosesWrites kills a master whose replicas have fallen behind: puts that were acknowledged meanwhile are gone from the new one. Those that
// waited for both replicas are there.
func TestFailoverLosesWrites(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, target string, port int) {
		args := append(beginSentinels(t, port), "--var", "target="+target, "--var", "kill=1s", "--var", "duration=12s", "--var", "rate=500/s")
		r := beginExample(t, "failover.hcl", args...).result(2 * time.Minute)
		load, check := r.Phase["load"], r.Phase["check"]
		require.NotNil(t, check, r.Verdict.Reasons)
		require.Empty(t, load.Event["kill"].Failed)
		require.Positive(t, load.Op["put"].OK)
		if target == "wait_2" {
			require.Zero(t, check.Verify.Lost)
			require.Positive(t, load.Op["put"].QuorumFailed, "the replicas did not answer")
			require.Len(t, load.Op["put"].Acks, 3)
			return
		}
		require.Positive(t, check.Verify.Lost)
		require.Positive(t, load.Op["put"].Error)
		for _, lost := range check.Verify.Examples {
			for _, to := range check.Requests { // the master that was asked
				if to.Sent > 0 && lost.OlderSeconds == nil {
					require.Zero(t, number(t, to.Endpoint, "EXISTS", lost.Key))
				}
			}
		}
	}
	for i, target := range []string{"wait_0", "wait_2"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			try(t, target, 17100+20*i)
		})
	}
}

// TestStaleReplica has gets of two replicas, one of which stops following its master. Its values become stale, unless a put waits for both of them: such
// a put is not acknowledged then, so that no get can miss it.
func TestStaleReplica(t *testing.T) {
	t.Parallel()
	cli, err := exec.LookPath("redis-cli")
	servertest.Require(t, "redis", err)
	for replicas, wait := range []string{"", "wait {\n    replicas = 1\n    timeout  = \"500ms\"\n  }", "wait {\n    replicas = 2\n    timeout  = \"50ms\"\n  }"} {
		t.Run(fmt.Sprintf("wait=%d", replicas), func(t *testing.T) {
			t.Parallel()
			stale := replicas < 2
			master := servertest.Redis(t, "--repl-diskless-sync-delay", "0")
			host, port, _ := net.SplitHostPort(master)
			servertest.Redis(t, "--replicaof", host+" "+port)
			replica := servertest.Redis(t, "--replicaof", host+" "+port)
			require.Eventually(t, func() bool { return strings.Count(ask(t, master, "INFO", "replication"), "state=online") == 2 }, time.Minute, 50*time.Millisecond)
			_, port, _ = net.SplitHostPort(replica)
			r := begin(t, fmt.Sprintf(`plan "p" {}
target "t" {
  driver    = "redis"
  endpoints = [%q]
  read      = "replica"
  %s
}
dataset "d" {
  keys {
    count   = 20
    writers = "one"
  }
  values { size = 100 }
}
phase "both" {
  target      = target.t
  dataset     = dataset.d
  ops         = { get = 1, put = 1 }
  expect_hits = 0
  max_bad     = 1
  staleness {}
  closed {
    sessions = 4
    duration = "2s"
    think    = "1ms"
  }
  event "alone" {
    at   = "1s"
    do   = "hook"
    hook = hook.alone
  }
}`, master, wait), "--allow-exec", "alone="+cli+" -p "+port+" replicaof no one").whole()
			both := r.Phase["both"]
			require.Empty(t, both.Event["alone"].Failed)
			require.Positive(t, both.Staleness.Gets)
			require.Equal(t, stale, both.Staleness.Stale > 0, "%+v", both.Staleness)
			for _, to := range both.Requests {
				if to.Sent > 0 {
					require.Equal(t, to.Verb == "put", to.Endpoint == master, "gets ask replicas")
				}
			}
			if !stale {
				require.Positive(t, both.Op["put"].QuorumFailed)
			}
		})
	}
}

// TestWhichMasterSentinelsName names a master that no Sentinel watches, and asks Sentinels that want a password of their own, or speak only TLS as their
// master does, with it and without.
func TestWhichMasterSentinelsName(t *testing.T) {
	t.Parallel()
	server := servertest.Redis(t)
	open, locked := servertest.Sentinel(t, server), servertest.Sentinel(t, server, "requirepass "+servertest.PostgresPassword)
	a := servertest.NewAuthority(t)
	client := a.Issue("client.example.org", time.Hour)
	secure := servertest.SentinelTLS(t, a, a.Issue("127.0.0.1", time.Hour), servertest.StartRedisTLS(t, a, a.Issue("127.0.0.1", time.Hour)).Addr)
	shows := fmt.Sprintf("master = \"main\"\n  }\n  tls {\n    ca   = %q\n    cert = %q\n    key  = %q", a.CA, client.Cert, client.Key)
	for _, tt := range []struct{ sentinel, words, want string }{
		{open, `master = "other"`, `watches no master "other", but "main": write master = "main" in sentinel`},
		{open, `master = "main"`, ""},
		{locked, `master = "main"`, "NOAUTH"},
		{locked, "master = \"main\"\n    password = secret(\"PG\")", ""},
		{secure, shows, ""},
		{open, shows, "TLS"},
		{secure, `master = "main"`, "TLS"},
	} {
		r := begin(t, fmt.Sprintf(`plan "p" {}
target "t" {
  driver    = "redis"
  endpoints = [%q]
  sentinel {
    %s
  }
}`+tenSmall+`
phase "fill" {
  target  = target.t
  dataset = dataset.d
  populate {}
}`, tt.sentinel, tt.words)).result(time.Minute)
		if tt.want == "" {
			require.Zero(t, r.ExitCode, r.Verdict.Reasons)
			continue
		}
		require.Contains(t, r.Verdict.Reasons[0], tt.want)
	}
}
