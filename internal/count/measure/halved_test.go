package measure

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// add joins two lists, and leaves the second empty.
func add(into, from *[]int) {
	*into = append(*into, *from...)
	*from = nil
}

// TestFold joins neighbours without losing, doubling or misplacing any.
func TestFold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, size := rapid.IntRange(1, 9).Draw(t, "n"), rapid.IntRange(0, 40).Draw(t, "size")
		var want [][]int
		cells := make([][]int, size)
		for i := range cells {
			cells[i] = []int{i}
			if i%n == 0 {
				want = append(want, nil)
			}
			want[i/n] = append(want[i/n], i)
		}
		folded := Fold(cells, n, add)
		require.ElementsMatch(t, want, folded)
		require.True(t, slices.EqualFunc(want, folded, slices.Equal[[]int]), "in order")
		for _, left := range cells[len(folded):] {
			require.Empty(t, left, "nothing is left behind")
		}
	})
}

// TestHalvedSeries: all cells hold equally many entries, also later ones, whether the owner makes cells when they begin, when they are full, or keeps
// the first entry of each.
func TestHalvedSeries(t *testing.T) {
	const most = 8
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 500).Draw(t, "size")
		each := 1
		for size > most*each {
			each *= 2
		}
		var want [][]int
		for i := range size {
			if i%each == 0 {
				want = append(want, nil)
			}
			want[i/each] = append(want[i/each], i)
		}
		var begun, full Halved[[]int]
		var first Halved[int]
		var last []int
		for i := range size {
			if begun.Opens() {
				if len(begun.Cells) == most {
					begun.Halve(add)
				}
				begun.Cells = append(begun.Cells, nil)
			}
			begun.Cells[len(begun.Cells)-1] = append(begun.Cells[len(begun.Cells)-1], i)
			begun.Count()

			if full.Opens() {
				if len(full.Cells) == most {
					full.Halve(add)
				}
				last = nil
			}
			last = append(last, i)
			if full.Count(); full.Opens() {
				full.Cells = append(full.Cells, last)
			}

			if first.Opens() {
				if len(first.Cells) == most {
					first.Halve(func(_, from *int) { *from = 0 })
				}
				if first.Opens() {
					first.Cells = append(first.Cells, i)
				}
			}
			first.Count()
		}
		require.Equal(t, want, begun.Cells)
		if size%each != 0 {
			want = want[:len(want)-1]
		}
		require.Len(t, full.Cells, len(want))
		for i := range want {
			require.Equal(t, want[i], full.Cells[i])
		}
		for i, at := range first.Cells {
			require.Equal(t, i*each, at)
		}
	})
}
