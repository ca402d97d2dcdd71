package engine

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestQueueIsAList pushes, takes and drops entries, and moves them to the front and back. The queue behaves as a list, and owes the sum of what its
// entries owe.
func TestQueueIsAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []pending
		id, dead := uint32(0), 0
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				id++
				p := pending{id: id, n: rapid.Int32Range(1, 5).Draw(t, "owed")}
				q.push(p)
				want = append(want, p)
			},
			"take": func(t *rapid.T) {
				if len(want) == 0 {
					return
				}
				n := rapid.Int32Range(1, want[0].n).Draw(t, "n")
				q.take(int(n))
				want[0].n -= n
				want[0].at += int16(n)
				if want[0].n == 0 {
					want = want[1:]
					dead = max(0, dead-1)
				}
			},
			"pop": func(*rapid.T) {
				if len(want) == 0 {
					return
				}
				require.Equal(t, want[0], q.pop())
				want = want[1:]
				dead = max(0, dead-1)
			},
			"drop": func(*rapid.T) {
				if len(want) == 0 {
					return
				}
				require.Equal(t, want[len(want)-1], q.drop())
				want = want[:len(want)-1]
			},
			"time out": func(*rapid.T) {
				if dead < len(want) {
					q.dead++
					dead++
				}
			},
			"to the front": func(t *rapid.T) {
				if len(want) == 0 {
					return
				}
				i := rapid.IntRange(0, len(want)-1).Draw(t, "i")
				q.front(i)
				moved := slices.Insert(slices.Delete(slices.Clone(want), i, i+1), 0, want[i])
				for at := range moved {
					require.Equal(t, moved[at], *q.at(at))
				}
				if rapid.Bool().Draw(t, "back") {
					q.back(i)
					return
				}
				q.take(int(want[i].n))
				want, dead = slices.Delete(want, i, i+1), max(0, dead-1)
			},
			"": func(*rapid.T) {
				require.Equal(t, len(want), q.len())
				owed := 0
				for i := range want {
					require.Equal(t, want[i], *q.at(i))
					owed += int(want[i].n)
				}
				require.Equal(t, owed, q.owed)
				require.Equal(t, dead, q.dead)
				require.LessOrEqual(t, len(q.ring), max(4, 2*int(id)), "it grows as needed")
			},
		})
	})
}

// TestHeapsAreInOrder pops in order what was pushed or heapified.
func TestHeapsAreInOrder(t *testing.T) {
	less := cmp.Less[int]
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOf(rapid.IntRange(0, 50)).Draw(t, "values")
		begun := rapid.IntRange(0, len(values)).Draw(t, "of which a heap is made")
		h := slices.Clone(values[:begun])
		heapify(h, less)
		for _, v := range values[begun:] {
			h = push(h, v, less)
			for i := 1; i < len(h); i++ {
				require.LessOrEqual(t, h[(i-1)/2], h[i], "%v", h)
			}
		}
		var got []int
		for len(h) > 0 {
			require.Equal(t, slices.Min(h), h[0])
			got = append(got, h[0])
			h = pop(h, less)
		}
		slices.Sort(values)
		require.True(t, slices.Equal(values, got))
	})
}

// TestHeapOfTimes makes the first of a heap later, as a loop's timers do.
func TestHeapOfTimes(t *testing.T) {
	less := cmp.Less[int]
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 20).Draw(t, "values")
		heapify(h, less)
		for range 10 {
			h[0] += rapid.IntRange(0, 30).Draw(t, "later")
			sift(h, 0, less)
			require.Equal(t, slices.Min(h), h[0])
		}
	})
}
