package judge

import (
	"math"
	"slices"
)

const (
	Growth  = 2.0  // factor from a rate that held to the next, while none has failed
	Spacing = 1.25 // final ratio between the knee and its neighbours, and between a failure and the rate that confirms it

	mostTries = 5 // of a failing rate, while there is time
)

// Outcome is the outcome of a try.
type Outcome uint8

// From best to worst.
const (
	Held       Outcome = iota
	Failed             // the objective was missed
	Overloaded         // the target was far from sustaining the rate
	Limited            // the generator could not offer the rate properly, so the try says nothing about the target
)

// String returns the outcome's word in results.
func (o Outcome) String() string {
	return [...]string{Held: "held", Failed: "failed", Overloaded: "overloaded", Limited: "client-bound"}[o]
}

// Try is a rate that was tried, and its outcome.
type Try struct {
	Rate     float64 // per second, > 0
	Outcome  Outcome
	Power    float64 // achieved rate divided by mean response time; 0: none
	disputed bool
	times    int // how often the rate was tried
}

// Bounds says where to search, and how precisely.
type Bounds struct {
	From, To  float64 // rates per second, 0 < From ≤ To
	Precision float64 // > 0
}

// End says why a search has ended.
type End uint8

// GoOn means that the search has not ended. The caller sets the last three; Next never returns them.
const (
	GoOn      End = iota
	Precise       // the bracket is narrow enough
	AtTo          // the highest rate holds
	BelowFrom     // the lowest rate does not hold
	Spent         // the budget is spent
	Shrunk        // there are fewer workers than at the start
	Stopped       // the user ended it
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

// Next returns the rate to try next, 0 for none, and the end that the search has reached. A rate returned with an end is optional: worth a
// try, but not needed.
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

// beside returns a rate next to rate i, above it or else below, 0 if its neighbours are near enough.
func beside(rates []Try, i int) float64 {
	if rate := between(rates, i+1); rate > 0 {
		return rate
	}
	return between(rates, i)
}

// between returns the geometric mean of rate i and the one below it, 0 if they are near enough or one does not exist.
func between(rates []Try, i int) float64 {
	if i < 1 || i >= len(rates) || rates[i].Rate <= rates[i-1].Rate*Spacing {
		return 0
	}
	return math.Sqrt(rates[i-1].Rate * rates[i].Rate)
}

// Found is the result of a search so far. Fields are indices of tries, -1 for none.
type Found struct {
	Held   int // of the largest rate that held
	Failed int // of the lowest above it that did not
	Knee   int // of the greatest power; none if that is the highest rate and no failure is known: the knee may be further up
}

// Sum returns what the tries have found so far.
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

// bracket returns the indices of the largest rate that held and the lowest above it that did not, -1 for none.
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

// highest returns the index of the rate with the greatest power among those that held, -1 for none.
func highest(rates []Try) int {
	best := -1
	for i, r := range rates {
		if r.Outcome == Held && r.Power > 0 && (best < 0 || r.Power > rates[best].Power) {
			best = i
		}
	}
	return best
}

// decide returns one try per rate, in ascending order. Those to be tried again are disputed.
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

// settle weighs the tries of one rate: it held if one of them did, and failed if there is enough evidence against it.
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
