package pace

import (
	"flag"
	"fmt"
	"math"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const month = 30 * 24 * time.Hour

// all collects what a pacer yields.
func all(p Pacer) []int64 {
	var due []int64
	for {
		d, ok := p.Next()
		if !ok {
			return due
		}
		due = append(due, d)
	}
}

// exactDue is Λ⁻¹(n) in nanoseconds with 400 bits, from the quadratic's usual solution.
func exactDue(s Shape, n int64) *big.Float {
	wide := func(x float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(x) }
	number := func() *big.Float { return new(big.Float).SetPrec(400) }
	from, rate := wide(s.From), wide(s.Rate) // per 10⁹ ns
	half := number().Quo(number().SetInt64(int64(s.Ramp)), wide(2))
	x := number().Mul(number().SetInt64(n), wide(1e9))
	change := number().Sub(rate, from)
	if inRamp := number().Mul(number().Add(from, rate), half); x.Cmp(inRamp) >= 0 {
		x.Sub(x, number().Mul(from, half)).Quo(x, rate)
		return x.Add(x, half)
	}
	if change.Sign() == 0 {
		return x.Quo(x, rate)
	}
	root := number().Mul(x, number().Quo(change, half))
	root.Add(root, number().Mul(from, from)).Sqrt(root)
	return root.Sub(root, from).Mul(root, number().Quo(number().Mul(half, wide(2)), change))
}

func requireExact(t require.TestingT, s Shape, n int64) {
	exact := exactDue(s, n)
	diff := new(big.Float).Sub(new(big.Float).SetPrec(400).SetInt64(s.due(float64(n))), exact)
	off, _ := diff.Float64()
	require.LessOrEqual(t, math.Abs(off), 0.5+1e-6, "op %d of %+v: due %d, exactly %.3f", n, s, s.due(float64(n)), exact)
}

func TestConstantIsExactOver30Days(t *testing.T) {
	for _, rate := range []float64{1e6, 1e6 / 3, 999_999.999, 7, 1.0 / 3600} {
		for _, ramp := range []time.Duration{0, time.Second, 7*time.Hour + 1, month} {
			s := Shape{Rate: rate, Ramp: ramp, Duration: month}
			last := s.Ops() - 1
			for _, n := range []int64{0, 1, 2, last / 3, last / 2, last - 1, last} {
				requireExact(t, s, max(n, 0))
			}
		}
	}
}

func TestConstantIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shape{
			Rate:     rapid.Float64Range(1e-3, 1e9).Draw(t, "rate"),
			From:     rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1e-3, 1e9)).Draw(t, "from"),
			Ramp:     time.Duration(rapid.Int64Range(0, int64(month)).Draw(t, "ramp")),
			Duration: month,
		}
		requireExact(t, s, rapid.Int64Range(0, int64(s.Expected())).Draw(t, "n"))
	})
}

func TestWholeNanosecondsAreHit(t *testing.T) {
	s := Shape{Rate: 1e6, Duration: month}
	for _, n := range []int64{0, 1, 999_999, 1_000_000, 2_591_999_999_999} {
		require.Equal(t, n*1000, s.due(float64(n)))
	}
}

func TestOps(t *testing.T) {
	tests := []struct {
		shape Shape
		want  int64
	}{
		{Shape{Rate: 1e6, Duration: month}, 2_592_000_000_000},
		{Shape{Rate: 100, Duration: time.Second}, 100},
		{Shape{Rate: 100, Duration: time.Second + 1}, 101},
		{Shape{Rate: 3, Duration: time.Second}, 3},
		{Shape{Rate: 0.1, Duration: time.Second}, 1},
		{Shape{Rate: 100, Ramp: time.Second, Duration: time.Second}, 50},
		{Shape{Rate: 100, Ramp: time.Second, Duration: 3 * time.Second}, 250},
		{Shape{Rate: 100, Ramp: 4 * time.Second, Duration: 2 * time.Second}, 50},
		{Shape{Rate: 300, From: 100, Ramp: time.Second, Duration: 2 * time.Second}, 500},
		{Shape{Rate: 100, From: 300, Ramp: time.Second, Duration: 2 * time.Second}, 300},
		{Shape{Rate: 100, From: 100, Ramp: time.Second, Duration: 2 * time.Second}, 200},
		{Shape{Rate: 1000, Duration: 0}, 0},
		{Shape{}, 0},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, tt.shape.Ops(), "%+v", tt.shape)
	}
}

