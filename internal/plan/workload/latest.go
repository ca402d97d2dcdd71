package workload

import (
	"fmt"

	"github.com/loadgen/loadgen/pkg/plan"
)

// growth says which key numbers the streams of a step insert. They are above those of the dataset, and no two streams share one, in the
// same step or in any other step of the plan on the dataset: insert j of stream i of S, in turn t of T, has the number
// count + (j·S + i)·T + t.
type growth struct {
	streams uint64 // S
	turn    uint64 // t
	turns   uint64 // T, the number of steps of all loads on the dataset
}

// newGrowth returns the inserts of a step of phase ph at the given level.
func newGrowth(p *plan.Plan, ph *plan.Phase, level int) (growth, error) {
	if most := ph.Levels(); level >= most {
		return growth{}, fmt.Errorf("level %d of a phase that has %d", level, most)
	}
	g := growth{streams: uint64(ph.Sessions())}
	if s := ph.Schedule(); s != nil {
		g.streams = uint64(s.Streams)
	}
	before := true
	for _, other := range p.Phases {
		if other == ph {
			g.turn, before = g.turns+uint64(level), false
		}
		if other.Dataset == ph.Dataset {
			g.turns += uint64(other.Levels())
		}
	}
	if before {
		return growth{}, fmt.Errorf("phase %q is not of the plan", ph.Name)
	}
	return g, nil
}

// number returns the number of a stream's insert, above those of the dataset.
func (g *growth) number(stream uint32, insert uint64) uint64 {
	return (insert*g.streams+uint64(stream))*g.turns + g.turn
}

// newest ranks keys by recency in a stream: rank 1 is the key that it inserted last. After its own keys come the dataset's, highest number
// first.
type newest struct {
	inserted  uint64  // number of keys inserted by the stream
	top, span float64 // top and span of the zipf over all ranks
}

// insert returns the index of a new key.
func (st *Stream) insert() uint64 {
	k := &st.source.keys
	index := k.count + k.growth.number(st.number, st.newest.inserted)
	st.newest.inserted++
	z := k.zipf.over(float64(k.count + st.newest.inserted))
	st.newest.top, st.newest.span = z.top, z.span
	return index
}

// recent picks the index of a key, favoring recent ones.
func (st *Stream) recent() uint64 {
	k := &st.source.keys
	z := k.zipf
	if st.newest.inserted > 0 {
		z.n, z.top, z.span = float64(k.count+st.newest.inserted), st.newest.top, st.newest.span
	}
	rank := z.rank(&st.random)
	if rank <= st.newest.inserted {
		return k.count + k.growth.number(st.number, st.newest.inserted-rank)
	}
	return k.count - (rank - st.newest.inserted)
}
