package words

import (
	"maps"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Fields separates the fields that changed from those that did not, which include their value. Missing fields are in neither.
func Fields(fields map[string]run.Observed) (moved, still []string) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch f := fields[name]; {
		case f.Last == nil: // the reason is given below
		case f.Delta != nil && *f.Min == *f.Max:
			still = append(still, name+" "+quantity.Amount(*f.Last, f.Unit))
		default:
			moved = append(moved, name)
		}
	}
	return moved, still
}

// Probes says how many probes there were, and how long they took.
func Probes(how *run.Probes) []string {
	parts := []string{quantity.Count(how.Taken, "probe")}
	if how.Failed > 0 && how.Failed == how.Taken {
		parts = []string{"NOT REACHED in " + quantity.Count(how.Taken, "probe")}
	} else if how.Failed > 0 {
		parts = append(parts, quantity.Thousands(how.Failed)+" of them FAILED")
	}
	if how.Skipped > 0 {
		parts = append(parts, quantity.Thousands(how.Skipped)+" skipped")
	}
	if how.Taken > 0 {
		parts = append(parts, "at most "+quantity.Duration(how.MaxSeconds)+" each")
	}
	return parts
}

// Observed describes a field's change: how much a counter counted, and how another figure moved.
func Observed(f *run.Observed) string {
	amount := func(v *float64) string {
		if v == nil {
			return "?"
		}
		return quantity.Amount(*v, f.Unit)
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
