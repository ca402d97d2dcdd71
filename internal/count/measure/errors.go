package measure

import (
	"bytes"
	"iter"
	"strconv"
	"unicode"
	"unicode/utf8"
)

const (
	maxTexts = 32
	maxText  = 120 // bytes
)

// Errors counts error texts: the total of all, and the most frequent of them. The zero value is empty.
//
// Up to 32 different texts are all kept, with exact counts, whatever their order and however they were partitioned. Beyond that Errors is a summary
// after Misra and Gries (Finding repeated elements, 1982), merged as Agarwal et al. do (Mergeable summaries, 2012): a count may be too low, never too
// high, by at most 1/33 of the total that the kept counts do not account for. A text that occurred more often than that is kept. Which of the rarer
// texts are kept, and their counts, then depends on the partition.
//
// Control and other unprintable characters and invalid UTF-8 are escaped as in Go source, and the text is cut at 120 bytes between characters. Texts
// that agree up to there are one.
type Errors struct {
	total uint64
	kept  int
	texts [maxTexts]text // ascending
}

// text is held in place, so that adding one never allocates.
type text struct {
	n    uint64
	size uint8
	b    [maxText]byte
}

func (t *text) bytes() []byte { return t.b[:t.size] }

// Add counts one occurrence of a text. It does not keep msg and allocates nothing.
func (e *Errors) Add(msg []byte) {
	t := text{n: 1}
	t.size = uint8(len(appendPrintable(t.b[:0], msg)))
	e.total++
	e.add(&t)
}

// add counts a text. If there is no room for another, every count is lowered by the smallest.
func (e *Errors) add(t *text) {
	i, found := e.find(t)
	switch {
	case found:
		e.texts[i].n += t.n
		return
	case e.kept == maxTexts:
		least := t.n
		for j := range e.texts {
			least = min(least, e.texts[j].n)
		}
		e.lower(least)
		if t.n == least {
			return
		}
		e.insert(t, t.n-least) // lowering the counts dropped at least one text
	default:
		e.insert(t, t.n)
	}
}

// find returns where a text is, or where it belongs.
func (e *Errors) find(t *text) (at int, found bool) {
	from, to := 0, e.kept
	for from < to {
		at = (from + to) / 2
		switch bytes.Compare(e.texts[at].bytes(), t.bytes()) {
		case 0:
			return at, true
		case -1:
			from = at + 1
		default:
			to = at
		}
	}
	return from, false
}

// insert adds a text that is not there yet, with count n.
func (e *Errors) insert(t *text, n uint64) {
	at, _ := e.find(t)
	e.kept++
	copy(e.texts[at+1:e.kept], e.texts[at:])
	e.texts[at] = *t
	e.texts[at].n = n
}

// lower takes n from every count and drops the texts that have none left.
func (e *Errors) lower(n uint64) {
	kept := 0
	for i := range e.kept {
		if t := &e.texts[i]; t.n > n {
			t.n -= n
			if kept < i {
				e.texts[kept] = *t
			}
			kept++
		}
	}
	e.kept = kept
}

// Merge adds the texts of o.
func (e *Errors) Merge(o *Errors) {
	e.total += o.total
	for i := range o.kept {
		e.add(&o.texts[i])
	}
}

// Total returns the number of errors added, including those whose text was not kept.
func (e *Errors) Total() uint64 { return e.total }

// All returns the kept texts in byte order, each with its count.
func (e *Errors) All() iter.Seq2[string, uint64] {
	return func(yield func(text string, n uint64) bool) {
		for i := range e.kept {
			if t := &e.texts[i]; !yield(string(t.bytes()), t.n) {
				return
			}
		}
	}
}

// appendPrintable appends msg, escaped, up to the last whole character that fits into dst's capacity.
func appendPrintable(dst, msg []byte) []byte {
	for len(msg) > 0 {
		r, n := utf8.DecodeRune(msg)
		var buf [12]byte
		c := msg[:n]
		switch {
		case r == utf8.RuneError && n == 1:
			c = append(append(buf[:0], '\\', 'x'), hexDigits[c[0]>>4], hexDigits[c[0]&15])
		case !unicode.IsPrint(r):
			quoted := strconv.AppendQuoteRune(buf[:0], r)
			c = quoted[1 : len(quoted)-1]
		}
		if len(dst)+len(c) > cap(dst) {
			break
		}
		dst = append(dst, c...)
		msg = msg[n:]
	}
	return dst
}

const hexDigits = "0123456789abcdef"