// Schedules that end exactly when an op would be due do not have that op.
func TestOpsOfRoundSchedules(t *testing.T) {
	for rate := range int64(300) {
		for tenths := range int64(30) {
			s := Shape{Rate: float64(rate + 1), Duration: time.Duration(tenths) * 100 * time.Millisecond}
			require.Equal(t, ((rate+1)*tenths+9)/10, s.Ops(), "%+v", s)
		}
	}
}

// drawShape draws shapes of up to a few thousand ops.
func drawShape(t *rapid.T) Shape {
	duration := time.Duration(rapid.Int64Range(1, int64(2*time.Second)).Draw(t, "duration"))
	return Shape{
		Rate:     rapid.Float64Range(0.1, 2000).Draw(t, "rate"),
		From:     rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0.1, 2000)).Draw(t, "from"),
		Ramp:     time.Duration(rapid.Int64Range(0, int64(duration)).Draw(t, "ramp")),
		Duration: duration,
	}
}

func TestConstantStreamsInterleaveToTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		streams := rapid.IntRange(1, 50).Draw(t, "streams")
		whole := all(NewConstant(s, 1, 0))
		require.Len(t, whole, int(s.Ops()))
		require.True(t, slices.IsSorted(whole))
		for i := range streams {
			var want []int64
			for n := i; n < len(whole); n += streams {
				want = append(want, whole[n])
			}
			require.Equal(t, want, all(NewConstant(s, streams, i)), "stream %d", i)
		}
	})
}

// shapes are ramps from 0, up and down.
var shapes = []Shape{
	{Rate: 20_000, Ramp: 10 * time.Second, Duration: 20 * time.Second},
	{Rate: 20_000, From: 5000, Ramp: 10 * time.Second, Duration: 20 * time.Second},
	{Rate: 5000, From: 20_000, Ramp: 10 * time.Second, Duration: 20 * time.Second},
}

func TestConstantRampCounts(t *testing.T) {
	for _, s := range shapes {
		due := all(NewConstant(s, 1, 0))
		for at := 500 * time.Millisecond; at <= s.Duration; at += 500 * time.Millisecond {
			want := Shape{Rate: s.Rate, From: s.From, Ramp: s.Ramp, Duration: at}.Expected()
			got, _ := slices.BinarySearch(due, int64(at))
			require.InDelta(t, want, got, 1, "ops due before %s", at)
		}
	}
}

// A ramp of two seconds from 100 to 300 per second: after one it has brought 150 and its rate is 200 per second.
func TestRampByHand(t *testing.T) {
	up := Shape{Rate: 300, From: 100, Ramp: 2 * time.Second, Duration: 3 * time.Second}
	require.Equal(t, int64(time.Second), up.due(150))
	require.Equal(t, int64(2*time.Second), up.due(400))
	require.Equal(t, int64(3*time.Second), up.due(700))
	require.InDelta(t, 200, up.At(time.Second), 1e-9)
	require.InDelta(t, 300, up.At(2*time.Second), 1e-9)
	require.Zero(t, up.At(3*time.Second))
	down := Shape{Rate: 100, From: 300, Ramp: 2 * time.Second, Duration: 3 * time.Second}
	require.Equal(t, int64(time.Second), down.due(250))
	require.Equal(t, int64(2*time.Second), down.due(400))
	require.InDelta(t, 200, down.At(time.Second), 1e-9)
	for _, c := range []struct {
		from, to time.Duration
		want     float64
	}{{0, 2 * time.Second, 200}, {time.Second, 3 * time.Second, 275}, {2 * time.Second, 4 * time.Second, 150}, {time.Second, time.Second, 0}, {2, 1, 0}} {
		require.InDelta(t, c.want, up.Between(c.from, c.to), 1e-9, "%v", c)
	}
	for until, want := range map[time.Duration]int64{-1: 0, 0: 0, time.Second: 150, 2 * time.Second: 400, time.Hour: 700} {
		require.Equal(t, want, up.Until(int64(until)), "%v", until)
	}
}

