package measure

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Merge adds what o counted. It leaves o alone and shares no memory with it. Counts and durations add up; MaxStall is the larger. The longer Requests
// sets the number of endpoints. Bins count from the origin, so the origins must be equal, or one of them 0; otherwise Merge panics. Compare the
// origins first if o came from another process.
func (t *Totals) Merge(o *Totals) {
	t.rest.merge(&o.rest)
	t.Errors.Merge(&o.Errors)
	mergeOne(&t.Time, o.Time)
	mergeOne(&t.Lost, o.Lost)
	for v, from := range o.Ops {
		if !from.empty() {
			t.of(driver.Verb(v)).merge(from)
		}
	}
	mergeOps(&t.Scenarios, o.Scenarios)
}

// merge does Merge for everything but ops and errors.
func (t *rest) merge(o *rest) {
	if t.Origin != o.Origin && t.Origin != 0 && o.Origin != 0 {
		panic(fmt.Sprintf("measure: merge totals with origin %d into totals with origin %d", o.Origin, t.Origin))
	}
	t.Origin = cmp.Or(t.Origin, o.Origin)
	mergeRequests(&t.Requests, o.Requests)
	lengthen(&t.Away, len(o.away()))
	for i, ns := range o.away() {
		t.Away[i] += ns
	}
	t.Digest += o.Digest
	t.Span.Merge(&o.Span)
	t.Reconnects += o.Reconnects
	t.LateReplies += o.LateReplies
	t.Foreign += o.Foreign
	t.Misplaced += o.Misplaced
	t.AnotherRun += o.AnotherRun
	t.Stalls += o.Stalls
	t.MaxStall = max(t.MaxStall, o.MaxStall)
	t.Cache.Add(&o.Cache)
	t.mergeEvents(o.Events)
	if !o.Versions.empty() {
		t.Compared().merge(o.Versions)
	}
	t.Waited.Merge(&o.Waited)
	if !o.Links.empty() {
		t.Linked().Merge(o.Links)
	}
}

// Reset empties t and keeps its memory, except that of stages, its origin and its number of endpoints, so that counting the same ops again allocates
// nothing.
func (t *Totals) Reset() {
	for _, o := range t.Ops {
		if o != nil {
			o.Steps = nil // a load goes from stage to stage, and there may be 1,000
			o.reset()
		}
	}
	for _, o := range t.Scenarios {
		o.reset()
	}
	clear(t.Requests)
	for _, b := range []*Bins{t.Time, t.Lost} {
		if b != nil {
			*b = Bins{}
		}
	}
	clear(t.Away)
	clear(t.Events)
	t.Versions.reset()
	t.Waited.Reset()
	t.Links.Reset()
	t.Digest, t.Span, t.Cache = 0, Span{}, Cache{}
	t.Reconnects, t.LateReplies, t.Foreign, t.Misplaced, t.AnotherRun, t.Stalls, t.MaxStall = 0, 0, 0, 0, 0, 0, 0
	t.Errors = Errors{}
}

// hists returns the latencies that every Op has, in the order of the binary form.
func (o *Op) hists() [1 + 2*NumClasses]*hist.Hist {
	return [...]*hist.Hist{
		&o.Lag,
		&o.Service[ClassOK], &o.Service[ClassMiss], &o.Service[ClassBad],
		&o.Response[ClassOK], &o.Response[ClassMiss], &o.Response[ClassBad],
	}
}

// trimmed returns a list up to its last element that is not empty. What is reused may have room for more.
func trimmed[T any](list []T, empty func(*T) bool) []T {
	n := len(list)
	for n > 0 && empty(&list[n-1]) {
		n--
	}
	return list[:n]
}

func isZero(n *uint64) bool { return *n == 0 }

// acks returns the acks up to the last k that occurred.
func (o *Op) acks() []hist.Hist {
	return trimmed(o.Acks, func(h *hist.Hist) bool { return h.Count() == 0 })
}

// kinds returns the kinds up to the last that occurred.
func (o *Op) kinds() []Kind {
	return trimmed(o.Kinds, func(k *Kind) bool { return k.Response.Count() == 0 && k.Service.Count() == 0 })
}

// stages returns the steps up to the last that counted something.
func (o *Op) stages() []*Op {
	return trimmed(o.Steps, func(stage **Op) bool { return (*stage).empty() })
}

// checks returns the checks up to the last that failed.
func (o *Op) checks() []uint64 { return trimmed(o.Checks, isZero) }

// allBins returns the bins by outcome that every Op has.
func (o *Op) allBins() [4]*[driver.NumOutcomes]*Bins {
	return [...]*[driver.NumOutcomes]*Bins{&o.Bins, &o.Turns, &o.Keys.Bins, &o.Keys.Turns}
}

