package measure

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

const version = 13

// maxEndpoints bounds how much a decoder allocates for a few bytes.
const maxEndpoints = 4096

// AppendBinary appends the binary form of s. It returns an error if s exceeds what the form can hold ([Totals.AppendBinary]).
func (s *Snapshot) AppendBinary(b []byte) ([]byte, error) {
	if s.Step < 0 || s.Step > math.MaxInt32 || s.SeqFirst > s.SeqLast || s.From > s.To {
		return b, fmt.Errorf("encode snapshot %d–%d of step %d from %d ns to %d ns: want neither to run backwards, and a step below 2^31",
			s.SeqFirst, s.SeqLast, s.Step, s.From, s.To)
	}
	b = append(b, version)
	b = binary.AppendUvarint(b, uint64(s.Step))
	b = binary.AppendUvarint(b, s.SeqFirst)
	b = binary.AppendUvarint(b, s.SeqLast-s.SeqFirst)
	b = binary.AppendVarint(b, s.From)
	b = binary.AppendUvarint(b, uint64(s.To)-uint64(s.From))
	has := byte(0)
	if s.Final {
		has |= isFinal
	}
	if !s.Samples.Empty() {
		has |= hasSamples
	}
	b = append(b, has)
	b, err := s.Running.AppendBinary(b)
	if err != nil {
		return b, err
	}
	if b, err = s.Delta.AppendBinary(b); err != nil || s.Samples.Empty() {
		return b, err
	}
	return s.Samples.AppendBinary(b), nil
}

// Flags of a snapshot, as a set.
const (
	isFinal = 1 << iota
	hasSamples
)

// AppendBinary appends the binary form of c. It returns an error if there are more than 4,096 endpoints.
func (c *Counters) AppendBinary(b []byte) ([]byte, error) {
	var present uint64
	for v := range c.Ops {
		if c.Ops[v] != (Ledger{}) {
			present |= 1 << v
		}
	}
	b = binary.AppendUvarint(append(b, version), present)
	for v := range c.Ops {
		if present>>v&1 != 0 {
			b = appendLedger(b, &c.Ops[v])
		}
	}
	return appendRequests(b, c.Requests)
}

// AppendBinary appends the binary form of t. It returns an error if there are more than 4,096 endpoints, more acks than [MaxAcks], more kinds than
// [MaxKinds], more scenarios than [MaxScenarios] or more steps than [MaxSteps], or if the histograms take more than 128 MiB.
func (t *Totals) AppendBinary(b []byte) ([]byte, error) {
	if held := t.held(); held > mostHeld {
		return b, fmt.Errorf("encode histograms of %d MiB, want at most %d: fewer scenarios, steps or replicas would do", held>>20, mostHeld>>20)
	}
	return t.append(b)
}

