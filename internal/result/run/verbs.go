package run

import (
	"cmp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Verbs lists the phase's ops that have figures, in the order of every table: that of [driver.Verb], then the plan's own ops by name.
func (p *Phase) Verbs() []string {
	return p.verbs(func(o *Op) bool { return o != nil })
}

// Apart lists, in the same order, the phase's ops without figures of their own. They went to several targets, so that only their steps have figures.
func (p *Phase) Apart() []string {
	return p.verbs(func(o *Op) bool { return o == nil })
}

func (p *Phase) verbs(has func(o *Op) bool) (all []string) {
	order := func(op string) int {
		v, ok := driver.Words{}.Verb(op)
		if !ok {
			return driver.NumVerbs
		}
		return int(v)
	}
	for verb, o := range p.Op {
		if has(o) {
			all = append(all, verb)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(order(a)-order(b), strings.Compare(a, b)) })
	return all
}
