package judge

import (
	"math"
	"math/rand/v2"
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

// upTo is a target that holds up to a rate, and fails in one way above it.
func upTo(threshold float64, failure Outcome) target {
	return func(rate float64) Try {
		if rate > threshold {
			return Try{Rate: rate, Outcome: failure}
		}
		return Try{Rate: rate, Power: 1}
	}
}

// carryOut searches to the end. closed is what the closed load reaches.
func carryOut(t require.TestingT, b Bounds, closed float64, of target) ([]Try, End) {
	rate, end := b.Next(nil, false)
	require.Zero(t, rate)
	require.Equal(t, GoOn, end)
	tries := []Try{{Rate: closed, Outcome: Closed}}
	for len(tries) < 200 {
		rate, end := b.Next(tries, false)
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
	b := Bounds{From: 10, To: 1e9, Precision: 0.02}
	tries, end := carryOut(t, b, 1000, queue(1000, 1, 5e-3))
	require.Equal(t, Precise, end)
	found := b.Sum(tries)
	require.InEpsilon(t, 800, tries[found.Held].Rate, 0.02)
	require.LessOrEqual(t, tries[found.Held].Rate, 800.0)
	require.Less(t, found.Low, 800.0)
	require.Greater(t, found.High, 800.0)
	require.LessOrEqual(t, found.High, 1.02*found.Low)
	require.Equal(t, Failed, tries[found.Failed].Outcome)
	require.GreaterOrEqual(t, found.Times, 2)
	require.LessOrEqual(t, len(tries), 30)
}

// M/M/1 has its greatest power at half the capacity, M/D/1 at 2 − √2 of it.
func TestKnee(t *testing.T) {
	for variability, knee := range map[float64]float64{1: 0.5, 0: 2 - math.Sqrt2} {
		b := Bounds{From: 3, To: 1e9, Precision: 0.02}
		tries, _ := carryOut(t, b, 10_000, queue(10_000, variability, 1))
		require.InDelta(t, knee, tries[b.Sum(tries).Knee].Rate/10_000, 0.1, "variability %g", variability)
	}
}

// A delay that does not grow, and an end to it: the knee is the last rate that holds.
func TestKneeOfAWall(t *testing.T) {
	b := Bounds{From: 100, To: 1e9, Precision: 0.05}
	tries, _ := carryOut(t, b, 4200, func(rate float64) Try {
		if rate > 4000 {
			return Try{Rate: rate, Outcome: Overloaded}
		}
		return Try{Rate: rate, Power: rate / 1e-3}
	})
	found := b.Sum(tries)
	require.InEpsilon(t, tries[found.Held].Rate, tries[found.Knee].Rate, 0.05)
	require.InEpsilon(t, 4000, tries[found.Held].Rate, 0.05)
}

// Whatever the largest rate is, and whatever the closed load said, the answer is within the precision of it, and the curve below it is there.
func TestPrecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := Bounds{From: rapid.Float64Range(1, 1000).Draw(t, "from"), To: 1e9, Precision: rapid.Float64Range(0.01, 0.5).Draw(t, "precision")}
		threshold := b.From * rapid.Float64Range(1.01, 1e5).Draw(t, "threshold")
		closed := threshold * rapid.Float64Range(0.1, 20).Draw(t, "closed")
		failure := rapid.SampledFrom([]Outcome{Failed, Overloaded, Limited}).Draw(t, "failure")
		tries, end := carryOut(t, b, closed, upTo(threshold, failure))
		found := b.Sum(tries)
		require.Equal(t, Precise, end)
		require.LessOrEqual(t, tries[found.Held].Rate, threshold)
		require.GreaterOrEqual(t, tries[found.Held].Rate*(1+2*b.Precision), threshold*0.999)
		require.Equal(t, failure, tries[found.Failed].Outcome)
		require.Greater(t, tries[found.Failed].Rate, threshold)
	})
}

// Disturbances that spoil one try in four hardly ever change the answer, and never for the better.
func TestNoise(t *testing.T) {
	right := 0
	const runs = 50
	for seed := range uint64(runs) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := Bounds{From: 100, To: 1e9, Precision: 0.05}
		tries, _ := carryOut(t, b, 60_000, func(rate float64) Try {
			if rate > 50_000 || random.IntN(4) == 0 {
				return Try{Rate: rate, Outcome: Failed, Power: 1}
			}
			return Try{Rate: rate, Power: 1}
		})
		found := b.Sum(tries)
		require.LessOrEqual(t, tries[found.Held].Rate, 50_000.0)
		if tries[found.Held].Rate*1.05 >= 50_000 {
			right++
		}
	}
	require.GreaterOrEqual(t, right, runs*9/10)
}

