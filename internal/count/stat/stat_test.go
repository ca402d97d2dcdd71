package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// noise returns n draws around a mean, each correlated with the one before it by rho.
func noise(seed uint64, n int, mean, sd, rho float64) []float64 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float64, n)
	last := r.NormFloat64()
	for i := range x {
		x[i] = mean + sd*last
		last = rho*last + math.Sqrt(1-rho*rho)*r.NormFloat64()
	}
	return x
}

// The mean of the distribution is that of Pollaczek and Khinchine, ρ / (2(1 − ρ)) service times, and a simulated queue (Lindley's
// recursion) has the same quantiles.
func TestMD1Wait(t *testing.T) {
	for _, load := range []float64{0.1, 0.3, 0.5, 0.7, 0.85, 0.9} {
		decay := md1Decay(load)
		mean, step := 0.0, 0.001
		for x := step / 2; x < 60/decay; x += step {
			mean += step * md1Tail(load, decay, x)
		}
		require.InEpsilon(t, load/(2*(1-load)), mean, 0.002, "mean at %v", load)

		r := rand.New(rand.NewPCG(7, 7))
		wait, all := 0.0, make([]float64, 400_000)
		for i := range all {
			all[i] = wait
			wait = max(0, wait+1-r.ExpFloat64()/load)
		}
		slices.Sort(all)
		for _, q := range []float64{0.5, 0.9, 0.99} {
			require.InDelta(t, all[int(q*float64(len(all)))], MD1Wait(load, q), 0.1/(1-load), "q %v at %v", q, load)
		}
	}
	require.Zero(t, MD1Wait(0, 0.99))
	require.Zero(t, MD1Wait(0.005, 0.99), "fewer than 1 % wait")
	require.InDelta(t, math.Log(0.95/0.9)/0.1, MD1Wait(0.1, 0.95), 1e-9, "within the first service time it is a logarithm")
}

// Values by hand: of the ten slopes between 1, 2, 4, 3 and 6, the fifth and the sixth are 1 and 1.25.
func TestSen(t *testing.T) {
	require.InDelta(t, 1.125, sen([]float64{0, 1, 2, 3, 4}, []float64{1, 2, 4, 3, 6}), 1e-12)
	require.Equal(t, 2.5, sen([]float64{0, 1, 2}, []float64{0, 1, 5}), "of 1, 4 and 2.5, an odd number the one in the middle")
}

// Values by hand: the line through the ranks 0, 1, 3, 2 and 4 rises by 0.9, which leaves squares of 1.9 in total; if neighbours are independent, the
// error is √(1.9 / 3 / 10).
func TestLineThroughRanks(t *testing.T) {
	require.Equal(t, []float64{0, 1.5, 3, 1.5, 4}, ranks([]float64{1, 2, 4, 2, 6}))
	l := fit(ranks([]float64{1, 2, 4, 3, 6}))
	require.InDelta(t, 0.9, l.slope, 1e-12)
	require.InDelta(t, 1.9, l.squares, 1e-12)
	require.InDelta(t, math.Sqrt(1.9/30), l.error(0), 1e-12)
	require.Greater(t, l.error(0.5), l.error(0))
	require.Equal(t, 1.0, byChance([]float64{5, 5, 5, 5, 5}))
	require.Zero(t, byChance([]float64{1, 2, 3, 4, 5}))
}

// Values by hand: the squares about the mean of what is left are 2.75 for four, 2 for three and 2 for two, divided by 16, 9 and 4.
func TestMSER(t *testing.T) {
	require.Zero(t, mser([]float64{2, 1, 0, 2}))
	require.Equal(t, 1, mser([]float64{5, 1, 1, 1}))
	require.Equal(t, 2, mser([]float64{5, 5, 1, 1}), "half, at most")
	require.Zero(t, mser([]float64{3, 3, 3, 3}), "a constant series has no beginning")
	require.Zero(t, mser([]float64{9, 1}), "what is left is more than one")
	require.Zero(t, mser(nil))
}

