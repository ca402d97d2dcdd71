package judge

import (
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// queues are servers behind one queue, of which searches find the largest rate that holds.
type queues struct {
	name     string
	servers  int
	mean     float64 // service time, seconds
	service  func(r *rand.Rand) float64
	q, limit float64
	speed    func(r *rand.Rand) float64 // of a level; service times are multiplied by it
	refuse   float64                    // the rate above which ops are refused; 0: none
	client   float64                    // the generator offers no more; 0: any rate
	stall    float64                    // probability that a level has a pause of ten times the limit
	spaced   bool                       // ops arrive at even intervals
	later    float64                    // factor of service times in the second half of a search; 0: none
	spoil    float64                    // probability that the generator spoils a level
	bound    float64                    // of searches with spoiled levels, the largest share that may end bound by the client
	cover    float64                    // least share of intervals that contain the truth
	quick    bool                       // searched by every run of the tests
}

func random(r *rand.Rand) float64 { return r.ExpFloat64() }
func constant(*rand.Rand) float64 { return 1 }

// hyper has a squared coefficient of variation of 10, with balanced means.
func hyper(r *rand.Rand) float64 {
	p := 0.5 * (1 + math.Sqrt(9.0/11))
	if r.Float64() >= p {
		p = 1 - p
	}
	return r.ExpFloat64() / (2 * p)
}

func lognormal(r *rand.Rand) float64 { return math.Exp(1.5*r.NormFloat64() - 1.125) }

// varied is a speed that differs from level to level with this relative standard deviation.
func varied(sd float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return math.Exp(sd * r.NormFloat64()) }
}

// level tries a rate for some seconds, beginning with an empty queue.
func (z *queues) level(r *rand.Rand, rate, secs float64) Try {
	t := Try{Rate: rate, Seconds: secs}
	if z.client > 0 && rate > z.client || r.Float64() < z.spoil {
		t.Outcome = Limited
		return t
	}
	speed, pause := 1.0, math.Inf(1)
	if z.speed != nil {
		speed = z.speed(r)
	}
	if r.Float64() < z.stall {
		pause = r.Float64() * secs
	}
	free, n, slow, bad, response := make([]float64, z.servers), 0, 0, 0, 0.0
	tokens, last := 0.0, 0.0
	gap := r.ExpFloat64
	if z.spaced {
		gap = func() float64 { return 1 }
	}
	for at := gap() / rate; at < secs; at += gap() / rate {
		n++
		if z.refuse > 0 {
			tokens, last = min(z.refuse*0.01+1, tokens+(at-last)*z.refuse), at
			if tokens < 1 {
				bad++
				continue
			}
			tokens--
		}
		least := 0
		for i := range free {
			if free[i] < free[least] {
				least = i
			}
		}
		begin := max(at, free[least])
		if begin >= pause {
			begin, pause = begin+10*z.limit, math.Inf(1)
		}
		free[least] = begin + z.mean*z.service(r)*speed
		if response = free[least] - at; response > z.limit {
			slow++
		}
	}
	logit := func(p float64) float64 { return math.Log(p / (1 - p)) }
	odds := func(k int, allowed float64) float64 { return logit((float64(k)+0.5)/(float64(n)+1)) - logit(allowed) }
	slow += bad
	t.Score, t.Slow = max(odds(slow, 1-z.q), odds(bad, 0.01)), uint64(slow)
	switch {
	case response > 0.1*secs && response > z.limit:
		t.Outcome = Overloaded
	case float64(slow) > (1-z.q)*float64(n), float64(bad) > 0.01*float64(n):
		t.Outcome = Failed
	}
	return t
}

// truth is the largest rate that holds at the typical speed, by bisection over levels of so many ops.
func (z queues) truth(ops float64) float64 {
	if z.servers == 1 && z.name[:5] == "M/M/1" {
		return 1/z.mean + math.Log(1-z.q)/z.limit
	}
	z.speed, z.client, z.stall, z.spoil = nil, 0, 0, 0
	low, high := 0.05*float64(z.servers)/z.mean, 0.9999*float64(z.servers)/z.mean
	if z.refuse > 0 {
		low, high = 0.5*z.refuse, 1.2*z.refuse
	}
	for range 16 {
		middle := (low + high) / 2
		if t := z.level(rand.New(rand.NewPCG(9, 9)), middle, ops/middle); t.Score > 0 {
			high = middle
		} else {
			low = middle
		}
	}
	return (low + high) / 2
}

