package engine

import (
	"context"
	"net"
	"net/netip"
	"syscall"

	"github.com/loadgen/loadgen/internal/load/policy"
	wording "github.com/loadgen/loadgen/pkg/driver/form"
)

// dialer returns a function that connects to addresses that the policy allows. It checks each address that a name resolves to before anything is sent
// there.
func (e *Engine) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{}
	if e.cfg.Policy != nil {
		d.ControlContext = e.admit
	}
	return d.DialContext
}

// admit returns an error if the policy does not allow connections to an address.
func (e *Engine) admit(_ context.Context, network, address string, _ syscall.RawConn) error {
	if network == "unix" {
		return e.cfg.Policy.Admit(netip.AddrPort{}, address)
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return e.cfg.Policy.Admit(to, "")
}

// commands returns the first words of the requests that the plan words itself and the phase makes.
func (g *group) commands(x *side) (words []string) {
	former, ok := x.driver.(wording.Former)
	if !ok {
		return nil
	}
	for _, f := range x.forms {
		if w, err := former.CheckForm(x.target.Config, f); err == nil { // the plan was checked
			words = append(words, w.Command)
		}
	}
	return words
}

// checkPolicy compares what this worker's part of the phase needs with what the worker's policy allows.
func (g *group) checkPolicy(p *policy.Policy) error {
	if g.sessions == 0 {
		return nil
	}
	need := policy.Need{Sessions: g.sessions, Rate: g.phase.OpsPerSecond() * g.plan.RequestsPerOp(g.phase) * float64(g.sessions) / float64(g.phase.Sessions())}
	for _, x := range g.sides() {
		need.Connections += g.sessions * x.opens()
		need.Commands = append(need.Commands, g.commands(x)...)
	}
	if g.phase.Closed != nil {
		need.Duration = g.phase.Closed.Duration
	}
	if g.phase.Open != nil {
		need.Duration = g.phase.Open.Duration
	}
	return p.Check(need)
}
