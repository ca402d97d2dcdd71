package engine

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/policy"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
)

// dialer connects to where the policy allows: it looks at each address that a name stands for, before anything is sent there.
func (e *Engine) dialer() func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := &net.Dialer{}
	if e.cfg.Policy != nil {
		d.ControlContext = func(_ context.Context, network, address string, _ syscall.RawConn) error {
			if network == "unix" {
				return e.cfg.Policy.Admit(netip.AddrPort{}, address)
			}
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return e.cfg.Policy.Admit(to, "")
		}
	}
	return d.DialContext
}

// errOwnConnections is of a driver whose connections nobody else sees.
var errOwnConnections = errors.New("this worker's policy: targets: the driver makes its connections itself, so where they lead cannot be checked")

// checkPolicy compares what this worker's part of the phase takes with what the worker's policy allows.
func (g *group) checkPolicy(p *policy.Policy, d driver.Driver) error {
	if p == nil || g.sessions == 0 {
		return nil
	}
	if _, ok := d.(driver.Dialer); ok {
		return errOwnConnections
	}
	need := policy.Need{Sessions: g.sessions, Rate: g.phase.OpsPerSecond() * float64(g.sessions) / float64(g.phase.Sessions())}
	if _, remote := d.(driver.Wire); remote {
		need.Connections = g.sessions * len(g.endpoints)
	}
	if g.phase.Closed != nil {
		need.Duration = g.phase.Closed.Duration
	}
	if g.phase.Open != nil {
		need.Duration = g.phase.Open.Duration
	}
	return p.Check(need)
}

// checkLogs compares the files of the sessions of a site with what the worker's policy allows.
func checkLogs(p *policy.Policy, d localfile.Driver, config any, site localfile.Site) error {
	if p == nil {
		return nil
	}
	need, err := d.Need(config, site)
	if err != nil {
		return err
	}
	return p.Check(policy.Need{LogBytes: need.Bytes})
}

// watch says what a worker has done in an interval of a step that its policy does not allow.
func watch(p *policy.Policy, joint measure.Interval, begin int64) error {
	var ops, bytes uint64
	for _, o := range joint.Delta.Ops {
		if o == nil {
			continue
		}
		for _, n := range o.Outcomes {
			ops += n
		}
		bytes += o.In + o.Out
	}
	return p.Watch(policy.Done{Ops: ops, Bytes: bytes, In: time.Duration(joint.To - joint.From), Since: time.Duration(joint.To - begin)})
}
