package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/rundir"
	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// tablesSoFar fills the tables of an unfinished experiment from the runs so far. A variant's plan is that of its first run. The cells of a variant
// that has not been run are blank.
func tablesSoFar(known *drivers.Set, root string, x *run.Experiment, runs []*run.Run) ([]run.Table, error) {
	b, err := rundir.Tables(root, x.ID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var described []plan.Table
	if err := json.Unmarshal(b, &described); err != nil {
		return nil, fmt.Errorf("read tables: %w", err)
	}
	var variants []expr.Variant
	base := 0
	for i, v := range x.Variants {
		one := expr.Variant{Name: v.Name, Bound: -1}
		for j, r := range runs {
			if r.Variant != v.Name || !x.Runs[j].Counts() {
				continue
			}
			if one.Plan == nil {
				if one.Plan, err = planOf(known, root, r.ID); err != nil {
					return nil, err
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
	for _, t := range described {
		tables = append(tables, expr.Fill(t, variants, base))
	}
	return tables, nil
}

// planOf reads the plan of a run.
func planOf(known *drivers.Set, root, id string) (*plan.Plan, error) {
	b, err := rundir.Plan(root, id)
	if err != nil {
		return nil, err
	}
	return plan.Decode(b, known.All)
}
