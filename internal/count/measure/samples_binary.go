package measure

import (
	"encoding/binary"
	"math"

	"github.com/loadgen/loadgen/internal/base/varint"
	"github.com/loadgen/loadgen/pkg/driver"
)

// AppendBinary appends the binary form of the set.
func (s *Samples) AppendBinary(b []byte) []byte {
	s.sort()
	b = binary.AppendUvarint(b, uint64(s.most))
	b = binary.AppendUvarint(b, uint64(len(s.ops)))
	for i := range s.ops {
		op := &s.ops[i]
		b = binary.LittleEndian.AppendUint64(b, op.rank)
		b = binary.AppendVarint(b, op.Due)
		b = binary.AppendUvarint(b, uint64(op.Start-op.Due))
		b = binary.AppendUvarint(b, uint64(op.End-op.Start))
		b = append(b, byte(op.Verb), byte(op.Outcome))
		b = binary.AppendUvarint(b, uint64(op.In+1))
		b = binary.AppendUvarint(b, uint64(op.Out+1))
		b = binary.AppendUvarint(b, uint64(op.Code))
		b = append(b, byte(len(op.Error)))
		b = append(b, op.Error...)
	}
	return b
}

// leastBytes is the fewest bytes that an op takes in the binary form.
const leastBytes = 8 + 3 + 2 + 3 + 1

// Decode replaces s by the set at the front of r, which is not empty. It accepts exactly what AppendBinary writes, and allocates no more than r has
// bytes for. After an error, which r holds, s is empty.
func (s *Samples) Decode(r *varint.Reader) {
	s.Reset()
	most, count := r.Uvarint(), r.Uvarint()
	switch {
	case most > MostSamples || count == 0 || count > most:
		r.Fail("%d samples of at most %d, want some of at most %d", count, most, MostSamples)
	case count > uint64(len(r.Rest)/leastBytes):
		r.Fail("it ends early: %d samples in %d bytes", count, len(r.Rest))
	}
	s.most = int(most)
	last := uint64(0)
	for i := uint64(0); i < count && r.Err == nil; i++ {
		op := decodeOp(r)
		if op.rank < last {
			r.Fail("samples out of order")
		}
		last = op.rank
		s.ops = append(s.ops, op)
	}
	if r.Err != nil {
		s.Reset()
	}
}

func decodeOp(r *varint.Reader) (op DrawnOp) {
	if b := r.Take(8); r.Err == nil {
		op.rank = binary.LittleEndian.Uint64(b)
	}
	op.Due = r.Varint()
	op.Start = after(r, op.Due)
	op.End = after(r, op.Start)
	op.Verb, op.Outcome = driver.Verb(r.Byte()), driver.Outcome(r.Byte())
	in, out, code := r.Uvarint(), r.Uvarint(), r.Uvarint()
	text := string(r.Take(int(r.Byte())))
	if int(op.Verb) >= driver.NumVerbs || int(op.Outcome) >= driver.NumOutcomes || op.Outcome == driver.Shed {
		r.Fail("a sample of verb %d that ended as %d", op.Verb, op.Outcome)
	}
	if in > math.MaxInt64 || out > math.MaxInt64 || code > math.MaxUint16 {
		r.Fail("a sample of %d and %d bytes with the code %d", in, out, code)
	}
	if text != cleanText(text) {
		r.Fail("an error of a sample that is too long or not printable")
	}
	op.In, op.Out, op.Code, op.Error = int64(in)-1, int64(out)-1, int(code), text
	return op
}

// after reads a time, encoded as the nanoseconds after from.
func after(r *varint.Reader, from int64) int64 {
	to := int64(uint64(from) + r.Uvarint())
	if to < from {
		r.Fail("a sample that ends beyond 2^63 ns")
	}
	return to
}