// The rate is what the expected number of ops grows by.
func TestRateIsTheSlope(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		from := time.Duration(rapid.Int64Range(0, int64(s.Duration)-1).Draw(t, "from"))
		to := from + time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Second)).Draw(t, "width"))
		until := func(d time.Duration) Shape { return Shape{Rate: s.Rate, From: s.From, Ramp: s.Ramp, Duration: d} }
		endless := until(month)
		slope := (until(to).Expected() - until(from).Expected()) / (to - from).Seconds()
		least, most := min(endless.At(from), endless.At(to)), max(endless.At(from), endless.At(to))
		require.GreaterOrEqual(t, slope, least-1e-3*most)
		require.LessOrEqual(t, slope, most*(1+1e-3))
	})
}

// poisson merges all streams of a Poisson schedule.
func poisson(s Shape, streams int, seed uint64) []int64 {
	var due []int64
	for i := range streams {
		stream := all(NewPoisson(s, streams, i, seed))
		due = append(due, stream...)
	}
	slices.Sort(due)
	return due
}

// The statistical tests run on fixed seeds: they are deterministic, and the limits are far out in the tails of their statistics
// (five standard deviations, or a significance of 10⁻⁴), so that a failure means a wrong generator.

func TestPoissonHasItsRateForAnyNumberOfStreams(t *testing.T) {
	s := Shape{Rate: 20_000, Duration: 10 * time.Second}
	for _, streams := range []int{1, 2, 3, 16, 1024, 1500, 10_000} {
		for seed := range uint64(5) {
			n := float64(len(poisson(s, streams, seed)))
			require.InDelta(t, 200_000, n, 5*math.Sqrt(200_000), "%d streams, seed %d", streams, seed)
		}
	}
}

func TestPoissonGapsAreExponential(t *testing.T) {
	s := Shape{Rate: 20_000, Duration: 10 * time.Second}
	for _, streams := range []int{1, 16, 1024} {
		due := poisson(s, streams, 42)
		gaps := make([]float64, len(due))
		before := int64(0)
		for i, d := range due {
			gaps[i] = float64(d-before) / 1e9 * s.Rate
			before = d
		}
		slices.Sort(gaps)
		distance := 0.0 // Kolmogorov and Smirnov's
		n := float64(len(gaps))
		for i, g := range gaps {
			f := 1 - math.Exp(-g)
			distance = max(distance, f-float64(i)/n, float64(i+1)/n-f)
		}
		require.Less(t, distance*math.Sqrt(n), 2.23, "%d streams: K at a significance of 10⁻⁴", streams)
	}
}

// The counts in windows of a Poisson process have a variance equal to their mean, whatever the window.
func TestPoissonIndexOfDispersion(t *testing.T) {
	s := Shape{Rate: 20_000, Duration: 20 * time.Second}
	for _, streams := range []int{1, 16, 1024} {
		due := poisson(s, streams, 7)
		for _, window := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond} {
			counts := make([]float64, s.Duration/window)
			for _, d := range due {
				counts[d/int64(window)]++
			}
			mean, variance := moments(counts)
			k := float64(len(counts) - 1)
			require.InDelta(t, 1, variance/mean, 5*math.Sqrt(2/k), "%d streams in windows of %s", streams, window)
		}
	}
}

func moments(x []float64) (mean, variance float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x)-1)
	}
	return mean, variance
}

