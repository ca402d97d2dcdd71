package words

import (
	"cmp"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// EventNames lists a phase's events in the order of their times.
func EventNames(ph *run.Phase) (names []string) {
	for name := range ph.Event {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		return cmp.Or(cmp.Compare(ph.Event[x].AtSeconds, ph.Event[y].AtSeconds), cmp.Compare(x, y))
	})
	return names
}

// Event describes an event on a target during a phase, and its effects.
func Event(ph *run.Phase, name string) []string {
	e := ph.Event[name]
	what := name + ": " + e.Do + " of " + e.Target
	if e.Node != nil {
		what += ", node " + quantity.Thousands(*e.Node) + ","
	}
	if e.HappenedSeconds == nil {
		return []string{what + " at " + quantity.Duration(e.AtSeconds) + " did not happen: " + ph.Nulls["event."+name+".happened_seconds"]}
	}
	what += " after " + quantity.Duration(*e.HappenedSeconds)
	if e.TookSeconds > 0 {
		what += ", took " + quantity.Duration(e.TookSeconds)
	}
	if e.UndoneSeconds != nil {
		what += ", until " + quantity.Duration(*e.UndoneSeconds)
	}
	parts := []string{what}
	if e.Failed != "" {
		parts = append(parts, "FAILED: "+e.Failed)
	}
	if e.RecoveredSeconds != nil {
		parts = append(parts, "recovered after "+quantity.Duration(*e.RecoveredSeconds))
	} else {
		parts = append(parts, "not recovered: "+ph.Nulls["event."+name+".recovered_seconds"])
	}
	for _, w := range []struct {
		name string
		of   *run.Window
	}{{"before", &e.Before}, {"during", &e.During}, {"after", &e.After}} {
		if w.of.Rate != nil {
			parts = append(parts, w.name+" "+window(w.of))
		}
	}
	return parts
}

// window gives the figures of some seconds.
func window(w *run.Window) string {
	text := quantity.Number(*w.Rate) + "/s"
	if w.P95 != nil {
		text += ", p95 " + quantity.Duration(*w.P95)
	}
	if *w.BadRatio > 0 {
		text += ", " + quantity.Percent(*w.BadRatio) + " bad"
	}
	return text
}
