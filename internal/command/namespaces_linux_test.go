package command_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loadgen/loadgen/internal/servertest"
)

// Network is a network of machines that share only the processor and the files: each is a namespace with its own address, on a bridge in another
// namespace. Nothing in it reaches the host's network.
type Network struct {
	Machines []*Machine
	t        testing.TB
	name     string
}

// Machine is one machine of a network.
type Machine struct {
	Addr  string        // its IPv4 address
	Ahead time.Duration // whole seconds by which its monotonic clocks are ahead of the host's (time_namespaces(7)); its time of day is not

	t         testing.TB
	namespace string
	port      string // the machine's port on the bridge
}

// NewNetwork makes a network of n machines, which ends with the test.
func NewNetwork(t testing.TB, n int) *Network {
	t.Helper()
	w := &Network{t: t, name: filepath.Base(filepath.Dir(t.TempDir()))} // unique, even across concurrent test runs
	if _, err := exec.LookPath("ip"); err != nil {
		servertest.Require(t, "netns", errors.New("ip not found"))
	}
	hub := w.namespace("hub")
	servertest.Require(t, "netns", called("ip", "netns", "add", hub))
	w.forget(hub)
	w.must("ip -n HUB link add bridge type bridge", "HUB", hub)
	w.must("ip -n HUB link set bridge up", "HUB", hub)
	for i := range n {
		w.add(hub, i+1)
	}
	return w
}

func (w *Network) namespace(of string) string { return w.name + "-" + of }

// forget deletes a namespace and everything in it at the end of the test.
func (w *Network) forget(namespace string) {
	w.t.Cleanup(func() {
		if err := called("ip", "netns", "delete", namespace); err != nil {
			w.t.Errorf("end a network of the test: %v", err)
		}
	})
}

// Cut drops everything that one machine sends to another from now on.
func (w *Network) Cut(from, to *Machine) {
	w.t.Helper()
	w.rule("ip", "saddr", from.Addr, "ip", "daddr", to.Addr, "drop")
}

// Lose drops each packet that a machine sends or receives with a probability of percent %.
func (w *Network) Lose(m *Machine, percent int) {
	w.t.Helper()
	below := strconv.FormatInt(int64(percent)*(1<<32)/100, 10)
	for _, end := range []string{"saddr", "daddr"} {
		w.rule("ip", end, m.Addr, "meta", "random", "<", below, "drop")
	}
}

// rule adds a rule that the bridge applies to each packet it forwards.
func (w *Network) rule(words ...string) {
	w.t.Helper()
	hub := w.namespace("hub")
	_, err := exec.LookPath("nft")
	servertest.Require(w.t, "nftables", err)
	w.must("ip netns exec HUB nft add table bridge faults; add chain bridge faults each { type filter hook forward priority 0; }", "HUB", hub)
	w.must("ip netns exec HUB nft add rule bridge faults each "+strings.Join(words, " "), "HUB", hub)
}

// Plug unplugs a machine's cable, or plugs it in again.
func (w *Network) Plug(m *Machine, in bool) {
	w.t.Helper()
	w.must("ip -n HUB link set PORT TO", "HUB", w.namespace("hub"), "PORT", m.port, "TO", map[bool]string{true: "up", false: "down"}[in])
}

// add adds the i-th machine.
func (w *Network) add(hub string, i int) {
	w.t.Helper()
	m := &Machine{t: w.t, namespace: w.namespace(fmt.Sprint(i)), Addr: fmt.Sprintf("10.99.0.%d", i), port: fmt.Sprintf("port%d", i)}
	names := []string{"HUB", hub, "MACHINE", m.namespace, "PORT", m.port, "ADDR", m.Addr + "/24"}
	w.must("ip netns add MACHINE", names...)
	w.forget(m.namespace)
	for _, command := range []string{
		"ip -n HUB link add PORT type veth peer name eth0 netns MACHINE",
		"ip -n HUB link set PORT master bridge up",
		"ip -n MACHINE addr add ADDR dev eth0",
		"ip -n MACHINE link set eth0 up",
		"ip -n MACHINE link set lo up",
	} {
		w.must(command, names...)
	}
	w.Machines = append(w.Machines, m)
}

// must runs a command, with words for its placeholders.
func (w *Network) must(command string, words ...string) {
	w.t.Helper()
	args := strings.Fields(strings.NewReplacer(words...).Replace(command))
	if err := called(args...); err != nil {
		w.t.Fatalf("make a network for the test: %v", err)
	}
}

func called(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// On makes a command run on the machine. The command keeps its process, unless the machine's clocks are ahead: On then returns a parent, whose end
// ends it.
func (m *Machine) On(cmd *exec.Cmd) *exec.Cmd {
	m.t.Helper()
	args := []string{"netns", "exec", m.namespace}
	if m.Ahead != 0 {
		servertest.Require(m.t, "timens", called("unshare", "--time", "true"))
		seconds := strconv.Itoa(int(m.Ahead / time.Second))
		args = append(args, "unshare", "--time", "--kill-child", "--boottime", seconds, "--monotonic", seconds)
	}
	on := exec.Command("ip", append(args, cmd.Args...)...)
	on.Env, on.Dir, on.Stdin = cmd.Env, cmd.Dir, cmd.Stdin
	return on
}

// Output returns the output of a command on the machine.
func (m *Machine) Output(args ...string) string {
	m.t.Helper()
	out, err := m.On(exec.Command(args[0], args[1:]...)).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