// rareHists yields the latencies that only some Ops have, those too for which a reused Op has room.
func (o *Op) rareHists(yield func(*hist.Hist)) {
	acks, kinds := o.Acks[:cap(o.Acks)], o.Kinds[:cap(o.Kinds)]
	for i := range acks {
		yield(&acks[i])
	}
	for i := range kinds {
		yield(&kinds[i].Service)
		yield(&kinds[i].Response)
	}
	if o.Split != nil {
		yield(&o.Split.Write)
		yield(&o.Split.Sync)
	}
	if o.Growth != nil {
		bins := o.Growth.Bins[:cap(o.Growth.Bins)]
		for i := range bins {
			yield(&bins[i].Answered)
		}
	}
}

// empty says whether nothing was counted.
func (o *Op) empty() bool { return o == nil || o.In|o.Out == 0 && o.idle() }

// idle says whether o, which is not nil, counted nothing but bytes.
func (o *Op) idle() bool {
	if o.Ledger() != (Ledger{}) || o.Causes != [len(o.Causes)]uint64{} || len(o.acks()) > 0 || len(o.kinds()) > 0 || len(o.checks()) > 0 {
		return false
	}
	if slices.ContainsFunc(o.Steps, func(step *Op) bool { return !step.empty() }) {
		return false
	}
	for _, h := range o.hists() {
		if h.Count() > 0 {
			return false
		}
	}
	for i, b := range o.Bins {
		if b.Total() > 0 || o.Turns[i].Total() > 0 {
			return false
		}
	}
	return o.Keys.empty() && o.Keys.Wasted == 0 && len(o.Growth.Used()) == 0 && o.Split.empty()
}

// empty says whether no key was counted. Bins hold nothing that the outcomes do not.
func (k *Keys) empty() bool { return k.Ledger == Ledger{} }

// Together returns the sum of the ops of all verbs.
func (t *Totals) Together() *Op {
	sum := new(Op)
	for _, o := range t.Ops {
		if o != nil {
			sum.merge(o)
		}
	}
	return sum
}

func (o *Op) merge(from *Op) {
	o.ledger.merge(&from.ledger)
	for i, n := range from.Causes {
		o.Causes[i] += n
	}
	o.In += from.In
	o.Out += from.Out
	to := o.hists()
	for i, h := range from.hists() {
		to[i].Merge(h)
	}
	acks := from.acks()
	lengthen(&o.Acks, len(acks))
	for i := range acks {
		o.Acks[i].Merge(&acks[i])
	}
	if !from.Split.empty() {
		s := made(&o.Split)
		s.Write.Merge(&from.Split.Write)
		s.Sync.Merge(&from.Split.Sync)
	}
	lengthen(&o.Checks, len(from.checks()))
	for i, n := range from.checks() {
		o.Checks[i] += n
	}
	bins := o.allBins()
	for i, b := range from.allBins() {
		for j := range b {
			mergeOne(&bins[i][j], b[j])
		}
	}
	for i := range from.kinds() {
		k := o.kind(i + 1)
		k.Service.Merge(&from.Kinds[i].Service)
		k.Response.Merge(&from.Kinds[i].Response)
	}
	mergeOps(&o.Steps, from.Steps)
	o.Keys.merge(&from.Keys.Ledger)
	o.Keys.Wasted += from.Keys.Wasted
	if from.Growth.Ended() > 0 {
		made(&o.Growth).merge(from.Growth)
	}
}

// away returns the times away up to the last endpoint that has one.
func (t *rest) away() []uint64 { return trimmed(t.Away, isZero) }

// lengthen gives s at least n elements; the new ones are zero.
func lengthen[T any](s *[]T, n int) {
	if had := len(*s); n > had { // append with make would allocate twice where the race detector is on
		*s = slices.Grow(*s, n-had)[:n]
		clear((*s)[had:])
	}
}

func mergeOne(to **Bins, from *Bins) {
	if from.Total() > 0 {
		made(to).Merge(from)
	}
}

// made returns what a pointer points to, creating it at first use.
func made[T any](at **T) *T {
	if *at == nil {
		*at = new(T)
	}
	return *at
}

func (o *Op) reset() {
	for _, h := range o.hists() {
		h.Reset()
	}
	o.rareHists((*hist.Hist).Reset)
	for _, step := range o.Steps {
		step.reset()
	}
	for _, all := range o.allBins() {
		for _, b := range all {
			if b != nil {
				*b = Bins{}
			}
		}
	}
	if o.Growth != nil {
		o.Growth.reset()
	}
	o.ledger, o.Keys.Ledger, o.Keys.Wasted = Ledger{}, Ledger{}, 0
	o.In, o.Out = 0, 0
	clear(o.Causes[:])
	clear(o.Checks)
}
