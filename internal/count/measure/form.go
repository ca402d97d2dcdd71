package measure

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"

	"github.com/loadgen/loadgen/internal/base/varint"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

const (
	version  = 14
	previous = 13 // it has no counts of values that were misplaced or another run's; it is read, too
)

// maxStages is the most stages that a plan can have, and one for what is due later.
const maxStages = 1001

// maxEndpoints bounds how much a decoder allocates for a few bytes.
const maxEndpoints = 4096

// AppendBinary appends the binary form of s. It returns an error if s exceeds what the form can hold ([Totals.AppendBinary]).
func (s *Snapshot) AppendBinary(b []byte) ([]byte, error) {
	if s.Step < 0 || s.Step > math.MaxInt32 || s.SeqFirst > s.SeqLast || s.From > s.To {
		return b, fmt.Errorf("encode snapshot %d–%d of step %d from %d ns to %d ns: want neither to run backwards, and a step below 2^31",
			s.SeqFirst, s.SeqLast, s.Step, s.From, s.To)
	}
	f := form{out: b}
	f.bound(&s.Delta)
	f.snapshot(s)
	return f.written()
}

// AppendBinary appends the binary form of c. It returns an error if there are more than 4,096 endpoints.
func (c *Counters) AppendBinary(b []byte) ([]byte, error) {
	f := form{out: b}
	f.counters(c)
	return f.written()
}

// AppendBinary appends the binary form of t. It returns an error if there are more than 4,096 endpoints, more acks than [MaxAcks], more kinds than
// [MaxKinds], more scenarios than [MaxScenarios] or more steps than [MaxSteps], or if the histograms take more than 128 MiB.
func (t *Totals) AppendBinary(b []byte) ([]byte, error) {
	f := form{out: b}
	f.bound(t)
	f.totals(t)
	return f.written()
}

// Decode replaces s by the snapshot at the front of b and returns what follows it. It accepts exactly what AppendBinary writes; CheckValid checks
// whether the ledgers balance. It keeps no reference to b and reuses the memory of s. Whatever b says, it allocates no more than the step's latencies
// can fill: 57 KiB for each histogram. After an error s is empty.
func (s *Snapshot) Decode(b []byte) (rest []byte, err error) {
	f := reading(b)
	f.snapshot(s)
	if f.Err != nil {
		s.Step, s.SeqFirst, s.SeqLast, s.From, s.To, s.Final = 0, 0, 0, 0, 0, false
		s.Delta.empty()
		s.Running.empty()
	}
	return f.read("snapshot")
}

// Decode replaces c by the counters at the front of b, as [Snapshot.Decode] does.
func (c *Counters) Decode(b []byte) (rest []byte, err error) {
	f := reading(b)
	f.counters(c)
	if f.Err != nil {
		c.empty()
	}
	return f.read("counters")
}

// Decode replaces t by the totals at the front of b, as [Snapshot.Decode] does.
func (t *Totals) Decode(b []byte) (rest []byte, err error) {
	f := reading(b)
	f.totals(t)
	if f.Err != nil {
		t.empty()
	}
	return f.read("totals")
}

// empty does Reset, and also clears the origin and the number of endpoints.
func (t *Totals) empty() {
	t.Reset()
	t.Origin = 0
	t.Requests, t.Away, t.Events = t.Requests[:0], t.Away[:0], t.Events[:0]
}

func (c *Counters) empty() {
	c.Reset()
	c.Requests = c.Requests[:0]
}

// form writes the binary form of a value, or reads it into one: its methods say each part of the form once, for both. Writing changes no value.
// Reading goes into what is empty. After an error it goes on with zeros, and writing with bytes that nobody gets.
type form struct {
	varint.Reader // of what is read; its Err is that of either
	reads         bool
	out           []byte // what is written
	form          byte   // the version of all of it; 0 before the first is known
	held          int    // bytes that reading has allocated for histograms and bins
}