// append is AppendBinary for histograms of any size.
func (t *Totals) append(b []byte) ([]byte, error) {
	b = append(b, version)
	b = binary.AppendVarint(b, t.Origin)
	b = binary.LittleEndian.AppendUint64(b, t.Digest)
	for _, n := range [...]uint64{t.Reconnects, t.LateReplies, t.Foreign, t.Stalls} {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendVarint(b, t.MaxStall)
	b = appendSpan(b, &t.Span)
	b = appendErrors(b, &t.Errors)
	b, err := appendRequests(b, t.Requests)
	if err != nil {
		return b, err
	}
	away := t.away()
	if len(away) > maxEndpoints {
		return b, fmt.Errorf("encode times away of %d endpoints, want at most %d", len(away), maxEndpoints)
	}
	b = binary.AppendUvarint(b, uint64(len(away)))
	for _, ns := range away {
		b = binary.AppendUvarint(b, ns)
	}
	var present uint64
	for v, o := range t.Ops {
		if !o.empty() {
			present |= 1 << v
		}
	}
	b = binary.AppendUvarint(b, present)
	for v, o := range t.Ops {
		if present>>v&1 == 0 {
			continue
		}
		if b, err = appendOp(b, o); err != nil {
			return b, fmt.Errorf("encode %s: %w", driver.Verb(v), err)
		}
	}
	if b, err = t.appendScenarios(b); err != nil {
		return b, err
	}
	return t.Versions.append(t.appendEvents(t.Cache.append(appendHist(appendOne(appendOne(b, t.Time), t.Lost), &t.Waited)))), nil
}

// append appends the counts; a single 0 if all are 0.
func (c *Cache) append(b []byte) []byte {
	if *c == (Cache{}) {
		return append(b, 0)
	}
	b = append(b, 2)
	for _, n := range c.counts() {
		b = binary.AppendUvarint(b, *n)
	}
	b = binary.AppendUvarint(b, c.MostLoads)
	return binary.AppendVarint(binary.AppendVarint(b, c.Entries), c.Bytes)
}

func (t *Totals) appendScenarios(b []byte) ([]byte, error) {
	var present uint64
	for i, o := range t.Scenarios {
		if !o.empty() {
			if i >= MaxScenarios {
				return b, fmt.Errorf("encode %s: want at most %d", scenarioName(i), MaxScenarios)
			}
			present |= 1 << i
		}
	}
	b = binary.AppendUvarint(b, present)
	var err error
	for i, o := range t.Scenarios {
		if o.empty() {
			continue
		}
		if b, err = appendOp(b, o); err == nil {
			b, err = appendSteps(b, o.Steps)
		}
		if err != nil {
			return b, fmt.Errorf("encode %s: %w", scenarioName(i), err)
		}
	}
	return b, nil
}

// appendSteps appends the steps of a scenario that are not empty.
func appendSteps(b []byte, steps []*Op) ([]byte, error) {
	var present uint64
	for i, o := range steps {
		if !o.empty() {
			if i >= MaxSteps {
				return b, fmt.Errorf("step %d: want at most %d", i+1, MaxSteps)
			}
			present |= 1 << i
		}
	}
	b = binary.AppendUvarint(b, present)
	var err error
	for i, o := range steps {
		if o.empty() {
			continue
		}
		if b, err = appendOp(b, o); err != nil {
			return b, fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return b, nil
}

func appendSpan(b []byte, s *Span) []byte {
	b = binary.AppendUvarint(b, s.Sessions)
	if s.Sessions == 0 {
		return b
	}
	for _, at := range [...]int64{s.First, s.LastFirst, s.FirstLast, s.Last, s.FirstOut, s.Turn} {
		b = binary.AppendVarint(b, at)
	}
	b = binary.AppendUvarint(b, s.Losers)
	return binary.AppendVarint(b, s.LostFrom)
}

func appendErrors(b []byte, e *Errors) []byte {
	b = binary.AppendUvarint(b, e.total)
	b = append(b, byte(e.kept))
	for i := range e.kept {
		t := &e.texts[i]
		b = append(b, t.size)
		b = append(b, t.bytes()...)
		b = binary.AppendUvarint(b, t.n)
	}
	return b
}

func appendRequests(b []byte, all []Requests) ([]byte, error) {
	endpoints := len(all) / driver.NumVerbs
	if endpoints > maxEndpoints || endpoints*driver.NumVerbs != len(all) {
		return b, fmt.Errorf("encode %d request ledgers: want a multiple of %d, of at most %d endpoints",
			len(all), driver.NumVerbs, maxEndpoints)
	}
	used := 0
	for i := range all {
		if all[i] != (Requests{}) {
			used++
		}
	}
	b = binary.AppendUvarint(b, uint64(endpoints))
	b = binary.AppendUvarint(b, uint64(used))
	skipped := uint64(0)
	for i := range all {
		r := &all[i]
		if *r == (Requests{}) {
			skipped++
			continue
		}
		b = binary.AppendUvarint(b, skipped)
		skipped = 0
		for _, n := range [...]uint64{r.Sent, r.Answered, r.Timeout, r.Error, r.Refused, r.Moved, r.Ask} {
			b = binary.AppendUvarint(b, n)
		}
		b = binary.AppendVarint(b, r.InFlight)
	}
	return b, nil
}

func appendLedger(b []byte, l *Ledger) []byte {
	b = binary.AppendUvarint(b, l.Due)
	for _, n := range l.Outcomes {
		b = binary.AppendUvarint(b, n)
	}
	return binary.AppendVarint(b, l.InFlight)
}

func appendOp(b []byte, o *Op) ([]byte, error) {
	l := o.Ledger()
	b = appendLedger(b, &l)
	for _, n := range o.Causes {
		b = binary.AppendUvarint(b, n)
	}
	b = binary.AppendUvarint(b, o.In)
	b = binary.AppendUvarint(b, o.Out)
	for _, h := range o.hists() {
		b = appendHist(b, h)
	}
	acks := o.acks()
	if len(acks) > MaxAcks {
		return b, fmt.Errorf("%d acks of an op, want at most %d", len(acks), MaxAcks)
	}
	b = append(b, byte(len(acks)))
	for i := range acks {
		b = appendHist(b, &acks[i])
	}
	kinds := o.kinds()
	if len(kinds) > MaxKinds {
		return b, fmt.Errorf("%d kinds of an op, want at most %d", len(kinds), MaxKinds)
	}
	b = append(b, byte(len(kinds)))
	for i := range kinds {
		b = appendHist(appendHist(b, &kinds[i].Service), &kinds[i].Response)
	}
	b = appendBins(appendBins(b, &o.Bins), &o.Turns)
	return o.appendRare(b), nil
}

// appendHist appends a histogram. Its error is always nil.
func appendHist(b []byte, h *hist.Hist) []byte {
	b, _ = h.AppendBinary(b)
	return b
}

// A set of the fields that only few ops have.
const (
	hasKeys = 1 << iota
	hasGrowth
	hasSplit
)

func (o *Op) appendRare(b []byte) []byte {
	at := len(b)
	b = append(b, 0)
	if !o.Keys.empty() {
		b[at] |= hasKeys
		b = appendLedger(b, &o.Keys.Ledger)
		b = appendBins(appendBins(b, &o.Keys.Bins), &o.Keys.Turns)
	}
	if o.Growth.Ended() > 0 {
		b[at] |= hasGrowth
		b = o.Growth.append(b)
	}
	if !o.Split.empty() {
		b[at] |= hasSplit
		b = appendHist(appendHist(b, &o.Split.Write), &o.Split.Sync)
	}
	return b
}

func (g *Growth) append(b []byte) []byte {
	bins := g.Used()
	b = append(b, g.Shift, byte(len(bins)))
	for i := range bins {
		b = appendHist(binary.AppendUvarint(b, bins[i].Failed), &bins[i].Answered)
	}
	return b
}

// appendBins appends the bins of every outcome that has ends.
func appendBins(b []byte, all *[driver.NumOutcomes]*Bins) []byte {
	at := len(b)
	b = append(b, 0)
	for i, bins := range all {
		if bins.Total() > 0 {
			b[at] |= 1 << i
			b = appendOne(b, bins)
		}
	}
	return b
}

// appendOne appends a single Bins; an empty one is a width of 0.
func appendOne(b []byte, bins *Bins) []byte {
	total := bins.Total()
	if total == 0 {
		return append(b, 0)
	}
	b = append(b, bins.Shift())
	b = binary.AppendUvarint(b, total)
	skipped := uint64(0)
	for _, n := range &bins.N {
		if n == 0 {
			skipped++
			continue
		}
		b = binary.AppendUvarint(b, skipped)
		b = binary.AppendUvarint(b, n)
		skipped = 0
	}
	return b
}

// A set of verbs is written as one number, a set of outcomes as a byte.
const (
	_ = uint(64 - driver.NumVerbs)
	_ = uint(8 - driver.NumOutcomes)
)
