package judge

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// target returns the outcome of a rate.
type target func(rate float64) Try

// queue is a single server. A rate holds if the mean response time is within a limit. variability is that of the service times: 1 for
// M/M/1, 0 for M/D/1 (Pollaczek and Khinchine).
func queue(capacity, variability, limit float64) target {
	return func(rate float64) Try {
		load := rate / capacity
		if load >= 1 {
			return Try{Rate: rate, Outcome: Overloaded}
		}
		response := (1 + load*(1+variability)/2/(1-load)) / capacity
		t := Try{Rate: rate, Power: rate / response}
		if response > limit {
			t.Outcome = Failed
		}
		return t
	}
}

// carryOut searches to the end.
func carryOut(t require.TestingT, b Bounds, of target) ([]Try, End) {
	var tries []Try
	for len(tries) < 200 {
		rate, end := b.Next(tries)
		if rate == 0 {
			return tries, end
		}
		require.GreaterOrEqual(t, rate, b.From)
		require.LessOrEqual(t, rate, b.To)
		tries = append(tries, of(rate))
	}
	require.Fail(t, "the search does not end")
	return nil, GoOn
}

// The mean response time of M/M/1 is 1/(μ − λ): it is within 5 ms up to 800 a second of 1,000.
func TestFindsTheRateOfAQueue(t *testing.T) {
	tries, end := carryOut(t, Bounds{From: 10, To: 1e9, Precision: 0.02}, queue(1000, 1, 5e-3))
	require.Equal(t, Precise, end)
	found := Sum(tries)
	require.InEpsilon(t, 800, tries[found.Held].Rate, 0.02)
	require.LessOrEqual(t, tries[found.Held].Rate, 800.0)
	require.Greater(t, tries[found.Failed].Rate, 800.0)
	require.LessOrEqual(t, tries[found.Failed].Rate, 1.02*tries[found.Held].Rate)
	require.Equal(t, Failed, tries[found.Failed].Outcome)
	require.LessOrEqual(t, len(tries), 26)
}

// M/M/1 has its greatest power at half the capacity, M/D/1 at 2 − √2 of it.
func TestKnee(t *testing.T) {
	for variability, knee := range map[float64]float64{1: 0.5, 0: 2 - math.Sqrt2} {
		tries, _ := carryOut(t, Bounds{From: 3, To: 1e9, Precision: 0.02}, queue(10_000, variability, 1))
		found := Sum(tries)
		require.InDelta(t, knee, tries[found.Knee].Rate/10_000, 0.1, "variability %g", variability)
	}
}

// A delay that does not grow, and an end to it: the knee is the last rate that holds.
func TestKneeOfAWall(t *testing.T) {
	tries, _ := carryOut(t, Bounds{From: 100, To: 1e9, Precision: 0.05}, func(rate float64) Try {
		if rate > 4000 {
			return Try{Rate: rate, Outcome: Overloaded}
		}
		return Try{Rate: rate, Power: rate / 1e-3}
	})
	found := Sum(tries)
	require.Equal(t, found.Held, found.Knee)
	require.InEpsilon(t, 4000, tries[found.Held].Rate, 0.05)
}

// The answer is within the precision of the threshold, whatever that is.
func TestPrecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bounds{From: rapid.Float64Range(1, 1000).Draw(t, "from"), To: 1e9, Precision: rapid.Float64Range(0.001, 1).Draw(t, "precision")}
		threshold := b.From * rapid.Float64Range(1, 1e5).Draw(t, "threshold")
		failure := rapid.SampledFrom([]Outcome{Failed, Overloaded, Limited}).Draw(t, "failure")
		tries, end := carryOut(t, b, func(rate float64) Try {
			if rate > threshold {
				return Try{Rate: rate, Outcome: failure}
			}
			return Try{Rate: rate, Power: 1}
		})
		found := Sum(tries)
		require.Equal(t, Precise, end)
		require.LessOrEqual(t, tries[found.Held].Rate, threshold)
		require.Greater(t, tries[found.Failed].Rate, threshold)
		require.LessOrEqual(t, tries[found.Failed].Rate, tries[found.Held].Rate*(1+b.Precision))
		require.Equal(t, failure, tries[found.Failed].Outcome)
	})
}

// Disturbances that spoil one try in four hardly ever change the answer, and never for the better.
func TestNoise(t *testing.T) {
	right := 0
	const runs = 200
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 1))
		tries, _ := carryOut(t, Bounds{From: 100, To: 1e9, Precision: 0.05}, func(rate float64) Try {
			if rate > 50_000 || random.IntN(4) == 0 {
				return Try{Rate: rate, Outcome: Failed, Power: 1}
			}
			return Try{Rate: rate, Power: 1}
		})
		found := Sum(tries)
		require.LessOrEqual(t, tries[found.Held].Rate, 50_000.0)
		if tries[found.Held].Rate*1.05 >= 50_000 {
			right++
		}
	}
	require.GreaterOrEqual(t, right, runs*9/10)
}

