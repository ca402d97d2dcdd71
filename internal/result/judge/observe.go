package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/plan"
)

// observe adds the observations of the phase, which began at origin on the run clock.
func (p *phase) observe(whole *plan.Plan, ph *plan.Phase, all map[string]*Observation, origin float64) {
	p.Observe, p.Probes = map[string]map[string]run.Observed{}, map[string]*run.Probes{}
	for _, o := range whole.Observes {
		seen := all[o.Name]
		if seen == nil {
			seen = new(Observation)
		}
		p.Observe[o.Name] = map[string]run.Observed{}
		if len(seen.sums) == 0 {
			p.null("observe."+o.Name, reason.NotTold, seen.never(""))
		}
		for _, f := range o.Fields {
			p.Observe[o.Name][f.Name] = p.observed("observe."+o.Name+"."+f.Name, f, seen)
		}
		p.Probes[o.Name] = seen.probes(o, origin)
		if slices.ContainsFunc(p.Probes[o.Name].Series, func(row run.ProbeRow) bool { return slices.Contains(slices.Collect(maps.Values(row.Value)), nil) }) {
			p.null("probes."+o.Name+".series", reason.NotTold, "the probe did not return it: see errors")
		}
	}
	p.perItem(whole, ph, all)
}

// observed makes the figures of one field, at a path, and records why some are null.
func (p *phase) observed(at string, f plan.Field, o *Observation) run.Observed {
	r := run.Observed{Unit: f.Unit, Counter: f.Counter}
	s, why := o.sums[f.Name], ""
	if s == nil {
		if len(o.sums) > 0 { // otherwise one reason covers all fields
			p.null(at, reason.NotTold, o.never(f.Name))
		}
		return r
	}
	r.Last, r.Min, r.Max, r.Mean = number(s.last), number(s.min), number(s.max), number(s.mean)
	if r.Before, why = valueOf(o.first, f.Name); why != "" {
		p.null(at+".before", reason.NotTold, "before the phase: "+why)
	}
	if r.After, why = valueOf(o.last, f.Name); why != "" {
		p.null(at+".after", reason.NotTold, "after the phase: "+why)
	}
	code := reason.NotTold
	switch {
	case r.Before == nil:
		why = p.Nulls[at+".before"]
	case r.After == nil:
		why = p.Nulls[at+".after"]
	case f.Counter && *r.After < *r.Before:
		code, why = reason.CounterReset, fmt.Sprintf("the counter went back from %s to %s: what counts it was restarted", quantity.Number(*r.Before), quantity.Number(*r.After))
	default:
		r.Delta = number(*r.After - *r.Before)
		if between := o.last.At - o.first.At; between > 0 {
			r.Rate = number(*r.Delta / between)
			return r
		}
		p.null(at+".rate", reason.NoTime, "no time passed between the two probes")
		return r
	}
	p.null(at, code, why, ".delta", ".rate")
	return r
}

// valueOf returns a field of a probe, or why it has none.
func valueOf(p *run.Probe, field string) (v *float64, why string) {
	if p == nil {
		return nil, "it was not probed: the run had ended"
	}
	if f, ok := p.Value[field]; ok {
		return number(f), ""
	}
	return nil, cmp.Or(p.Missing[field], p.Missing[""], "it was not reported")
}

// never says why no probe returned a field.
func (o *Observation) never(field string) string {
	last := o.last
	if n := len(o.rows.Cells); last == nil && n > 0 {
		last = &o.rows.Cells[n-1]
	}
	_, why := valueOf(last, field)
	return why
}

// probes describes how the observation was made.
func (o *Observation) probes(of *plan.Observe, origin float64) *run.Probes {
	r := &run.Probes{
		Kind: of.Kind, Of: o.Of, Taken: o.taken, Failed: o.failed, Skipped: o.Skipped, Seconds: o.seconds, MaxSeconds: o.longest,
		Errors: []run.ErrorText{}, Series: []run.ProbeRow{},
	}
	for text, n := range o.why {
		r.Errors = append(r.Errors, run.ErrorText{Text: text, Count: uint64(n)})
	}
	slices.SortFunc(r.Errors, func(a, b run.ErrorText) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Text, b.Text))
	})
	for i := range o.rows.Cells {
		at := &o.rows.Cells[i]
		row := run.ProbeRow{T: at.At - origin, Value: map[string]*float64{}}
		for _, f := range of.Fields {
			row.Value[f.Name], _ = valueOf(at, f.Name)
		}
		r.Series = append(r.Series, row)
	}
	return r
}
