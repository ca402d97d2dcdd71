package workload

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/plan/compress"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// sized returns a plan whose phase puts values of the given kind.
func sized(v plan.Values) *plan.Plan {
	ph := closed("put", 3, 0)
	ph.Ops = ops(1, 1)
	p := onePlan(keys("uniform", "shared", 100), ph)
	p.Datasets[0].Values = v
	return p
}

// drawnSizes counts the sizes of values that a stream puts.
func drawnSizes(t *testing.T, v plan.Values, draws int) []float64 {
	st := source(t, sized(v), 0, "load").Stream(2)
	counts := make([]float64, v.Size+1)
	var o op.Op
	for done := 0; done < draws; {
		next(t, &st, &o)
		if o.Verb == driver.Put {
			counts[o.Value.Size]++
			done++
		} else if o.Value != (driver.Value{}) {
			require.Fail(t, "a value without a put")
		}
	}
	return counts
}

func TestSizesAreExact(t *testing.T) {
	const draws = 300_000
	uniform := func(least, most int) plan.Values {
		return plan.Values{Size: most, Sizes: &plan.Sizes{Kind: plan.UniformSizes, Least: least}}
	}
	lognormal := func(median, most int, sigma float64, checked bool) plan.Values {
		return plan.Values{Size: most, Checked: checked, Sizes: &plan.Sizes{Kind: plan.LognormalSizes, Median: median, Sigma: sigma}}
	}
	list := plan.Values{Size: 1024, Sizes: &plan.Sizes{Kind: plan.ListedSizes, List: []plan.SizeWeight{{Size: 0, Weight: 1}, {Size: 32, Weight: 8}, {Size: 1024, Weight: 1}}}}
	p := func(n int, of func(size int) float64) []float64 {
		p := make([]float64, n+1)
		sum := 0.0
		for i := range p {
			p[i] = of(i)
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	between := func(least int) func(int) float64 {
		return func(size int) float64 {
			if size < least {
				return 0
			}
			return 1
		}
	}
	// The mass between two half sizes, by Simpson's rule over the density.
	normal := func(median, sigma float64, least int) func(int) float64 {
		density := func(x float64) float64 {
			if x <= 0 {
				return 0
			}
			z := math.Log(x/median) / sigma
			return math.Exp(-z*z/2) / x
		}
		return func(size int) float64 {
			if size < least {
				return 0
			}
			const steps = 64
			sum := 0.0
			for i := range steps {
				a := max(float64(size)-0.5, 0) + float64(i)/steps*(float64(size)+0.5-max(float64(size)-0.5, 0))
				h := (float64(size) + 0.5 - max(float64(size)-0.5, 0)) / steps
				sum += h / 6 * (density(a) + 4*density(a+h/2) + density(a+h))
			}
			return sum
		}
	}
	for name, tt := range map[string]struct {
		v plan.Values
		p []float64
	}{
		"uniform":              {uniform(100, 1000), p(1000, between(100))},
		"uniform, of one":      {uniform(7, 7), p(7, between(7))},
		"lognormal":            {lognormal(100, 5000, 0.5, false), p(5000, normal(100, 0.5, 0))},
		"lognormal, cut":       {lognormal(100, 120, 1, false), p(120, normal(100, 1, 0))},
		"lognormal, checked":   {lognormal(30, 500, 1, true), p(500, normal(30, 1, driver.ShortHeader))},
		"lognormal, wide":      {lognormal(3, 200, 2, false), p(200, normal(3, 2, 0))},
		"a list":               {list, p(1024, func(size int) float64 { return map[int]float64{0: 0.1, 32: 0.8, 1024: 0.1}[size] })},
		"a list of one weight": {plan.Values{Size: 9, Sizes: &plan.Sizes{Kind: plan.ListedSizes, List: []plan.SizeWeight{{Size: 9, Weight: 3}}}}, p(9, between(9))},
	} {
		counts := drawnSizes(t, tt.v, draws)
		requireChiSquared(t, counts, tt.p, name)
		for size, n := range counts {
			if tt.p[size] == 0 {
				require.Zero(t, n, "%s: %d bytes", name, size)
			}
			require.False(t, n > 0 && tt.v.Checked && size < driver.ShortHeader, name)
		}
	}
}

// A size is a function of the value's seed, and independent of where in the text the fill begins.
func TestSizesFollowFromTheSeed(t *testing.T) {
	s, err := newSizer(&plan.Values{Size: 63, Sizes: &plan.Sizes{Kind: plan.UniformSizes}}, nil)
	require.NoError(t, err)
	cells, p := make([]float64, 64*64), make([]float64, 64*64)
	for seed := range uint64(400_000) {
		require.Equal(t, s.of(seed), s.of(seed))
		cells[int(seed%64)*64+s.of(seed)]++
	}
	for i := range p {
		p[i] = 1.0 / 64 / 64
	}
	requireChiSquared(t, cells, p, "seed's low bits by size")
}

func TestNewSizesRefuses(t *testing.T) {
	for says, s := range map[string]plan.Sizes{
		`sizes cannot be "fixed"`:  {Kind: "fixed"},
		"sizes from 11 to 10":      {Kind: plan.UniformSizes, Least: 11},
		"no sizes are lognormal":   {Kind: plan.LognormalSizes, Median: 5},
		"with median 0":            {Kind: plan.LognormalSizes, Sigma: 1},
		"its sizes add up to 0":    {Kind: plan.ListedSizes},
		"its sizes add up to +Inf": {Kind: plan.ListedSizes, List: []plan.SizeWeight{{Size: 1, Weight: math.MaxFloat64}, {Size: 2, Weight: math.MaxFloat64}}},
	} {
		p := sized(plan.Values{Size: 10, Sizes: &s})
		_, err := New(p, p.Phases[0], Step{Kind: "load"})
		require.ErrorContains(t, err, says)
	}
}

func TestSizesAllocateNothing(t *testing.T) {
	for _, s := range []plan.Sizes{{Kind: plan.UniformSizes}, {Kind: plan.LognormalSizes, Median: 100, Sigma: 1}, {Kind: plan.ListedSizes, List: []plan.SizeWeight{{Size: 1, Weight: 1}, {Size: 1000, Weight: 1}}}} {
		st := source(t, sized(plan.Values{Size: 1000, Sizes: &s}), 0, "load").Stream(0)
		o := op.Op{Key: make([]byte, 0, 32)}
		require.Zero(t, testing.AllocsPerRun(1000, func() { st.Next(&o) }), s.Kind)
	}
}

func BenchmarkSizes(b *testing.B) {
	list := []plan.SizeWeight{{Size: 32, Weight: 9}, {Size: 1000, Weight: 1}}
	for _, s := range []*plan.Sizes{nil, {Kind: plan.UniformSizes}, {Kind: plan.LognormalSizes, Median: 100, Sigma: 1}, {Kind: plan.ListedSizes, List: list}} {
		kind := "one"
		if s != nil {
			kind = s.Kind
		}
		b.Run(fmt.Sprintf("sizes=%s", kind), func(b *testing.B) {
			st := source(b, sized(plan.Values{Size: 1000, Sizes: s}), 0, "load").Stream(0)
			var o op.Op
			b.ReportAllocs()
			for b.Loop() {
				st.Next(&o)
			}
		})
	}
}

// A record has the size that was drawn with it, and the record that is drawn is the one that is put.
func TestRecordsHaveTheirSize(t *testing.T) {
	for _, checked := range []bool{false, true} {
		v := plan.Values{Record: map[string]string{"id": "uuid", "n": "int", "notes": "lorem"}, Checked: checked}
		st := source(t, sized(v), 0, "load").Stream(1)
		seen := map[int]bool{}
		var o op.Op
		for range 2000 {
			next(t, &st, &o)
			require.Len(t, o.Key, len("key:000000000000"))
			if o.Verb != driver.Put {
				require.Zero(t, o.Value)
				continue
			}
			b := o.Value.AppendTo(nil)
			require.Len(t, b, o.Value.Size)
			if checked {
				_, ok := (&driver.Reply{Value: b}).Header()
				require.True(t, ok)
				b = b[driver.HeaderSize:]
			}
			require.True(t, json.Valid(b), "%s", b)
			seen[o.Value.Size] = true
		}
		require.Greater(t, len(seen), 20)
		require.Zero(t, testing.AllocsPerRun(1000, func() { st.Next(&o) }))
	}
	p := sized(plan.Values{Record: map[string]string{"id": "number"}})
	_, err := New(p, p.Phases[0], Step{Kind: "load"})
	require.ErrorContains(t, err, `field "id"`)
}

// Each key of a batch has a record of its own length: given a wrong length, a server misreads what follows.
func TestRecordsOfABatchHaveTheirSizes(t *testing.T) {
	p := sized(plan.Values{Record: map[string]string{"id": "uuid", "n": "int", "notes": "lorem"}, Checked: true})
	p.Phases[0].Batch = 4
	st := source(t, p, 0, Load).Stream(1)
	seen := map[int]bool{}
	var o op.Op
	for range 500 {
		next(t, &st, &o)
		for _, item := range o.Batch {
			require.Len(t, item.Key, len("key:000000000000"))
			if o.Verb == driver.Put {
				require.Len(t, item.Value.AppendTo(nil), item.Value.Size)
				seen[item.Value.Size] = true
			}
		}
	}
	require.Greater(t, len(seen), 20)
	require.Zero(t, testing.AllocsPerRun(1000, func() { st.Next(&o) }))
}

// Keys of a batch do not repeat, though eleven of eleven would be 7.1 different ones.
func TestDistinctKeysOfABatch(t *testing.T) {
	for _, pick := range []string{"uniform", "zipf"} {
		p := sized(plan.Values{Size: 10})
		p.Phases[0].Batch, p.Phases[0].Distinct = 11, true
		p.Datasets[0].Keys.Count, p.Datasets[0].Keys.Pick = 11, pick
		st := source(t, p, 0, Load).Stream(1)
		var o op.Op
		for range 200 {
			next(t, &st, &o)
			seen := map[string]bool{}
			for _, item := range o.Batch {
				seen[string(item.Key)] = true
			}
			require.Len(t, seen, 11)
		}
		require.Zero(t, testing.AllocsPerRun(100, func() { st.Next(&o) }))
	}
}

// The steps of a scenario put values of as many sizes as ops do.
func TestSizesInScenarios(t *testing.T) {
	p := sized(plan.Values{Size: 1000, Sizes: &plan.Sizes{Kind: plan.UniformSizes}})
	p.Phases[0].Scenarios = []plan.Scenario{{Name: "change", Weight: 1, Steps: []plan.ScenarioStep{{Op: "get"}, {Op: "put", Key: "same"}}}}
	st := source(t, p, 0, Load).Stream(1)
	seen := map[int]bool{}
	steps := make([]op.Op, 2)
	for range 1000 {
		_, n, ok := st.NextScenario(steps)
		require.True(t, ok)
		require.Equal(t, 2, n)
		require.Equal(t, string(steps[0].Key), string(steps[1].Key))
		seen[steps[1].Value.Size] = true
	}
	require.Greater(t, len(seen), 300)
}

// Text shrinks by a quarter, however much of it there is, unless values are large; values with a compressibility shrink by as much. All differ.
func TestSamplesShrink(t *testing.T) {
	none, half := 0.0, 0.5
	text := [2]float64{0.70, 0.75}
	for _, c := range []struct {
		size       int
		compresses *float64
		shares     map[int][2]float64 // by how many bytes are compressed as one
	}{
		{36, nil, map[int][2]float64{64 << 10: text, 1 << 20: text, 7 << 20: text}}, // 200,000 values and more
		{512, nil, map[int][2]float64{64 << 10: text, 1 << 20: text, 8 << 20: text}},
		{1 << 10, nil, map[int][2]float64{64 << 10: text, 1 << 20: text, 8 << 20: {0, 0.3}}},
		{1 << 20, nil, map[int][2]float64{64 << 10: text, 1 << 20: {0, 0.1}}},
		{1 << 10, &none, map[int][2]float64{8 << 20: {0.99, 1.01}}},
		{1 << 10, &half, map[int][2]float64{8 << 20: {0.5, 0.55}}},
	} {
		p := onePlan(keys("uniform", "shared", 1<<30), &plan.Phase{
			Name: "load", Ops: []plan.Weight{{Op: "put", Weight: 1}}, Closed: &plan.Closed{Clients: plan.Clients{Sessions: 3}},
		})
		p.Datasets[0].Values = plan.Values{Size: c.size, Compressibility: c.compresses}
		for bytes, want := range c.shares {
			values, err := Sample(p, p.Phases[0], bytes)
			require.NoError(t, err)
			require.Len(t, values, bytes)
			seen := map[string]bool{}
			for at := 0; at < len(values); at += c.size {
				seen[string(values[at:min(at+c.size, len(values))])] = true
			}
			require.Len(t, seen, (len(values)+c.size-1)/c.size)
			share := compress.Share(values)
			require.True(t, want[0] <= share && share <= want[1], "%d bytes in values of %d: %.3f", bytes, c.size, share)
		}
	}
}