func TestEnds(t *testing.T) {
	tests := []struct {
		name  string
		b     Bounds
		tries []Try
		rate  float64
		end   End
		found Found
	}{
		{"begins at from", Bounds{10, 100, 0.1}, nil, 10, GoOn, Found{-1, -1, -1}},
		{"grows", Bounds{10, 100, 0.1}, []Try{{Rate: 10, Power: 1}}, 20, GoOn, Found{0, -1, -1}},
		{"not beyond to", Bounds{10, 100, 0.1}, []Try{{Rate: 80, Power: 1}}, 100, GoOn, Found{0, -1, -1}},
		{"a failure is confirmed from above", Bounds{10, 100, 0.1}, []Try{{Rate: 10}, {Rate: 20, Outcome: Failed}, {Rate: 20, Outcome: Failed}, {Rate: 20, Outcome: Failed}}, 40, GoOn, Found{0, 1, -1}},
		{"or not", Bounds{10, 100, 0.1}, []Try{{Rate: 10}, {Rate: 20, Outcome: Failed}, {Rate: 20, Outcome: Failed}, {Rate: 20, Outcome: Failed}, {Rate: 40}}, 80, GoOn, Found{4, -1, -1}},
		{"no higher than to", Bounds{10, 20, 0.5}, []Try{{Rate: 10}, {Rate: 20, Outcome: Failed}, {Rate: 20, Outcome: Failed}, {Rate: 20, Outcome: Failed}}, math.Sqrt(200), GoOn, Found{0, 1, -1}},
		{"at last from nearby", Bounds{10, 100, 0.1}, []Try{{Rate: 10}, {Rate: 11, Outcome: Failed}, {Rate: 11, Outcome: Failed}, {Rate: 11, Outcome: Failed}, {Rate: 20, Outcome: Overloaded}}, math.Sqrt(220), GoOn, Found{0, 1, -1}},
		{"a limit of the generator needs no confirmation, and is tried on", Bounds{10, 100, 0.1}, []Try{{Rate: 10}, {Rate: 11, Outcome: Limited}, {Rate: 11, Outcome: Limited}}, 11, Precise, Found{0, 1, -1}},
		{"until it holds", Bounds{10, 11, 0.1}, []Try{{Rate: 10}, {Rate: 11, Outcome: Limited}, {Rate: 11, Outcome: Limited}, {Rate: 11}}, 0, AtTo, Found{3, -1, -1}},
		{"or for five times", Bounds{10, 100, 0.1}, append([]Try{{Rate: 10}}, slices.Repeat([]Try{{Rate: 11, Outcome: Limited}}, 5)...), 0, Precise, Found{0, 1, -1}},
		{"beside the knee, if there is time", Bounds{10, 100, 0.1}, []Try{{Rate: 10, Power: 1}, {Rate: 20}, {Rate: 21, Outcome: Overloaded}}, math.Sqrt(200), Precise, Found{1, 2, 0}},
		{"to holds", Bounds{10, 100, 0.1}, []Try{{Rate: 100}}, 0, AtTo, Found{0, -1, -1}},
		{"a failure is tried again", Bounds{10, 100, 0.1}, []Try{{Rate: 10, Outcome: Failed}}, 10, GoOn, Found{-1, -1, -1}},
		{"an overload is not", Bounds{10, 100, 0.1}, []Try{{Rate: 10, Outcome: Overloaded}}, 0, BelowFrom, Found{-1, 0, -1}},
		{"twice is enough of the generator's", Bounds{10, 100, 0.1}, []Try{{Rate: 10, Outcome: Limited}, {Rate: 10, Outcome: Limited}}, 0, BelowFrom, Found{-1, 0, -1}},
		{"and not of the target's", Bounds{10, 100, 0.1}, []Try{{Rate: 10, Outcome: Failed}, {Rate: 10, Outcome: Failed}}, 10, GoOn, Found{-1, -1, -1}},
		{"a third try decides for it", Bounds{10, 100, 0.1}, []Try{{Rate: 10, Outcome: Failed}, {Rate: 10, Outcome: Limited}, {Rate: 10}}, 20, GoOn, Found{2, -1, -1}},
		{"or against it", Bounds{10, 100, 0.1}, []Try{{Rate: 10, Outcome: Failed}, {Rate: 10, Outcome: Failed}, {Rate: 10, Outcome: Failed}}, 20, GoOn, Found{-1, 0, -1}},
		{"nor does a higher rate hold", Bounds{10, 100, 0.1}, []Try{{Rate: 10, Outcome: Failed}, {Rate: 10, Outcome: Failed}, {Rate: 10, Outcome: Failed}, {Rate: 20, Outcome: Overloaded}}, 0, BelowFrom, Found{-1, 0, -1}},
		{"from is to", Bounds{10, 10, 0.1}, []Try{{Rate: 10, Power: 1}}, 0, AtTo, Found{0, -1, -1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rate, end := tt.b.Next(tt.tries)
			require.Equal(t, tt.end, end)
			require.InDelta(t, tt.rate, rate, 1e-9)
			require.Equal(t, tt.found, Sum(tt.tries))
		})
	}
}
