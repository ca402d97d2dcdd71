package measure

import "time"

// NumBins is the number of time bins of an outcome.
const NumBins = 1024

const (
	minShift = 16 // the finest bin is 2^16 ns = 65.5 µs wide; all 1,024 cover 67 ms
	maxShift = 53 // 1,024 bins of 2^53 ns hold every int64
)

// Bins counts ends of ops over time: bin i covers [i<<shift, (i+1)<<shift) nanoseconds from the step's origin, where shift is [Bins.Shift]. When an end
// falls beyond the last bin, neighbours are joined and the width doubles. So the width depends only on the latest end, whatever the order of ends and
// of merges. The zero value is empty and ready; a nil *Bins may be read.
type Bins struct {
	doubled uint8 // how often the width has doubled
	N       [NumBins]uint64
}

// Shift returns the width in use, as a power of two: 16 or more.
func (b *Bins) Shift() uint8 {
	if b == nil {
		return minShift
	}
	return minShift + b.doubled
}

// AddN counts n ≥ 1 ends at offset nanoseconds from the step's origin; ends before the origin count as at the origin.
func (b *Bins) AddN(offset int64, n uint64) { *b.at(offset) += n }

// at returns the bin of an end. It is small enough to be inlined.
func (b *Bins) at(offset int64) *uint64 {
	if i := uint64(offset) >> ((minShift + b.doubled) & 63); i < NumBins {
		return &b.N[i]
	}
	return b.reach(offset)
}

// reach returns the bin of an end that is before the origin, or beyond the last bin.
func (b *Bins) reach(offset int64) *uint64 {
	offset = max(offset, 0)
	b.coarsen(narrowest(b.Shift(), uint64(offset), NumBins))
	return &b.N[offset>>b.Shift()]
}

// spread adds n ≥ 1 for each nanosecond in [from, to), which is not empty. The result does not depend on how a stretch of time is divided between
// calls.
func (b *Bins) spread(from, to int64, n uint64) {
	from, to = max(from, 0), max(to, 1)
	b.AddN(to-1, n)
	for to--; from < to; {
		end := min(to, (from>>b.Shift()+1)<<b.Shift())
		b.N[from>>b.Shift()] += n * uint64(end-from)
		from = end
	}
}

// Merge adds the ends of o.
func (b *Bins) Merge(o *Bins) {
	b.coarsen(o.Shift())
	by := b.Shift() - o.Shift()
	for i, n := range &o.N {
		b.N[i>>by] += n
	}
}

// Between returns how many ends fell into the bins that lie wholly inside [from, to), in nanoseconds from the step's origin, and the seconds that
// those bins cover: 0 if there is no such bin. Time after the last end counts as empty bins.
func (b *Bins) Between(from, to int64) (n uint64, seconds float64) {
	shift := b.Shift()
	width := int64(1) << shift
	first := max(from, 0) >> shift
	if first<<shift < from {
		first++
	}
	end := max(to, 0) >> shift
	if first >= end {
		return 0, 0
	}
	if b != nil {
		for _, c := range b.N[min(first, NumBins):min(end, NumBins)] {
			n += c
		}
	}
	return n, float64(end-first) * time.Duration(width).Seconds()
}

// Total returns the number of ends.
func (b *Bins) Total() (n uint64) {
	if b == nil {
		return 0
	}
	for _, c := range &b.N { // ranging over the array itself would copy it
		n += c
	}
	return n
}

// coarsen joins neighbours until bins are at least 2^shift ns wide.
func (b *Bins) coarsen(shift uint8) {
	if shift <= b.Shift() {
		return
	}
	Fold(b.N[:], 1<<(shift-b.Shift()), func(into, from *uint64) {
		*into += *from
		*from = 0
	})
	b.doubled = shift - minShift
}
