package workload

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// picked counts the indices that a stream of the keys draws.
func picked(t *testing.T, k plan.Keys, draws int) []float64 {
	st := source(t, onePlan(k, closed("load", 3, 0)), 0, "load").Stream(1)
	counts := make([]float64, k.Count)
	var o op.Op
	for range draws {
		next(t, &st, &o)
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

// ycsbBelow returns the probability of a rank below r > 2 in YCSB's form, by inverting the map from numbers to ranks.
func ycsbBelow(r float64) float64 {
	return max((math.Pow(r/ycsbRanks, 1-ycsbTheta)+ycsbEta-1)/ycsbEta, ycsbSecond/ycsbZeta)
}

// The constants of YCSB's form are consistent: its sum over all ranks is that of 10¹⁰ ranks, up to summation error.
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

// A key's probability is the sum over all ranks that hash to it. The first million are added one by one; the rest are so many that each key
// gets the same share of them, within less than the noise of the draws.
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

// The recency ranks of keys that a stream reads follow zipf over all keys that exist at that moment.
func TestLatestIsZipfOverRecency(t *testing.T) {
	const count, draws = 300, 400_000
	ph := closed("load", 3, 0)
	ph.Ops = ops(99, 1)
	st := source(t, onePlan(keys("latest", "shared", count), ph), 0, "load").Stream(1)
	var mine []uint64
	age := map[uint64]int{} // of the stream's own, from 0 for the first
	seen, p := make([]float64, count+draws), make([]float64, count+draws)
	sum, popular := 0.0, make([]float64, count+draws)
	for i := range popular {
		popular[i] = math.Pow(float64(i+1), -0.99)
		if i < count {
			sum += popular[i]
		}
	}
	gets := 0.0
	weight := 0.0 // Σ 1/H over the gets since the last put, for the ranks there were then
	settle := func() {
		for i := range count + len(mine) {
			p[i] += weight * popular[i]
		}
		weight = 0
	}
	var o op.Op
	for range draws {
		st.Next(&o)
		if o.Verb == driver.Put {
			settle()
			require.GreaterOrEqual(t, o.Index, uint64(count))
			require.NotContains(t, age, o.Index)
			age[o.Index] = len(mine)
			mine = append(mine, o.Index)
			sum += popular[count+len(mine)-1]
			continue
		}
		rank := len(mine) + count - 1 - int(o.Index)
		if o.Index >= count {
			i, put := age[o.Index]
			require.True(t, put, "a key of the stream's own, and there")
			rank = len(mine) - 1 - i
		}
		seen[rank]++
		gets++
		weight += 1 / sum
	}
	settle()
	require.Greater(t, len(mine), 3000)
	for i := range p {
		p[i] /= gets
	}
	requireChiSquared(t, seen, p, "ranks by recency")
}

// A key is inserted only once over all streams of all loads on a dataset.
func TestInsertsNeverMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sessions := rapid.IntRange(1, 9).Draw(t, "sessions")
		stages := rapid.IntRange(1, 4).Draw(t, "stages")
		schedule := plan.Schedule{Clients: plan.Clients{Sessions: sessions}, Streams: 4 * sessions}
		p := onePlan(keys("latest", "shared", rapid.Int64Range(1, 100).Draw(t, "count")),
			populate("fill", 2), closed("closed", rapid.IntRange(1, 9).Draw(t, "more"), 0),
			&plan.Phase{Name: "stages", Ops: ops(1, 1), Stages: &plan.Stages{Schedule: schedule, Stages: make([]plan.Stage, stages)}},
			&plan.Phase{Name: "search", Ops: ops(1, 1), Search: &plan.Search{Schedule: schedule, Budget: 3 * time.Second, StepDuration: time.Second}})
		seen := map[uint64]bool{}
		for _, ph := range p.Phases[1:] {
			for level := range ph.Levels() {
				s, err := New(p, ph, Step{Kind: "load", Level: level})
				require.NoError(t, err)
				for i := range s.Streams() {
					st := s.Stream(i)
					var o op.Op
					for range 20 {
						st.Next(&o)
						if o.Verb != driver.Put {
							continue
						}
						require.GreaterOrEqual(t, o.Index, uint64(p.Datasets[0].Keys.Count))
						require.False(t, seen[o.Index], "%s, level %d, stream %d", ph.Name, level, i)
						seen[o.Index] = true
					}
				}
			}
		}
		_, err := New(p, p.Phases[3], Step{Kind: "load", Level: 5})
		require.ErrorContains(t, err, "level 5 of a phase that has 5", "a closed step, three and one for what rounds down")
	})
}

