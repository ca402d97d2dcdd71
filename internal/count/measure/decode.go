package measure

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/base/varint"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Decode replaces s by the snapshot at the front of b and returns what follows it. It accepts exactly what AppendBinary writes; CheckValid checks
// whether the ledgers balance. It keeps no reference to b and reuses the memory of s. Whatever b says, it allocates no more than the step's latencies
// can fill: 57 KiB for each histogram. After an error s is empty.
func (s *Snapshot) Decode(b []byte) (rest []byte, err error) {
	r := reader{Reader: varint.Reader{Rest: b}}
	s.decode(&r)
	if r.Err != nil {
		s.Step, s.SeqFirst, s.SeqLast, s.From, s.To, s.Final = 0, 0, 0, 0, 0, false
		s.Delta.empty()
		s.Running.empty()
		return nil, fmt.Errorf("decode snapshot: %w", r.Err)
	}
	return r.Rest, nil
}

// Decode replaces c by the counters at the front of b, as [Snapshot.Decode] does.
func (c *Counters) Decode(b []byte) (rest []byte, err error) {
	r := reader{Reader: varint.Reader{Rest: b}}
	c.decode(&r)
	if r.Err != nil {
		c.empty()
		return nil, fmt.Errorf("decode counters: %w", r.Err)
	}
	return r.Rest, nil
}

// Decode replaces t by the totals at the front of b, as [Snapshot.Decode] does.
func (t *Totals) Decode(b []byte) (rest []byte, err error) {
	r := reader{Reader: varint.Reader{Rest: b}}
	t.decode(&r)
	if r.Err != nil {
		t.empty()
		return nil, fmt.Errorf("decode totals: %w", r.Err)
	}
	return r.Rest, nil
}

// empty does Reset, and also clears the origin and the number of endpoints.
func (t *Totals) empty() {
	t.Reset()
	t.Origin = 0
	t.Requests, t.Away = t.Requests[:0], t.Away[:0]
}

func (c *Counters) empty() {
	c.Reset()
	c.Requests = c.Requests[:0]
}

func (s *Snapshot) decode(r *reader) {
	r.version()
	step := r.Uvarint()
	if step > math.MaxInt32 {
		r.Fail("step %d", step)
	}
	s.Step = int(step)
	s.SeqFirst = r.Uvarint()
	s.SeqLast = s.SeqFirst + r.Uvarint()
	if s.SeqLast < s.SeqFirst {
		r.Fail("sequence numbers above 2^64 − 1")
	}
	s.From = r.Varint()
	s.To = int64(uint64(s.From) + r.Uvarint())
	if s.To < s.From {
		r.Fail("an interval to beyond 2^63 ns")
	}
	has := r.set(2, "things said of a snapshot")
	s.Final = has&isFinal != 0
	s.Running.decode(r)
	s.Delta.decode(r)
	s.Samples.Reset()
	if has&hasSamples != 0 {
		s.Samples.Decode(&r.Reader)
	}
}

func (c *Counters) decode(r *reader) {
	c.empty()
	r.version()
	present := r.verbs()
	for v := range c.Ops {
		if present>>v&1 == 0 {
			continue
		}
		c.Ops[v] = r.ledger()
		if c.Ops[v] == (Ledger{}) {
			r.Fail("%s: written, but empty", driver.Verb(v))
		}
	}
	r.requests(&c.Requests)
}