func reading(b []byte) form { return form{Reader: varint.Reader{Rest: b}, reads: true} }

func (f *form) read(what string) (rest []byte, err error) {
	if f.Err != nil {
		return nil, fmt.Errorf("decode %s: %w", what, f.Err)
	}
	return f.Rest, nil
}

func (f *form) written() ([]byte, error) {
	if f.Err != nil {
		return f.out, fmt.Errorf("encode %w", f.Err)
	}
	return f.out, nil
}

// bound refuses to write what take would refuse to read.
func (f *form) bound(t *Totals) {
	if held := t.held(); held > mostHeld {
		f.Fail("histograms of %d MiB, want at most %d: fewer scenarios, steps or replicas would do", held>>20, mostHeld>>20)
	}
}

// take counts memory that reading needs against the bound.
func (f *form) take(n int) {
	if f.held += n; f.reads && f.held > mostHeld {
		f.Fail("histograms that take more than %d MiB: fewer scenarios, steps or replicas would do", mostHeld>>20)
	}
}

func (f *form) byte(n *uint8) {
	if f.reads {
		*n = f.Byte()
		return
	}
	f.out = append(f.out, *n)
}

func (f *form) uint(n *uint64) {
	if f.reads {
		*n = f.Uvarint()
		return
	}
	f.out = binary.AppendUvarint(f.out, *n)
}

func (f *form) int(n *int64) {
	if f.reads {
		*n = f.Varint()
		return
	}
	f.out = binary.AppendVarint(f.out, *n)
}

// fixed is a number of eight bytes.
func (f *form) fixed(n *uint64) {
	if !f.reads {
		f.out = binary.LittleEndian.AppendUint64(f.out, *n)
	} else if b := f.Take(8); f.Err == nil {
		*n = binary.LittleEndian.Uint64(b)
	}
}

// until is a time, as the nanoseconds after from.
func (f *form) until(what string, from int64, to *int64) {
	n := uint64(*to) - uint64(from)
	if f.uint(&n); !f.reads {
		return
	}
	if *to = int64(uint64(from) + n); *to < from {
		f.Fail("%s beyond 2^63 ns", what)
	}
}

// text is up to most bytes. What it returns aliases text, or what is read.
func (f *form) text(text []byte, most int, what string) []byte {
	n := f.few(len(text), most, what)
	if f.reads {
		return f.Take(n)
	}
	f.out = append(f.out, text...)
	return text
}

// few is how many there are of something, in a byte. It returns 0 after an error.
func (f *form) few(n, most int, what string) int {
	if n <= most {
		c := byte(n)
		f.byte(&c)
		n = int(c)
	}
	if n > most {
		f.Fail("%d %s, want at most %d", n, what, most)
		return 0
	}
	return n
}

// many is few as a number.
func (f *form) many(n, most int, what string) int {
	c := uint64(n)
	if f.uint(&c); c > uint64(most) {
		f.Fail("%d %s, want at most %d", c, what, most)
		return 0
	}
	return int(c)
}

// last refuses a list that is longer than it need be.
func (f *form) last(n int, of string, is bool) {
	if !is && f.Err == nil {
		f.Fail("the last of %d %s is empty", n, of)
	}
}

// set has a bit for each of n things that is there, of which there can be most: in a byte if that suffices, otherwise as a number.
func (f *form) set(n, most int, what string, there func(i int) bool) (present uint64) {
	for i := 0; i < n && !f.reads; i++ {
		switch {
		case !there(i):
		case i >= most:
			f.Fail("%d %s, want at most %d", i+1, what, most)
		default:
			present |= 1 << i
		}
	}
	if most <= 8 {
		c := byte(present)
		f.byte(&c)
		present = uint64(c)
	} else {
		f.uint(&present)
	}
	if present>>most != 0 {
		f.Fail("a set %#x of %d %s", present, most, what)
	}
	return present
}

