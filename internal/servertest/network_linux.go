package servertest

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
	Addr string // its IPv4 address

	t         testing.TB
	namespace string
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

// add adds the i-th machine.
func (w *Network) add(hub string, i int) {
	w.t.Helper()
	m := &Machine{t: w.t, namespace: w.namespace(fmt.Sprint(i)), Addr: fmt.Sprintf("10.99.0.%d", i)}
	names := []string{"HUB", hub, "MACHINE", m.namespace, "PORT", fmt.Sprintf("port%d", i), "ADDR", m.Addr + "/24"}
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

// On has a command run on the machine; it keeps its process.
func (m *Machine) On(cmd *exec.Cmd) *exec.Cmd {
	on := exec.Command("ip", append([]string{"netns", "exec", m.namespace}, cmd.Args...)...)
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
