package run

import (
	"maps"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Verbs lists the phase's ops in the order of every table: that of [driver.Verb].
func (p *Phase) Verbs() []string {
	order := func(op string) driver.Verb {
		v, _ := driver.ParseVerb(op)
		return v
	}
	return slices.SortedFunc(maps.Keys(p.Op), func(a, b string) int { return int(order(a)) - int(order(b)) })
}