// each yields the members of a set, until one is wrong.
func (f *form) each(present uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; present != 0 && f.Err == nil; present &= present - 1 {
			if !yield(bits.TrailingZeros64(present)) {
				return
			}
		}
	}
}

// part names the part that an error is in, and refuses one that is there and empty.
func (f *form) part(empty bool, format string, of any) {
	switch {
	case f.Err != nil:
		f.Err = fmt.Errorf(format+": %w", of, f.Err)
	case empty:
		f.Fail(format+": written, but empty", of)
	}
}

func (f *form) version() {
	v := byte(version)
	if f.byte(&v); v != version && v != previous || f.form != 0 && v != f.form {
		f.Fail("version %d, want %d", v, version)
	}
	f.form = v
}

func (f *form) snapshot(s *Snapshot) {
	f.version()
	step, more := uint64(s.Step), s.SeqLast-s.SeqFirst
	if f.uint(&step); step > math.MaxInt32 {
		f.Fail("step %d", step)
	}
	f.uint(&s.SeqFirst)
	if f.uint(&more); s.SeqFirst+more < s.SeqFirst {
		f.Fail("sequence numbers above 2^64 − 1")
	}
	f.int(&s.From)
	f.until("an interval to", s.From, &s.To)
	has := f.set(2, 2, "things said of a snapshot", func(i int) bool { return i == 0 && s.Final || i == 1 && !s.Samples.Empty() })
	if f.reads {
		s.Step, s.SeqLast, s.Final = int(step), s.SeqFirst+more, has&1 != 0
		s.Samples.Reset()
	}
	f.counters(&s.Running)
	f.totals(&s.Delta)
	if has&2 != 0 {
		f.samples(&s.Samples)
	}
}

// leastBytes is the fewest bytes that a sampled op takes in the binary form.
const leastBytes = 8 + 3 + 2 + 3 + 1

// samples allocates no more than there are bytes for.
func (f *form) samples(s *Samples) {
	if !f.reads {
		s.sort()
	}
	most, count := uint64(s.most), uint64(len(s.ops))
	f.uint(&most)
	f.uint(&count)
	switch {
	case !f.reads:
	case most > MostSamples || count == 0 || count > most:
		f.Fail("%d samples of at most %d, want some of at most %d", count, most, MostSamples)
	case count > uint64(len(f.Rest)/leastBytes):
		f.Fail("it ends early: %d samples in %d bytes", count, len(f.Rest))
	default:
		s.most = int(most)
	}
	for i := 0; uint64(i) < count && f.Err == nil; i++ {
		if f.reads {
			s.ops = append(s.ops, DrawnOp{})
		}
		if f.drawn(&s.ops[i]); i > 0 && s.ops[i].rank < s.ops[i-1].rank {
			f.Fail("samples out of order")
		}
	}
	if f.reads && f.Err != nil {
		s.Reset()
	}
}

func (f *form) drawn(op *DrawnOp) {
	f.fixed(&op.rank)
	f.int(&op.Due)
	f.until("a sample that ends", op.Due, &op.Start)
	f.until("a sample that ends", op.Start, &op.End)
	f.byte((*uint8)(&op.Verb))
	f.byte((*uint8)(&op.Outcome))
	in, out, code := uint64(op.In+1), uint64(op.Out+1), uint64(op.Code)
	for _, n := range [...]*uint64{&in, &out, &code} {
		f.uint(n)
	}
	if !f.reads {
		f.out = append(append(f.out, byte(len(op.Error))), op.Error...)
		return
	}
	text := string(f.text(nil, 255, "bytes of an error"))
	if int(op.Verb) >= driver.NumVerbs || int(op.Outcome) >= driver.NumOutcomes || op.Outcome == driver.Shed {
		f.Fail("a sample of verb %d that ended as %d", op.Verb, op.Outcome)
	}
	if in > math.MaxInt64 || out > math.MaxInt64 || code > math.MaxUint16 {
		f.Fail("a sample of %d and %d bytes with the code %d", in, out, code)
	}
	if text != cleanText(text) {
		f.Fail("an error of a sample that is too long or not printable")
	}
	op.In, op.Out, op.Code, op.Error = int64(in)-1, int64(out)-1, int(code), text
}

