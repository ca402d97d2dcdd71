package judge

import (
	"cmp"
	"math"
	"slices"
)

const (
	Growth   = 2.0     // factor from a rate that held to the next one, while none has failed
	Cautious = 1.0 / 8 // the first rate, as a share of what the closed load reached
	Spacing  = 1.25    // final ratio between the knee and its neighbours
	fall     = 4.0     // factor from a rate that failed to the next one, while none has held
	enough   = 2       // how many tries of three must agree on the answer
	returns  = 4       // how many tries the generator may spoil before the search takes its limit for an answer
)

// Curve lists the shares of the answer that are tried at the end, if there is time.
var Curve = [...]float64{0.75, 0.5, 0.25}

// Outcome is the outcome of a try.
type Outcome uint8

// From best to worst.
const (
	Held       Outcome = iota
	Failed             // the objective was missed
	Overloaded         // the target was far from sustaining the rate
	Limited            // the generator could not offer the rate properly, so the try says nothing about the target
	Closed             // this try was the closed load: Rate is what it reached
)

// String returns the outcome's word in results.
func (o Outcome) String() string {
	return [...]string{Held: "held", Failed: "failed", Overloaded: "overloaded", Limited: "client-bound", Closed: "closed"}[o]
}

// Try is a rate that was tried, and its outcome.
type Try struct {
	Rate    float64 // per second; > 0 unless Closed
	Outcome Outcome
	Power   float64 // achieved rate divided by mean response time; 0 for none
}

// Bounds says where to search, and how precisely.
type Bounds struct {
	From, To  float64 // the lowest and highest rate, per second; 0 < From ≤ To
	Precision float64 // relative width of the answer's interval, > 0
}

// End says why a search has ended.
type End uint8