// Values by hand: 3 apart, with an error of √(2 / 1 · (1 + 1/2)) = √3, t is √3; a third of Student's t with one degree of freedom lies beyond that.
func TestAlike(t *testing.T) {
	require.True(t, alike([]float64{13}, []float64{9, 11}, 0, 0.33))
	require.False(t, alike([]float64{13}, []float64{9, 11}, 0, 0.34))
	require.True(t, alike([]float64{7}, []float64{9, 11}, 0, 0.33), "below as above")
	require.False(t, alike([]float64{7}, []float64{9, 11}, 0, 0.34))
	require.True(t, alike([]float64{11}, []float64{10, 10}, 0.1, 1), "by no more than the share")
	require.False(t, alike([]float64{11.1}, []float64{10, 10}, 0.1, 0.5))
}

// The probability is Student's with n − 2 degrees of freedom: three for five values, with the distribution F(t) = ½ + (u / (1 + u²) + atan u) / π, u
// = t / √3.
func TestChanceOfATrendByHand(t *testing.T) {
	x := []float64{1, 2, 4, 3, 6}
	l := fit(ranks(x))
	u := l.slope / l.error(l.likeness()) / math.Sqrt(3)
	want := 1 - 2*(u/(1+u*u)+math.Atan(u))/math.Pi
	require.InDelta(t, want, byChance(x), 1e-9)
	slices.Reverse(x)
	require.InDelta(t, want, byChance(x), 1e-9, "downwards as upwards")
}

// Both formulas of the queue hold where one takes over from the other.
func TestMD1TailIsOneCurve(t *testing.T) {
	for _, load := range []float64{0.5, 0.7, 0.85, 0.9} {
		decay := md1Decay(load)
		require.InEpsilon(t, load*math.Expm1(decay), decay, 1e-9)
		exact := md1Tail(load, decay, 16)
		require.InEpsilon(t, exact, md1Tail(load, decay, math.Nextafter(16, 17)), 1e-3, "%v", load)
	}
}

// A series that still rises after its cut is cut as MSER-5 says only if that is more than the share longest: otherwise the part of the beginning that
// is like the rest is kept.
func TestWarmUpOfASeriesThatGoesOnToRise(t *testing.T) {
	x := noise(1, 100, 1000, 10, 0)
	for i := range x {
		x[i] += 10 * float64(i)
	}
	all, some := WarmUp(x, 0.02, 0.3), WarmUp(x, 0.02, 0.9)
	require.Equal(t, batch*mser(means(x, batch)), all)
	require.LessOrEqual(t, some, all)
}

// What MSER-5 cuts is kept only if all of it is like the rest: a first batch that happens to be does not excuse those after it.
func TestWarmUpBehindABeginningLikeTheRest(t *testing.T) {
	x := noise(1, 100, 1000, 10, 0)
	for i := 5; i < 20; i++ {
		x[i] -= 300
	}
	require.Equal(t, 20, WarmUp(x, 0.02, 0.3))
}

// Ten batch means by hand, of which the last do not vary: a batch is like those if it is off by at most 20. What MSER-5 cuts is kept from the first
// batch that is like the rest on its own and together with those after it.
func TestWarmUpByHand(t *testing.T) {
	for name, c := range map[string]struct {
		first []float64
		want  int
	}{
		"nothing to cut":                       {nil, 0},
		"each is like the rest":                {[]float64{1010, 990}, 0},
		"at the bound":                         {[]float64{1020, 980}, 0},
		"together they are, and neither is":    {[]float64{1030, 970}, 10},
		"the first is, and not together":       {[]float64{1000, 950}, 10},
		"the second is":                        {[]float64{900, 1010}, 5},
		"the second is, and not with the last": {[]float64{950, 1000, 1050}, 15},
		"the third is":                         {[]float64{950, 1050, 1000.5}, 10},
	} {
		var series []float64
		for i := range 10 {
			v := 1000.0
			if i < len(c.first) {
				v = c.first[i]
			}
			series = append(series, slices.Repeat([]float64{v}, batch)...)
		}
		require.Equal(t, c.want, WarmUp(series, 0.02, 0.3), name)
	}
}

