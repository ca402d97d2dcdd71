package servertest

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Network is a network of machines that share nothing but the processor and the files: a namespace for each, with an address of its own, on a bridge in
// another namespace. Nothing of it reaches the network of the host.
type Network struct {
	Machines []*Machine
	t        testing.TB
	name     string
}

// Machine is one of a network's.
type Machine struct {
	Addr  string        // its IPv4 address
	Ahead time.Duration // whole seconds: the clocks by which processes measure time are ahead of the host's by that (time_namespaces(7)); the time of day is not

	t         testing.TB
	namespace string
	port      string // of the bridge
}

// NewNetwork makes a network of n machines, which ends with the test.
func NewNetwork(t testing.TB, n int) *Network {
	t.Helper()
	w := &Network{t: t, name: filepath.Base(filepath.Dir(t.TempDir()))} // its own, however many tests run
	if _, err := exec.LookPath("ip"); err != nil {
		Require(t, "netns", errors.New("ip not found"))
	}
	hub := w.namespace("hub")
	Require(t, "netns", run("ip", "netns", "add", hub))
	w.forget(hub)
	w.must("ip -n HUB link add bridge type bridge", "HUB", hub)
	w.must("ip -n HUB link set bridge up", "HUB", hub)
	for i := range n {
		w.add(hub, i+1)
	}
	return w
}

func (w *Network) namespace(of string) string { return w.name + "-" + of }

// forget deletes a namespace with all that is in it, at the end of the test.
func (w *Network) forget(namespace string) {
	w.t.Cleanup(func() {
		if err := run("ip", "netns", "delete", namespace); err != nil {
			w.t.Errorf("end a network of the test: %v", err)
		}
	})
}

// Cut lets nothing of what a machine sends to another one arrive any more.
func (w *Network) Cut(from, to *Machine) {
	w.t.Helper()
	w.rule("ip", "saddr", from.Addr, "ip", "daddr", to.Addr, "drop")
}

// Lose drops each packet that a machine sends or is sent with a chance of so many percent.
func (w *Network) Lose(m *Machine, percent int) {
	w.t.Helper()
	below := strconv.FormatInt(int64(percent)*(1<<32)/100, 10)
	for _, end := range []string{"saddr", "daddr"} {
		w.rule("ip", end, m.Addr, "meta", "random", "<", below, "drop")
	}
}

// rule has the bridge look at each packet that it hands on.
func (w *Network) rule(words ...string) {
	w.t.Helper()
	hub := w.namespace("hub")
	_, err := exec.LookPath("nft")
	Require(w.t, "nftables", err)
	w.must("ip netns exec HUB nft add table bridge faults; add chain bridge faults each { type filter hook forward priority 0; }", "HUB", hub)
	w.must("ip netns exec HUB nft add rule bridge faults each "+strings.Join(words, " "), "HUB", hub)
}

// Plug takes a machine's cable out, or puts it in again.
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

// must runs a command in which words stand for others.
func (w *Network) must(command string, words ...string) {
	w.t.Helper()
	args := strings.Fields(strings.NewReplacer(words...).Replace(command))
	if err := run(args...); err != nil {
		w.t.Fatalf("make a network for the test: %v", err)
	}
}

func run(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// On has a command run on the machine; it keeps its process, unless clocks are ahead there: then its parent is what it returns, with which it ends.
func (m *Machine) On(cmd *exec.Cmd) *exec.Cmd {
	m.t.Helper()
	args := []string{"netns", "exec", m.namespace}
	if m.Ahead != 0 {
		Require(m.t, "timens", run("unshare", "--time", "true"))
		seconds := strconv.Itoa(int(m.Ahead / time.Second))
		args = append(args, "unshare", "--time", "--kill-child", "--boottime", seconds, "--monotonic", seconds)
	}
	on := exec.Command("ip", append(args, cmd.Args...)...)
	on.Env, on.Dir, on.Stdin = cmd.Env, cmd.Dir, cmd.Stdin
	return on
}

// Output returns what a command on the machine writes.
func (m *Machine) Output(args ...string) string {
	m.t.Helper()
	out, err := m.On(exec.Command(args[0], args[1:]...)).CombinedOutput()
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
