package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/pkg/driver"
)

// PutOnMiss is the OnMiss of a phase whose sessions fill the cache: after a get that misses, they put the key with a value of the dataset.
const PutOnMiss = "put"

// Counted returns the ops that a phase's load may count: those of its mix, and the puts that follow misses.
func (ph *Phase) Counted() []Weight { return ph.filling(ph.Ops) }

// filling adds to a mix the puts that follow the misses of its gets.
func (ph *Phase) filling(mix []Weight) []Weight {
	if ph.OnMiss == "" || weightOf(mix, driver.Get) == 0 && ph.Chain() == nil || weightOf(mix, driver.Put) > 0 {
		return mix
	}
	filled := append(slices.Clone(mix), Weight{Op: driver.Put.String()})
	slices.SortFunc(filled, func(a, b Weight) int { return cmp.Or(compareOps(a.Op, b.Op), cmp.Compare(a.Weight, b.Weight)) })
	return filled
}

// onMiss checks what follows a miss: the key must be one that the store can be given.
func (v *validator) onMiss(ph *Phase, at part) {
	path := at.path + ".on_miss"
	switch {
	case ph.OnMiss == "", ph.Chain() != nil: // its puts have no other word
		return
	case ph.OnMiss != PutOnMiss:
		v.fault(fmt.Sprintf("%s: on_miss = %s", at.where, dialect.Quote(ph.OnMiss)), `Write on_miss = "put", or leave it out.`, path)
	case ph.Levels() == 0 || weightOf(ph.Ops, driver.Get) == 0:
		v.fault(at.where+": on_miss without gets", "Leave on_miss out, or write a load whose ops have get.", path, at.path+".ops")
	case ph.HitRatio != nil:
		v.fault(at.where+": both on_miss and hit_ratio", "Leave one of them out: hit_ratio asks for keys that nobody puts.", path, at.path+".hit_ratio")
	case ph.Batch > 1:
		v.fault(fmt.Sprintf("%s: on_miss, and gets of %d keys", at.where, ph.Batch), "Leave batch out: a get of one key misses or does not.", path, at.path+".batch")
	}
	for _, name := range ph.Targets() {
		if t := v.plan.Target(name); t != nil && t.Executor == Thread {
			v.fault(fmt.Sprintf("%s: on_miss, and target %s writes files", at.where, dialect.Quote(name)), "Leave on_miss out: it is for caches.", path)
		}
	}
	for _, name := range ph.Datasets() {
		if d := v.plan.Dataset(name); d != nil && d.Values.Elements > 0 {
			v.fault(fmt.Sprintf("%s: on_miss, and the records of dataset %s grow", at.where, dialect.Quote(name)),
				"Leave one of them out: what fills a cache is the same each time.", path, "dataset."+name+".values")
		}
	}
}
