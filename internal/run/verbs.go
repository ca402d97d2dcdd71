package run

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Verbs lists the phase's ops in the order of every table: that of [driver.Verb], then the plan's own ops by name.
func (p *Phase) Verbs() []string {
	order := func(op string) int {
		v, ok := driver.Words{}.Verb(op)
		if !ok {
			return driver.NumVerbs
		}
		return int(v)
	}
	return slices.SortedFunc(maps.Keys(p.Op), func(a, b string) int { return cmp.Or(order(a)-order(b), strings.Compare(a, b)) })
}