// Values by hand: with twelve that are alike in pairs, r is 1/12, and without its bias 3/8; of twelve that swing it is −11/12, so −9/8.
func TestLikenessOfNeighbours(t *testing.T) {
	of := func(x ...float64) float64 {
		_, squares := spread(x)
		return line{rest: x, squares: squares}.likeness()
	}
	require.InDelta(t, 0.375+1.645*math.Sqrt((1-0.375*0.375)/12), of(1, 1, -1, -1, 1, 1, -1, -1, 1, 1, -1, -1), 1e-12)
	require.Zero(t, of(1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1))
	require.Equal(t, 0.95, of(1, 1, 1, 1, 1, -1, -1, -1, -1, -1), "at most")

	l := line{rest: make([]float64, 4), squares: 1}
	require.InDelta(t, math.Sqrt(0.9875/(4-2.0625-0.9875)/5), l.error(0.5), 1e-12)
}

// TestDescribeConstantAndLong series: neither has noise, so every figure is exact.
func TestDescribeConstantAndLong(t *testing.T) {
	for _, n := range []int{150, 512, 513, 1537} {
		flat, rising := make([]float64, n), make([]float64, n)
		for i := range flat {
			flat[i], rising[i] = 5, float64(i)
		}
		require.Equal(t, Trend{Mean: 5, Effective: float64(n), P: 1}, Describe(flat), "%d", n)
		require.Zero(t, WarmUp(flat, 0, 0.3))
		up, group := Describe(rising), map[int]int{150: 1, 512: 1, 513: 2, 1537: 4}[n] // no more than 512 points are compared
		require.Equal(t, float64(n-1)/2, up.Mean)
		require.Equal(t, float64(group*(n/group-1)), up.Drift, "%d", n)
		require.True(t, math.IsNaN(up.HalfWidth), "its mean describes no part of it")
		require.Zero(t, up.P)
	}
}

func TestDescribe(t *testing.T) {
	flat := Describe(noise(1, 150, 1000, 10, 0))
	require.InDelta(t, 1000, flat.Mean, 4)
	require.Greater(t, flat.Effective, 30.0)
	require.InDelta(t, 2.8, flat.HalfWidth, 1)
	require.Greater(t, flat.P, 0.01)

	falling := noise(3, 60, 1000, 10, 0)
	for i := range falling {
		falling[i] -= float64(i)
	}
	down := Describe(falling)
	require.InDelta(t, -59, down.Drift, 12)
	require.Less(t, down.P, 0.001)
}

// Chance finds a trend at p < 0.01 in about one of a hundred series, whether or not neighbours are correlated, and whether or not single seconds are
// outliers.
func TestTrendsByChance(t *testing.T) {
	const series = 1000
	for _, c := range []struct {
		length int
		rho    float64
		spikes bool
		most   int // out of 1,000 series
	}{
		{10, 0, false, 15},
		{10, 0.3, false, 20},
		{10, 0.6, false, 45},
		{20, 0, false, 15},
		{20, 0.3, false, 15},
		{20, 0.6, false, 30},
		{20, 0.6, true, 30},
		{30, 0.6, false, 20},
		{60, 0, false, 15},
		{60, 0.3, false, 15},
		{60, 0.6, false, 20},
		{60, 0.6, true, 20},
		{120, 0, false, 15},
		{120, 0.6, false, 15},
	} {
		found := 0
		for seed := range uint64(series) {
			x := noise(seed, c.length, 1000, 10, c.rho)
			for i := range x {
				if r := rand.New(rand.NewPCG(seed, uint64(i))); c.spikes && r.Float64() < 0.07 {
					x[i] -= 200
				}
			}
			if Describe(x).P < 0.01 {
				found++
			}
		}
		require.LessOrEqual(t, found, c.most, "%+v", c)
	}
}

