// Package pace computes when ops are due: for the j-th op of a stream, its offset in nanoseconds from the step's start.
//
// A schedule is a rate over time, [Shape], and a way to draw arrivals from it. It is divided into streams so that any number of workers issues the
// same ops at the same times: no stream depends on which worker drives it.
//
// # Rate
//
// With φ and λ the rates per second at the beginning and at the end of a ramp of r seconds, the rate at t is φ + (λ − φ)t/r within the ramp and λ
// after it. Its integral, the expected number of ops before t, is
//
//	Λ(t) = φt + (λ − φ)t²/2r    t ≤ r
//	Λ(t) = λt − (λ − φ)r/2      t > r
//
// and its inverse, the time by which x ops are due, is
//
//	Λ⁻¹(x) = 2x / (φ + √(φ² + 2(λ − φ)x/r))    x ≤ (φ + λ)r/2
//	Λ⁻¹(x) = (x − φr/2)/λ + r/2                x > (φ + λ)r/2
//
// The first is the root of the quadratic in the form that avoids cancellation (Press et al., Numerical Recipes, 3rd ed., §5.6); with φ = 0 it is
// √(2rx/λ).
//
// # Arrivals
//
// Constant: op n of the whole phase is due at Λ⁻¹(n), n = 0, 1, …; it is op j of stream i where n = i + j·streams. Each due time is computed from n,
// not from the one before, so no error accumulates, and the streams interleave to exactly the undivided sequence.
//
// Poisson: stream i is a Poisson process of rate λ(t)/streams, independent of the others; their superposition is a Poisson process of rate λ(t) for
// any number of streams. With E₁, E₂, … independent exponentials of mean 1 the j-th op is due at
//
//	Λ⁻¹(streams · (E₁ + … + E_{j+1}))
//
// (inversion of the integrated rate: Çinlar, Introduction to Stochastic Processes, 1975, §4.7; Lewis and Shedler 1979, §1).
//
// # Precision
//
// Λ⁻¹ is evaluated in double-double arithmetic and rounded once to the nanosecond: a constant due time is within 0.5 ns of the exact one, over 30
// days at 10⁶ per second and far beyond (2⁵³ ops, 10⁴ days). The running sum of a Poisson stream is a float64: after 30 days the rounding of a term
// shifts the rest of its stream by at most 0.25 ns, whatever the rate, and less before.
package pace

import (
	"math"
	"math/rand/v2"
	"time"
)

// never is the due offset of an op after the end of every schedule.
const never = math.MaxInt64

// Shape is a rate over time.
type Shape struct {
	Rate     float64       // ops per second after the ramp, > 0
	From     float64       // ops per second where the ramp begins, ≥ 0
	Ramp     time.Duration // the time in which the rate goes linearly from From to Rate, ≥ 0
	Duration time.Duration // length of the whole schedule, ramp included; ops are due in [0, Duration)
}

// Ops returns how many constant arrivals are due in the shape's duration.
func (s Shape) Ops() int64 {
	n := int64(math.Ceil(s.Expected()))
	for n > 0 && s.due(float64(n-1)) >= int64(s.Duration) {
		n--
	}
	for s.due(float64(n)) < int64(s.Duration) {
		n++
	}
	return n
}

// Until returns how many constant arrivals are due before a time, in nanoseconds from the step's start.
func (s Shape) Until(ns int64) int64 {
	s.Duration = min(s.Duration, time.Duration(max(ns, 0)))
	return s.Ops()
}

// Expected returns Λ(Duration), the expected number of Poisson arrivals.
func (s Shape) Expected() float64 {
	ramp, end := s.Ramp.Seconds(), s.Duration.Seconds()
	if end < ramp {
		return s.From*end + (s.Rate-s.From)*end*end/(2*ramp)
	}
	return s.Rate*end - (s.Rate-s.From)*ramp/2
}

