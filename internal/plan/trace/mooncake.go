package trace

import (
	"encoding/binary"
	"fmt"
)

// Mooncake is the form of a trace of chains: objects with timestamp, in ms, input_length, in tokens, and hash_ids, one for each block of 512 tokens.
// Traces of language models' caches are published in this form (Qin et al., Mooncake, FAST 2025). A chain's Record is a get whose Key holds the ids,
// 4 bytes each, little-endian.
const Mooncake = "mooncake"

const (
	blockTokens = 512
	mostBlocks  = 16384     // of a chain
	mostLine    = 512 << 10 // bytes: a chain takes 11 for each id
	mostAtOnce  = 1 << 20   // bytes of the ids of chains with the same time that are spread
)

// Fields of a line, by the numbers of the fields that a [Reader] knows.
const (
	tokensField = opField
	idsField    = keyField
)

var chainFields = []string{"input_length", "hash_ids", "timestamp", "size", "ttl"}

// Chains is what is known of all chains of a trace.
type Chains struct {
	Keys     int64 // of all chains together
	Longest  int   // keys of the longest
	Below    int64 // all ids are lower
	Together int64 // most chains with the same time

	at, same int64
}

// add counts a chain.
func (c *Chains) add(rec *Record) {
	n := len(rec.Key) / 4
	c.Keys, c.Longest = c.Keys+int64(n), max(c.Longest, n)
	for i := range n {
		c.Below = max(c.Below, int64(ID(rec.Key, i))+1)
	}
	if c.same++; rec.At != c.at || c.Keys == int64(n) {
		c.at, c.same = rec.At, 1
	}
	c.Together = max(c.Together, c.same)
}

// ID returns the i-th id of a chain.
func ID(key []byte, i int) uint32 { return binary.LittleEndian.Uint32(key[4*i:]) }

// chain reads the ids of a line.
func (t *Reader) chain(rec *Record) error {
	tokens, err := t.seconds(tokensField)
	if err != nil {
		return err
	}
	text, _ := t.lines.Get(idsField)
	if len(text) < 2 || text[0] != '[' {
		return t.lines.Fault(idsField, "want a list of numbers, such as [0, 462]")
	}
	t.ids = t.ids[:0]
	n, digits := uint64(0), 0
	for _, c := range text[1:] {
		switch {
		case '0' <= c && c <= '9' && n < 1<<32:
			n, digits = n*10+uint64(c-'0'), digits+1
		case c == ' ':
		case (c == ',' || c == ']') && digits > 0 && n < 1<<32:
			t.ids = binary.LittleEndian.AppendUint32(t.ids, uint32(n))
			n, digits = 0, 0
		default:
			return t.lines.Fault(idsField, fmt.Sprintf("the id after %d others is no whole number below 4294967296", len(t.ids)/4))
		}
	}
	switch ids, want := int64(len(t.ids)/4), (tokens/1e9+blockTokens-1)/blockTokens; {
	case ids > mostBlocks:
		return t.lines.Fault(idsField, fmt.Sprintf("%d ids, and a chain has at most %d", ids, mostBlocks))
	case ids != want || tokens%1e9 != 0:
		return t.lines.Fault(idsField, fmt.Sprintf("%d ids, and %d tokens in blocks of %d take %d", ids, tokens/1e9, blockTokens, want))
	}
	rec.Key = t.ids
	return nil
}

// spread holds the chains of one time.
type spread struct {
	on    bool
	recs  []Record
	ids   []byte // of those that are not given out yet, and before them of those that are
	next  int    // the first chain that is not given out yet, and
	from  int    // where its ids begin
	gap   int64  // from this time to the next
	ahead Record // the first chain of the next time
	end   error  // why there is none
}

// Spread makes chains of the same time due at even distances, up to the next time; those of the last time keep the gap before it. No more are spread
// together than have a MiB of ids.
func (t *Reader) Spread() { t.spread.on = true }

// spreads is Next for chains that are spread.
func (t *Reader) spreads(rec *Record) error {
	s := &t.spread
	if s.next == len(s.recs) && !t.gather() {
		return s.end
	}
	*rec = s.recs[s.next]
	rec.At += s.gap * int64(s.next) / int64(len(s.recs))
	rec.Key = s.ids[s.from : s.from+len(rec.Key)]
	s.next, s.from = s.next+1, s.from+len(rec.Key)
	return nil
}

// gather reads the chains of the next time; false if there are no more.
func (t *Reader) gather() bool {
	s := &t.spread
	s.recs, s.ids, s.next, s.from = s.recs[:0], s.ids[:0], 0, 0
	if s.ahead.Key == nil {
		_, s.end = t.read(&s.ahead)
	}
	for s.end == nil && (len(s.recs) == 0 || s.ahead.At == s.recs[0].At && len(s.ids) < mostAtOnce) {
		s.recs, s.ids = append(s.recs, s.ahead), append(s.ids, s.ahead.Key...)
		_, s.end = t.read(&s.ahead)
	}
	if s.end == nil {
		s.gap = s.ahead.At - s.recs[0].At
	}
	return len(s.recs) > 0
}
