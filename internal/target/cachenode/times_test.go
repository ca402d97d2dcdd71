package cachenode

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseTimes(t *testing.T) {
	for text, want := range map[string]Times{
		"0s":                     {},
		"200us":                  {First: 200 * time.Microsecond},
		"exp(1ms)":               {Family: "exp", First: time.Millisecond},
		" exp( 1ms ) ":           {Family: "exp", First: time.Millisecond},
		"uniform(50us, 200us)":   {Family: "uniform", First: 50 * time.Microsecond, Second: 200 * time.Microsecond},
		"uniform(0s,1h)":         {Family: "uniform", Second: time.Hour},
		"lognormal(100us, 0.5)":  {Family: "lognormal", First: 100 * time.Microsecond, Sigma: 0.5},
		"lognormal(300ns,3)":     {Family: "lognormal", First: 300, Sigma: 3},
		"lognormal(1s, 2.5e-05)": {Family: "lognormal", First: time.Second, Sigma: 2.5e-5},
	} {
		got, err := ParseTimes(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		again, err := ParseTimes(got.String())
		require.NoError(t, err, got)
		require.Equal(t, want, again)
	}
	const forms = ": write a duration with its unit, like 100us, or exp(100us), uniform(50us, 200us) or lognormal(100us, 0.5)"
	for text, words := range map[string]string{
		"":                     `""` + forms,
		"fast":                 `"fast"` + forms,
		"200":                  `"200"` + forms,
		"gamma(200us)":         `"gamma(200us)"` + forms,
		"exp(200)":             `"exp(200)"` + forms,
		"exp(1ms":              `"exp(1ms"` + forms,
		"exp(1ms))":            `"exp(1ms))"` + forms,
		"uniform(1ms)":         `"uniform(1ms)"` + forms,
		"uniform(1ms, 2)":      `"uniform(1ms, 2)"` + forms,
		"lognormal(1ms, x)":    `"lognormal(1ms, x)"` + forms,
		"-1s":                  "-1s: write 0s to 1h0m0s",
		"61m":                  "1h1m0s: write 0s to 1h0m0s",
		"exp(61m)":             "1h1m0s: write 0s to 1h0m0s",
		"exp(0s)":              "exp(0s): write a time above 0",
		"uniform(2ms, 1ms)":    "uniform(2ms, 1ms): write the least time first, then a larger one of at most 1h0m0s",
		"uniform(1ms, 1ms)":    "uniform(1ms, 1ms): write the least time first, then a larger one of at most 1h0m0s",
		"uniform(1ms, 61m)":    "uniform(1ms, 1h1m0s): write the least time first, then a larger one of at most 1h0m0s",
		"lognormal(0s, 1)":     "lognormal(0s, 1): write a time above 0",
		"lognormal(1ms, 0)":    "lognormal(1ms, 0): write a sigma above 0, at most 3",
		"lognormal(1ms, -1)":   "lognormal(1ms, -1): write a sigma above 0, at most 3",
		"lognormal(1ms, 3.1)":  "lognormal(1ms, 3.1): write a sigma above 0, at most 3",
		"lognormal(1ms, NaN)":  "lognormal(1ms, NaN): write a sigma above 0, at most 3",
		"lognormal(1ms, +Inf)": "lognormal(1ms, +Inf): write a sigma above 0, at most 3",
	} {
		_, err := ParseTimes(text)
		require.EqualError(t, err, words)
	}
}

// TestDraws compares many draws with their distribution, and a seed's draws with those of the same seed.
func TestDraws(t *testing.T) {
	normal := func(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }
	for text, distribution := range map[string]func(ms float64) float64{
		"exp(2ms)":            func(x float64) float64 { return 1 - math.Exp(-x/2) },
		"uniform(1ms, 5ms)":   func(x float64) float64 { return (x - 1) / 4 },
		"lognormal(2ms, 0.5)": func(x float64) float64 { return normal(math.Log(x/2) / 0.5) },
	} {
		times, err := ParseTimes(text)
		require.NoError(t, err)
		draws := func(seed uint64, n int) (list []time.Duration) {
			random := rand.NewPCG(seed, delaySource)
			for range n {
				list = append(list, times.Draw(random))
			}
			return list
		}
		require.Equal(t, draws(1, 10), draws(1, 10))
		require.NotEqual(t, draws(1, 10), draws(2, 10))
		const n = 100_000
		list := draws(3, n)
		slices.Sort(list)
		distance := 0.0
		for i, d := range list {
			f := distribution(float64(d) / 1e6)
			distance = max(distance, f-float64(i)/n, float64(i+1)/n-f)
		}
		require.Less(t, distance*math.Sqrt(n), 2.23, "%s: Kolmogorov and Smirnov's K at a significance of 10⁻⁴", text)
	}
}