func (t *Totals) decode(r *reader) {
	if t.held() > mostHeld {
		*t = Totals{} // it was grown by a series of earlier forms
	}
	t.empty()
	r.version()
	t.Origin = r.Varint()
	if b := r.Take(8); r.Err == nil {
		t.Digest = binary.LittleEndian.Uint64(b)
	}
	for _, n := range [...]*uint64{&t.Reconnects, &t.LateReplies, &t.Foreign, &t.Stalls} {
		*n = r.Uvarint()
	}
	t.MaxStall = r.Varint()
	r.span(&t.Span)
	r.errors(&t.Errors)
	r.requests(&t.Requests)
	r.away(t)
	present := r.verbs()
	for v := range t.Ops {
		if present>>v&1 == 0 || r.Err != nil {
			continue
		}
		o := t.of(driver.Verb(v))
		r.op(o)
		switch {
		case r.Err != nil:
			r.Err = fmt.Errorf("%s: %w", driver.Verb(v), r.Err)
		case o.empty():
			r.Fail("%s: written, but empty", driver.Verb(v))
		}
	}
	t.decodeScenarios(r)
	t.Time = r.time(t.Time)
	t.Lost = r.time(t.Lost)
	r.hist(&t.Waited)
	r.cache(&t.Cache)
	r.events(t)
	r.versions(t)
}

// cache reads the counts of caches.
func (r *reader) cache(c *Cache) {
	*c = Cache{}
	counts := c.counts()
	kept := counts[:]
	switch there := r.Byte(); there {
	case 0:
		return
	case 1: // of an older build
		kept = kept[:len(kept)-1]
	case 2:
	default:
		r.Fail("caches: a mark of %d", there)
		return
	}
	for _, n := range kept {
		*n = r.Uvarint()
	}
	c.MostLoads = r.Uvarint()
	c.Entries, c.Bytes = r.Varint(), r.Varint()
	if *c == (Cache{}) {
		r.Fail("caches: written, but empty")
	}
}

func (t *Totals) decodeScenarios(r *reader) {
	present := r.Uvarint()
	if present>>MaxScenarios != 0 {
		r.Fail("a set %#x of %d scenarios", present, MaxScenarios)
	}
	for i := 0; present>>i != 0 && r.Err == nil; i++ {
		if present>>i&1 == 0 {
			continue
		}
		o := t.scenario(i)
		r.op(o)
		r.steps(o)
		switch {
		case r.Err != nil:
			r.Err = fmt.Errorf("%s: %w", scenarioName(i), r.Err)
		case o.empty():
			r.Fail("%s: written, but empty", scenarioName(i))
		}
	}
}

// steps reads the steps of a scenario.
func (r *reader) steps(o *Op) {
	present := r.Uvarint()
	for i := 0; present>>i != 0 && r.Err == nil; i++ {
		for len(o.Steps) <= i {
			r.take(opBytes)
			o.Steps = append(o.Steps, new(Op))
		}
		if present>>i&1 == 0 {
			continue
		}
		r.op(o.Steps[i])
		switch {
		case r.Err != nil:
			r.Err = fmt.Errorf("step %d: %w", i+1, r.Err)
		case o.Steps[i].empty():
			r.Fail("step %d: written, but empty", i+1)
		}
	}
}

// reader decodes a binary form.
type reader struct {
	varint.Reader
	held int // bytes allocated for histograms and bins
}

// take counts memory that the form needs against the bound.
func (r *reader) take(n int) {
	if r.held += n; r.held > mostHeld && r.Err == nil {
		r.Fail("histograms that take more than %d MiB: fewer scenarios, steps or replicas would do", mostHeld>>20)
	}
}

func (r *reader) version() {
	if v := r.Byte(); v != version {
		r.Fail("version %d, want %d", v, version)
	}
}

// verbs reads a number with a bit for each verb.
func (r *reader) verbs() uint64 {
	s := r.Uvarint()
	if s>>driver.NumVerbs != 0 {
		r.Fail("a set %#x of %d verbs", s, driver.NumVerbs)
	}
	return s
}

// set reads a byte with a bit for each of n things.
func (r *reader) set(n int, of string) byte {
	s := r.Byte()
	if int(s)>>n != 0 {
		r.Fail("a set %#x of %d %s", s, n, of)
	}
	return s
}

func (r *reader) span(s *Span) {
	if s.Sessions = r.Uvarint(); s.Sessions == 0 {
		return
	}
	for _, at := range [...]*int64{&s.First, &s.LastFirst, &s.FirstLast, &s.Last, &s.FirstOut, &s.Turn} {
		*at = r.Varint()
	}
	s.Losers, s.LostFrom = r.Uvarint(), r.Varint()
}

