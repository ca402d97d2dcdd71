package judge

import (
	"math"
	"slices"
)

const (
	Growth   = 2.0     // factor from a rate that held to the next one, while none has failed
	Cautious = 1.0 / 8 // the first rate, as a share of what the closed load reached
	fall     = 4.0     // factor from a rate that failed to the next one, while none has held
	silences = 3       // how many tries that nobody answers end a search
	spoils   = 3       // how many levels above every rate that it could offer the generator must spoil before that is its limit
	seeking  = 0.35    // share of the budget for finding roughly where the answer lies
	bracket  = 0.35    // width, in log rate, to which that is found
	assured  = 6       // how many measuring tries make the noise known well enough to take an interval for precise
	sure     = 0.01    // probability that the limit lies below the rate that is to be confirmed: of 4,000 searches, three at 2.5 % answered 3 % too much
	extra    = 0.02    // as far below the interval, in log rate, that rate is at most
	above    = 0.02    // a limit of the generator this far above the interval still bounds it
)

// Outcome is the outcome of a try.
type Outcome uint8

// From best to worst.
const (
	Held       Outcome = iota
	Failed             // the objective was missed
	Overloaded         // the target was far from sustaining the rate
	Limited            // the generator could not offer the rate properly, so the try says nothing about the target
	Unanswered         // nobody was there to answer, or went away meanwhile: it says nothing, either
	Closed             // this try was the closed load: Rate is what it reached
)

// String returns the outcome's word in results.
func (o Outcome) String() string {
	return [...]string{Held: "held", Failed: "failed", Overloaded: "overloaded", Limited: "client-bound", Unanswered: "unanswered", Closed: "closed"}[o]
}

// Aim is what a try is for.
type Aim uint8

// In the order in which a search comes to them.
const (
	Seek    Aim = iota // find roughly where the answer lies
	Measure            // narrow the interval down
	Confirm            // see whether a rate holds; no other try makes it the answer
)

// Try is a rate that was tried, and its outcome.
type Try struct {
	Rate    float64 // per second; > 0 unless Closed
	Outcome Outcome
	Power   float64 // achieved rate divided by mean response time; 0 for none
	Aim     Aim
	Seconds float64 // how long it lasted
	Score   float64 // log odds of a slow op less those that the objective allows, of the worst objective
	Slow    uint64  // how many ops were slow, of the objective that had most
}

// Bounds says where to search, and how precisely.
type Bounds struct {
	From, To  float64 // the lowest and highest rate, per second; 0 < From ≤ To
	Precision float64 // relative width of the answer's interval, > 0
	Budget    float64 // seconds
	Limit     float64 // the longest limit of a response time, in seconds
	Least     float64 // the least length of a try, in seconds
	Few, Many float64 // arrivals with which a try tells roughly whether its quantiles are within their limits, and with which all of them are known
}

// End says why a search has ended.
type End uint8

// GoOn means that the search has not ended. The caller sets the last two; Next never returns them.
const (
	GoOn      End = iota
	Precise       // the interval is narrow enough
	AtTo          // the highest rate holds
	BelowFrom     // the lowest rate does not hold
	Gone          // nobody answers any more
	Spent         // the budget is spent
	Shrunk        // there are fewer workers than at the start
	Stopped       // the user ended it
)

// String says in words why a search has ended.
func (e End) String() string {
	return [...]string{
		GoOn: "", Precise: "the precision was reached", AtTo: "the highest rate holds", BelowFrom: "the lowest rate does not hold", Gone: "the server was gone",
		Spent: "the budget was spent", Shrunk: "a worker was lost", Stopped: "stopped by the user",
	}[e]
}

// Code names an end for programs; "" while a search goes on.
func (e End) Code() string {
	return [...]string{
		GoOn: "", Precise: "precise", AtTo: "at_to", BelowFrom: "below_from", Gone: "gone", Spent: "spent", Shrunk: "shrunk", Stopped: "stopped",
	}[e]
}

// Next returns the rate to try next, for at least how long, and to what end; or why the search has ended. spent is the time that it has taken, in
// seconds. It never asks for the closed load, with which tries begin.
func (b Bounds) Next(tries []Try, spent float64) (next Try, end End) {
	s := b.state(tries)
	s.left = b.Budget - spent
	s.over = max(0, spent-s.tried) / float64(len(tries))
	switch {
	case s.silent >= silences:
		return Try{}, Gone
	case s.best >= s.To:
		return Try{}, AtTo
	case s.ceiling <= s.From:
		return Try{}, BelowFrom
	case s.held == s.To && s.ceiling > s.To:
		return Try{Rate: s.To, Aim: Confirm, Seconds: s.long(s.To)}, GoOn
	}
	if rate, more := s.seek(spent); more {
		rate = min(max(round(rate), s.From), s.To)
		next = Try{Rate: rate, Seconds: s.short(rate)}
		if last := s.last; rate == s.From && last.Rate == rate && (last.Outcome == Failed || last.Outcome == Overloaded) {
			next.Seconds = s.long(rate) // nothing lies below: make sure
			if last.Seconds >= next.Seconds {
				return Try{}, BelowFrom
			}
		}
		return next, GoOn
	}
	next, end = s.narrow()
	next.Rate = min(max(round(next.Rate), s.From), s.To)
	return next, end
}