func TestPoissonStreamsAreIndependent(t *testing.T) {
	const streams, windows = 200, 1000
	s := Shape{Rate: 200_000, Duration: 10 * time.Second}
	counts := func(seed uint64, i int) []float64 {
		c := make([]float64, windows)
		for _, d := range all(NewPoisson(s, streams, i, seed)) {
			c[d/(int64(s.Duration)/windows)]++
		}
		return c
	}
	require.Less(t, math.Abs(correlation(counts(1, 3), counts(2, 3))), 5/math.Sqrt(windows), "same stream of adjacent seeds")
	before := counts(1, 0)
	for i := 1; i < streams; i++ {
		c := counts(1, i)
		require.Less(t, math.Abs(correlation(before, c)), 5/math.Sqrt(windows), "streams %d and %d", i-1, i)
		before = c
	}
}

func correlation(x, y []float64) float64 {
	mx, vx := moments(x)
	my, vy := moments(y)
	sum := 0.0
	for i := range x {
		sum += (x[i] - mx) * (y[i] - my)
	}
	return sum / float64(len(x)-1) / math.Sqrt(vx*vy)
}

func TestPoissonRampCounts(t *testing.T) {
	for _, s := range shapes {
		due := poisson(s, 1024, 3)
		for at := time.Second; at <= s.Duration; at += time.Second {
			want := Shape{Rate: s.Rate, From: s.From, Ramp: s.Ramp, Duration: at}.Expected()
			got, _ := slices.BinarySearch(due, int64(at))
			require.InDelta(t, want, got, 5*math.Sqrt(want), "ops due before %s", at)
		}
	}
}

func TestPoissonRunsInOrderAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawShape(t)
		streams := rapid.IntRange(1, 2000).Draw(t, "streams")
		p := NewPoisson(s, streams, rapid.IntRange(0, streams-1).Draw(t, "i"), rapid.Uint64().Draw(t, "seed"))
		due := all(p)
		require.True(t, slices.IsSorted(due))
		if len(due) > 0 {
			require.GreaterOrEqual(t, due[0], int64(0))
			require.Less(t, due[len(due)-1], int64(s.Duration))
		}
	})
}

func TestEndedPacerStaysEnded(t *testing.T) {
	s := Shape{Rate: 10, Duration: time.Second}
	for _, p := range []Pacer{{}, NewConstant(Shape{}, 3, 2), NewConstant(s, 1, 0), NewPoisson(s, 1, 0, 1)} {
		for range 100 {
			p.Next()
		}
		_, ok := p.Next()
		require.False(t, ok)
	}
	require.Empty(t, all(Pacer{}))
	require.Empty(t, all(NewConstant(Shape{}, 3, 2)))
}

// A change of the golden file changes every published schedule: it needs a reason.
func TestGolden(t *testing.T) {
	var b strings.Builder
	for _, ramp := range []time.Duration{0, 10 * time.Second} {
		s := Shape{Rate: 1000, Ramp: ramp, Duration: time.Minute}
		for _, i := range []int{0, 1, 1023} {
			constant, random := NewConstant(s, 1024, i), NewPoisson(s, 1024, i, 1)
			fmt.Fprintf(&b, "ramp %s, stream %d of 1024\n", ramp, i)
			for range 5 {
				c, _ := constant.Next()
				p, _ := random.Next()
				fmt.Fprintf(&b, "%12d %12d\n", c, p)
			}
		}
	}
	path := filepath.Join("testdata", "due.golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func TestNextAllocatesNothing(t *testing.T) {
	s := Shape{Rate: 1e6, Ramp: time.Millisecond, Duration: time.Hour}
	constant, random := NewConstant(s, 16, 3), NewPoisson(s, 16, 3, 1)
	require.Zero(t, testing.AllocsPerRun(1000, func() { constant.Next(); random.Next() }))
}

func BenchmarkNext(b *testing.B) {
	s := Shape{Rate: 1e6, Duration: month}
	bench := func(p Pacer) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p.Next()
			}
		}
	}
	b.Run("arrivals=constant", bench(NewConstant(s, 1024, 3)))
	b.Run("arrivals=poisson", bench(NewPoisson(s, 1024, 3, 1)))
}
