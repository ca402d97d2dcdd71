package footprint_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/result/footprint"
	"github.com/loadgen/loadgen/internal/result/run"
)

// filled is a run whose store holds these many items before each phase, and takes the memory that a function says.
func filled(points []int64, fields footprint.Fields, memory, beside func(n float64) float64, lost float64) (*run.Run, []string) {
	r := run.New(run.Header{}, machine.Environment{})
	var phases []string
	for i, n := range points {
		name := fmt.Sprint("fill-", i)
		phases = append(phases, name)
		seen := map[string]run.Observed{}
		one := func(field string, v float64) {
			if field != "" {
				seen[field] = run.Observed{Before: &v, Delta: &lost}
			}
		}
		one(fields.Memory, memory(float64(n)))
		one(fields.Beside, beside(float64(n)))
		one(fields.Limit, 64<<20)
		for _, name := range fields.Lost {
			one(name, lost)
		}
		r.Phase[name] = &run.Phase{Observe: map[string]map[string]run.Observed{"server": seen}}
	}
	return r, phases
}

// A server that calls itself Redis, and has no such table of keys, takes what its memory says.
func TestFootprintWithoutATable(t *testing.T) {
	fields, _ := footprint.Of("redis")
	points := footprint.Points(1 << 17)
	r, phases := filled(points, fields, func(n float64) float64 { return 5e6 + 100*n }, func(n float64) float64 { return 100 * n }, 0)
	p, err := footprint.New(r, "server", phases, points, fields)
	require.NoError(t, err)
	require.InDelta(t, 100, p.Item, 1e-6)
	require.InDelta(t, 5e6, p.Fixed, 1)
}

// Readings of Valkey 8.1.8 foretell what 200,000 items took in it, and what they take is the same while it fills: its table has a form of its own.
func TestFootprintOfValkey(t *testing.T) {
	fields, _ := footprint.Of("redis")
	read := map[float64]float64{
		27852: 8002040, 31129: 9088936, 36000: 10438760, 45000: 12953072, 55705: 15973984, 62259: 18148744, 70000: 20293248, 90000: 25873432, 111411: 31923736, 124518: 36269984,
	}
	points := footprint.Points(1 << 17)
	r, phases := filled(points, fields, func(n float64) float64 { return read[n] }, func(float64) float64 { return 1 }, 0)
	p, err := footprint.New(r, "server", phases, points, fields)
	require.NoError(t, err)
	bytes, half := p.Of(200_000)
	require.InDelta(t, 57_358_728, bytes, half)
	require.Less(t, half, 200_000.0)
	var items, memory []float64
	for _, n := range slices.Sorted(maps.Keys(read)) {
		items, memory = append(items, n), append(memory, read[n])
	}
	rising, err := fields.Rising(items, memory, 124518, 1)
	require.NoError(t, err)
	require.InDelta(t, p.Item, rising.Item, p.ItemHalf+rising.Half)
	require.InDelta(t, 64<<15, rising.Keys, 0.05*64*(1<<15), "and some further buckets")

	for i, n := range items {
		memory[i] = 1e6 + 100*n
	}
	rising, err = fields.Rising(items, memory, 124518, 1)
	require.NoError(t, err)
	require.InDelta(t, 100, rising.Item, 1e-6)
	require.Zero(t, rising.Keys)
}

// Points lie where a table that doubles has moved its entries.
func TestPoints(t *testing.T) {
	require.Equal(t, []int64{27852, 31129, 55705, 62259, 111411, 124518}, footprint.Points(1<<17))
	for most := int64(200); most < 1<<20; most = most*13/10 + 1 {
		points := footprint.Points(most)
		for i, n := range points {
			require.LessOrEqual(t, n, most)
			require.True(t, i == 0 || n > points[i-1])
			table := math.Exp2(math.Ceil(math.Log2(float64(n))))
			require.InDelta(t, 0.9, float64(n)/table, 0.07)
		}
		require.Greater(t, points[5], most*4/10)
	}
}

