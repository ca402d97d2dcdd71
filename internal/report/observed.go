package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

// observed adds what was observed of the target's side: a line for each field, and what there was to it.
func (p *page) observed(ph *run.Phase) {
	for _, name := range slices.Sorted(maps.Keys(ph.Probes)) {
		how := ph.Probes[name]
		p.line("")
		of := strings.Split(name+": "+how.Kind+" "+how.Of, ", ")
		p.items("observed", ", ", append(of, probesOf(how)...)...)
		p.fields(ph.Observe[name])
		for _, e := range how.Errors {
			p.point("", "-", e.Text+" × "+count(e.Count))
		}
	}
}

// partsOf tells the fields that changed from those that did not, which come with their value. What is missing is in neither.
func partsOf(fields map[string]run.Observed) (moved, still []string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch f := fields[name]; {
		case f.Last == nil: // and the reason stands below
		case f.Delta != nil && *f.Min == *f.Max:
			still = append(still, name+" "+amountOf(*f.Last, f.Unit))
		default:
			moved = append(moved, name)
		}
	}
	return moved, still
}

// observedMarkdown writes what was observed of the target's side in the phases of a run.
func observedMarkdown(b *strings.Builder, r *run.Run) {
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	first := true
	for _, phase := range r.PhaseOrder {
		ph := r.Phase[phase]
		for _, name := range slices.Sorted(maps.Keys(ph.Probes)) {
			if first {
				b.WriteString("\n| phase | observed | field | |\n|---|---|---|---|\n")
				first = false
			}
			how := ph.Probes[name]
			row(markdown(phase), markdown(name), markdown(how.Kind+" "+how.Of), strings.Join(probesOf(how), ", "))
			moved, still := partsOf(ph.Observe[name])
			for _, field := range moved {
				f := ph.Observe[name][field]
				row(markdown(phase), markdown(name), markdown(field), observedOf(&f))
			}
			if len(still) > 0 {
				row(markdown(phase), markdown(name), "unchanged", markdown(strings.Join(still, ", ")))
			}
			for _, e := range how.Errors {
				row(markdown(phase), markdown(name), "missing", markdown(e.Text+" × "+count(e.Count)))
			}
		}
	}
}

// fields adds a line for each field that changed, and names the others.
func (p *page) fields(fields map[string]run.Observed) {
	wide := 0
	moved, still := partsOf(fields)
	for _, name := range moved {
		wide = max(wide, columns(name))
	}
	for _, name := range moved {
		f := fields[name]
		p.line("  %s%s  %s", left("", labelWidth), left(name, wide), observedOf(&f))
	}
	if len(still) > 0 {
		still[0] = "unchanged: " + still[0]
		p.items("", ", ", still...)
	}
}

// probesOf says how many probes there were, and what they took.
func probesOf(how *run.Probes) []string {
	parts := []string{plural(how.Taken, "probe")}
	if how.Failed > 0 && how.Failed == how.Taken {
		parts = []string{"NOT REACHED in " + plural(how.Taken, "probe")}
	} else if how.Failed > 0 {
		parts = append(parts, count(how.Failed)+" of them FAILED")
	}
	if how.Skipped > 0 {
		parts = append(parts, count(how.Skipped)+" skipped")
	}
	if how.Taken > 0 {
		parts = append(parts, "at most "+quantity.Duration(how.MaxSeconds)+" each")
	}
	return parts
}

// observedOf is what became of a field: how much a counter has counted, and where another figure went.
func observedOf(f *run.Observed) string {
	amount := func(v *float64) string {
		if v == nil {
			return "?"
		}
		return amountOf(*v, f.Unit)
	}
	if f.Counter {
		text := "+ " + amount(f.Delta)
		if f.Rate != nil && f.Unit == "s" {
			return text + " (" + quantity.Percent(*f.Rate) + " of the time)"
		}
		if f.Rate != nil {
			text += " (" + amount(f.Rate) + "/s)"
		}
		return text
	}
	text := amount(f.Before) + " → " + amount(f.After)
	if f.Max != nil && f.After != nil && f.Before != nil && *f.Max > max(*f.Before, *f.After) {
		text += ", at most " + amount(f.Max)
	}
	return text
}

// amountOf writes a quantity in its unit.
func amountOf(v float64, unit string) string {
	switch {
	case v < 0:
		return "-" + amountOf(-v, unit)
	case unit == "s":
		return quantity.Duration(v)
	case unit == "us":
		return quantity.Duration(v / 1e6)
	case unit == "bytes":
		return size(int64(v))
	case v >= 1e15:
		return si(v)
	case v == math.Trunc(v):
		return count(int64(v))
	}
	return whole(v)
}

// observedField is a field of an observation.
type observedField struct{ observation, name string }

// observedFields lists those that any phase of some runs has, by name.
func observedFields(runs []*run.Run) []observedField {
	there := map[observedField]bool{}
	for _, r := range runs {
		for _, ph := range r.Phase {
			for observation, fields := range ph.Observe {
				for name := range fields {
					there[observedField{observation, name}] = true
				}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(there), func(a, b observedField) int {
		return cmp.Or(strings.Compare(a.observation, b.observation), strings.Compare(a.name, b.name))
	})
}

// over is what the last probe until each row of a phase's series brought of the field; nil where none did.
func (f observedField) over(ph *run.Phase) []*float64 {
	values := make([]*float64, len(ph.Series))
	how := ph.Probes[f.observation]
	if how == nil {
		return values
	}
	next, last := 0, (*float64)(nil)
	for i := range ph.Series {
		for ; next < len(how.Series) && how.Series[next].T <= ph.Series[i].T; next++ {
			if v := how.Series[next].Value[f.name]; v != nil {
				last = v
			}
		}
		values[i] = last
	}
	return values
}
