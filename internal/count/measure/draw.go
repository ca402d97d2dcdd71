package measure

import (
	"math"
	"math/rand/v2"
)

// Draw samples ops, for Samples. One goroutine at a time may use it.
//
// It draws no rank for an op that would not be kept: once it is full, the number of ops to skip follows a geometric distribution (Li,
// Reservoir-sampling algorithms of time complexity O(n(1 + log(N/n))), 1994: algorithm L). A skipped op then costs a subtraction.
type Draw struct {
	most  int
	rand  *rand.Rand
	skip  uint64   // ops to skip before the next one taken
	ranks []uint64 // ranks of taken ops that may still be among the smallest; once there are most of them, a heap with the largest first
	taken []DrawnOp
}

// NewDraw returns a Draw of at most most ≥ 1 ops. It is independent of draws with a different seed or part.
func NewDraw(most int, seed, part uint64) *Draw {
	return &Draw{most: most, rand: rand.New(rand.NewPCG(seed, part)), ranks: make([]uint64, 0, most)}
}

// Passes says whether the draw takes none of the next n ops. If so, they are counted; if not, call Enter for them.
func (d *Draw) Passes(n uint64) bool {
	if n > d.skip {
		return false
	}
	d.skip -= n
	return true
}

// Enter offers n ops that ended alike to the draw. text is their error, if any; Enter does not keep it.
func (d *Draw) Enter(op *DrawnOp, text []byte, n uint64) {
	for n > d.skip {
		n -= d.skip + 1
		d.take(op, text)
		d.skip = d.next()
	}
	d.skip -= n
}

// Taken returns the ops taken since the last call. Some may no longer be among the smallest.
func (d *Draw) Taken() []DrawnOp {
	ops := d.taken
	d.taken = nil
	return ops
}

// take takes an op, with a rank that belongs among the smallest.
func (d *Draw) take(op *DrawnOp, text []byte) {
	was := *op
	was.Start = max(was.Start, was.Due)
	was.End = max(was.End, was.Start)
	was.Error = cleanText(string(text[:min(len(text), 4*maxSampleText)]))
	if len(d.ranks) < d.most {
		was.rank = d.rand.Uint64()
		d.ranks = append(d.ranks, was.rank)
		if len(d.ranks) == d.most {
			for i := d.most/2 - 1; i >= 0; i-- {
				d.sink(i)
			}
		}
	} else {
		was.rank = d.rand.Uint64N(d.ranks[0])
		d.ranks[0] = was.rank
		d.sink(0)
	}
	d.taken = append(d.taken, was)
}

// next draws how many ops to skip because their ranks are too large.
func (d *Draw) next() uint64 {
	if len(d.ranks) < d.most {
		return 0
	}
	share := float64(d.ranks[0]) / (1 << 64) // the share of ops that are taken
	skip := math.Floor(math.Log(1-d.rand.Float64()) / math.Log1p(-share))
	if !(skip < 1<<62) { // also if the share is 0
		return 1 << 62
	}
	return uint64(skip)
}

// sink moves the i-th rank to its place in the heap.
func (d *Draw) sink(i int) {
	for {
		child := 2*i + 1
		if child >= len(d.ranks) {
			return
		}
		if child+1 < len(d.ranks) && d.ranks[child+1] > d.ranks[child] {
			child++
		}
		if d.ranks[i] >= d.ranks[child] {
			return
		}
		d.ranks[i], d.ranks[child] = d.ranks[child], d.ranks[i]
		i = child
	}
}