// GoOn means that the search has not ended. The caller sets the last three; Next never returns them.
const (
	GoOn      End = iota
	Precise       // the interval is narrow enough
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

// Next returns the rate to try next, 0 for none, and the end that the search has reached. A rate returned with an end is optional: worth a try, but
// not needed. Rate 0 and [GoOn] ask for the closed load. last says that there is time for only a few more tries, which should confirm the answer.
func (b Bounds) Next(tries []Try, last bool) (rate float64, end End) {
	if len(tries) == 0 {
		return 0, GoOn
	}
	s := b.state(tries)
	if end := s.ended(); end != GoOn {
		return s.more(), end
	}
	if last {
		return s.confirm(), GoOn
	}
	return s.clamp(s.next()), GoOn
}

// state holds what the tries have shown.
type state struct {
	Bounds
	closed   float64 // the rate that the closed load reached; 0 if unknown
	rates    []tried // in ascending order
	spoiling int     // how many of the last tries in a row the generator spoiled
	spoiled  float64 // the largest rate of those tries
	wall     float64 // the generator twice failed to offer this rate; no rate from there on held, and none up to there failed; +Inf if there is none
	spoilt   int     // tries that the generator could not offer, at rates between the largest that held and the lowest that failed
	belief   belief
}

// tried is a rate, and how its tries ended.
type tried struct {
	rate                   float64
	held, failed, overload int // overload is a part of failed
	limited                int
	power                  float64 // the greatest power of the tries that held
}

// holds says whether more tries held than failed.
func (t *tried) holds() bool { return t.held > t.failed }

func (b Bounds) state(tries []Try) *state {
	s := &state{Bounds: b, wall: math.Inf(1)}
	for _, t := range tries {
		if t.Outcome == Closed {
			s.closed = t.Rate
			continue
		}
		s.enter(t)
		if t.Outcome == Limited {
			s.spoiling++
			s.spoiled = max(s.spoiled, t.Rate)
		} else {
			s.spoiling, s.spoiled = 0, 0
		}
	}
	slices.SortFunc(s.rates, func(x, y tried) int { return cmp.Compare(x.rate, y.rate) })
	best := s.largestHeld()
	for _, r := range s.rates {
		if r.rate > best && r.failed > r.held {
			break
		}
		if r.rate > best {
			if s.spoilt += r.limited; s.spoilt > 1 {
				s.wall = min(s.wall, r.rate)
			}
		}
	}
	s.belief = s.believe()
	return s
}

func (s *state) enter(t Try) {
	i := slices.IndexFunc(s.rates, func(r tried) bool { return r.rate == t.Rate })
	if i < 0 {
		i = len(s.rates)
		s.rates = append(s.rates, tried{rate: t.Rate})
	}
	r := &s.rates[i]
	switch t.Outcome {
	case Held:
		r.held++
		r.power = max(r.power, t.Power)
	case Limited:
		r.limited++
	case Overloaded:
		r.overload++
		r.failed++
	default:
		r.failed++
	}
}

// largestHeld returns the largest rate at which a try held, 0 for none.
func (s *state) largestHeld() (rate float64) {
	for _, r := range s.rates {
		if r.held > 0 {
			rate = r.rate
		}
	}
	return rate
}

// leastFailed returns the lowest rate at which a try failed, 0 for none.
func (s *state) leastFailed() float64 {
	for _, r := range s.rates {
		if r.failed > 0 {
			return r.rate
		}
	}
	return 0
}

// at returns the tries of a rate; nil if it was not tried.
func (s *state) at(rate float64) *tried {
	if i := slices.IndexFunc(s.rates, func(r tried) bool { return r.rate == rate }); i >= 0 {
		return &s.rates[i]
	}
	return nil
}

// ended says whether the search has its answer.
func (s *state) ended() End {
	if to := s.at(s.To); to != nil && to.holds() && to.held >= enough {
		return AtTo
	}
	if from := s.at(s.From); from != nil && s.largestHeld() == 0 && (from.overload > 0 || from.failed > 1 || from.limited > 2) {
		return BelowFrom
	}
	if s.narrow() && s.confirmed() > 0 && !s.returning() {
		return Precise
	}
	return GoOn
}

// returning says whether the answer is the generator's limit, and must be tried again.
func (s *state) returning() bool {
	return s.spoilt < returns && s.wall <= s.belief.quantile(0.975)*(1+s.Precision)
}

// narrow says whether the answer is within the precision.
func (s *state) narrow() bool { return s.bracketed() && s.belief.within(s.Precision) }

// bracketed says whether a rate held, and one above was too much, for the target or for the generator.
func (s *state) bracketed() bool {
	return s.largestHeld() > 0 && (s.leastFailed() > 0 || !math.IsInf(s.wall, 1))
}

// next returns the rate to try while the answer is open.
func (s *state) next() float64 {
	held, failed := s.largestHeld(), s.leastFailed()
	switch {
	case len(s.rates) == 0 && s.closed > 0:
		return s.closed * Cautious
	case len(s.rates) == 0:
		return s.From
	case s.narrow() && s.confirmed() > 0: // what is left is the generator's limit
		return s.wall
	case s.narrow():
		return s.confirm()
	case s.spoiling > 0 && (held == 0 || math.IsInf(s.wall, 1)):
		return s.around()
	case held == 0 && failed > 0 && s.at(s.From) == nil:
		return failed / fall
	case held == 0:
		return s.rates[0].rate
	case s.bracketed():
		return round(s.belief.quantile(0.5))
	case held < s.closed:
		return min(held*Growth, s.closed)
	}
	return held * Growth
}

// around returns a rate below those that the generator has just spoiled or, every second time, the largest of them again, since the disturbance may
// have passed.
func (s *state) around() float64 {
	if s.spoiling%2 == 0 {
		return s.spoiled
	}
	below := s.spoiled / math.Pow(Growth, float64(s.spoiling/2+1))
	return max(below, math.Sqrt(s.largestHeld()*s.spoiled))
}

// confirm returns the answer so far, to be tried until two of three tries agree.
func (s *state) confirm() float64 {
	if s.largestHeld() == 0 {
		return s.clamp(s.next())
	}
	low, middle, high := s.belief.quantile(0.025), s.belief.quantile(0.5), s.belief.quantile(0.975)
	best := 0.0
	for _, r := range s.rates {
		likely := r.rate >= low/(1+s.Precision/2) && r.rate <= high && r.held > 0 && r.failed < enough
		if likely && (best == 0 || r.rate <= middle) {
			best = r.rate
		}
	}
	if best > 0 {
		return best
	}
	return s.clamp(round(low))
}

// confirmed returns the largest rate in which two of three tries held and which the belief allows, 0 for none.
func (s *state) confirmed() float64 {
	low, high := s.belief.quantile(0.025), s.belief.quantile(0.975)
	for _, r := range slices.Backward(s.rates) {
		if r.holds() && r.held >= enough && r.rate <= high && r.rate >= low/(1+s.Precision) {
			return r.rate
		}
	}
	return 0
}

// answer returns the largest rate that held, preferably one that held twice; 0 for none.
func (s *state) answer() float64 {
	if rate := s.confirmed(); rate > 0 {
		return rate
	}
	high, any := s.belief.quantile(0.975), 0.0
	for _, r := range s.rates {
		if r.holds() && (r.rate <= high || any == 0) {
			any = r.rate
		}
	}
	return any
}

// more returns a further rate worth trying once the search has its answer, 0 for none.
func (s *state) more() float64 {
	answer := s.answer()
	for _, share := range Curve {
		near := func(r tried) bool { return r.held > 0 && math.Abs(r.rate/(answer*share)-1) < 0.1 }
		if rate := round(answer * share); answer > 0 && rate >= s.From && s.at(rate) == nil && !slices.ContainsFunc(s.rates, near) {
			return rate
		}
	}
	knee := highest(s.rates)
	for _, i := range []int{knee + 1, knee} {
		if rate := between(s.rates, i); knee >= 0 && rate > 0 && s.at(rate) == nil {
			return rate
		}
	}
	return 0
}

// between returns the geometric mean of rate i and the one below it; 0 if they are close enough, or one does not exist.
func between(rates []tried, i int) float64 {
	if i < 1 || i >= len(rates) || rates[i].rate <= rates[i-1].rate*Spacing {
		return 0
	}
	return round(math.Sqrt(rates[i-1].rate * rates[i].rate))
}

// highest returns the index of the rate with the greatest power among those that held, -1 for none.
func highest(rates []tried) int {
	best := -1
	for i, r := range rates {
		if r.power > 0 && (best < 0 || r.power > rates[best].power) {
			best = i
		}
	}
	return best
}

func (s *state) clamp(rate float64) float64 { return min(max(rate, s.From), s.To) }

// round rounds a rate to four digits.
func round(rate float64) float64 {
	if rate <= 0 {
		return rate
	}
	unit := math.Pow(10, math.Floor(math.Log10(rate))-3)
	if unit < 1 { // 0.01 has no exact value, 100 has
		per := math.Round(1 / unit)
		return math.Round(rate*per) / per
	}
	return math.Round(rate/unit) * unit
}

// Found is the result of a search so far. Held, Failed and Knee are indices of tries, -1 for none.
type Found struct {
	Held      int     // the last try that held at the largest rate that held
	Failed    int     // a try at the lowest rate above it at which more tries failed than held, or which the generator could not offer
	Knee      int     // a try at the rate with the greatest power; none if that is the highest rate and no rate failed, since the knee may be higher
	Low, High float64 // the central 95 % of the belief; 0 unless a rate held and one failed
	Times, Of int     // how many tries of the largest rate held, of how many that told something
}

// Sum returns what the tries have found so far.
func (b Bounds) Sum(tries []Try) Found {
	s := b.state(tries)
	f := Found{Held: -1, Failed: -1, Knee: -1}
	answer := s.answer()
	for i, t := range tries {
		if t.Rate == answer && t.Outcome == Held {
			f.Held = i
		}
	}
	if r := s.at(answer); r != nil {
		f.Times, f.Of = r.held, r.held+r.failed
	}
	for _, r := range s.rates {
		if r.rate > answer && (r.failed > r.held || r.limited > 0 && r.rate >= s.wall) && f.Failed < 0 {
			f.Failed = slices.IndexFunc(tries, func(t Try) bool {
				return t.Rate == r.rate && (t.Outcome == Failed || t.Outcome == Overloaded || t.Outcome == Limited && r.failed == 0)
			})
		}
	}
	if i := highest(s.rates); i >= 0 && (f.Failed >= 0 || i < len(s.rates)-1) {
		f.Knee = slices.IndexFunc(tries, func(t Try) bool { return t.Rate == s.rates[i].rate && t.Power == s.rates[i].power })
	}
	if s.bracketed() {
		f.Low, f.High = s.belief.quantile(0.025), s.belief.quantile(0.975)
	}
	return f
}