// A change by that many standard deviations of a second is found in most series, even if one second in ten is an outlier.
func TestTrendsAreFound(t *testing.T) {
	const series = 300
	for _, c := range []struct {
		length  int
		rho, by float64
		spikes  bool
		least   int // out of 300
	}{
		{10, 0, 100, false, 300},
		{10, 0, 8, false, 220},
		{10, 0.6, 100, false, 300},
		{20, 0, 5, false, 250},
		{20, 0.6, 100, false, 300},
		{20, 0, 8, true, 170},
		{60, 0, 4, false, 295},
		{60, 0, 4, true, 285},
		{60, 0.6, 8, false, 290},
	} {
		found := 0
		for seed := range uint64(series) {
			x := noise(seed, c.length, 1000, 10, c.rho)
			for i := range x {
				x[i] += 10 * c.by * float64(i) / float64(c.length)
				if c.spikes && i%10 == 7 {
					x[i] -= 300
				}
			}
			if Describe(x).P < 0.01 {
				found++
			}
		}
		require.GreaterOrEqual(t, found, c.least, "%+v", c)
	}
}

func TestWarmUp(t *testing.T) {
	steady := noise(1, 100, 1000, 10, 0)
	slow := slices.Clone(steady)
	for i := range 17 {
		slow[i] -= 300
	}
	require.Equal(t, 20, WarmUp(slow, 0.02, 0.3), "whole batches")
	growing := slices.Clone(steady)
	for i := range growing {
		growing[i] += 10 * float64(i)
	}
	require.GreaterOrEqual(t, WarmUp(growing, 0.02, 0.3), 45, "what never settles is cut as far as can be")
	late := slices.Clone(steady)
	for i := range 40 {
		late[i] -= 300
	}
	require.Equal(t, 40, WarmUp(late, 0.02, 0.3), "what settles late is cut when it has")
	require.Zero(t, WarmUp(nil, 0.02, 0.3))
}

// Noise alone is not cut, however strong it is and whether or not neighbours are somewhat correlated.
func TestWarmUpByChance(t *testing.T) {
	for _, length := range []int{50, 60, 120, 300} {
		for _, sd := range []float64{30, 300} {
			for _, rho := range []float64{0, 0.3} {
				cut := 0
				for seed := range uint64(500) {
					if WarmUp(noise(seed, length, 1000, sd, rho), 0.02, 0.3) > 0 {
						cut++
					}
				}
				require.LessOrEqual(t, cut, 10, "of 500 series of %d, sd %v, neighbours alike by %v", length, sd, rho)
			}
		}
	}
}

// A slow start is cut at its length, or slightly later, and not mistaken for a series that never settles.
func TestWarmUpOfASlowStart(t *testing.T) {
	const start = 10
	cuts := map[int]int{}
	for seed := range uint64(300) {
		x := noise(seed, 60, 1000, 30, 0.3)
		for i := range start {
			x[i] -= 200
		}
		cuts[WarmUp(x, 0.02, 0.3)]++
	}
	require.Greater(t, cuts[start]+cuts[start+5], 290, "%v", cuts)
}

