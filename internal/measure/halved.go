package measure

// Halved is a series that stays short however much comes. A cell is of as many entries as every other, which came one after another: of one each
// at first. When there are as many cells as there may be, its owner calls Halve, and from then on a cell is of twice as many.
//
// The owner keeps the cells, and makes one when an entry Opens it or when it is full, which it is once the next entry would open another:
//
//	if h.Opens() { … }
//	h.Count()
//	if h.Opens() { h.Cells = append(h.Cells, …) }
//
// The zero Halved has no cells.
type Halved[T any] struct {
	Cells []T

	shift uint8 // a cell is of 2^shift entries
	came  uint64
}

// Opens says whether the entry that comes next is the first of a cell.
func (h *Halved[T]) Opens() bool { return h.came&(1<<h.shift-1) == 0 }

// Count counts an entry that has come.
func (h *Halved[T]) Count() { h.came++ }

// Halve joins every two neighbours, as Fold does. There has to be an even number of cells, and the next entry opens another.
func (h *Halved[T]) Halve(join func(into, from *T)) {
	h.Cells = Fold(h.Cells, 2, join)
	h.shift++
}

// Fold joins n ≥ 1 neighbours each, in place, and returns the cells that are left; the last of them may be of fewer. join adds from, the later one,
// to into, and leaves nothing in from: what it leaves stays behind the cells that are returned, to be used again.
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

// narrowest returns the first shift from least on with which a position falls into one of so many cells, of 2^shift positions each.
func narrowest(least uint8, position uint64, cells int) uint8 {
	shift := least
	for position>>shift >= uint64(cells) {
		shift++
	}
	return shift
}