func (r *reader) away(t *Totals) {
	n := r.Uvarint()
	if n > maxEndpoints {
		r.Fail("times away of %d endpoints, want at most %d", n, maxEndpoints)
	}
	for i := uint64(0); i < n && r.Err == nil; i++ {
		t.Away = append(t.Away, r.Uvarint())
	}
	if r.Err == nil && len(t.away()) != len(t.Away) {
		r.Fail("the last of %d times away is 0", n)
	}
}

func (r *reader) errors(e *Errors) {
	e.total = r.Uvarint()
	kept := int(r.Byte())
	if kept > maxTexts {
		r.Fail("%d error texts, want at most %d", kept, maxTexts)
	}
	left := e.total
	for e.kept < kept && r.Err == nil {
		t := &e.texts[e.kept]
		b := r.Take(int(r.Byte()))
		t.n = r.Uvarint()
		switch {
		case len(b) > maxText || !bytes.Equal(appendPrintable(t.b[:0], b), b):
			r.Fail("an error text of %d bytes that is too long or not escaped", len(b))
		case t.n == 0 || t.n > left:
			r.Fail("an error text that occurred %d times, want 1 to %d", t.n, left)
		case e.kept > 0 && bytes.Compare(e.texts[e.kept-1].bytes(), b) >= 0:
			r.Fail("error texts out of order")
		}
		t.size = uint8(len(b))
		left -= t.n
		e.kept++
	}
	if left > 0 && left <= maxTexts { // adding a text without room drops at least 33: one of each kept text, and itself
		r.Fail("%d errors without a text", left)
	}
}

func (r *reader) requests(all *[]Requests) {
	endpoints, used := r.Uvarint(), r.Uvarint()
	if endpoints > maxEndpoints || used > endpoints*uint64(driver.NumVerbs) {
		r.Fail("%d request ledgers of %d endpoints, want at most %d of %d",
			used, endpoints, endpoints*uint64(driver.NumVerbs), maxEndpoints)
	}
	if r.Err != nil {
		return
	}
	n := int(endpoints) * driver.NumVerbs
	*all = slices.Grow((*all)[:0], n)[:n]
	clear(*all)
	left := *all
	for range used {
		skipped := r.Uvarint()
		if skipped >= uint64(len(left)) {
			r.Fail("a request ledger beyond the %d endpoints", endpoints)
			return
		}
		q := &left[skipped]
		for _, n := range [...]*uint64{&q.Sent, &q.Answered, &q.Timeout, &q.Error, &q.Refused, &q.Moved, &q.Ask} {
			*n = r.Uvarint()
		}
		q.InFlight = r.Varint()
		if *q == (Requests{}) {
			r.Fail("a request ledger that is written, but empty")
		}
		left = left[skipped+1:]
	}
}

func (r *reader) ledger() (l Ledger) {
	l.Due = r.Uvarint()
	for i := range l.Outcomes {
		l.Outcomes[i] = r.Uvarint()
	}
	l.InFlight = r.Varint()
	return l
}

func (r *reader) op(o *Op) {
	l := r.ledger()
	o.Due, o.Outcomes, o.InFlight = l.Due, l.Outcomes, l.InFlight
	for i := range o.Causes {
		o.Causes[i] = r.Uvarint()
	}
	o.In, o.Out = r.Uvarint(), r.Uvarint()
	for _, h := range o.hists() {
		r.hist(h)
	}
	n := int(r.Byte())
	for k := 1; k <= n && r.Err == nil; k++ {
		o.growAcks(k)
		r.hist(&o.Acks[k-1])
	}
	if len(o.acks()) != n {
		r.Fail("the last of %d acks is empty", n)
	}
	r.kinds(o)
	r.allBins(&o.Bins)
	r.allBins(&o.Turns)
	rare := r.set(3, "kinds of what few ops have")
	if rare&hasKeys != 0 {
		o.Keys.Ledger = r.ledger()
		r.allBins(&o.Keys.Bins)
		r.allBins(&o.Keys.Turns)
		if o.Keys.empty() {
			r.Fail("a ledger of keys that is written, but empty")
		}
	}
	if rare&hasGrowth != 0 {
		r.growth(o)
	}
	if rare&hasSplit != 0 {
		r.hist(&o.splits().Write)
		r.hist(&o.Split.Sync)
		if o.Split.empty() {
			r.Fail("parts of service times that are written, but empty")
		}
	}
}