// state holds what the tries have shown. Rates are 0 for none; +Inf for none of those that bound the answer from above.
type state struct {
	Bounds
	tries    []Try
	last     Try
	closed   float64 // the rate that the closed load reached
	held     float64 // the largest that held
	failed   float64 // the lowest that failed while seeking
	best     float64 // the largest that a confirming try held, below the ceiling
	ceiling  float64 // the lowest that a confirming try failed
	wall     float64 // the generator's limit
	reached  float64 // the largest that the generator could offer
	silent   int     // tries since somebody answered
	told     int     // tries that told something about the target
	measured int     // measuring ones of these
	aimed    bool    // seeking is over
	tried    float64 // seconds that the tries took
	left     float64 // seconds of the budget
	over     float64 // seconds that a try takes besides its length
	belief   belief
}

func (b Bounds) state(tries []Try) *state {
	s := &state{Bounds: b, tries: tries, failed: math.Inf(1), ceiling: math.Inf(1), wall: math.Inf(1)}
	for _, t := range tries {
		s.tried, s.last, s.aimed = s.tried+t.Seconds, t, s.aimed || t.Aim != Seek
		if s.silent++; t.Outcome != Unanswered {
			s.silent = 0
		}
		switch {
		case t.Outcome == Closed:
			s.closed = t.Rate
		case t.Outcome == Limited, t.Outcome == Unanswered:
			continue
		case t.Outcome == Held:
			s.held = max(s.held, t.Rate)
		case t.Aim == Seek:
			s.failed = min(s.failed, t.Rate)
		case t.Aim == Confirm:
			s.ceiling = min(s.ceiling, t.Rate)
		}
		if t.Outcome != Closed {
			s.told, s.reached = s.told+1, max(s.reached, t.Rate)
		}
		if t.Aim == Measure {
			s.measured++
		}
	}
	spoilt, lowest := 0, math.Inf(1)
	for _, t := range tries {
		if t.Outcome == Held && t.Aim == Confirm && t.Rate < s.ceiling {
			s.best = max(s.best, t.Rate)
		}
		if t.Outcome == Limited && t.Rate > s.reached {
			spoilt, lowest = spoilt+1, min(lowest, t.Rate)
		}
	}
	if spoilt >= spoils {
		s.wall = lowest
	}
	return s
}

// short is the length of a seeking try, usual that of a measuring one, and long that of a confirming one.
func (s *state) short(rate float64) float64 {
	return max(s.Least, min(s.Budget/8, 4*s.Limit), min(s.Budget/12, s.Few/rate))
}
func (s *state) usual() float64 { return max(s.Least, s.Budget/16, min(s.Budget/6, 20*s.Limit)) }
func (s *state) long(rate float64) float64 {
	return max(s.Least, min(s.Budget/6, 2*s.usual()), min(s.Budget/4, s.Many/rate))
}

// bias is what levels that begin with an empty queue may have added to the answer's logarithm.
func (s *state) bias() float64 { return math.Log1p(s.Limit / s.usual()) }

// weigh computes the belief from all tries.
func (s *state) weigh() {
	closed, low, high := math.Inf(1), math.Inf(1), math.Inf(-1)
	if s.closed > 0 {
		closed = math.Log(s.closed)
		low, high = closed-math.Log(200), closed+math.Log(1.5)
	}
	var levels []seen
	for _, t := range s.tries {
		if t.Outcome == Closed || t.Outcome == Limited || t.Outcome == Unanswered {
			continue
		}
		l := seen{x: math.Log(t.Rate), y: t.Score, scale: math.Sqrt(max(1, s.usual()/t.Seconds))}
		low, high = min(low, l.x-1), max(high, l.x+0.3)
		switch {
		case t.Outcome == Overloaded:
			l.y, l.side = side, 1
		case t.Outcome == Failed && t.Score <= 0: // for another reason than slow ops
			l.y, l.side = 0, 1
		case t.Score > side:
			l.y, l.side = side, 1
		case t.Score < -side || t.Slow < fewer:
			l.y, l.side = max(-side, t.Score), -1
		}
		levels = append(levels, l)
	}
	s.belief = believe(levels, low, high, closed)
}

