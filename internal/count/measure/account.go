package measure

import (
	"bytes"
	"math"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Account is a digest of Totals, for comparing them: all counts and, in place of the latencies, 64 bits per verb that add up as the latencies merge.
// It suits a caller that keeps one for each of many workers: it takes 1 KiB, 100 bytes for each verb that occurs and 4 KiB for errors, instead of 17
// KiB or more for each latency. The zero value is empty.
//
// Two Totals with different latencies have the same Account with a probability of about 2^-64. An Account does not record which time bins ops fell
// into, nor the exact extremes within their buckets.
type Account struct {
	rest      rest
	errors    *Errors                     // nil if there are none
	ops       [driver.NumVerbs]*accounted // nil if nothing was counted
	scenarios []accounted
}

// accounted is the digest of an Op.
type accounted struct {
	Ledger
	print    uint64
	quickest int64 // shortest service time; meaningless until an op has ended
	timed    bool  // an op has ended
}

// Add adds what t counted. It panics as [Totals.Merge] does.
func (a *Account) Add(t *Totals) {
	a.rest.merge(&t.rest)
	if t.Errors.Total() > 0 {
		made(&a.errors).Merge(&t.Errors)
	}
	for v, o := range t.Ops {
		if !o.empty() {
			made(&a.ops[v]).add(o)
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
	a.merge(&o.ledger)
	weight := uint64(0)
	sum := func(n uint64) {
		weight++
		a.print += n * weightOf(weight)
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
	print, failed := o.Growth.print()
	sum(print)
	sum(failed)
	for i := range o.acks() {
		sum(o.Acks[i].Print())
	}
	weight = firstSplit // fixed, since the number of acks differs between parts, as that of kinds does
	if o.Split != nil {
		sum(o.Split.Write.Print())
		sum(o.Split.Sync.Print())
	}
	weight = wasted
	sum(o.Keys.Wasted)
	weight = firstKind
	for i := range o.kinds() {
		sum(o.Kinds[i].Service.Print())
		sum(o.Kinds[i].Response.Print())
	}
	weight = firstCheck
	for _, n := range o.checks() {
		sum(n)
	}
	for i, step := range o.Steps {
		if !step.empty() {
			a.print += weightOf(uint64(firstStep+i)) * step.print()
		}
	}
	for i := range o.Service {
		a.time(&o.Service[i])
	}
}

// The first weights of fields that not every op has.
const (
	wasted     = 1<<10 - 3
	firstSplit = 1<<10 - 2
	firstKind  = 1 << 10
	firstCheck = 1<<10 + 1<<9
	firstStep  = 1 << 11
)

// weightOf returns a factor that differs for each place. It is odd, so that no factor makes different counts equal.
func weightOf(place uint64) uint64 { return fold(place^digestKeys[0], digestKeys[1]) | 1 }

// print returns a 64-bit digest of an op, including its ledger. Digests add up as ops merge.
func (o *Op) print() uint64 {
	var of accounted
	of.add(o)
	sum := of.print + of.Due*weightOf(firstStep-1) + uint64(of.InFlight)*weightOf(firstStep-2)
	for i, n := range of.Outcomes {
		sum += n * weightOf(uint64(firstStep-3-i))
	}
	return sum
}

func (a *accounted) time(h *hist.Hist) {
	if h.Count() > 0 && (!a.timed || h.Min() < a.quickest) {
		a.timed, a.quickest = true, h.Min()
	}
}

// Counters returns the ledgers. They share memory with a, which the next Add changes.
func (a *Account) Counters() Counters {
	c := Counters{Requests: a.rest.Requests}
	for v, op := range a.ops {
		c.Ops[v] = op.of().Ledger
	}
	return c
}

// HasCounted says whether a's ledgers equal c, for the same number of endpoints.
func (a *Account) HasCounted(c *Counters) bool {
	for v, op := range a.ops {
		if op.of().Ledger != c.Ops[v] {
			return false
		}
	}
	return slices.Equal(a.rest.Requests, c.Requests)
}

// of returns *a; the zero value if a is nil.
func (a *accounted) of() accounted {
	if a == nil {
		return accounted{}
	}
	return *a
}

// Quickest returns the shortest service time of any op, or [math.MaxInt64] if none has ended.
func (a *Account) Quickest() int64 {
	least := int64(math.MaxInt64)
	for _, op := range a.ops {
		if op != nil && op.timed {
			least = min(least, op.quickest)
		}
	}
	return least
}

// Equal says whether both hold the same counts and latencies. It is false with more than 4,096 endpoints.
func (a *Account) Equal(o *Account) bool {
	mine, err := a.plain().AppendBinary(nil)
	if err != nil {
		return false
	}
	others, err := o.plain().AppendBinary(nil)
	sameOps := slices.EqualFunc(a.ops[:], o.ops[:], func(x, y *accounted) bool { return x.of() == y.of() })
	return err == nil && bytes.Equal(mine, others) && sameOps && slices.Equal(a.scenarios, o.scenarios)
}

// plain returns the part that is kept unchanged, as Totals.
func (a *Account) plain() *Totals {
	t := &Totals{rest: a.rest}
	if a.errors != nil {
		t.Errors = *a.errors
	}
	return t
}
