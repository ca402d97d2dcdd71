package judge

import (
	"fmt"
	"path"
	"slices"

	"github.com/loadgen/loadgen/internal/count/reason"
	"github.com/loadgen/loadgen/internal/result/footprint"
	"github.com/loadgen/loadgen/internal/result/quantity"
	"github.com/loadgen/loadgen/pkg/plan"
)

// perItem adds what an item takes in the store that a populate fills, if its servers say in the same breath how many items they hold and what memory these
// take.
func (p *phase) perItem(whole *plan.Plan, ph *plan.Phase, o *plan.Observe, seen *Observation) {
	if ph.Populate == nil || o.Kind != plan.ObserveServer || o.Target != ph.Target {
		return
	}
	fields, known := footprint.Of(whole.Target(o.Target).Driver)
	if !known {
		return
	}
	for _, name := range []string{fields.Memory, fields.Beside} {
		f, observed := p.Observe[o.Name][name]
		if !observed {
			continue
		}
		of := fields
		of.Table = fields.Table && name == fields.Memory
		nodes := len(p.Target.Endpoints)
		is, items, code, why := seen.perItem(o, of, name, nodes)
		if why != "" {
			for _, one := range []string{"per_item", "per_item_ci95", "fixed"} {
				p.null("observe."+o.Name+"."+name+"."+one, code, why)
			}
			continue
		}
		f.PerItem, f.PerItemCI95, f.Fixed = number(is.Item), number(is.Half), number(is.Fixed)
		if of.Table {
			f.KeyTable = number(of.KeyTable(items, nodes))
		}
		p.Observe[o.Name][name] = f
	}
}

// perItem returns what an item takes of a field, and how many items there were at the end, or why that is not known.
func (o *Observation) perItem(of *plan.Observe, fields footprint.Fields, name string, nodes int) (is footprint.PerItem, items float64, code reason.Code, why string) {
	at := slices.IndexFunc(of.Fields, func(f plan.Field) bool {
		counts, err := path.Match(fields.Items, f.Name)
		return err == nil && counts
	})
	if at < 0 {
		if fields.Items == "" {
			return is, 0, reason.NotTold, "its servers do not say how many items they hold"
		}
		return is, 0, reason.NotTold, fmt.Sprintf("whether the store was empty is not known: observe its number of items, too (%s)", fields.Items)
	}
	count := of.Fields[at].Name
	first, missing := valueOf(o.first, count)
	last, gone := valueOf(o.last, count)
	switch {
	case first == nil:
		return is, 0, reason.NotTold, "whether the store was empty is not known: " + missing
	case last == nil:
		return is, 0, reason.NotTold, gone
	case *first > 0:
		return is, 0, reason.NotApplicable, fmt.Sprintf("the store was not empty: it held %s", quantity.Count(uint64(*first), "item"))
	}
	for _, lost := range fields.Lost {
		before, _ := valueOf(o.first, lost)
		if now, _ := valueOf(o.last, lost); before != nil && now != nil && *now > *before {
			return is, 0, reason.NotApplicable, fmt.Sprintf("the server dropped %.0f items (%s)", *now-*before, lost)
		}
	}
	var counts, memory []float64
	for i := range o.rows.Cells {
		probe := &o.rows.Cells[i]
		n, known := probe.Value[count]
		if bytes, told := probe.Value[name]; known && told && probe.When == during {
			counts, memory = append(counts, n), append(memory, bytes)
		}
	}
	is, err := fields.Rising(counts, memory, nodes)
	if err != nil {
		return is, 0, reason.TooFew, err.Error()
	}
	return is, *last, "", ""
}
