package judge

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/footprint"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// perItem adds what an item takes in the store that a populate fills, if its servers say meanwhile how many items they hold: by their own figures of the
// memory in use, and by those of their processes.
func (p *phase) perItem(whole *plan.Plan, ph *plan.Phase, all map[string]*Observation) {
	if ph.Populate == nil {
		return
	}
	fields, known := footprint.Of(whole.Target(ph.Target).Driver)
	if !known {
		return
	}
	counted := censusOf(whole, ph.Target, fields, all)
	for _, effective := range []bool{false, true} { // the memory in use first, since a process takes at least that
		for _, o := range whole.Observes {
			names := []string{fields.Memory}
			switch {
			case o.Target != ph.Target, o.Kind == plan.ObserveProcess && (!effective || counted.field == ""):
				continue
			case effective && o.Kind == plan.ObserveProcess:
				names = fields.Process
			case effective:
				names = []string{fields.Beside}
			}
			for _, name := range names {
				if f, observed := p.Observe[o.Name][name]; observed {
					p.Observe[o.Name][name] = p.fieldPerItem(f, o, name, counted, all[o.Name])
				}
			}
		}
	}
}

// fieldPerItem adds an item's size by a field of an observation, or why it is not known.
func (p *phase) fieldPerItem(f run.Observed, o *plan.Observe, name string, counted *census, seen *Observation) run.Observed {
	nodes := 1 // the figures are those of one node, unless they are a sum
	if o.Combine == "sum" {
		nodes = len(p.Target.Endpoints)
	}
	of := counted.fields
	of.Table = of.Table && name == of.Memory
	is, code, why := counted.perItem(seen, of, name, nodes)
	if why != "" {
		p.null("observe."+o.Name+"."+name+".", code, why, "per_item", "per_item_ci95", "fixed")
		return f
	}
	f.PerItem, f.PerItemCI95, f.Fixed = number(is.Item), number(is.Half), number(is.Fixed)
	if is.Keys > 0 {
		f.KeyTable = number(is.Keys)
	}
	return f
}

// census holds how many items the servers of a store reported while a populate filled it.
type census struct {
	fields    footprint.Fields
	field     string    // the field that counts items; "" if none was observed
	at, items []float64 // time and number of items of each probe, in order of time
	after     float64   // number of items at the last probe
	code      reason.Code
	why       string  // why the counts do not give an item's size; "" if they do
	least     float64 // bytes that an item takes at least; 0 if not known
}

// censusOf returns the counts of the first observation of a target's number of items.
func censusOf(whole *plan.Plan, target string, fields footprint.Fields, all map[string]*Observation) *census {
	c := &census{fields: fields, code: reason.NotTold}
	for _, o := range whole.Observes {
		at := slices.IndexFunc(o.Fields, func(f plan.Field) bool {
			counts, err := path.Match(fields.Items, f.Name)
			return err == nil && counts
		})
		if o.Kind == plan.ObserveServer && o.Target == target && at >= 0 {
			c.field = o.Fields[at].Name
			if seen := all[o.Name]; seen != nil {
				c.read(seen)
				return c
			}
		}
	}
	c.why = fmt.Sprintf("whether the store was empty is not known: observe its number of items, too (%s)", fields.Items)
	return c
}

// read takes the number of items from each probe, or says why the numbers are useless.
func (c *census) read(o *Observation) {
	first, missing := valueOf(o.first, c.field)
	last, gone := valueOf(o.last, c.field)
	switch {
	case first == nil:
		c.why = "whether the store was empty is not known: " + missing
		return
	case last == nil:
		c.why = gone
		return
	case *first > 0:
		c.code, c.why = reason.NotApplicable, fmt.Sprintf("the store was not empty: it held %s: fill a new one, or remove them before the phase, by a clear or in the store itself", quantity.Count(uint64(*first), "item"))
		return
	}
	for _, lost := range c.fields.Lost {
		before, _ := valueOf(o.first, lost)
		if now, _ := valueOf(o.last, lost); before != nil && now != nil && *now > *before {
			c.code, c.why = reason.NotApplicable, fmt.Sprintf("the server dropped %.0f items (%s)", *now-*before, lost)
			return
		}
	}
	for i := range o.rows.Cells {
		probe := &o.rows.Cells[i]
		if n, known := probe.Value[c.field]; known {
			c.at, c.items = append(c.at, probe.At), append(c.items, n)
		}
	}
	c.after = *last
}

// between returns how many items there were at a time on the run clock, by the probes before and after it; false outside them.
func (c *census) between(at float64) (items float64, known bool) {
	i := sort.SearchFloat64s(c.at, at)
	switch {
	case i == len(c.at) || i == 0 && at < c.at[0]:
		return 0, false
	case c.at[i] == at:
		return c.items[i], true
	}
	share := (at - c.at[i-1]) / (c.at[i] - c.at[i-1])
	return c.items[i-1] + share*(c.items[i]-c.items[i-1]), true
}

// perItem returns an item's size by a field of an observation, or why it is not known.
func (c *census) perItem(o *Observation, of footprint.Fields, name string, nodes int) (is footprint.PerItem, code reason.Code, why string) {
	if c.why != "" {
		return is, c.code, c.why
	}
	if first, missing := valueOf(o.first, name); first == nil {
		return is, reason.NotTold, missing
	}
	var items, memory []float64
	for i := range o.rows.Cells {
		probe := &o.rows.Cells[i]
		bytes, told := probe.Value[name]
		if n, known := c.between(probe.At); known && told && probe.When == during {
			items, memory = append(items, n), append(memory, bytes)
		}
	}
	is, err := of.Rising(items, memory, c.after, nodes)
	if err == nil && name == of.Memory {
		c.least = is.Item - is.Half
	}
	switch {
	case name != of.Memory && (errors.Is(err, footprint.ErrSame) || err == nil && is.Item+is.Half < c.least):
		return is, reason.NotApplicable, "the process grew by less than its items take, so it had free memory before: restart it"
	case err != nil:
		return is, reason.TooFew, err.Error()
	}
	return is, "", ""
}
