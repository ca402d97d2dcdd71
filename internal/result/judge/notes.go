package judge

import (
	"fmt"
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	emptyReply = 6.1 // the largest mean size, in bytes, of replies without content: the longest, an empty text, has 6
	smallReply = 16  // the largest mean size, in bytes, of replies that may be for missing keys, such as two nulls in an array
	halfValue  = 0.5 // a get that answers with less than this share of the dataset's smallest value did not read one
)

// notes points out loads that are valid but may not be what the user wants: reads of keys that are not there, which are as fast as any.
func (p *phase) notes() (all []string) {
	if !p.timed() {
		return nil
	}
	whole, ph := p.counts.plan, p.counts.phase
	for _, t := range p.targets() {
		target := whole.Target(t.Name)
		for _, o := range target.Ops {
			if done := p.Op[o.Name]; done != nil && o.Reads != form.Changes && done.OK > 0 {
				all = append(all, noteRead(whole, target, o, float64(done.BytesIn)/float64(done.OK+done.Miss))...)
			}
		}
	}
	get := p.Op[driver.Get.String()]
	if get == nil || get.BytesIn == 0 || p.Cache != nil || len(ph.Scenarios) > 0 || whole.Target(ph.Target).Op(driver.Get.String()) != nil {
		return all
	}
	least := whole.Dataset(ph.Dataset).Values.LeastSize()
	if n := get.Keys.OK; n > 0 && float64(get.BytesIn) < halfValue*float64(least)*float64(n) {
		all = append(all, fmt.Sprintf("gets were answered with %s on average, protocol included, but the dataset's values have at least %s: these are other values",
			quantity.Bytes(get.BytesIn/n), quantity.Bytes(int64(least))))
	}
	return all
}

// noteRead checks an op that only reads, whose replies have size bytes on average.
func noteRead(whole *plan.Plan, target *plan.Target, o *plan.Op, size float64) []string {
	replies := fmt.Sprintf("%s was answered with %s on average", o.Name, quantity.Bytes(int64(math.Round(size))))
	switch {
	case size <= smallReply && !written(whole, target.Driver, o.Key):
		return []string{fmt.Sprintf("%s, and nothing in this plan writes keys such as %s: unless others have, this is the speed of keys that are not there", replies, o.Key)}
	case size <= emptyReply && o.Reads == form.Contents:
		return []string{replies + ", so nearly all replies were empty: this is the speed of keys that are not there"}
	}
	return nil
}

// written says whether an op of the plan may write keys of this form. The keys of datasets count as written.
func written(p *plan.Plan, driver, key string) bool {
	return key == "{key}" || slices.ContainsFunc(p.Targets, func(t *plan.Target) bool {
		return t.Driver == driver && slices.ContainsFunc(t.Ops, func(o *plan.Op) bool { return o.Reads == form.Changes && o.Key == key })
	})
}
