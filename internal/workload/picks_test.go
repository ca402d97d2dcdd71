package workload

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/pkg/plan"
)

// picked counts the indices that a stream of the keys draws.
func picked(t *testing.T, k plan.Keys, draws int) []float64 {
	st := source(t, onePlan(k, closed("load", 3, 0)), 0, "load").Stream(1)
	counts := make([]float64, k.Count)
	var o op.Op
	for range draws {
		require.True(t, st.Next(&o))
		counts[o.Index]++
	}
	return counts
}

func TestHotspotIsExact(t *testing.T) {
	for _, tt := range []struct {
		ops, share float64
		count      int64
		hot        int
	}{{0.8, 0.2, 1000, 200}, {0.5, 0.01, 1000, 10}, {0.99, 0.5, 2, 1}, {1, 0.2, 10, 2}, {0.1, 0.9, 333, 300}} {
		k := hot(tt.ops, tt.share, tt.count)
		counts := picked(t, k, 400_000)
		space := source(t, onePlan(k, closed("load", 3, 0)), 0, "load").keys
		byRank, p := make([]float64, tt.count), make([]float64, tt.count)
		for i := range p {
			byRank[i] = counts[space.scramble.at(uint64(i))]
			p[i] = tt.ops / float64(tt.hot)
			if i >= tt.hot {
				p[i] = (1 - tt.ops) / float64(int(tt.count)-tt.hot)
			}
		}
		what := fmt.Sprintf("hotspot(%v on %v) of %d", tt.ops, tt.share, tt.count)
		requireChiSquared(t, byRank, p, what)
		onHot := 0.0
		for _, c := range byRank[:tt.hot] {
			onHot += c
		}
		require.InDelta(t, tt.ops, onHot/400_000, 5*math.Sqrt(tt.ops*(1-tt.ops)/400_000), what)
	}
}

// ycsbBelow returns the probability of a rank of YCSB's form below r > 2, by the inverse of what maps numbers to ranks.
func ycsbBelow(r float64) float64 {
	return max((math.Pow(r/ycsbRanks, 1-ycsbTheta)+ycsbEta-1)/ycsbEta, ycsbSecond/ycsbZeta)
}

// The constants of YCSB's form belong together: its sum over all ranks is that of 10¹⁰ ranks, up to how it was added up.
func TestYCSBZeta(t *testing.T) {
	const exactly = 1000
	sum := 0.0
	for k := 1.0; k <= exactly; k++ {
		sum += math.Pow(k, -ycsbTheta)
	}
	rest := (math.Pow(ycsbRanks+0.5, 1-ycsbTheta) - math.Pow(exactly+0.5, 1-ycsbTheta)) / (1 - ycsbTheta)
	require.InDelta(t, ycsbZeta, sum+rest, 1e-5)
}

func TestYCSBRanks(t *testing.T) {
	const draws, ranks = 2_000_000, 1000
	random := rand.NewPCG(7, 8)
	counts, p := make([]float64, ranks+1), make([]float64, ranks+1) // the last for all others
	for range draws {
		counts[min(ycsbRank(unit(random)), ranks)]++
	}
	p[0], p[1] = 1/ycsbZeta, (ycsbSecond-1)/ycsbZeta
	for r := 2; r < ranks; r++ {
		p[r] = ycsbBelow(float64(r+1)) - ycsbBelow(float64(r))
	}
	p[2] = ycsbBelow(3) - ycsbSecond/ycsbZeta
	p[ranks] = 1 - ycsbBelow(ranks)
	requireChiSquared(t, counts, p, "ranks")
	require.Less(t, ycsbRank(math.Nextafter(1, 0)), uint64(ycsbRanks+1))
}

// Keys get the mass of all ranks that hash to them. The first million are added one by one; the others are so many that each key gets
// the same of them, within less than the noise of the draws.
func TestYCSBKeys(t *testing.T) {
	const count, ranks = 100, 1_000_000
	counts := picked(t, ycsbKeys(count), 500_000)
	p := make([]float64, count)
	for r := range uint64(ranks) {
		mass := ycsbBelow(float64(r+1)) - ycsbBelow(float64(r))
		switch r {
		case 0:
			mass = 1 / ycsbZeta
		case 1:
			mass = (ycsbSecond - 1) / ycsbZeta
		case 2:
			mass = ycsbBelow(3) - ycsbSecond/ycsbZeta
		}
		p[byHash(r)%count] += mass
	}
	for i := range p {
		p[i] += (1 - ycsbBelow(ranks)) / count
	}
	requireChiSquared(t, counts, p, "keys")
}

// byHash is the hash by the standard library.
func byHash(rank uint64) uint64 {
	h := fnv.New64a()
	h.Write(binary.LittleEndian.AppendUint64(nil, rank))
	signed := int64(h.Sum64())
	return uint64(max(signed, -signed))
}
