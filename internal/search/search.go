// Package search decides which rate to try next on the way to the largest that holds, and where the knee of the curve is. It is pure: a
// function of the rates tried so far and of what came of them.
//
// # The bracket
//
// Rates grow by the factor [Growth] until one does not hold. Between the largest rate that held and the lowest above it that did not, the
// geometric mean is tried, until the two are so close that their ratio is at most 1 + precision. With n steps of the second kind the
// answer is within 2^(1/2ⁿ): 4 steps for 5 %.
//
// # Noise
//
// What disturbs a machine makes a level worse, hardly ever better. So one try that held is believed, whatever others came to, and a failure
// only when it came three times, or twice when it was the generator's. A rate that the target was far from sustaining needs no second try. A
// disturbance may last for longer than that: what failed and was not overloaded is believed only when a rate within [Growth] above it
// fails, too, and in the end one within [Spacing]; and the lowest rate that failed is tried on while there is time, up to five times in all.
//
// # The knee
//
// Beyond the knee more load brings little more throughput and much more waiting. It is taken to be where the power, throughput divided
// by mean response time, is greatest (Giessler et al., Free Buffer Allocation, Computer Networks 2, 1978; Kleinrock, Power and
// Deterministic Rules of Thumb, ICC 1979; Jain, The Art of Computer Systems Performance Analysis, 1991, §3.3). It needs no scale, no limit and no
// chord to a last point whose latency is as large as the overload lasted. Of M/M/1 it is at half of the capacity, of M/D/1 at 2 − √2
// = 59 % of it. Once the bracket is narrow enough, rates beside the knee are tried until its neighbours are within [Spacing].
package search

import (
	"math"
	"slices"
)

const (
	Growth  = 2.0  // from a rate that held to the next, while none has failed
	Spacing = 1.25 // ratio of the rates beside the knee to that at it, and of what confirms a failure to it, at the end

	mostTries = 5 // of a rate that fails, while there is time
)

// Outcome is what came of a try.
type Outcome uint8

// From best to worst.
const (
	Held       Outcome = iota
	Failed             // the objective was missed
	Overloaded         // the target was far from sustaining the rate
	Limited            // the generator could not offer the rate properly: it says nothing of the target
)

// String returns the word that a result has for the outcome.
func (o Outcome) String() string {
	return [...]string{Held: "held", Failed: "failed", Overloaded: "overloaded", Limited: "client-bound"}[o]
}

// Try is a rate, and what came of it.
type Try struct {
	Rate     float64 // per second, > 0
	Outcome  Outcome
	Power    float64 // achieved rate divided by mean response time; 0 where there is none
	disputed bool
	times    int // that the rate was tried
}

// Bounds is where to search, and how closely.
type Bounds struct {
	From, To  float64 // rates per second, 0 < From ≤ To
	Precision float64 // > 0
}

// End says why a search has ended.
type End uint8

// A search that goes on has no end yet. The last three are for whoever carries it out.
const (
	GoOn      End = iota
	Precise       // the bracket is as narrow as it was to be
	AtTo          // the highest rate holds
	BelowFrom     // the lowest rate does not hold
	Spent         // the budget is
	Shrunk        // there are fewer workers than it was begun with
	Stopped       // the user wants it to end
)

// String says in words why a search has ended.
func (e End) String() string {
	return [...]string{
		GoOn: "", Precise: "the precision was reached", AtTo: "the highest rate holds", BelowFrom: "the lowest rate does not hold",
		Spent: "the budget was spent", Shrunk: "a worker was lost", Stopped: "stopped by the user",
	}[e]
}

// Code names an end for programs; "" while a search goes on.
func (e End) Code() string {
	return [...]string{
		GoOn: "", Precise: "precise", AtTo: "at_to", BelowFrom: "below_from", Spent: "spent", Shrunk: "shrunk", Stopped: "stopped",
	}[e]
}