// seek returns the rate to try while it is not known roughly where the answer lies.
func (s *state) seek(spent float64) (rate float64, more bool) {
	failed := min(s.failed, s.wall)
	switch {
	case s.aimed, s.held > 0 && spent >= seeking*s.Budget:
		s.weigh()
		return 0, false
	case s.last.Outcome == Closed:
		return s.closed * Cautious, true
	case s.last.Outcome == Limited && s.last.Rate < s.wall, s.last.Outcome == Unanswered:
		return s.last.Rate, true
	case s.held == 0:
		return failed / fall, true
	case math.IsInf(failed, 1):
		rate = s.held * Growth
		if near := math.Log(rate / s.closed); near < 0.3 && near > -0.4 {
			rate = s.closed
		}
		return rate, true
	}
	s.weigh()
	if math.Log(failed/s.held) < 0.3 && s.belief.quantile(0.975)-s.belief.quantile(0.025) < bracket {
		return 0, false
	}
	return min(s.around(), math.Sqrt(s.held*s.wall)), true
}

// narrow returns a try that narrows the interval down, or confirms its lower end.
func (s *state) narrow() (next Try, end End) {
	low, high := s.belief.quantile(0.025), s.belief.quantile(0.975)
	narrow, open := high-low <= math.Log1p(s.Precision) && s.measured >= assured, s.open()
	safe := min(max(s.belief.quantile(sure), low-extra)-s.bias(), math.Log(s.ceiling)-max(0.01, s.belief.noise))
	if open {
		safe = min(safe, math.Log(s.wall)-above)
	}
	confirm := Try{Rate: math.Exp(safe), Aim: Confirm, Seconds: s.long(math.Exp(safe))}
	each := confirm.Seconds + s.over
	higher := s.left >= each && safe >= math.Log(s.best)+above
	switch late := s.left < 2*each; {
	case s.best > 0 && !open && higher && (narrow || late):
		return confirm, GoOn
	case s.best > 0 && narrow:
		return Try{}, Precise
	case s.best > 0 && (open || late), s.left < s.usual()+s.over, s.best == 0 && s.left < each:
		return Try{}, Spent
	case s.best == 0 && (narrow || s.left < 3.3*each || open && s.measured >= 3):
		return confirm, GoOn
	}
	return Try{Rate: min(s.around(), s.wall*0.97), Aim: Measure, Seconds: s.usual()}, GoOn
}

// around returns in turn the belief's median and the rates beside it that tell most: as far away as scores and their noise can tell apart.
func (s *state) around() float64 {
	delta := max(0.005, min(0.1, max(0.8/s.belief.slope, s.belief.noise)))
	return math.Exp(s.belief.quantile(0.5) + delta*[...]float64{0, 1, -1}[s.told%3])
}

// open says whether the generator's limit, not the target's, bounds the answer from above.
func (s *state) open() bool { return math.Log(s.wall) <= s.belief.quantile(0.975)+above }

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
	Held      int     // the confirming try that held at the answer
	Failed    int     // the try at the lowest rate above it that failed
	Limited   int     // a try that shows the generator's limit, if that bounds the answer
	Knee      int     // the try with the greatest power; none if that is the highest rate and no rate failed, since the knee may be higher
	Low, High float64 // the central 95 %, 0 if unknown; High is +Inf if the generator was the bound
	Middle    float64 // the median; 0 if unknown
	Noise     float64 // relative standard deviation of a measuring level
}

// Sum returns what the tries have found so far.
func (b Bounds) Sum(tries []Try) Found {
	s := b.state(tries)
	f := Found{Held: -1, Failed: -1, Limited: -1, Knee: -1}
	highest := 0.0
	for i, t := range tries {
		if t.Outcome == Closed {
			continue
		}
		highest = max(highest, t.Rate)
		if t.Outcome == Held && (f.Knee < 0 || t.Power > tries[f.Knee].Power) && t.Power > 0 {
			f.Knee = i
		}
		if t.Outcome == Held && t.Aim == Confirm && t.Rate == s.best {
			f.Held = i
		}
		if (t.Outcome == Failed || t.Outcome == Overloaded) && t.Rate > s.best && (f.Failed < 0 || t.Rate < tries[f.Failed].Rate) {
			f.Failed = i
		}
	}
	if f.Knee >= 0 && f.Failed < 0 && tries[f.Knee].Rate == highest {
		f.Knee = -1
	}
	f.Limited = slices.IndexFunc(tries, func(t Try) bool { return t.Outcome == Limited && t.Rate == s.wall })
	if s.held == 0 && math.IsInf(s.failed, 1) {
		return f
	}
	s.weigh()
	f.Low, f.Middle, f.High = math.Exp(s.belief.quantile(0.025)-s.bias()), math.Exp(s.belief.quantile(0.5)), math.Exp(s.belief.quantile(0.975))
	f.Noise = s.belief.noise
	if s.open() {
		f.High = math.Inf(1)
	} else {
		f.Limited = -1
	}
	return f
}
