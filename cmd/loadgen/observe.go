package main

import (
	"context"
	"net"

	"github.com/loadgen/loadgen/internal/coord"
	"github.com/loadgen/loadgen/internal/drivers"
	"github.com/loadgen/loadgen/internal/engine"
	"github.com/loadgen/loadgen/internal/observe"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// probes returns what makes the probes of a plan's observations.
func (f *runFlags) probes(p *plan.Plan, header run.Header) func(o *plan.Observe, endpoints []string) coord.Probe {
	means := observe.Means{
		Drivers: drivers.All(), Secrets: environmentSecrets,
		Dial: func(ctx context.Context, t *plan.Target, addr string) (net.Conn, error) {
			return engine.Dial(ctx, t, addr, f.loops.open(), f.loops.secrets.allow(false))
		},
		Hook: f.allowed.observed(header),
	}
	return func(o *plan.Observe, endpoints []string) coord.Probe {
		return means.New(o, p.Target(o.Target), endpoints)
	}
}
