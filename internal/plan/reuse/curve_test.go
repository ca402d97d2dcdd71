package reuse

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/driver"
)

// TestCurve compares a curve with LRU stores of five sizes, on zipf draws (0.99), with a scan or deletes among them.
func TestCurve(t *testing.T) {
	const keys, refs, item = 200_000, 300_000, 304
	upTo := make([]float64, keys)
	for i := range upTo {
		upTo[i] = upTo[max(i-1, 0)] + math.Pow(float64(i+1), -0.99)
	}
	worst, covered, cells, scanned := 0.0, 0, 0, uint64(0)
	for _, is := range []struct{ scans, deletes float64 }{{0, 0}, {0.2, 0}, {0, 0.05}} {
		for seed := range uint64(4) {
			random, c, hits, gets := rand.New(rand.NewPCG(seed, 1)), NewCurve(), [5]float64{}, 0.0
			rooms := [5]int{keys / 100, keys / 20, keys / 10, keys / 5, keys / 2}
			exact := newOrder()
			for range refs {
				n := uint64(sort.SearchFloat64s(upTo, random.Float64()*upTo[keys-1]))
				if random.Float64() < is.scans {
					n, scanned = keys+scanned%(keys/15), scanned+1
				}
				key := binary.BigEndian.AppendUint64(nil, n)
				if random.Float64() < is.deletes {
					c.Use(driver.Delete, key, item)
					exact.take(n)
					continue
				}
				c.Use(driver.Get, key, item)
				gets++
				_, distance, known := exact.take(n)
				exact.push(n, 1)
				for i, room := range rooms {
					if known && distance <= int64(room) {
						hits[i]++
					}
				}
			}
			for i, room := range rooms {
				is, exact := c.HitRatio(float64(room)*item), hits[i]/gets
				require.InDelta(t, exact, is.Value, 0.004, "seed %d, room %d", seed, room)
				worst = max(worst, math.Abs(exact-is.Value))
				cells++
				if is.Low <= exact && exact <= is.High {
					covered++
				}
				back := c.Room(is.Value)
				require.InDelta(t, is.Value, c.HitRatio(back.Value).Value, 0.001)
				require.LessOrEqual(t, back.Value, float64(room)*item*1.005)
			}
		}
	}
	t.Logf("worst %v, %d of %d intervals hold the exact ratio", worst, covered, cells)
	require.Greater(t, covered*10, cells*9)
}

// TestCurveOfFewKeys compares a curve with a list of keys of different sizes, the oldest first. It is exact but for the width of a bucket.
func TestCurveOfFewKeys(t *testing.T) {
	type item struct{ key, size int64 }
	random, c, list, distances, most := rand.New(rand.NewPCG(1, 1)), NewCurve(), []item{}, []int64{}, 0.0
	for range 3000 {
		key, size := random.Int64N(40), 1+random.Int64N(500)
		bytes, distance := []byte{byte(key)}, int64(0)
		at := slices.IndexFunc(list, func(i item) bool { return i.key == key })
		if at >= 0 {
			for _, newer := range list[at:] {
				distance += newer.size
			}
			list = slices.Delete(list, at, at+1)
		}
		switch random.IntN(8) {
		case 0:
			c.Use(driver.Delete, bytes, size)
			continue
		case 1:
			c.Use(driver.Put, bytes, size)
		default:
			c.Use(driver.Get, bytes, size)
			distances = append(distances, distance)
			most += float64(min(distance, 1))
		}
		list = append(list, item{key, size})
	}
	gets := float64(len(distances))
	require.InDelta(t, gets, c.Gets, 0)
	require.InDelta(t, most/gets, c.HitRatio(math.Inf(1)).Value, 1e-4)
	for room := int64(0); room < 20_000; room += 50 {
		hits := 0.0
		for _, distance := range distances {
			if 0 < distance && distance <= room {
				hits++
			}
		}
		is := c.HitRatio(float64(room))
		require.True(t, is.Low <= hits/gets+1e-9 && hits/gets <= is.High+1e-9, "%v is not in %v", hits/gets, is)
		require.Less(t, is.High-is.Low, 0.02)
	}
	require.True(t, math.IsInf(c.Room(most/gets+0.001).Value, 1))
	require.False(t, c.Use(driver.Read, nil, 1))
}