func (f *form) counters(c *Counters) {
	if f.reads {
		c.empty()
	}
	f.version()
	for v := range f.each(f.set(len(c.Ops), len(c.Ops), "verbs", func(v int) bool { return c.Ops[v] != (Ledger{}) })) {
		l := &c.Ops[v]
		f.ledger(l)
		if *l == (Ledger{}) {
			f.Fail("%s: written, but empty", driver.Verb(v))
		}
	}
	f.requests(&c.Requests)
}

func (f *form) totals(t *Totals) {
	if f.reads {
		if t.held() > mostHeld {
			*t = Totals{} // it was grown by a series of earlier forms
		}
		t.empty()
	}
	f.version()
	f.int(&t.Origin)
	f.fixed(&t.Digest)
	for _, n := range [...]*uint64{&t.Reconnects, &t.LateReplies, &t.Foreign} {
		f.uint(n)
	}
	if f.form > previous {
		f.uint(&t.Misplaced)
		f.uint(&t.AnotherRun)
	}
	f.uint(&t.Stalls)
	f.int(&t.MaxStall)
	f.span(&t.Span)
	f.errors(&t.Errors)
	f.requests(&t.Requests)
	f.away(t)
	for v := range f.each(f.set(len(t.Ops), len(t.Ops), "verbs", func(v int) bool { return !t.Ops[v].empty() })) {
		o := t.of(driver.Verb(v))
		f.op(o, true)
		f.part(o.empty(), "%s", driver.Verb(v))
	}
	for i := range f.each(f.set(len(t.Scenarios), MaxScenarios, "scenarios", func(i int) bool { return !t.Scenarios[i].empty() })) {
		o := t.scenario(i)
		f.op(o, false)
		f.steps(o)
		f.part(o.empty(), "scenario %d", i+1)
	}
	f.bins(&t.Time, true)
	f.bins(&t.Lost, true)
	f.hist(&t.Waited)
	f.cache(&t.Cache)
	f.events(t)
	rare := f.set(2, 2, "kinds of what few steps have", func(i int) bool { return i == 0 && !t.Versions.empty() || i == 1 && !t.Links.empty() })
	if rare&1 != 0 {
		f.versions(t)
	}
	if rare&2 != 0 {
		f.connections(t.Linked())
	}
}

func (f *form) connections(c *Connections) {
	for _, n := range c.counts() {
		f.uint(n)
	}
	f.int(&c.Making)
	f.int(&c.Open)
	for i := range c.Times {
		f.hist(&c.Times[i])
	}
	if c.empty() {
		f.Fail("connections: written, but empty")
	}
}

func (f *form) steps(o *Op) {
	for i := range f.each(f.set(len(o.Steps), MaxSteps, "steps", func(i int) bool { return !o.Steps[i].empty() })) {
		step := f.step(o, i)
		f.op(step, false)
		f.part(step.empty(), "step %d", i+1)
	}
}

// step returns the i-th step, creating it and those before it at first use.
func (f *form) step(o *Op, i int) *Op {
	f.take(max(0, i+1-len(o.Steps)) * opBytes)
	return opAt(&o.Steps, i)
}

// stages is a verb's ops by stage: those from the first stage that counted something to the last.
func (f *form) stages(o *Op) {
	n := f.many(len(o.stages()), maxStages, "stages")
	first := f.many(slices.IndexFunc(o.stages(), func(stage *Op) bool { return !stage.empty() }), maxStages, "stages")
	for i := first; i < n && f.Err == nil; i++ {
		f.op(f.step(o, i), false)
	}
	if f.Err == nil && (first >= n || len(o.stages()) != n || o.Steps[first].empty()) {
		f.Fail("stages %d to %d, the first or the last of which is empty", first+1, n)
	}
}

