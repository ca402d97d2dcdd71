package report

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// observed adds the observations of the target's side: a line for each field, and how it was observed.
func (p *printer) observed(ph *run.Phase) {
	for _, name := range slices.Sorted(maps.Keys(ph.Probes)) {
		how := ph.Probes[name]
		p.line("")
		of := strings.Split(name+": "+how.Kind+" "+how.Of, ", ")
		p.items("observed", ", ", append(of, words.Probes(how)...)...)
		p.fields(ph.Observe[name])
		for _, e := range how.Errors {
			p.bullet(labelWidth, e.Text+" × "+quantity.Thousands(e.Count))
		}
	}
}

// observedMarkdown writes the observations of the target's side in the phases of a run.
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
			row(markdown(phase), markdown(name), markdown(how.Kind+" "+how.Of), markdown(strings.Join(words.Probes(how), ", ")))
			moved, still := words.Fields(ph.Observe[name])
			for _, field := range moved {
				f := ph.Observe[name][field]
				row(markdown(phase), markdown(name), markdown(field), markdown(words.Observed(&f)))
			}
			if len(still) > 0 {
				row(markdown(phase), markdown(name), "unchanged", markdown(strings.Join(still, ", ")))
			}
			for _, e := range how.Errors {
				row(markdown(phase), markdown(name), "missing", markdown(e.Text+" × "+quantity.Thousands(e.Count)))
			}
		}
		for _, each := range words.PerItem(ph) {
			row(markdown(phase), "", "an item", markdown(each))
		}
	}
}

// fields adds a line for each field that changed, and names the others.
func (p *printer) fields(fields map[string]run.Observed) {
	wide := 0
	moved, still := words.Fields(fields)
	for _, name := range moved {
		wide = max(wide, columns(name))
	}
	for _, name := range moved {
		f := fields[name]
		p.line("  %s%s  %s", left("", labelWidth), left(name, wide), words.Observed(&f))
	}
	if len(still) > 0 {
		still[0] = "unchanged: " + still[0]
		p.items("", ", ", still...)
	}
}

// observedField is a field of an observation.
type observedField struct{ observation, name string }

// observedFields lists the fields that any phase of the runs has, by name.
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

// over returns, for each row of a phase's series, the field's value from the last probe until then; nil if there is none.
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
