package experiment_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/experiment"
)

// regressive draws repetitions of an AR(1) process around a level; its autocorrelation at lag k is φ to the k.
func regressive(repetitions, values int, level, phi float64, random *rand.Rand) experiment.Sample {
	s := make(experiment.Sample, repetitions)
	for i := range s {
		x := random.NormFloat64()
		for range values {
			x = phi*x + math.Sqrt(1-phi*phi)*random.NormFloat64()
			s[i] = append(s[i], level*(1+0.05*x))
		}
	}
	return s
}

// Of n values of an AR(1) process, n (1−φ)/(1+φ) are independent.
func TestEffectiveLenOfAKnownProcess(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	for _, phi := range []float64{0, 0.5, 0.8} {
		s := regressive(10, 2000, 100, phi, random)
		require.Equal(t, 20_000, s.Len())
		require.InEpsilon(t, 20_000*(1-phi)/(1+phi), s.EffectiveLen(), 0.15, "φ = %v", phi)
	}
}

// A repetition that is apart from the others makes all of its values count as one.
func TestRestartsThatDifferAreCorrelation(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	var s experiment.Sample
	for i := range 8 {
		s = append(s, regressive(1, 60, 100*(1+float64(i)), 0, random)...)
	}
	require.Less(t, s.EffectiveLen(), 16.0)
}

func TestScoreOfOneValueHasNoInterval(t *testing.T) {
	require.Equal(t, experiment.Estimate{Value: 7, Lo: math.Inf(-1), Hi: math.Inf(1)}, experiment.Sample{{7}}.Score())
	require.Equal(t, experiment.Estimate{Value: 7, Lo: math.Inf(-1), Hi: math.Inf(1)}, experiment.Sample{{7}}.Median())
}

func TestComparisonsThatCannotShowADifference(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 1))
	once := regressive(1, 60, 100, 0, random)
	for _, test := range []struct {
		doubt string
		a, b  experiment.Sample
	}{
		{"a ratio wants values above 0", single([]float64{1, 2, 3}), single([]float64{0, 0, 0})},
		{"a ratio wants values above 0", single([]float64{0, 0, 0}), single([]float64{1, 2, 3})},
		{"a ratio wants values above 0", single([]float64{-1, 2, 3}), single([]float64{1, 2, 3})},
		{"a ratio wants values above 0", single([]float64{1, 2, 3}), single([]float64{1, 2, 0})},
		{"a ratio wants values above 0", single([]float64{1, 2, 0}), single([]float64{1, 2, 3})},
		{"1 and 3 independent values are too few for a confidence interval: repeat at least 3 times", single([]float64{1}), single([]float64{1, 2, 3})},
		{"3 and 2 independent values are too few for a confidence interval: repeat at least 3 times", single([]float64{1, 2, 3}), single([]float64{1, 2})},
		{"one repetition does not tell the spread between restarts: repeat at least twice", once, once},
	} {
		c := experiment.Compare(test.a, test.b, 1)
		require.Equal(t, test.doubt, c.Doubt.Text)
		require.False(t, c.Differs)
		require.True(t, math.IsNaN(c.Spread))
		if math.IsNaN(c.Ratio.Value) {
			require.InDelta(t, 1, c.P, 0, "nothing was compared")
		}
		if len(test.a) != len(once) {
			require.Zero(t, c.Ratio.Lo, "any ratio may be the true one")
			require.True(t, math.IsInf(c.Ratio.Hi, 1))
		}
	}
	require.Positive(t, experiment.Compare(once, once, 1).MDE, "what is to be expected at the least")
	require.False(t, math.IsInf(experiment.Compare(once, once, 1).MDE, 0))
}

// A score of two values has an interval, and nothing is predicted if either side is too short for one.
func TestTheFewestValues(t *testing.T) {
	two := single([]float64{1, 3}).Score()
	require.InDelta(t, 2, two.Value, 1e-12)
	require.False(t, math.IsInf(two.Hi, 0))
	one := single([]float64{7}).Score()
	require.Equal(t, experiment.Estimate{Value: 7, Lo: math.Inf(-1), Hi: math.Inf(1)}, one)

	long, short := single([]float64{1, 2, 3}), single([]float64{1, 2})
	for _, c := range [][2]experiment.Sample{{short, long}, {long, short}, {short, short}} {
		mde, ok := experiment.Foresee(c[0], c[1], 3)
		require.False(t, ok)
		require.Zero(t, mde)
	}
	_, ok := experiment.Foresee(long, single([]float64{0, 0, 0}), 3)
	require.False(t, ok, "there is no ratio to 0")
	mde, ok := experiment.Foresee(long, long, 3)
	require.True(t, ok)
	require.Positive(t, mde)
}

func TestEqualValuesDoNotDiffer(t *testing.T) {
	same := single([]float64{5, 5, 5, 5})
	c := experiment.Compare(same, same, 1)
	require.False(t, c.Differs)
	require.Equal(t, experiment.Estimate{Value: 1, Lo: 1, Hi: 1}, c.Ratio)
	require.InDelta(t, 1, c.P, 0)
	require.InDelta(t, 0, c.MDE, 0)
}

func TestComparisonFollowsFromItsSeed(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 1))
	a, b := regressive(5, 30, 100, 0.3, random), regressive(5, 30, 104, 0.3, random)
	require.Equal(t, experiment.Compare(a, b, 1), experiment.Compare(a, b, 1))
	require.NotEqual(t, experiment.Compare(a, b, 1), experiment.Compare(a, b, 2))
}
