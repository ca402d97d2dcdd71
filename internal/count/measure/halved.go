package measure

// Halved is a series of bounded length. Every cell holds the same number of consecutive entries, at first one. When the number of cells reaches its
// limit, the owner calls Halve, and from then on each cell holds twice as many.
//
// The owner keeps the cells. It creates a cell either when an entry opens it, or when the last cell is full, that is, once the next entry would open
// another:
//
//	if h.Opens() { … }
//	h.Count()
//	if h.Opens() { h.Cells = append(h.Cells, …) }
//
// The zero Halved has no cells.
type Halved[T any] struct {
	Cells []T

	shift uint8 // a cell holds 2^shift entries
	came  uint64
}

// Opens says whether the next entry is the first of a cell.
func (h *Halved[T]) Opens() bool { return h.came&(1<<h.shift-1) == 0 }

// Count counts one entry.
func (h *Halved[T]) Count() { h.came++ }

// Halve joins each pair of neighbours, as Fold does. The number of cells must be even, and the next entry must open another.
func (h *Halved[T]) Halve(join func(into, from *T)) {
	h.Cells = Fold(h.Cells, 2, join)
	h.shift++
}

// Fold joins each n ≥ 1 neighbours in place and returns the remaining cells; the last may have fewer. join adds from, the later one, to into, and
// empties from. The emptied cells stay behind the returned ones, for reuse.
func Fold[T any](cells []T, n int, join func(into, from *T)) []T {
	left := 0
	for first := 0; first < len(cells); first += n {
		cells[left], cells[first] = cells[first], cells[left]
		for i := first + 1; i < min(first+n, len(cells)); i++ {
			join(&cells[left], &cells[i])
		}
		left++
	}
	return cells[:left]
}

// narrowest returns the smallest shift ≥ least for which position falls into one of that many cells of 2^shift positions each.
func narrowest(least uint8, position uint64, cells int) uint8 {
	shift := least
	for position>>shift >= uint64(cells) {
		shift++
	}
	return shift
}