// Of a store whose memory follows the formula, all that is said is exact; scatter widens the interval, which holds the truth.
func TestFootprintOfAStore(t *testing.T) {
	const fixed, item = 900_000.0, 304.0
	table := func(n float64) float64 { return 8 * math.Exp2(math.Ceil(math.Log2(n))) }
	fields, known := footprint.Of("redis")
	require.True(t, known)
	points := footprint.Points(1 << 17)
	exact := func(n float64) float64 { return fixed + item*n + table(n) }
	r, phases := filled(points, fields, exact, func(float64) float64 { return 5e6 }, 0)
	p, err := footprint.New(r, "server", phases, points, fields)
	require.NoError(t, err)
	require.InDelta(t, item, p.Item, 1e-6)
	require.InDelta(t, fixed, p.Fixed, 1)
	for _, doubling := range []float64{1 << 14, 1 << 18, 1 << 23} { // a full table doubles with the next item
		for n, slots := range map[float64]float64{doubling - 1: doubling, doubling: doubling, doubling + 1: 2 * doubling} {
			bytes, _ := p.Of(n)
			require.InDelta(t, fixed+item*n+8*slots, bytes, 100, n)
		}
	}
	bytes, half := p.Of(10e6)
	require.InDelta(t, exact(10e6), bytes, 100)
	require.InDelta(t, 0, half, 100)
	n, least, most := p.Within(exact(5e6))
	require.InDelta(t, 5e6, n, 1)
	require.LessOrEqual(t, least, n)
	require.GreaterOrEqual(t, most, n)
	var text strings.Builder
	require.NoError(t, p.Text(&text, 10_000_000, 0))
	require.Equal(t, `an item           304 bytes ± 0.00 bytes, 95 % confidence: the slope of used_memory over 6 fills, up to 124,518 items
                  used_memory_rss did not grow with the items: there was room already
fixed             879 KiB, and the table of keys: 8 to 16 bytes an item, by where its doubling stands
10,000,000 items  2.96 GiB ± 3.02 MiB, of which the table of keys has 128 MiB
in its 64.0 MiB   210,893 items, 210,893 to 210,893
`, strings.ReplaceAll(text.String(), "± 0 bytes", "± 0.00 bytes"))

	scattered := func(n float64) float64 { return exact(n) + 1e5*math.Sin(n) }
	r, phases = filled(points, fields, scattered, exact, 0)
	p, err = footprint.New(r, "server", phases, points, fields)
	require.NoError(t, err)
	require.InDelta(t, item, p.Item, p.ItemHalf)
	require.Greater(t, p.ItemHalf, 0.1)

	r, phases = filled(points, fields, exact, func(n float64) float64 { return 5e6 + 200*n }, 0)
	p, err = footprint.New(r, "server", phases, points, fields)
	require.NoError(t, err)
	text.Reset()
	require.NoError(t, p.Text(&text, 0, 0))
	require.Contains(t, text.String(), "used_memory_rss grew by less than the items take: there was room already\n")
}

// What cannot be told is an error that says why.
func TestStoresThatTellNothing(t *testing.T) {
	fields, _ := footprint.Of("memcached")
	points := footprint.Points(1000)
	grows := func(n float64) float64 { return 300 * n }
	for want, c := range map[string]struct {
		memory func(n float64) float64
		lost   float64
	}{
		"the server dropped 7 items (evictions): it has too little memory for this many": {grows, 7},
		"bytes does not grow with the items: from 1.00 MB to 1.00 MB":                    {func(float64) float64 { return 1e6 }, 0},
	} {
		r, phases := filled(points, fields, c.memory, grows, c.lost)
		_, err := footprint.New(r, "server", phases, points, fields)
		require.EqualError(t, err, want)
	}
	_, known := footprint.Of("web")
	require.False(t, known)
	r, phases := filled(points, fields, grows, grows, 0)
	delete(r.Phase, phases[2])
	_, err := footprint.New(r, "server", phases, points, fields)
	require.EqualError(t, err, "phase fill-2 was not run")
}
