package stat

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// The values are from 40-digit arithmetic.
func TestStudentHasKnownValues(t *testing.T) {
	for _, c := range []struct{ free, t, want float64 }{
		{1, 1, 0.5},
		{1, 0.001, 0.999363380439839},
		{2, 0.1, 0.92946543841414},
		{3, 3, 0.0576688856224373},
		{4.5, 1.96, 0.113650248236385},
		{7.25, 12, 4.81391945290474e-6},
		{10, 1.96, 0.0784362402476997},
		{30, 5, 2.32966854670078e-5},
		{98, 0.7, 0.485585710943878},
		{250.5, 40, 9.03916279676081e-111},
		{1000, 1.96, 0.0502731849557487},
		{10000, 3, 0.00270644818999767},
		{1e6, 0.01, 0.992021289365548},
		{1e6, 1.96, 0.0499960675852698},
	} {
		require.InEpsilon(t, c.want, Student(c.t, c.free), 1e-10, "t %v of %v", c.t, c.free)
		require.Equal(t, Student(c.t, c.free), Student(-c.t, c.free), "below as above")
	}
	require.Equal(t, 1.0, Student(0, 3))
	require.Zero(t, Student(math.Inf(-1), 3))
	require.True(t, math.IsNaN(Student(math.NaN(), 3)))
	require.True(t, math.IsNaN(Student(1, 0)))
	for _, free := range []float64{0, -0.5, -1, -3, math.Inf(-1), math.NaN()} {
		for _, x := range []float64{0, 1, -2, math.Inf(1)} {
			require.True(t, math.IsNaN(Student(x, free)), "t %v of %v", x, free)
		}
	}
}

// The values are from 40-digit arithmetic.
func TestStudentLimitHasKnownValues(t *testing.T) {
	for _, c := range []struct{ free, p, want float64 }{
		{1, 0.05, 12.7062047361747},
		{1, 0.001, 636.61924876872},
		{2, 0.05, 4.30265272974946},
		{2, 0.001, 31.5990545764436},
		{4, 0.001, 8.61030158137928},
		{4.5, 0.05, 2.6589123472044},
		{9, 0.001, 4.78091258593114},
		{30, 0.05, 2.04227245630124},
		{98, 0.001, 3.39258811412819},
		{1000, 0.05, 1.96233908082641},
		{10000, 0.001, 3.2914999659416},
	} {
		require.InEpsilon(t, c.want, StudentLimit(c.p, c.free), 1e-10, "%v of %v", c.p, c.free)
	}
	require.True(t, math.IsInf(StudentLimit(0, 3), 1))
	require.InDelta(t, 0, StudentLimit(1, 3), 1e-300)
	require.True(t, math.IsInf(StudentLimit(-0.1, 3), 1))
	for _, free := range []float64{0, -1, math.NaN()} {
		require.True(t, math.IsNaN(StudentLimit(0.05, free)), "%v", free)
		require.True(t, math.IsNaN(StudentLimit(0, free)), "%v", free)
	}
	require.True(t, math.IsNaN(StudentLimit(math.NaN(), 3)))
}

// With 1, 2 and 4 degrees of freedom the probability is an elementary function.
func TestStudentIsTheElementaryFunction(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := math.Exp(rapid.Float64Range(-8, 8).Draw(t, "log t"))
		u := x / math.Sqrt(4+x*x)
		require.InDelta(t, 1-2*math.Atan(x)/math.Pi, Student(x, 1), 1e-12)
		require.InDelta(t, 1-x/math.Sqrt(2+x*x), Student(x, 2), 1e-12)
		require.InDelta(t, 1-u*(3-u*u)/2, Student(x, 4), 1e-12)
	})
}

func TestStudentIsAProbabilityThatFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		free := math.Exp(rapid.Float64Range(-2, 15).Draw(t, "log free"))
		x := math.Exp(rapid.Float64Range(-20, 20).Draw(t, "log t"))
		near, far := Student(x, free), Student(x*1.01, free)
		require.True(t, 0 <= far && near <= 1, "%v %v", near, far)
		require.LessOrEqual(t, far, near+1e-12)
		p := rapid.Float64Range(1e-6, 1).Draw(t, "p")
		if free >= 1 {
			require.InEpsilon(t, p, Student(StudentLimit(p, free), free), 1e-9)
		}
	})
}

// In binary, a third of 0.1 + 0.1 + 0.1 is not 0.1. A mean computed that way would make constant figures seem to vary.
func TestEqualValuesDoNotVary(t *testing.T) {
	same := []float64{0.1, 0.1, 0.1}
	require.Equal(t, 0.1, Mean(same))
	require.Zero(t, Variance(same))
	mean, half := MeanWithin(same, 0.001)
	require.Equal(t, 0.1, mean)
	require.Zero(t, half)
	require.Zero(t, Variance([]float64{7}))
	far := []float64{1e8 + 0.1, 1e8 + 0.2, 1e8 + 0.4}
	require.InEpsilon(t, 0.07/3, Variance(far), 1e-6, "far from 0, where squares have few digits behind the point")
	require.True(t, math.IsNaN(Mean(nil)))
	require.True(t, math.IsNaN(Variance(nil)))
}

func TestMeanWithin(t *testing.T) {
	mean, half := MeanWithin([]float64{12.9, 11.8, 14.1, 13.3, 12.2, 16.4, 11.1}, 0.001)
	require.InDelta(t, 13.114285714285714, mean, 1e-12)
	require.InDelta(t, 3.951409091601285, half, 1e-9)
}

// By definition Γ(a + ½) / Γ(a) times the same half a step further is Γ(a + 1) / Γ(a) = a, with logarithms and with the series. Where that begins,
// each of its terms is larger than the bound, and the first omitted one smaller.
func TestGammaRatioInTwoSteps(t *testing.T) {
	for _, a := range []float64{0.5, 1, 7.25, 49.4, 50, 50.25, 60, 100, 1000, 1e6} {
		require.InEpsilon(t, a, gammaRatio(a)*gammaRatio(a+0.5), 2e-11, "%v", a)
	}
}