// search carries a search out.
func (z queues) search(r *rand.Rand, budget float64) ([]Try, Found) {
	closed := float64(z.servers) / z.mean * 0.98
	if z.refuse > 0 {
		closed = z.refuse
	}
	if z.client > 0 {
		closed = min(closed, z.client*1.05)
	}
	b := Bounds{From: 1, To: 1e9, Precision: 0.05, Budget: budget, Limit: z.limit, Least: min(1, budget/20), Few: 12 / (1 - z.q)}
	tries, spent := []Try{{Rate: closed, Outcome: Closed, Seconds: max(0.25, min(1, budget/20))}}, max(0.25, min(1, budget/20))
	for {
		next, end := b.Next(tries, spent)
		if end != GoOn || spent+next.Seconds > budget {
			return tries, b.Sum(tries)
		}
		if z.later > 0 && spent > budget/2 {
			z.mean, z.later = z.mean*z.later, 0
		}
		t := z.level(r, next.Rate, next.Seconds)
		t.Aim = next.Aim
		tries, spent = append(tries, t), spent+next.Seconds+0.02
	}
}

// TestSearchesCoverTheTruth searches simulated servers whose largest rate is known. The two whose speed changes from level to level beyond what a search
// can average out are covered less often, on the safe side. LOADGEN_TEST_SEARCHES searches all servers so many times.
func TestSearchesCoverTheTruth(t *testing.T) {
	const times = 60
	all, _ := strconv.Atoi(os.Getenv("LOADGEN_TEST_SEARCHES"))
	two := func(r *rand.Rand) float64 { return math.Pow(1.1, float64(r.IntN(2))-0.5) }
	servers := []queues{
		{name: "M/M/1 2ms p95 ≤ 40ms", servers: 1, mean: 2e-3, service: random, q: 0.95, limit: 40e-3, quick: true},
		{name: "M/M/1 1ms p95 ≤ 10ms", servers: 1, mean: 1e-3, service: random, q: 0.95, limit: 10e-3, quick: true},
		{name: "M/M/1 0.1ms p95 ≤ 1ms", servers: 1, mean: 1e-4, service: random, q: 0.95, limit: 1e-3},
		{name: "M/M/1 0.1ms p99 ≤ 1ms", servers: 1, mean: 1e-4, service: random, q: 0.99, limit: 1e-3},
		{name: "M/D/1 2ms p95 ≤ 40ms", servers: 1, mean: 2e-3, service: constant, q: 0.95, limit: 40e-3, quick: true},
		{name: "M/D/1 0.1ms p95 ≤ 5ms", servers: 1, mean: 1e-4, service: constant, q: 0.95, limit: 5e-3},
		{name: "M/D/4 0.4ms p95 ≤ 5ms", servers: 4, mean: 4e-4, service: constant, q: 0.95, limit: 5e-3},
		{name: "M/H2/1 0.2ms p95 ≤ 5ms", servers: 1, mean: 2e-4, service: hyper, q: 0.95, limit: 5e-3},
		{name: "M/LN/1 0.2ms p95 ≤ 5ms", servers: 1, mean: 2e-4, service: lognormal, q: 0.95, limit: 5e-3},
		{name: "M/D/1 0.1ms, speed ± 2 %", servers: 1, mean: 1e-4, service: constant, q: 0.95, limit: 5e-3, speed: varied(0.02)},
		{name: "M/D/1 0.1ms, speed ± 5 %", servers: 1, mean: 1e-4, service: constant, q: 0.95, limit: 5e-3, speed: varied(0.05)},
		{name: "M/D/1 0.1ms, speed ± 10 %", servers: 1, mean: 1e-4, service: constant, q: 0.95, limit: 5e-3, speed: varied(0.1)},
		{name: "M/M/1 0.1ms, speed ± 5 %", servers: 1, mean: 1e-4, service: random, q: 0.95, limit: 1e-3, speed: varied(0.05), cover: 0.74},
		{name: "M/D/1 0.1ms, two speeds", servers: 1, mean: 1e-4, service: constant, q: 0.95, limit: 5e-3, speed: two, cover: 0.74},
		{name: "refusal above 8,000/s", servers: 4, mean: 1e-4, service: constant, q: 0.95, limit: 5e-3, refuse: 8000},
		{name: "M/M/1 0.1ms, a pause in one level of five", servers: 1, mean: 1e-4, service: random, q: 0.95, limit: 1e-3, stall: 0.2},
		{name: "M/M/1 0.1ms, the client at 60 %", servers: 1, mean: 1e-4, service: random, q: 0.95, limit: 1e-3, client: 4200},
		{name: "M/D/1 0.1ms p95 ≤ 50ms", servers: 1, mean: 1e-4, service: constant, q: 0.95, limit: 50e-3},
		{name: "D/D/4 1ms p95 ≤ 5ms", servers: 4, mean: 1e-3, service: constant, q: 0.95, limit: 5e-3, spaced: true},
		{name: "M/M/2 4ms p95 ≤ 500ms", servers: 2, mean: 4e-3, service: random, q: 0.95, limit: 500e-3, quick: true},
		{name: "M/M/1 0.1ms, one level of ten spoiled", servers: 1, mean: 1e-4, service: random, q: 0.95, limit: 1e-3, spoil: 0.1, bound: 0.02},
		{name: "M/M/1 0.1ms, three levels of ten spoiled", servers: 1, mean: 1e-4, service: random, q: 0.95, limit: 1e-3, spoil: 0.3, bound: 0.2},
	}
	for i, z := range servers {
		if all == 0 && !z.quick {
			continue
		}
		t.Run(z.name, func(t *testing.T) {
			n, truth := times, z.truth(5e5)
			if all > 0 {
				n, truth = all, z.truth(1e7)
			}
			covered, answers, over, again, spoilt := 0, 0, 0, 0, 0
			var widths, ratios []float64
			for seed := range n {
				r := rand.New(rand.NewPCG(uint64(seed), uint64(i)+5200))
				tries, f := z.search(r, 60)
				if f.Low <= truth && truth <= f.High {
					covered++
				}
				if math.IsInf(f.High, 1) {
					spoilt++
				} else {
					widths = append(widths, f.High/f.Low-1)
				}
				if f.Held < 0 {
					continue
				}
				answers++
				rate := tries[f.Held].Rate
				ratios = append(ratios, rate/truth)
				if rate > 1.03*truth {
					over++
					t.Logf("search %d answers %.3f of it: %+v", seed, rate/truth, tries)
				}
				fresh := z
				fresh.spoil = 0
				if fresh.level(r, rate, 10).Outcome == Held {
					again++
				}
			}
			t.Logf("truth %.0f/s: covered %d of %d, width %.1f %%, answer ÷ truth %.3f, %.3f, %.3f, above it by 3 %%: %d, unconfirmed %d, holds again %d, bound by the client %d", truth,
				covered, n, 100*share(widths, 0.5), share(ratios, 0.1), share(ratios, 0.5), share(ratios, 0.9), over, n-answers, again, spoilt)
			least := z.cover
			if least == 0 {
				least = 0.88
			}
			require.GreaterOrEqual(t, float64(covered), least*float64(n)-0.5)
			require.Zero(t, over)
			if z.spoil > 0 {
				require.LessOrEqual(t, float64(spoilt), z.bound*float64(n))
				require.GreaterOrEqual(t, share(ratios, 0.1), 0.9)
			}
			require.GreaterOrEqual(t, float64(again), 0.85*float64(answers))
		})
	}
}

