package measure

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadgen/loadgen/pkg/driver"
)

// MostSamples is the most ops that Samples hold: with an error text for each, they fit into a snapshot of 16 MiB.
const MostSamples = 100_000

// maxSampleText is how many bytes of an error text are kept.
const maxSampleText = 80

// Unknown stands for a number of bytes that was not counted.
const Unknown = -1

// DrawnOp is one sampled op that has ended. Times are nanoseconds since 1970 on the coordinator's clock, due ≤ start ≤ end.
type DrawnOp struct {
	Due     int64 // when it was due
	Start   int64 // before the write that carried it
	End     int64 // after the read that completed it
	In, Out int64 // bytes, or Unknown
	Code    int   // the protocol's status, such as HTTP's, 1 to 65535; 0 for none
	Verb    driver.Verb
	Outcome driver.Outcome
	Error   string // printable, at most 80 bytes; "" if none is known

	rank uint64
}

// Samples is a fair sample of single ops of a load, in bounded memory. The zero value is empty: the identity of Merge. One goroutine at a time may
// use it.
//
// Each op that ends gets a rank, 64 random bits, and the ops with the smallest ranks are kept. Which ops those are depends neither on the order of
// the ops nor on how loops, workers and intervals divide them: the smallest ranks of all are among the smallest of each part. So Samples merge
// exactly, and every op has the same chance.
type Samples struct {
	most int
	ops  []DrawnOp
}

// Add adds ops sampled for a set of at most most.
func (s *Samples) Add(most int, ops []DrawnOp) {
	s.most = max(s.most, most)
	s.ops = append(s.ops, ops...)
	if len(s.ops) >= 2*s.most {
		s.sort()
	}
}

// Merge adds the ops of o, which it leaves alone.
func (s *Samples) Merge(o *Samples) { s.Add(o.most, o.ops) }

// Reset empties the set.
func (s *Samples) Reset() { *s = Samples{ops: s.ops[:0]} }

// Empty says whether the set holds no op.
func (s *Samples) Empty() bool { return len(s.ops) == 0 }

// sort orders the ops by rank and drops those beyond most.
func (s *Samples) sort() {
	slices.SortFunc(s.ops, func(a, b DrawnOp) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.Due, b.Due), cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End), cmp.Compare(a.Verb, b.Verb))
	})
	s.ops = s.ops[:min(len(s.ops), s.most)]
}

// Ops returns the kept ops, ordered by start.
func (s *Samples) Ops() []DrawnOp {
	s.sort()
	ops := slices.Clone(s.ops)
	slices.SortStableFunc(ops, func(a, b DrawnOp) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	return ops
}

// cleanText makes an error text from another process printable and cuts it to 80 bytes.
func cleanText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
	if len(text) <= maxSampleText {
		return text
	}
	end := maxSampleText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
