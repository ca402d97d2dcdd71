package measure

import (
	"iter"
	"strconv"
	"unicode"
	"unicode/utf8"
)

const (
	maxTexts = 8
	maxText  = 120 // bytes
)

// Errors counts error texts: the total of all, and each of the 8 texts that come first in byte order. Which texts are kept does
// not depend on the order in which they came: one that is among the first 8 of all is among the first 8 of every part it occurs
// in, so it was never dropped and its count is exact. The zero value is empty.
//
// A text is kept with control characters, other unprintable ones and invalid UTF-8 escaped as in Go source, cut at 120 bytes
// between characters; texts that agree so far are one.
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

// Add counts one occurrence of a text. It keeps nothing of msg and allocates nothing.
func (e *Errors) Add(msg []byte) {
	t := text{n: 1}
	t.size = uint8(len(appendPrintable(t.b[:0], msg)))
	e.total++
	e.add(&t)
}

// add counts a text if it is among the first, and drops the last for it if need be.
func (e *Errors) add(t *text) {
	i := 0
	for i < e.kept && string(e.texts[i].bytes()) < string(t.bytes()) {
		i++
	}
	switch {
	case i < e.kept && string(e.texts[i].bytes()) == string(t.bytes()):
		e.texts[i].n += t.n
	case i < maxTexts:
		e.kept = min(e.kept+1, maxTexts)
		copy(e.texts[i+1:e.kept], e.texts[i:])
		e.texts[i] = *t
	}
}

// Merge adds the texts of o.
func (e *Errors) Merge(o *Errors) {
	e.total += o.total
	for i := range o.kept {
		e.add(&o.texts[i])
	}
}

// Total returns how many errors were added, those whose text was not kept among them.
func (e *Errors) Total() uint64 { return e.total }

// All returns the kept texts in byte order, each with the number of its occurrences.
func (e *Errors) All() iter.Seq2[string, uint64] {
	return func(yield func(text string, n uint64) bool) {
		for i := range e.kept {
			if t := &e.texts[i]; !yield(string(t.bytes()), t.n) {
				return
			}
		}
	}
}

// appendPrintable appends msg, escaped, as far as whole characters fit into dst's capacity.
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