// growth reads latencies by ordinal. The bins must be the narrowest that hold the last ordinal.
func (r *reader) growth(o *Op) {
	if o.Growth == nil {
		o.Growth = new(Growth)
	}
	g := o.Growth
	shift, n := r.Byte(), int(r.Byte())
	if shift > maxOrdinalShift || n == 0 || n > NumOrdinals || shift > 0 && n <= NumOrdinals/2 {
		r.Fail("%d bins of 2^%d ordinals, want the narrowest of at most %d", n, shift, NumOrdinals)
		return
	}
	g.Shift = shift
	for i := 0; i < n && r.Err == nil; i++ {
		b := g.bin(i)
		b.Failed = r.Uvarint()
		r.hist(&b.Answered)
	}
	if r.Err == nil && g.Bins[n-1].Ended() == 0 {
		r.Fail("the last of %d bins of ordinals is empty", n)
	}
}

// kinds reads the latencies of each kind.
func (r *reader) kinds(o *Op) {
	n := int(r.Byte())
	if n > MaxKinds {
		r.Fail("%d kinds, want at most %d", n, MaxKinds)
	}
	for k := 1; k <= n && r.Err == nil; k++ {
		of := o.kind(k)
		r.hist(&of.Service)
		r.hist(&of.Response)
	}
	if len(o.kinds()) != n {
		r.Fail("the last of %d kinds is empty", n)
	}
}

func (r *reader) allBins(all *[driver.NumOutcomes]*Bins) {
	present := r.set(driver.NumOutcomes, "outcomes")
	for i := range all {
		if present>>i&1 != 0 {
			r.take(binsBytes)
			r.bins(madeBins(all, driver.Outcome(i)))
		}
	}
}

func (r *reader) hist(h *hist.Hist) {
	if r.Err != nil {
		return
	}
	rest, err := h.Decode(r.Rest)
	if err != nil {
		r.Err = err
		return
	}
	r.Rest = rest
	r.take(h.Bytes())
}

// time reads bins that may be empty, into b unless that is nil.
func (r *reader) time(b *Bins) *Bins {
	shift := r.Byte()
	if shift == 0 { // empty bins, or after an error
		return b
	}
	if b == nil {
		b = new(Bins)
	}
	r.filled(b, shift)
	return b
}

// bins reads the bins of one outcome.
func (r *reader) bins(b *Bins) { r.filled(b, r.Byte()) }

// filled reads bins that are not empty, of width 2^shift. The width must be the finest that holds the last end.
func (r *reader) filled(b *Bins, shift uint8) {
	b.doubled = shift - minShift
	left := r.Uvarint()
	if shift < minShift || shift > maxShift || left == 0 {
		r.Fail("%d ends in bins of 2^%d ns, want some in 2^%d to 2^%d", left, shift, minShift, maxShift)
	}
	next := 0
	for left > 0 && r.Err == nil {
		switch skipped, n := r.Uvarint(), r.Uvarint(); {
		case skipped >= uint64(NumBins-next):
			r.Fail("a bin above the last of %d", NumBins)
		case n == 0 || n > left:
			r.Fail("a bin of %d ends, want 1 to %d", n, left)
		default:
			next += int(skipped)
			b.N[next] = n
			next++
			left -= n
		}
	}
	if shift > minShift && next <= NumBins/2 {
		r.Fail("bins of 2^%d ns, where half of that would do", shift)
	}
}
