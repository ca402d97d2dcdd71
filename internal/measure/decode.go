package measure

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// Decode replaces s by the snapshot at the front of b and returns what follows it. It accepts exactly what AppendBinary writes;
// whether the ledgers balance is for CheckValid to say. It keeps nothing of b, reuses the memory of s and allocates no more than
// the step's latencies can fill: 57 KiB for each histogram, whatever b says. After an error s is empty.
func (s *Snapshot) Decode(b []byte) (rest []byte, err error) {
	r := reader{b: b}
	s.decode(&r)
	if r.err != nil {
		s.Step, s.SeqFirst, s.SeqLast, s.From, s.To, s.Final = 0, 0, 0, 0, 0, false
		s.Delta.empty()
		s.Running.empty()
		return nil, fmt.Errorf("decode snapshot: %w", r.err)
	}
	return r.b, nil
}

// Decode replaces c by the counters at the front of b, as [Snapshot.Decode] does.
func (c *Counters) Decode(b []byte) (rest []byte, err error) {
	r := reader{b: b}
	c.decode(&r)
	if r.err != nil {
		c.empty()
		return nil, fmt.Errorf("decode counters: %w", r.err)
	}
	return r.b, nil
}

// Decode replaces t by the totals at the front of b, as [Snapshot.Decode] does.
func (t *Totals) Decode(b []byte) (rest []byte, err error) {
	r := reader{b: b}
	t.decode(&r)
	if r.err != nil {
		t.empty()
		return nil, fmt.Errorf("decode totals: %w", r.err)
	}
	return r.b, nil
}

// empty is Reset, and forgets the origin and the number of endpoints.
func (t *Totals) empty() {
	t.Reset()
	t.Origin = 0
	t.Requests = t.Requests[:0]
}

func (c *Counters) empty() {
	c.Reset()
	c.Requests = c.Requests[:0]
}

func (s *Snapshot) decode(r *reader) {
	r.version()
	step := r.uvarint()
	if step > math.MaxInt32 {
		r.fail("step %d", step)
	}
	s.Step = int(step)
	s.SeqFirst = r.uvarint()
	s.SeqLast = s.SeqFirst + r.uvarint()
	if s.SeqLast < s.SeqFirst {
		r.fail("sequence numbers above 2^64 − 1")
	}
	s.From = r.varint()
	s.To = int64(uint64(s.From) + r.uvarint())
	if s.To < s.From {
		r.fail("an interval to beyond 2^63 ns")
	}
	final := r.byte()
	if final > 1 {
		r.fail("final is %d, want 0 or 1", final)
	}
	s.Final = final == 1
	s.Running.decode(r)
	s.Delta.decode(r)
}

func (c *Counters) decode(r *reader) {
	c.empty()
	r.version()
	present := r.set(driver.NumVerbs, "verbs")
	for v := range c.Ops {
		if present>>v&1 == 0 {
			continue
		}
		c.Ops[v] = r.ledger()
		if c.Ops[v] == (Ledger{}) {
			r.fail("%s: written, but empty", driver.Verb(v))
		}
	}
	r.requests(&c.Requests)
}

func (t *Totals) decode(r *reader) {
	t.empty()
	r.version()
	t.Origin = r.varint()
	if b := r.take(8); r.err == nil {
		t.Digest = binary.LittleEndian.Uint64(b)
	}
	for _, n := range [...]*uint64{&t.Reconnects, &t.LateReplies, &t.Foreign, &t.Stalls} {
		*n = r.uvarint()
	}
	t.MaxStall = r.varint()
	r.span(&t.Span)
	r.errors(&t.Errors)
	r.requests(&t.Requests)
	present := r.set(driver.NumVerbs, "verbs")
	for v := range t.Ops {
		if present>>v&1 == 0 || r.err != nil {
			continue
		}
		o := t.of(driver.Verb(v))
		r.op(o)
		switch {
		case r.err != nil:
			r.err = fmt.Errorf("%s: %w", driver.Verb(v), r.err)
		case o.empty():
			r.fail("%s: written, but empty", driver.Verb(v))
		}
	}
	t.decodeScenarios(r)
}

func (t *Totals) decodeScenarios(r *reader) {
	present := r.uvarint()
	if present>>MaxScenarios != 0 {
		r.fail("a set %#x of %d scenarios", present, MaxScenarios)
	}
	for i := 0; present>>i != 0 && r.err == nil; i++ {
		if present>>i&1 == 0 {
			continue
		}
		o := t.scenario(i)
		r.op(o)
		switch {
		case r.err != nil:
			r.err = fmt.Errorf("%s: %w", scenarioName(i), r.err)
		case o.empty():
			r.fail("%s: written, but empty", scenarioName(i))
		}
	}
}

// reader takes a binary form apart from the front of b. After the first error everything it returns is 0.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) take(n int) []byte {
	if r.err != nil || len(r.b) < n {
		r.fail("it ends early")
		return nil
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.take(1); r.err == nil {
		return b[0]
	}
	return 0
}

func (r *reader) version() {
	if v := r.byte(); v != version {
		r.fail("version %d, want %d", v, version)
	}
}

// set reads a byte that has a bit for each of n things.
func (r *reader) set(n int, of string) byte {
	s := r.byte()
	if int(s)>>n != 0 {
		r.fail("a set %#x of %d %s", s, n, of)
		return 0
	}
	return s
}

// uvarint reads a varint and refuses one that is longer than need be.
func (r *reader) uvarint() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b)
	switch {
	case n == 0:
		r.fail("it ends early")
		return 0
	case n < 0:
		r.fail("a number above 2^64 − 1")
		return 0
	case n > 1 && r.b[n-1] == 0:
		r.fail("a number longer than need be")
		return 0
	}
	r.b = r.b[n:]
	return v
}

