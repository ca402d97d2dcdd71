package words

import (
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/footprint"
	"github.com/loadgen/loadgen/internal/result/run"
)

// PerItem says how much memory an item takes in the store that a phase has filled: first by the store's own figure, then by that of its process. It
// leaves out figures of stores that may not have been empty.
func PerItem(ph *run.Phase) (parts []string) {
	var effective []string
	for _, observation := range slices.Sorted(maps.Keys(ph.Observe)) {
		for _, name := range slices.Sorted(maps.Keys(ph.Observe[observation])) {
			f, path := ph.Observe[observation][name], strings.Join([]string{"observe", observation, name, "per_item"}, ".")
			is, says := footprint.Effective(name), observation+"."+name
			if is {
				says = "effective (" + says + ")"
			} else {
				says = "used (" + says + ")"
			}
			switch why := ph.Nulls[path]; {
			case f.PerItem != nil:
				says = quantity.Digits(*f.PerItem) + " B ± " + quantity.Digits(*f.PerItemCI95) + " " + says + Mark(ph, path)
				if f.KeyTable != nil {
					says += " and " + quantity.Bytes(int64(*f.KeyTable)) + " for the table of keys"
				}
			case why != "" && ph.NullCodes[path] != reason.NotTold:
				says += " not known: " + why
			default:
				continue
			}
			if is {
				effective = append(effective, says)
			} else {
				parts = append(parts, says)
			}
		}
	}
	return append(parts, effective...)
}
