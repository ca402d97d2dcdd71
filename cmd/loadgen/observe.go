package main

import (
	"context"
	"fmt"

	"github.com/loadgen/loadgen/internal/coord"
	"github.com/loadgen/loadgen/internal/drivers"
	"github.com/loadgen/loadgen/internal/engine"
	"github.com/loadgen/loadgen/internal/observe"
	"github.com/loadgen/loadgen/pkg/plan"
)

// probes returns what makes the probes of a plan's observations.
func (f *runFlags) probes(p *plan.Plan) func(o *plan.Observe, endpoints []string) coord.Probe {
	means := observe.Means{
		Drivers: drivers.All(), Secrets: environmentSecrets, Dial: engine.Dial,
		Hook: func(_ context.Context, name string) (string, error) { return "", fmt.Errorf("no hook %s", name) },
	}
	return func(o *plan.Observe, endpoints []string) coord.Probe {
		return means.New(o, p.Target(o.Target), endpoints)
	}
}