// varint reads a signed number: 0, −1, 1, −2, … as 0, 1, 2, 3, …
func (r *reader) varint() int64 {
	u := r.uvarint()
	return int64(u>>1) ^ -int64(u&1)
}

func (r *reader) span(s *Span) {
	if s.Sessions = r.uvarint(); s.Sessions == 0 {
		return
	}
	for _, at := range [...]*int64{&s.First, &s.LastFirst, &s.FirstLast, &s.Last} {
		*at = r.varint()
	}
}

func (r *reader) errors(e *Errors) {
	e.total = r.uvarint()
	kept := int(r.byte())
	if kept > maxTexts {
		r.fail("%d error texts, want at most %d", kept, maxTexts)
		return
	}
	left := e.total
	for e.kept < kept {
		t := &e.texts[e.kept]
		b := r.take(int(r.byte()))
		t.n = r.uvarint()
		switch {
		case r.err != nil:
			return
		case len(b) > maxText || !bytes.Equal(appendPrintable(t.b[:0], b), b):
			r.fail("an error text of %d bytes that is too long or not escaped", len(b))
			return
		case t.n == 0 || t.n > left:
			r.fail("an error text that occurred %d times, want 1 to %d", t.n, left)
			return
		}
		t.size = uint8(len(b))
		if e.kept > 0 && bytes.Compare(e.texts[e.kept-1].bytes(), b) >= 0 {
			r.fail("error texts out of order")
			return
		}
		left -= t.n
		e.kept++
	}
	if left > 0 && kept < maxTexts {
		r.fail("%d errors without a text", left)
	}
}

func (r *reader) requests(all *[]Requests) {
	endpoints, used := r.uvarint(), r.uvarint()
	if endpoints > maxEndpoints || used > endpoints*uint64(driver.NumVerbs) {
		r.fail("%d request ledgers of %d endpoints, want at most %d of %d",
			used, endpoints, endpoints*uint64(driver.NumVerbs), maxEndpoints)
	}
	if r.err != nil {
		return
	}
	n := int(endpoints) * driver.NumVerbs
	*all = slices.Grow((*all)[:0], n)[:n]
	clear(*all)
	left := *all
	for range used {
		skipped := r.uvarint()
		if skipped >= uint64(len(left)) {
			r.fail("a request ledger beyond the %d endpoints", endpoints)
			return
		}
		q := &left[skipped]
		for _, n := range [...]*uint64{&q.Sent, &q.Answered, &q.Timeout, &q.Error, &q.Refused, &q.Moved, &q.Ask} {
			*n = r.uvarint()
		}
		q.InFlight = r.varint()
		if *q == (Requests{}) {
			r.fail("a request ledger that is written, but empty")
			return
		}
		left = left[skipped+1:]
	}
}

func (r *reader) ledger() (l Ledger) {
	l.Due = r.uvarint()
	for i := range l.Outcomes {
		l.Outcomes[i] = r.uvarint()
	}
	l.InFlight = r.varint()
	return l
}

func (r *reader) op(o *Op) {
	l := r.ledger()
	o.Due, o.Outcomes, o.InFlight = l.Due, l.Outcomes, l.InFlight
	for i := range o.Causes {
		o.Causes[i] = r.uvarint()
	}
	o.In, o.Out = r.uvarint(), r.uvarint()
	for _, h := range o.hists() {
		r.hist(h)
	}
	n := int(r.byte())
	for k := 1; k <= n && r.err == nil; k++ {
		o.growAcks(k)
		r.hist(&o.Acks[k-1])
	}
	if r.err == nil && len(o.acks()) != n {
		r.fail("the last of %d acks is empty", n)
	}
	r.allBins(&o.Bins)
	if r.set(1, "ledgers of keys") == 0 {
		return
	}
	o.Keys.Ledger = r.ledger()
	r.allBins(&o.Keys.Bins)
	if r.err == nil && o.Keys.empty() {
		r.fail("a ledger of keys that is written, but empty")
	}
}

func (r *reader) allBins(all *[driver.NumOutcomes]*Bins) {
	present := r.set(driver.NumOutcomes, "outcomes")
	for i := range all {
		if present>>i&1 != 0 {
			r.bins(madeBins(all, driver.Outcome(i)))
		}
	}
}

func (r *reader) hist(h *hist.Hist) {
	if r.err != nil {
		return
	}
	rest, err := h.Decode(r.b)
	if err != nil {
		r.err = err
		return
	}
	r.b = rest
}

// bins reads the bins of one outcome. The width must be the finest that holds the last end.
func (r *reader) bins(b *Bins) {
	b.Shift = r.byte()
	left := r.uvarint()
	if r.err != nil {
		return
	}
	if b.Shift < minShift || b.Shift > maxShift || left == 0 {
		r.fail("%d ends in bins of 2^%d ns, want some in 2^%d to 2^%d", left, b.Shift, minShift, maxShift)
		return
	}
	next := 0
	for left > 0 {
		skipped, n := r.uvarint(), r.uvarint()
		switch {
		case r.err != nil:
			return
		case skipped >= uint64(NumBins-next):
			r.fail("a bin above the last of %d", NumBins)
			return
		case n == 0 || n > left:
			r.fail("a bin of %d ends, want 1 to %d", n, left)
			return
		}
		next += int(skipped)
		b.N[next] = n
		next++
		left -= n
	}
	if b.Shift > minShift && next <= NumBins/2 {
		r.fail("bins of 2^%d ns, where half of that would do", b.Shift)
	}
}
