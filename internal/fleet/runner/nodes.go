package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/target/cachenode"
	"github.com/loadgen/loadgen/pkg/plan"
)

// nodes starts built-in cache nodes as child processes. It implements coord.Nodes.
type nodes struct {
	cpus     []int // CPUs that they may use; none for all
	protocol func(driver string) (string, error)
	fleets   map[string]*cachenode.Fleet // by target
}

func newNodes(cpus []int, protocol func(driver string) (string, error)) *nodes {
	return &nodes{cpus: cpus, protocol: protocol, fleets: map[string]*cachenode.Fleet{}}
}

func (n *nodes) Start(ctx context.Context, t *plan.Target) ([]string, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	protocol, err := n.protocol(t.Driver)
	if err != nil {
		return nil, err
	}
	args := []string{
		"target", "serve", "--parent-pipe", "--listen", "127.0.0.1:0", "--protocol", protocol,
		"--memory", strconv.FormatInt(t.Builtin.Memory, 10) + "B", "--delay", t.Builtin.Delay.String(), "--service", t.Builtin.Service.String(),
	}
	if c := t.Builtin.Copies; c != nil {
		args = append(args, "--n", strconv.Itoa(c.N), "--w", strconv.Itoa(c.W), "--r", strconv.Itoa(c.R), "--wait", t.Builtin.Wait.String(), "--build", t.Builtin.Build)
	}
	var fleet *cachenode.Fleet
	if err := machine.On(n.cpus, func() (err error) {
		fleet, err = cachenode.Start(ctx, exe, args, t.Builtin.Nodes)
		return err
	}); err != nil {
		return nil, err
	}
	n.fleets[t.Name] = fleet
	if t.Builtin.Copies != nil {
		if err := fleet.Introduce(ctx); err != nil {
			return nil, err
		}
	}
	return fleet.Endpoints(), nil
}

func (n *nodes) Flush(ctx context.Context, target string) error {
	fleet := n.fleets[target]
	if fleet == nil {
		return fmt.Errorf("target %q has no built-in nodes", target)
	}
	return fleet.Flush(ctx)
}

// ended says which nodes have ended on their own so far.
func (n *nodes) ended() []error {
	var errs []error
	for _, fleet := range n.fleets {
		for len(fleet.Exited()) > 0 {
			errs = append(errs, <-fleet.Exited())
		}
	}
	return errs
}

// kill kills all nodes. close must still be called.
func (n *nodes) kill() {
	for _, fleet := range n.fleets {
		fleet.Kill()
	}
}

// close ends all nodes.
func (n *nodes) close() error {
	var errs []error
	for _, fleet := range n.fleets {
		errs = append(errs, fleet.Close())
	}
	return errors.Join(errs...)
}
