package experiment

import (
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/run"
)

// observed makes a table for each phase and observation of the target's side, with the fields that changed in any run. A counter is shown as its rate
// per second, any other field as its mean over the load, each averaged over the runs of a variant.
func (c *comparer) observed() (tables []run.Table) {
	var all []*run.Run
	for _, v := range c.x.Variants {
		all = append(all, c.runs[v.Name]...)
	}
	var phases []string
	names := map[string]map[string]bool{} // of observations, by phase
	for _, r := range all {
		for _, phase := range r.PhaseOrder {
			if names[phase] == nil {
				phases, names[phase] = append(phases, phase), map[string]bool{}
			}
			for name := range r.Phase[phase].Observe {
				names[phase][name] = true
			}
		}
	}
	for _, phase := range phases {
		for _, name := range slices.Sorted(maps.Keys(names[phase])) {
			if t := c.observedIn(all, phase, name); len(t.Columns) > 0 {
				tables = append(tables, t)
			}
		}
	}
	return tables
}

// observedIn makes the table of one observation of a phase: fields from top to bottom, variants side by side.
func (c *comparer) observedIn(all []*run.Run, phase, name string) run.Table {
	t := run.Table{
		Title: "phase " + phase + ", observed: " + name + "; means of the runs, of counters per second", Transpose: true, Notes: []string{},
	}
	moved := map[string]run.Observed{}
	for _, r := range all {
		for field, o := range observedOf(r, phase, name) {
			if changed(&o) {
				moved[field] = o
			}
		}
	}
	fields := slices.Sorted(maps.Keys(moved))
	for _, field := range fields {
		o := moved[field]
		unit, title := shownIn(&o), field
		if unit != "" && unit != "%" { // these units follow each figure
			title += ", " + expr.UnitText(unit)
		}
		t.Columns = append(t.Columns, run.Column{Name: field, Title: title, Unit: unit})
	}
	for _, v := range c.x.Variants {
		row := run.TableRow{Name: v.Name}
		for i, field := range fields {
			row.Cells = append(row.Cells, meanOf(c.runs[v.Name], phase, name, field, t.Columns[i].Unit))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func observedOf(r *run.Run, phase, name string) map[string]run.Observed {
	if p := r.Phase[phase]; p != nil {
		return p.Observe[name]
	}
	return nil
}

func changed(o *run.Observed) bool {
	if o.Counter {
		return o.Delta != nil && *o.Delta != 0
	}
	return o.Min != nil && o.Max != nil && *o.Min != *o.Max
}

// shownIn returns the unit of a column. Seconds per second are a share of the time.
func shownIn(o *run.Observed) string {
	switch {
	case o.Unit == "bytes" && o.Counter:
		return "MB/s"
	case o.Unit == "bytes":
		return "MiB"
	case o.Unit == "s" && o.Counter:
		return "%"
	case o.Unit == "s":
		return "ms"
	case o.Unit == "us" && o.Counter:
		return "us/s"
	case o.Counter:
		return "/s"
	}
	return o.Unit
}

// meanOf averages a field over the runs that have it.
func meanOf(runs []*run.Run, phase, name, field, unit string) run.Cell {
	sum, n := 0.0, 0
	for _, r := range runs {
		o := observedOf(r, phase, name)[field]
		v := o.Mean
		if o.Counter {
			v = o.Rate
		}
		if v != nil {
			sum += *v
			n++
		}
	}
	if n == 0 {
		return run.Cell{Text: "–", Reason: "not observed in any run"}
	}
	mean := sum / float64(n)
	if unit == "us" { // not a base unit: shown unchanged
		unit = ""
	}
	return run.Cell{Value: &mean, Text: expr.Format(mean, unit)}
}
