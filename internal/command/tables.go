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
		p, _, err := planOf(known, root, r.ID)
		if err != nil {
			return nil, err
		}
		if diags := append(expr.CheckTables(p, plan.Shown(s.Wanted.Tables, r.Variant), variants), expr.CheckCharts(p, s.Wanted.Charts)...); diags.HasErrors() {
			return nil, diags
		}
		return p, nil
	}, nil
}

// planOf reads the plan of a run, and its canonical form.
func planOf(known *drivers.Set, root, id string) (*plan.Plan, []byte, error) {
	canonical, err := rundir.Plan(root, id)
	if err != nil {
		return nil, nil, err
	}
	p, err := plan.Decode(canonical, known.All)
	if err != nil {
		return nil, nil, fmt.Errorf("the plan of run %s: %w", id, err)
	}
	return p, canonical, nil
}