func (f *form) span(s *Span) {
	if f.uint(&s.Sessions); s.Sessions == 0 {
		return
	}
	for _, at := range [...]*int64{&s.First, &s.LastFirst, &s.FirstLast, &s.Last, &s.FirstOut, &s.Turn} {
		f.int(at)
	}
	f.uint(&s.Losers)
	f.int(&s.LostFrom)
}

func (f *form) errors(e *Errors) {
	f.uint(&e.total)
	kept, left := f.few(e.kept, maxTexts, "error texts"), e.total
	for i := 0; i < kept && f.Err == nil; i++ {
		t := &e.texts[i]
		b := f.text(t.bytes(), 255, "bytes of an error")
		f.uint(&t.n)
		switch {
		case !f.reads:
			continue
		case len(b) > maxText || !bytes.Equal(appendPrintable(t.b[:0], b), b):
			f.Fail("an error text of %d bytes that is too long or not escaped", len(b))
		case t.n == 0 || t.n > left:
			f.Fail("an error text that occurred %d times, want 1 to %d", t.n, left)
		case i > 0 && bytes.Compare(e.texts[i-1].bytes(), b) >= 0:
			f.Fail("error texts out of order")
		}
		t.size = uint8(len(b))
		left -= t.n
		e.kept++
	}
	if f.reads && left > 0 && left <= maxTexts { // adding a text without room drops at least 33: one of each kept text, and itself
		f.Fail("%d errors without a text", left)
	}
}

func (f *form) requests(all *[]Requests) {
	endpoints, used := uint64(len(*all)/driver.NumVerbs), uint64(0)
	if n := len(*all); n%driver.NumVerbs != 0 || endpoints > maxEndpoints {
		f.Fail("%d request ledgers: want a multiple of %d, of at most %d endpoints", n, driver.NumVerbs, maxEndpoints)
	}
	for i := range *all {
		if (*all)[i] != (Requests{}) {
			used++
		}
	}
	f.uint(&endpoints)
	f.uint(&used)
	if endpoints > maxEndpoints || used > endpoints*uint64(driver.NumVerbs) {
		f.Fail("%d request ledgers of %d endpoints, want at most %d of %d",
			used, endpoints, endpoints*uint64(driver.NumVerbs), maxEndpoints)
	}
	if f.Err != nil {
		return
	}
	if f.reads {
		n := int(endpoints) * driver.NumVerbs
		*all = slices.Grow((*all)[:0], n)[:n]
		clear(*all)
	}
	left := *all
	for range used {
		skipped := uint64(0)
		for !f.reads && left[skipped] == (Requests{}) {
			skipped++
		}
		if f.uint(&skipped); skipped >= uint64(len(left)) {
			f.Fail("a request ledger beyond the %d endpoints", endpoints)
			return
		}
		q := &left[skipped]
		for _, n := range [...]*uint64{&q.Sent, &q.Answered, &q.Timeout, &q.Error, &q.Refused, &q.Moved, &q.Ask} {
			f.uint(n)
		}
		if f.int(&q.InFlight); *q == (Requests{}) {
			f.Fail("a request ledger that is written, but empty")
		}
		left = left[skipped+1:]
	}
}

func (f *form) away(t *Totals) {
	n := f.many(len(t.away()), maxEndpoints, "times away")
	for i := 0; i < n && f.Err == nil; i++ {
		lengthen(&t.Away, i+1)
		f.uint(&t.Away[i])
	}
	f.last(n, "times away", n == len(t.away()))
}

func (f *form) ledger(l *Ledger) {
	f.uint(&l.Due)
	for i := range l.Outcomes {
		f.uint(&l.Outcomes[i])
	}
	f.int(&l.InFlight)
}

