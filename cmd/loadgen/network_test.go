package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// networked is a coordinator, workers and a Redis server, each on a machine of its own. Machines share no state directory.
type networked struct {
	*servertest.Network
	t     *testing.T
	state map[*servertest.Machine]string
	plan  string
	addr  string // of the server
}

// newNetworked makes one whose first machine is the coordinator's and whose last is the server's.
func newNetworked(t *testing.T, machines int) *networked {
	t.Helper()
	n := &networked{Network: servertest.NewNetwork(t, machines), t: t, state: map[*servertest.Machine]string{}}
	for _, m := range n.Machines {
		n.state[m] = t.TempDir()
	}
	n.plan = filepath.Join(t.TempDir(), "plan.hcl")
	require.NoError(t, os.WriteFile(n.plan, []byte(fixedPlan), 0o600))
	last := n.Machines[machines-1]
	n.addr = last.Addr + ":6379"
	redis, err := exec.LookPath("redis-server")
	servertest.Require(t, "redis", err)
	start(t, last.On(exec.Command(redis, "--bind", last.Addr, "--protected-mode", "no", "--save", "", "--dir", t.TempDir())))
	require.Eventually(t, func() bool {
		return last.On(exec.Command("redis-cli", "-h", last.Addr, "PING")).Run() == nil
	}, 20*time.Second, 20*time.Millisecond)
	return n
}

// command is a loadgen on a machine.
func (n *networked) command(m *servertest.Machine, args ...string) *exec.Cmd {
	cmd := command(n.t, args...)
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+n.state[m])
	return m.On(cmd)
}

// run starts a run of the plan by the coordinator.
func (n *networked) run(args ...string) *load {
	n.t.Helper()
	return beginBy(n.t, func(args ...string) *exec.Cmd { return n.command(n.Machines[0], args...) }, n.plan, append(args, "-var", nodes(n.addr))...)
}

// worker starts a worker for one run, with what comes behind "loadgen worker".
func (n *networked) worker(m *servertest.Machine, name, line string) *process {
	n.t.Helper()
	args := append([]string{"worker", "--name", name, "--once", "--loops", "1"}, strings.Fields(line)...)
	return start(n.t, n.command(m, args...))
}

// calls counts what the server was asked for.
func (n *networked) calls() calls {
	last := n.Machines[len(n.Machines)-1]
	return parseCalls(n.t, last.Output("redis-cli", "-h", last.Addr, "INFO", "commandstats"))
}

// line is what a coordinator says that a worker is to be given.
var line = regexp.MustCompile(`loadgen worker (--join \S+ --token \S+)`)

// invited returns that of a coordinator that waits.
func invited(t *testing.T, l *load) string {
	t.Helper()
	var said []string
	require.Eventually(t, func() bool {
		said = line.FindStringSubmatch(l.stderr.String())
		return said != nil
	}, 20*time.Second, 5*time.Millisecond, "%s", &l.stderr)
	return said[1]
}

// TestFleetOnANetwork has workers on two machines join a coordinator on a third with the line that it prints, and load a server on a fourth: what was
// done is what one process does, and what the server counted. For the next run they need no token any more. Those who have none, or a wrong one, are
// told so, and so is the coordinator.
func TestFleetOnANetwork(t *testing.T) {
	n := newNetworked(t, 5)
	ledger := func(l *load) string {
		before := n.calls()
		r := l.clean(60 * time.Second)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		p, after := r.Phase["mix"], n.calls()
		require.Equal(t, p.Op["get"].Sent, after["get"]-before["get"])
		require.Equal(t, p.Op["put"].Sent+p.Setup.Op["put"].Sent, after["put"]-before["put"])
		return fmt.Sprint(p.Digest, p.Op["get"].OK, p.Op["put"].OK, p.Op["get"].Due, p.Op["put"].Due, p.Setup.Op["put"].OK, p.Requests)
	}
	alone := ledger(n.run())

	listen := []string{"--listen", "0.0.0.0:7464", "--workers", "2"}
	first := n.run(listen...)
	said := invited(t, first)
	require.Contains(t, said, "--join "+n.Machines[0].Addr+":7464 ")
	stranger, join := n.Machines[3], "--join "+n.Machines[0].Addr+":7464"
	wrong := n.worker(stranger, "w3", said[:len(said)-22]+"AAAAAAAAAAAAAAAAAAAAAA")
	require.Equal(t, run.ExitFailed, wrong.wait(20*time.Second))
	require.Contains(t, wrong.stderr.String(), "is not known here")
	none := n.worker(stranger, "w3", join)
	require.Equal(t, 2, none.wait(20*time.Second))
	require.Contains(t, none.stderr.String(), "loadgen token create makes a token")
	workers := []*process{n.worker(n.Machines[1], "w1", said), n.worker(n.Machines[2], "w2", said)}
	require.Equal(t, alone, ledger(first))
	require.Contains(t, first.stderr.String(), "refused a connection")
	require.Contains(t, first.stderr.String(), "from="+stranger.Addr+":")
	require.Contains(t, first.stderr.String(), "is not known here")
	for _, w := range workers {
		require.Zero(t, w.wait(20*time.Second), "%s", &w.stderr)
	}
	late := n.worker(stranger, "w3", said) // the token has ended with the run
	require.Eventually(t, func() bool { return strings.Contains(late.stderr.String(), "no coordinator there") }, 20*time.Second, 5*time.Millisecond)

	second := n.run(listen...)
	invited(t, second)
	require.Equal(t, run.ExitFailed, late.wait(20*time.Second))
	workers = []*process{n.worker(n.Machines[1], "w1", join), n.worker(n.Machines[2], "w2", join)}
	require.Equal(t, alone, ledger(second))
	for _, w := range workers {
		require.Zero(t, w.wait(20*time.Second), "%s", &w.stderr)
	}
}