// A server that slows down in mid-search, or dies, is not credited with what it held before. Nor does a search begin what its budget has no time for.
func TestSearchesOfServersThatChange(t *testing.T) {
	for _, factor := range []float64{1.5, 2, 1e4} {
		z := queues{name: "M/D/1", servers: 1, mean: 1e-4, service: constant, q: 0.95, limit: 5e-3, later: factor}
		for seed := range 10 {
			if tries, f := z.search(rand.New(rand.NewPCG(uint64(seed), 1)), 60); f.Held >= 0 {
				require.LessOrEqual(t, tries[f.Held].Rate, 1e4/factor, "search %d, factor %g", seed, factor)
			}
		}
	}
	b := Bounds{From: 1250, To: 1e9, Precision: 0.05, Budget: 1, Limit: 5e-3, Least: 1}
	tries := []Try{{Rate: 1e4, Outcome: Closed, Seconds: 1}, {Rate: 1250, Seconds: 1}}
	_, end := b.Next(tries, 2)
	require.Equal(t, Spent, end)
	_, end = b.Next(append(tries, Try{Rate: 1250, Outcome: Failed, Aim: Confirm, Seconds: 1}), 3)
	require.Equal(t, BelowFrom, end, "a long level at from failed")
}

// share returns a quantile of values; NaN of none.
func share(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return values[int(q*float64(len(values)-1))]
}