func (f *form) op(o *Op, verb bool) {
	f.ledger(&o.ledger)
	for i := range o.Causes {
		f.uint(&o.Causes[i])
	}
	f.uint(&o.In)
	f.uint(&o.Out)
	for _, h := range o.hists() {
		f.hist(h)
	}
	acks := f.few(len(o.acks()), MaxAcks, "acks")
	for k := 1; k <= acks && f.Err == nil; k++ {
		lengthen(&o.Acks, k)
		f.hist(&o.Acks[k-1])
	}
	f.last(acks, "acks", acks == len(o.acks()))
	kinds := f.few(len(o.kinds()), MaxKinds, "kinds")
	for k := 1; k <= kinds && f.Err == nil; k++ {
		of := o.kind(k)
		f.hist(&of.Service)
		f.hist(&of.Response)
	}
	f.last(kinds, "kinds", kinds == len(o.kinds()))
	f.outcomes(&o.Bins)
	f.outcomes(&o.Turns)
	rare := f.set(6, 6, "kinds of what few ops have", func(i int) bool {
		return i == 0 && !o.Keys.empty() || i == 1 && o.Growth.Ended() > 0 || i == 2 && !o.Split.empty() || i == 3 && len(o.checks()) > 0 ||
			i == 4 && verb && len(o.stages()) > 0 || i == 5 && o.Keys.Wasted > 0
	})
	if rare&1 != 0 {
		f.ledger(&o.Keys.Ledger)
		f.outcomes(&o.Keys.Bins)
		f.outcomes(&o.Keys.Turns)
		if o.Keys.empty() {
			f.Fail("a ledger of keys that is written, but empty")
		}
	}
	if rare&2 != 0 {
		f.growth(o)
	}
	if rare&4 != 0 {
		f.hist(&made(&o.Split).Write)
		f.hist(&o.Split.Sync)
		if o.Split.empty() {
			f.Fail("parts of service times that are written, but empty")
		}
	}
	if rare&8 != 0 {
		n := f.few(len(o.checks()), driver.MaxChecks, "checks")
		lengthen(&o.Checks, n)
		for i := range n {
			f.uint(&o.Checks[i])
		}
		if n == 0 || len(o.checks()) != n {
			f.Fail("%d checks, the last of which never failed", n)
		}
	}
	switch {
	case rare&16 == 0:
	case verb:
		f.stages(o)
	default:
		f.Fail("stages of what is no verb")
	}
	if rare&32 != 0 {
		if f.uint(&o.Keys.Wasted); o.Keys.Wasted == 0 {
			f.Fail("wasted keys that are written, but none")
		}
	}
}

// growth is the latencies by ordinal. The bins must be the narrowest that hold the last ordinal.
func (f *form) growth(o *Op) {
	g := made(&o.Growth)
	bins := byte(len(g.Used()))
	f.byte(&g.Shift)
	f.byte(&bins)
	n := int(bins)
	if g.Shift > maxOrdinalShift || n == 0 || n > NumOrdinals || g.Shift > 0 && n <= NumOrdinals/2 {
		f.Fail("%d bins of 2^%d ordinals, want the narrowest of at most %d", n, g.Shift, NumOrdinals)
		return
	}
	for i := 0; i < n && f.Err == nil; i++ {
		b := g.bin(i)
		f.uint(&b.Failed)
		f.hist(&b.Answered)
	}
	f.last(n, "bins of ordinals", n == len(g.Used()))
}

func (f *form) hist(h *hist.Hist) {
	if !f.reads {
		f.out, _ = h.AppendBinary(f.out) // it has no error
		return
	}
	if f.Err != nil {
		return
	}
	rest, err := h.Decode(f.Rest)
	if err != nil {
		f.Err = err
		return
	}
	f.Rest = rest
	f.take(h.Bytes())
}