// Between returns the expected arrivals per second between two times after the start; none are expected after the end.
func (s Shape) Between(from, to time.Duration) float64 {
	until := func(t time.Duration) float64 {
		part := s
		part.Duration = min(t, s.Duration)
		return part.Expected()
	}
	if to <= from {
		return 0
	}
	return (until(to) - until(from)) / (to - from).Seconds()
}

// At returns the scheduled rate some time after the start, per second: 0 before the start and from the end on.
func (s Shape) At(since time.Duration) float64 {
	switch {
	case since < 0 || since >= s.Duration:
		return 0
	case since < s.Ramp:
		return s.From + (s.Rate-s.From)*since.Seconds()/s.Ramp.Seconds()
	}
	return s.Rate
}

// due returns Λ⁻¹(x) in nanoseconds, or never if that exceeds an int64.
func (s Shape) due(x float64) int64 {
	if x == 0 {
		return 0
	}
	if s.Ramp > 0 {
		return s.dueRamped(x)
	}
	// hi + lo = 10⁹·x/λ to about 2⁻¹⁰⁰: fused multiply-adds recover the rounding errors of both the product and the quotient. It is [double.over] for
	// a divisor of one word.
	p := x * 1e9
	hi := p / s.Rate
	lo := (math.FMA(-hi, s.Rate, p) + math.FMA(x, 1e9, -p)) / s.Rate
	return double{hi, lo}.round()
}

// dueRamped is due for a shape with a ramp.
func (s Shape) dueRamped(x float64) int64 {
	from, rate, ramp := double{hi: s.From}, double{hi: s.Rate}, whole(int64(s.Ramp))
	half := double{ramp.hi / 2, ramp.lo / 2}
	scaled := product(x, 1e9)
	if x > (s.From+s.Rate)*half.hi/1e9 {
		return scaled.plus(from.times(half).negative()).over(rate).plus(half).round()
	}
	slope := sum(s.Rate, -s.From).over(half)
	inner := from.times(from).plus(scaled.times(slope))
	return scaled.times(double{hi: 2}).over(inner.root().plus(from)).round()
}

// Pacer yields the due offsets of one stream in order. The zero Pacer yields none. It is a plain value: a copy continues on its own from the same
// place. One goroutine may use it at a time.
type Pacer struct {
	shape   Shape
	poisson bool
	streams float64
	at      float64 // expected ops of the whole schedule before the next: the op's global number, or the sum of exponentials so far
	random  rand.PCG
}

// NewConstant returns the pacer of stream i of the given number, evenly spaced over the whole schedule. 0 ≤ i < streams.
func NewConstant(s Shape, streams, i int) Pacer {
	return Pacer{shape: s, streams: float64(streams), at: float64(i)}
}

// NewPoisson returns the pacer of stream i of the given number, a Poisson process with its share of the rate, 0 ≤ i < streams. The seed is the
// phase's. Every stream has its own generator (PCG-DXSM, seeded with two outputs of one seeded with seed and i).
func NewPoisson(s Shape, streams, i int, seed uint64) Pacer {
	words := rand.NewPCG(seed, uint64(i))
	p := Pacer{shape: s, poisson: true, streams: float64(streams), random: *rand.NewPCG(words.Uint64(), words.Uint64())}
	p.at = p.gap()
	return p
}

// Next returns when the stream's next op is due, in nanoseconds from the step's start; due times never decrease. Once the schedule has ended it
// returns false, then and ever after. It allocates nothing.
func (p *Pacer) Next() (due int64, ok bool) {
	due = p.shape.due(p.at)
	if due >= int64(p.shape.Duration) {
		return 0, false
	}
	if p.poisson {
		p.at += p.gap()
	} else {
		p.at += p.streams
	}
	return due, true
}

// gap returns an exponential variate whose mean is one op of each stream, by inversion of a uniform in (0, 1].
func (p *Pacer) gap() float64 {
	return -math.Log(float64(p.random.Uint64()>>11+1)/(1<<53)) * p.streams
}
