package experiment

import (
	"errors"

	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Settings are what an experiment was told to do. They are kept beside it as JSON, and the log of each of its runs has the digest of that: so the runs
// vouch for them.
type Settings struct {
	Plan       string           `json:"plan"` // its name
	Seed       uint64           `json:"seed"` // of the order
	Experiment *plan.Experiment `json:"experiment"`
	Gate       *run.Gate        `json:"gate,omitempty"` // before its first pair; nil for none
	Digests    []string         `json:"plan_digests"`   // of the variants' plans, in their order
	Wanted     expr.Wanted      `json:"wanted"`
}

// CheckValid reports whether they are those of an experiment: others may have written them.
func (s *Settings) CheckValid() error {
	e, names := s.Experiment, map[string]bool{}
	if e != nil {
		for _, v := range e.Variants {
			names[v.Name] = true
		}
	}
	if e == nil || !names[e.Baseline] || len(names) != len(e.Variants) || len(names) != len(s.Digests) || len(names) > plan.MaxVariants || e.Repeat < 1 ||
		e.Repeat > plan.MaxRepeat || (s.Gate != nil) != (e.Gate != nil) || s.Gate != nil && len(names) != 2 {
		return errors.New("its settings are of no experiment")
	}
	return nil
}

// Show adds the tables and charts that the plan describes. runs are those that x names, in its order; planOf returns the plan of one. The cells of a
// variant without a run that counts are blank.
func (s *Settings) Show(x *run.Experiment, runs []*run.Run, planOf func(*run.Run) (*plan.Plan, error), latencies expr.Latencies) error {
	var variants []expr.Variant
	base := 0
	for i, v := range s.Experiment.Variants {
		one := expr.Variant{Name: v.Name, Bound: s.Experiment.BoundOf(v.Name), Latencies: latencies}
		for j, r := range runs {
			if r.Variant != v.Name || !x.Runs[j].Counts() {
				continue
			}
			if one.Plan == nil {
				var err error
				if one.Plan, err = planOf(r); err != nil {
					return err
				}
				if diags := append(expr.CheckTables(one.Plan, s.Wanted.Tables, s.Experiment.Variants), expr.CheckCharts(one.Plan, s.Wanted.Charts)...); diags.HasErrors() {
					return diags
				}
			}
			one.Runs = append(one.Runs, r)
		}
		if v.Name == x.Baseline {
			base = i
		}
		variants = append(variants, one)
	}
	var tables []run.Table
	for _, t := range s.Wanted.Tables {
		tables = append(tables, expr.Fill(t, variants, base))
	}
	x.Tables = append(tables, x.Tables...)
	for _, c := range s.Wanted.Charts {
		expr.Draw(x, c, variants)
	}
	return nil
}