// outcomes is the bins of every outcome that has ends.
func (f *form) outcomes(all *[driver.NumOutcomes]*Bins) {
	for i := range f.each(f.set(len(all), len(all), "outcomes", func(i int) bool { return all[i].Total() > 0 })) {
		f.take(binsBytes)
		f.bins(&all[i], false)
	}
}

// bins is bins of width 2^shift, the finest that holds the last end; a width of 0 stands for none, if that may be.
func (f *form) bins(all **Bins, mayBeNone bool) {
	shift, left := byte(0), (*all).Total()
	if left > 0 {
		shift = (*all).Shift()
	}
	if f.byte(&shift); shift == 0 && mayBeNone { // or after an error
		return
	}
	b := made(all)
	if f.uint(&left); shift < minShift || shift > maxShift || left == 0 {
		f.Fail("%d ends in bins of 2^%d ns, want some in 2^%d to 2^%d", left, shift, minShift, maxShift)
		return
	}
	if f.reads {
		b.doubled = shift - minShift
	}
	next := 0
	for left > 0 && f.Err == nil {
		skipped := uint64(0)
		for !f.reads && b.N[next] == 0 {
			next++
			skipped++
		}
		if f.uint(&skipped); f.reads {
			if skipped >= uint64(NumBins-next) {
				f.Fail("a bin above the last of %d", NumBins)
				return
			}
			next += int(skipped)
		}
		n := &b.N[next]
		if f.uint(n); *n == 0 || *n > left {
			f.Fail("a bin of %d ends, want 1 to %d", *n, left)
		}
		left -= *n
		next++
	}
	if shift > minShift && next <= NumBins/2 {
		f.Fail("bins of 2^%d ns, where half of that would do", shift)
	}
}

func (f *form) cache(c *Cache) {
	there := byte(0)
	if !f.reads && *c != (Cache{}) {
		there = 2
	}
	counts := c.counts()
	kept := counts[:]
	switch f.byte(&there); there {
	case 0:
		return
	case 1: // of an older build
		kept = kept[:len(kept)-1]
	case 2:
	default:
		f.Fail("caches: a mark of %d", there)
		return
	}
	for _, n := range kept {
		f.uint(n)
	}
	f.uint(&c.MostLoads)
	f.int(&c.Entries)
	f.int(&c.Bytes)
	if *c == (Cache{}) {
		f.Fail("caches: written, but empty")
	}
}

// events is how often each event has happened and, if it has, when.
func (f *form) events(t *Totals) {
	n := f.many(len(t.events()), MaxEvents, "events")
	for i := 0; i < n && f.Err == nil; i++ {
		lengthen(&t.Events, i+1)
		e := &t.Events[i]
		if f.uint(&e.Times); e.Times > 0 {
			f.int(&e.First)
			f.until("an event that ends", e.First, &e.Last)
		}
	}
	f.last(n, "events", n == len(t.events()))
}

func (f *form) versions(t *Totals) {
	v := t.Compared()
	for _, n := range v.counts() {
		f.uint(n)
	}
	f.hist(&v.Staleness.Age)
	n := f.few(len(v.Verified.Lost), MaxLost, "examples of lost writes")
	for i := 0; i < n && f.Err == nil; i++ {
		if f.reads {
			v.Verified.extend()
		}
		l := &v.Verified.Lost[i]
		f.int(&l.At)
		key := f.text(l.Key[:min(len(l.Key), maxLostKey)], maxLostKey, "bytes of a lost key")
		f.uint(&l.Version)
		f.uint(&l.Found)
		if !f.reads {
			continue
		}
		l.Key = append(l.Key[:0], key...)
		if i > 0 && compareLost(v.Verified.Lost[i-1], *l) > 0 {
			f.Fail("versions: examples out of order")
		}
	}
	if v.empty() {
		f.Fail("versions: written, but empty")
	}
}