// The spacing is the median length, in whole seconds, whatever is shorter or longer.
func TestSpacing(t *testing.T) {
	for _, c := range []struct {
		ends []float64
		want float64
	}{
		{nil, 1},
		{[]float64{0.2}, 1},
		{[]float64{3}, 3},
		{[]float64{1, 2, 3, 7}, 1},
		{[]float64{0.3, 1.3, 4.3, 5.3, 5.4}, 1},
		{[]float64{0.4, 2.4, 4.4, 4.5}, 2},
		{[]float64{1.4, 3.4, 5.4, 7.4, 7.9}, 2},
		{[]float64{2, 4}, 2},
		{[]float64{0.1, 0.3, 0.7}, 1},
		{[]float64{1.6, 3.2, 4.8}, 2},
		{[]float64{3, 7, 11}, 4},
	} {
		require.Equal(t, c.want, Spacing(c.ends, func(end float64) float64 { return end }), "%v", c.ends)
	}
}

// TestMeansAreInTheirIntervals as often as promised, whatever the correlation of neighbours, with a slow drift below white noise and with rare stalls;
// where that cannot be, there is none.
func TestMeansAreInTheirIntervals(t *testing.T) {
	const trials = 200
	for name, c := range map[string]struct{ phi, drift, white, stalls float64 }{
		"white": {0, 0, 1, 0}, "alike by 0.3": {0.3, 1, 0, 0}, "by 0.6": {0.6, 1, 0, 0}, "by 0.8": {0.8, 1, 0, 0},
		"a drift of 10 s": {0.9, 0.5, 1, 0}, "a drift of 20 s": {0.95, 1, 1, 0}, "stalls": {0, 0, 1, 0.02},
	} {
		for _, n := range []int{149, 150, 300} {
			random := rand.New(rand.NewPCG(1, uint64(n)))
			within, intervals := 0, 0
			for range trials {
				x := make([]float64, n)
				for i, v := range noise(random.Uint64(), n, 0, c.drift, c.phi) {
					if x[i] = v + c.white*random.NormFloat64(); random.Float64() < c.stalls {
						x[i] -= 100
					}
				}
				if d := Describe(x); !math.IsNaN(d.HalfWidth) {
					intervals++
					if math.Abs(d.Mean+100*c.stalls) <= d.HalfWidth {
						within++
					}
				}
			}
			t.Logf("%s, %d points: %.1f %% of %d", name, n, 100*float64(within)/float64(intervals), intervals)
			require.Equal(t, n >= 150, intervals > 0)
			require.GreaterOrEqual(t, float64(within), 0.88*float64(intervals), "%s, %d", name, n)
		}
	}
}

// TestBurstsAreInTheirIntervals as often as promised, however long the bursts are; there is no interval of few of them.
func TestBurstsAreInTheirIntervals(t *testing.T) {
	const trials, seconds, rate = 400, 120, 1000
	for _, length := range []int{1, 3, 10, 100, 2500} {
		for _, bursts := range []float64{3, 15, 60} {
			random, within, wilsons, intervals := rand.New(rand.NewPCG(uint64(length), uint64(bursts))), 0, 0, 0
			for range trials {
				stale, gets, all := make([]float64, seconds), slices.Repeat([]float64{rate}, seconds), 0.0
				for i := 0.0; i < seconds*rate; i += float64(length) {
					i += random.ExpFloat64() * seconds * rate / bursts
					for j := int(i); j < min(int(i)+length, seconds*rate); j++ {
						stale[j/rate]++
						all++
					}
				}
				truth := bursts * float64(length) / (seconds*rate + bursts*float64(length))
				if low, high, known := Bursts(stale, gets); known {
					intervals++
					if low <= truth && truth <= high {
						within++
					}
				}
				if low, high := Wilson(all, seconds*rate); low <= truth && truth <= high {
					wilsons++
				}
			}
			t.Logf("bursts of %d, %v of them: %d of %d; Wilson's %d of %d", length, bursts, within, intervals, wilsons, trials)
			require.Equal(t, bursts >= 10, intervals > trials*3/4)
			if bursts >= 10 {
				require.GreaterOrEqual(t, float64(within), 0.88*float64(intervals), "%d, %v", length, bursts)
			}
		}
	}
	_, _, known := Bursts(nil, nil)
	require.False(t, known)
}