// Tries that the generator spoils do not move the answer, and the search comes back to their rates.
func TestSpoiledTries(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := Bounds{From: 100, To: 1e9, Precision: 0.05}
		spoil := 3
		tries, end := carryOut(t, b, 9000, func(rate float64) Try {
			if spoil > 0 && random.IntN(5) == 0 {
				spoil--
				return Try{Rate: rate, Outcome: Limited}
			}
			return upTo(8000, Failed)(rate)
		})
		require.Equal(t, Precise, end)
		require.InEpsilon(t, 8000, tries[b.Sum(tries).Held].Rate, 0.06, "seed %d", seed)
	}
}

func TestEnds(t *testing.T) {
	closed := func(rate float64, tries ...Try) []Try { return append([]Try{{Rate: rate, Outcome: Closed}}, tries...) }
	tests := []struct {
		name  string
		b     Bounds
		last  bool
		tries []Try
		rate  float64
		end   End
		held  int
	}{
		{"begins with a closed load", Bounds{10, 100, 0.1}, false, nil, 0, GoOn, -1},
		{"then cautiously", Bounds{10, 1e9, 0.1}, false, closed(8000), 1000, GoOn, -1},
		{"not below from", Bounds{10, 1e9, 0.1}, false, closed(40), 10, GoOn, -1},
		{"nor above to", Bounds{10, 100, 0.1}, false, closed(8000), 100, GoOn, -1},
		{"a closed load that reached nothing", Bounds{10, 1e9, 0.1}, false, closed(0), 10, GoOn, -1},
		{"grows", Bounds{10, 1e9, 0.1}, false, closed(8000, Try{Rate: 1000}), 2000, GoOn, 1},
		{"up to the closed load", Bounds{10, 1e9, 0.1}, false, closed(8000, Try{Rate: 5000}), 8000, GoOn, 1},
		{"and beyond it", Bounds{10, 1e9, 0.1}, false, closed(8000, Try{Rate: 8000}), 16000, GoOn, 1},
		{"falls", Bounds{10, 1e9, 0.1}, false, closed(8000, Try{Rate: 1000, Outcome: Failed}), 250, GoOn, -1},
		{"comes back to what the generator spoiled", Bounds{10, 1e9, 0.1}, false, closed(8000, Try{Rate: 1000}, Try{Rate: 4000, Outcome: Limited}), 2000, GoOn, 1},
		{"to holds once", Bounds{10, 100, 0.1}, false, closed(8000, Try{Rate: 100}), 100, GoOn, 1},
		{"to holds", Bounds{10, 100, 0.1}, false, closed(8000, Try{Rate: 100}, Try{Rate: 100}), 75, AtTo, 2},
		{"from fails once", Bounds{10, 100, 0.1}, false, closed(80, Try{Rate: 10, Outcome: Failed}), 10, GoOn, -1},
		{"from fails", Bounds{10, 100, 0.1}, false, closed(80, Try{Rate: 10, Outcome: Failed}, Try{Rate: 10, Outcome: Failed}), 0, BelowFrom, -1},
		{"from is an overload", Bounds{10, 100, 0.1}, false, closed(80, Try{Rate: 10, Outcome: Overloaded}), 0, BelowFrom, -1},
		{"from is the generator's limit", Bounds{10, 100, 0.1}, false, closed(80, Try{Rate: 10, Outcome: Limited}, Try{Rate: 10, Outcome: Limited}, Try{Rate: 10, Outcome: Limited}), 0, BelowFrom, -1},
		{"the last tries are for the answer", Bounds{10, 1e9, 0.1}, true, closed(8000, Try{Rate: 1000}, Try{Rate: 2000}, Try{Rate: 4000, Outcome: Failed}), 2000, GoOn, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rate, end := tt.b.Next(tt.tries, tt.last)
			require.Equal(t, tt.end, end)
			require.InDelta(t, tt.rate, rate, 1e-9)
			require.Equal(t, tt.held, tt.b.Sum(tt.tries).Held)
		})
	}
}
