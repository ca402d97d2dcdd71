package command

import (
	"fmt"

	"github.com/loadgen/loadgen/internal/result/experiment"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// settingsOf reads the settings of an experiment, which are in the directory of that name, and returns a function that reads the plan of one of its runs.
func settingsOf(known *drivers.Set, root, id string, x *run.Experiment) (*experiment.Settings, func(*run.Run) (*plan.Plan, error), error) {
	var s experiment.Settings
	text, err := rundir.Settings(root, id, &s)
	if err != nil {
		return nil, nil, err
	}
	if digest := plan.Digest(text); digest != x.PlanDigest {
		return nil, nil, fmt.Errorf("its settings have the digest %s, and it names %s", digest, x.PlanDigest)
	}
	if err := s.CheckValid(); err != nil {
		return nil, nil, err
	}
	variants := s.Experiment.Variants
	for _, name := range s.Experiment.LeftOut {
		variants = append(variants, plan.Variant{Name: name})
	}
	return &s, func(r *run.Run) (*plan.Plan, error) {
		b, err := rundir.Plan(root, r.ID)
		if err != nil {
			return nil, err
		}
		p, err := plan.Decode(b, known.All)
		if err != nil {
			return nil, err
		}
		if diags := append(expr.CheckTables(p, plan.Shown(s.Wanted.Tables, r.Variant), variants), expr.CheckCharts(p, s.Wanted.Charts)...); diags.HasErrors() {
			return nil, diags
		}
		return p, nil
	}, nil
}
