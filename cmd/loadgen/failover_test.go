package main_test

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

	"github.com/loadgen/loadgen/internal/servertest"
)

// beginSentinels starts the servers of plans/failover.hcl at a port and the nine after it, and returns the arguments for a run on them. They end with the
// test.
func beginSentinels(t *testing.T, port int) (args []string) {
	t.Helper()
	_, err := exec.LookPath("redis-server")
	servertest.Require(t, "redis", err)
	script, err := filepath.Abs(filepath.Join("..", "..", "plans", "failover.sh"))
	require.NoError(t, err)
	call := func(event string) {
		cmd := exec.Command("timeout", "60", script, fmt.Sprint(port), "500")
		cmd.Env = append(os.Environ(), "LOADGEN_EVENT="+event)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	t.Cleanup(func() { call("end") })
	call("")
	return []string{
		"--once", "--allow-exec", fmt.Sprintf("servers='%s' %d 500", script, port),
		"--var", nodes(fmt.Sprintf("127.0.0.1:%d", port+10), fmt.Sprintf("127.0.0.1:%d", port+11), fmt.Sprintf("127.0.0.1:%d", port+12)),
	}
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
			for n := range 3 { // one after another: six Sentinels and servers each are enough
				t.Run(fmt.Sprint(n), func(t *testing.T) { try(t, target, 17100+20*(3*i+n)) })
			}
		})
	}
}

// TestStaleReplica has gets of a replica that stops following its master. Those of puts that did not wait for it become stale; a put that waits for it is
// not acknowledged then, so that no get can miss it.
func TestStaleReplica(t *testing.T) {
	t.Parallel()
	cli, err := exec.LookPath("redis-cli")
	servertest.Require(t, "redis", err)
	for wait, stale := range map[string]bool{"": true, "wait {\n    replicas = 1\n    timeout = \"50ms\"\n  }": false} {
		t.Run(fmt.Sprintf("stale=%t", stale), func(t *testing.T) {
			t.Parallel()
			master := servertest.Redis(t, "--repl-diskless-sync-delay", "0")
			host, port, _ := net.SplitHostPort(master)
			replica := servertest.Redis(t, "--replicaof", host+" "+port)
			require.Eventually(t, func() bool { return strings.Contains(ask(t, replica, "INFO", "replication"), "master_link_status:up") }, time.Minute, 50*time.Millisecond)
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
			require.Equal(t, !stale, both.Op["put"].QuorumFailed > 0)
		})
	}
}

// TestSentinelWithoutTheMaster names a master that no Sentinel watches.
func TestSentinelWithoutTheMaster(t *testing.T) {
	sentinel := servertest.Sentinel(t, servertest.Redis(t))
	for name, want := range map[string]string{
		"other": `watches no master "other", but "main": write master = "main" in sentinel`,
		"main":  "",
	} {
		r := begin(t, fmt.Sprintf(`plan "p" {}
target "t" {
  driver    = "redis"
  endpoints = [%q]
  sentinel { master = %q }
}
dataset "d" {
  keys { count = 10 }
  values { size = 10 }
}
phase "fill" {
  target  = target.t
  dataset = dataset.d
  populate {}
}`, sentinel, name)).result(time.Minute)
		if want == "" {
			require.Zero(t, r.ExitCode)
			continue
		}
		require.Contains(t, r.Verdict.Reasons[0], want)
	}
}