// Next returns the rate to try next, 0 for none, and what the search has come to: a rate together with an end is worth a try
// and not needed.
func (b Bounds) Next(tries []Try) (rate float64, end End) {
	if len(tries) == 0 {
		return b.From, GoOn
	}
	rates := decide(tries)
	held, failed := bracket(rates)
	precise := failed >= 0 && held >= 0 && rates[failed].Rate <= rates[held].Rate*(1+b.Precision)
	for _, r := range rates {
		switch {
		case r.disputed && precise:
			return r.Rate, Precise
		case r.disputed:
			return r.Rate, GoOn
		}
	}
	last := rates[len(rates)-1]
	switch {
	case last.Rate < b.To && (last.Outcome == Held || last.Outcome == Failed && failed == len(rates)-1):
		return min(last.Rate*Growth, b.To), GoOn
	case held < 0:
		return 0, BelowFrom
	case failed < 0:
		return beside(rates, highest(rates)), AtTo
	case !precise:
		return math.Sqrt(rates[held].Rate * rates[failed].Rate), GoOn
	case rates[failed].Outcome == Failed:
		if rate := between(rates, failed+1); rate > 0 {
			return rate, GoOn
		}
	}
	if failure := rates[failed]; failure.Outcome != Overloaded && failure.times < mostTries {
		return failure.Rate, Precise
	}
	return beside(rates, highest(rates)), Precise
}

// beside returns a rate above or below one of the rates, 0 when its neighbours are near enough.
func beside(rates []Try, i int) float64 {
	if rate := between(rates, i+1); rate > 0 {
		return rate
	}
	return between(rates, i)
}

// between returns the middle of a rate and the one below it, 0 when they are near enough, or not there.
func between(rates []Try, i int) float64 {
	if i < 1 || i >= len(rates) || rates[i].Rate <= rates[i-1].Rate*Spacing {
		return 0
	}
	return math.Sqrt(rates[i-1].Rate * rates[i].Rate)
}

// Found is what a search has come to. Fields are indices of tries, -1 for none.
type Found struct {
	Held   int // of the largest rate that held
	Failed int // of the lowest above it that did not
	Knee   int // of the greatest power; none where it is the last rate that held and none is known to fail: it may be further on
}

// Sum says what the tries have come to so far.
func Sum(tries []Try) Found {
	rates := decide(tries)
	held, failed := bracket(rates)
	knee := highest(rates)
	if failed < 0 && knee == len(rates)-1 {
		knee = -1
	}
	of := func(i int) int {
		if i < 0 {
			return -1
		}
		return slices.IndexFunc(tries, func(t Try) bool { return t.Rate == rates[i].Rate && t.Outcome == rates[i].Outcome })
	}
	return Found{of(held), of(failed), of(knee)}
}

// bracket returns the largest rate that held and the lowest above it that did not.
func bracket(rates []Try) (held, failed int) {
	held, failed = -1, -1
	for i, r := range rates {
		switch {
		case r.disputed:
		case r.Outcome == Held:
			held, failed = i, -1
		case failed < 0:
			failed = i
		}
	}
	return held, failed
}

// highest returns the rate with the greatest power among those that held.
func highest(rates []Try) int {
	best := -1
	for i, r := range rates {
		if r.Outcome == Held && r.Power > 0 && (best < 0 || r.Power > rates[best].Power) {
			best = i
		}
	}
	return best
}

// decide returns one try for each rate, in their order. Those that are to be tried again are disputed.
func decide(tries []Try) []Try {
	var rates []Try
	for _, t := range tries {
		if slices.ContainsFunc(rates, func(r Try) bool { return r.Rate == t.Rate }) {
			continue
		}
		rates = append(rates, settle(tries, t.Rate))
	}
	slices.SortFunc(rates, func(x, y Try) int { return int(math.Copysign(1, x.Rate-y.Rate)) })
	return rates
}

// settle weighs the tries of one rate: it held when one of them did, and has failed when there is enough against it.
func settle(tries []Try, rate float64) Try {
	const enough = 6
	against := [...]int{Failed: 2, Limited: 3, Overloaded: enough}
	var last Try
	sum, times := 0, 0
	for _, t := range tries {
		if t.Rate != rate {
			continue
		}
		if t.Outcome == Held {
			return t
		}
		sum += against[t.Outcome]
		times++
		last = t
	}
	last.disputed, last.times = sum < enough, times
	return last
}
