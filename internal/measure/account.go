package measure

import (
	"bytes"
	"math"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Account is what is kept of Totals that are only there to be compared: all counts, and instead of the latencies 64 bits for each verb that
// add up as the latencies merge. It is for whoever has one for each of many workers: 2 KiB instead of 17 KiB or more for each latency.
// The zero value is of nothing.
//
// Two Totals whose latencies differ have the same Account by a chance of about 2^-64; what bins they are in, and the extremes beyond
// their buckets, it does not hold.
type Account struct {
	rest      Totals // without ops and scenarios
	ops       [driver.NumVerbs]accounted
	scenarios []accounted
}

// accounted is what is kept of an op.
type accounted struct {
	Ledger
	print    uint64
	quickest int64 // shortest service time; meaningless where nothing has ended
	timed    bool  // something has
}

// Add adds what was counted. It panics as [Totals.Merge] does.
func (a *Account) Add(t *Totals) {
	a.rest.mergeRest(t)
	for v, o := range t.Ops {
		if !o.empty() {
			a.ops[v].add(o)
		}
	}
	for i, o := range t.Scenarios {
		if !o.empty() {
			for len(a.scenarios) <= i {
				a.scenarios = append(a.scenarios, accounted{})
			}
			a.scenarios[i].add(o)
		}
	}
}

func (a *accounted) add(o *Op) {
	l := o.Ledger()
	a.merge(&l)
	weight := uint64(0)
	sum := func(n uint64) {
		weight++
		a.print += n * (fold(weight^digestKeys[0], digestKeys[1]) | 1)
	}
	for _, n := range o.Causes {
		sum(n)
	}
	sum(o.In)
	sum(o.Out)
	for _, n := range o.Keys.Outcomes {
		sum(n)
	}
	sum(o.Keys.Due)
	sum(uint64(o.Keys.InFlight))
	for _, h := range o.hists() {
		sum(h.Print())
	}
	for i := range o.acks() {
		sum(o.Acks[i].Print())
	}
	for i := range o.Service {
		a.time(&o.Service[i])
	}
}

func (a *accounted) time(h *hist.Hist) {
	if h.Count() > 0 && (!a.timed || h.Min() < a.quickest) {
		a.timed, a.quickest = true, h.Min()
	}
}

// Counters returns the ledgers. They share memory with a, which the next Add changes.
func (a *Account) Counters() Counters {
	c := Counters{Requests: a.rest.Requests}
	for v := range a.ops {
		c.Ops[v] = a.ops[v].Ledger
	}
	return c
}

// Quickest returns the shortest service time of any op, [math.MaxInt64] when none has ended.
func (a *Account) Quickest() int64 {
	least := int64(math.MaxInt64)
	for i := range a.ops {
		if a.ops[i].timed {
			least = min(least, a.ops[i].quickest)
		}
	}
	return least
}

// Equal says whether both are of the same counts and latencies. It is false where there are more endpoints than 4,096.
func (a *Account) Equal(o *Account) bool {
	mine, err := a.rest.AppendBinary(nil)
	if err != nil {
		return false
	}
	others, err := o.rest.AppendBinary(nil)
	return err == nil && bytes.Equal(mine, others) && a.ops == o.ops && slices.Equal(a.scenarios, o.scenarios)
}
