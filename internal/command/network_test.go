package command_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// networked is a coordinator, workers and Redis servers, each on its own machine. Machines share no state directory.
type networked struct {
	*Network
	t       *testing.T
	state   map[*Machine]string
	plan    string
	servers []*Machine
	addrs   []string // of the servers
}

// newNetworked makes one whose first machine is the coordinator's and whose last ones are the servers'.
func newNetworked(t *testing.T, machines, servers int, plan string) *networked {
	t.Helper()
	n := &networked{Network: NewNetwork(t, machines), t: t, state: map[*Machine]string{}, plan: plan}
	for _, m := range n.Machines {
		n.state[m] = t.TempDir()
	}
	redis, err := exec.LookPath("redis-server")
	servertest.Require(t, "redis", err)
	n.servers = n.Machines[machines-servers:]
	for _, m := range n.servers {
		n.addrs = append(n.addrs, m.Addr+":6379")
		start(t, m.On(exec.Command(redis, "--bind", m.Addr, "--protected-mode", "no", "--save", "", "--dir", t.TempDir())))
	}
	for _, m := range n.servers {
		require.Eventually(t, func() bool { return m.On(exec.Command("redis-cli", "-h", m.Addr, "PING")).Run() == nil }, 60*time.Second, 20*time.Millisecond)
	}
	return n
}

// command is a loadgen on a machine.
func (n *networked) command(m *Machine, args ...string) *exec.Cmd {
	cmd := command(n.t, args...)
	cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+n.state[m])
	return m.On(cmd)
}

// run starts a run of the plan by the coordinator.
func (n *networked) run(args ...string) *load {
	n.t.Helper()
	return beginBy(n.t, func(args ...string) *exec.Cmd { return n.command(n.Machines[0], args...) }, n.plan, append(args, "-var", nodes(n.addrs...))...)
}

// worker starts a worker for one run, with the arguments that follow "loadgen worker".
func (n *networked) worker(m *Machine, name, line string) *process {
	n.t.Helper()
	args := append([]string{"worker", "--name", name, "--once", "--loops", "1"}, strings.Fields(line)...)
	return start(n.t, n.command(m, args...))
}

// calls counts what each server was asked for.
func (n *networked) calls() (all []calls) {
	for _, m := range n.servers {
		all = append(all, parseCalls(n.t, m.Output("redis-cli", "-h", m.Addr, "INFO", "commandstats")))
	}
	return all
}

// line matches what a coordinator prints for starting a worker.
var line = regexp.MustCompile(`loadgen worker (--join \S+ --token \S+)`)

// invited returns that line from a waiting coordinator.
func invited(t *testing.T, l *load) string {
	t.Helper()
	var said []string
	l.until(func() bool {
		said = line.FindStringSubmatch(l.stderr.String())
		return said != nil
	})
	return said[1]
}

// TestFleetOnANetwork: workers on three machines join a coordinator on a fourth with the line that it prints, and run the README's plan on four
// servers. They do what one process does, and the servers counted it. For the next run they need no token. Workers with no token, or a wrong one, are
// told so, and so is the coordinator.
func TestFleetOnANetwork(t *testing.T) {
	t.Parallel()
	n := newNetworked(t, 9, 4, shortHydra(t))
	before := n.calls()
	ledger := func(l *load) string {
		r, after := l.result(60*time.Second), n.calls()
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		requireBetween(t, r, n.addrs, before, after)
		before = after
		return done(r, n.addrs)
	}
	alone := ledger(n.run())

	listen := []string{"--listen", "0.0.0.0:7464", "--workers", "3"}
	first := n.run(listen...)
	said := invited(t, first)
	require.Contains(t, said, "--join "+n.Machines[0].Addr+":7464 ")
	stranger, join := n.Machines[4], "--join "+n.Machines[0].Addr+":7464"
	wrong := n.worker(stranger, "w4", said[:len(said)-22]+"AAAAAAAAAAAAAAAAAAAAAA")
	require.Equal(t, exit.Failed, wrong.wait(60*time.Second))
	require.Contains(t, wrong.stderr.String(), "is not known here")
	none := n.worker(stranger, "w4", join)
	require.Equal(t, 2, none.wait(60*time.Second))
	require.Contains(t, none.stderr.String(), "loadgen token create makes a token")
	team := func(line string) (workers []*process) {
		for i := 1; i <= 3; i++ {
			workers = append(workers, n.worker(n.Machines[i], fmt.Sprintf("w%d", i), line))
		}
		return workers
	}
	workers := team(said)
	require.Equal(t, alone, ledger(first))
	require.Contains(t, first.stderr.String(), "refused a connection")
	require.Contains(t, first.stderr.String(), "from="+stranger.Addr+":")
	require.Contains(t, first.stderr.String(), "is not known here")
	for _, w := range workers {
		require.Zero(t, w.wait(60*time.Second), "%s", &w.stderr)
	}
	late := n.worker(stranger, "w4", said) // the token has ended with the run
	late.told("no coordinator there")

	second := n.run(listen...)
	invited(t, second)
	require.Equal(t, exit.Failed, late.wait(60*time.Second))
	workers = team(join)
	require.Equal(t, alone, ledger(second))
	for _, w := range workers {
		require.Zero(t, w.wait(60*time.Second), "%s", &w.stderr)
	}
}