// In a phase with a hit ratio, that share of gets asks for keys that populate and setup put. The others ask for keys that the plan never puts,
// of which there are as many. Puts are of the dataset's keys.
func TestHitRatioIsExact(t *testing.T) {
	for _, scope := range []string{"shared", "session"} {
		for _, ratio := range []float64{0.25, 0.9, 1} {
			ph := closed("load", 3, 0)
			ph.Ops, ph.HitRatio = ops(3, 1), &ratio
			filling, kind := populate("fill", 2), Populate
			if scope == "session" {
				filling, kind = withSetup(closed("fill", 3, 1)), Setup
			}
			p := onePlan(keys("zipf", scope, 40), filling, ph)
			there := map[string]bool{}
			for _, key := range drainAll(t, source(t, p, 0, kind)) {
				there[key] = true
			}
			st := source(t, p, 1, Load).Stream(2)
			var o op.Op
			gets, hits, absent := 0.0, 0.0, map[string]bool{}
			for range 100_000 {
				st.Next(&o)
				key := string(o.Key)
				switch {
				case o.Verb == driver.Put:
					require.True(t, there[key])
				case there[key]:
					gets, hits = gets+1, hits+1
				default:
					gets++
					absent[key] = true
				}
			}
			require.InDelta(t, ratio, hits/gets, 5*math.Sqrt(ratio*(1-ratio)/gets))
			require.Len(t, absent, map[bool]int{true: 0, false: 40}[ratio == 1])
			require.Zero(t, testing.AllocsPerRun(1000, func() { st.Next(&o) }))
		}
	}
	ph := closed("load", 3, 0)
	ph.HitRatio = new(float64)
	_, err := New(onePlan(keys("uniform", "shared", 10), ph), ph, Step{Kind: "load"})
	require.ErrorContains(t, err, "a hit ratio of 0")
}

// A key's location is cached by its index, so no two keys may share an index, including keys that are never put.
func TestAnIndexNamesOneKey(t *testing.T) {
	ratio := 0.7
	for _, k := range []plan.Keys{keys("uniform", "shared", 50), keys("zipf", "shared", 50), hot(0.8, 0.2, 50), ycsbKeys(50), keys("latest", "shared", 50)} {
		ph := closed("load", 3, 0)
		ph.Ops = ops(3, 1)
		if k.Pick != "latest" {
			ph.HitRatio = &ratio
		}
		s := source(t, onePlan(k, ph), 0, "load")
		named := map[uint64]string{}
		for i := range s.Streams() {
			st := s.Stream(i)
			var o op.Op
			for range 2000 {
				next(t, &st, &o)
				key, known := named[o.Index]
				require.True(t, !known || key == string(o.Key), "%s: index %d is %s and %s", k.Pick, o.Index, key, o.Key)
				named[o.Index] = string(o.Key)
			}
		}
	}
}

// With a single writer, a session puts only its own keys, by the dataset's way of picking, and gets all. Walks divide the keys likewise.
func TestEachKeyHasOneWriter(t *testing.T) {
	const sessions, count = 7, 100
	for _, pick := range []string{"uniform", "zipf", "hotspot"} {
		k := keys(pick, "shared", count)
		if pick == "hotspot" {
			k = hot(0.8, 0.2, count)
		}
		k.Writers = "one"
		p := onePlan(k, populate("fill", sessions), open("load", sessions, 2*sessions))
		got, put := map[uint64]bool{}, map[uint64]bool{}
		for i := range 2 * sessions {
			st := source(t, p, 1, "load").Stream(i)
			for range 3000 {
				var o op.Op
				next(t, &st, &o)
				require.Less(t, o.Index, uint64(count))
				if o.Verb == driver.Get {
					got[o.Index] = true
					continue
				}
				put[o.Index] = true
				require.EqualValues(t, i%sessions, o.Index%sessions, pick)
			}
		}
		require.Len(t, got, count, pick)
		require.Len(t, put, count, pick)
		near := source(t, p, 1, "load").Stream(0)
		near.Reach(2, 5)
		for range 3000 {
			var o op.Op
			next(t, &near, &o)
			if o.Verb == driver.Get {
				require.Contains(t, []uint64{2, 3, 4}, o.Index%sessions)
			}
		}
		filled := map[uint64]bool{}
		for i := range sessions {
			st := source(t, p, 0, "populate").Stream(i)
			for o := (op.Op{}); st.Next(&o); {
				require.EqualValues(t, i, o.Index%sessions)
				require.Falsef(t, filled[o.Index], "%d twice", o.Index)
				filled[o.Index] = true
			}
		}
		require.Len(t, filled, count)
	}
}
