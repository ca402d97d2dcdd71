package judge

import (
	"math"
)

const (
	falseHolds = 0.02  // probability that a level holds far above the largest rate
	lapse      = 0.15  // probability that a level fails far below it, because something disturbed the machine
	lapsedFar  = 0.04  // probability that a level is even overloaded there
	mostPoints = 20000 // the most points of a belief's grid
)

// belief holds, for each rate of a grid with equal steps of the logarithm, the probability that it is the largest that holds.
type belief struct {
	from, step float64 // the grid's first point and its step, as logarithms
	p          []float64
}

// believe computes the belief from all tries, starting from an uninformed one. Its grid reaches from the lowest rate to beyond what the closed load
// and the tries suggest, up to what the generator can offer.
func (s *state) believe() belief {
	low, high := s.From, max(s.closed, s.From)
	for _, r := range s.rates {
		high = max(high, r.rate)
	}
	if high = min(high*Growth, s.To*(1+s.Precision), s.wall); high <= low {
		high = low * (1 + s.Precision)
	}
	b := belief{from: math.Log(low), step: math.Log1p(s.Precision) / 8}
	span := math.Log(high) - b.from
	n := int(span/b.step) + 2
	if n > mostPoints {
		n = mostPoints
	}
	b.step = span / float64(n-1)
	b.p = make([]float64, n)
	width := math.Log1p(s.Precision) / 3
	for i := range b.p {
		theta, p := b.from+float64(i)*b.step, 0.0
		if s.closed > 0 && theta > math.Log(s.closed) {
			p = -float64(theta-math.Log(s.closed)) / math.Log(1.25) // an open load hardly reaches a rate that a closed load does not
		}
		b.p[i] = p
	}
	for _, r := range s.rates {
		b.weigh(&r, width)
	}
	b.normalise()
	return b
}

// weigh multiplies a belief, which holds logarithms, by the probability of how the tries of a rate ended.
func (b *belief) weigh(r *tried, width float64) {
	of := func(below float64) (p float64) {
		add := func(times int, probability float64) {
			if times > 0 {
				p += float64(times) * math.Log(probability)
			}
		}
		add(r.held, falseHolds+(1-falseHolds-lapse)*below)
		add(r.failed-r.overload, 1-falseHolds-(1-falseHolds-lapse)*below)
		add(r.overload, 1-falseHolds-(1-falseHolds-lapsedFar)*below)
		return p
	}
	const far = 20 // widths at which the probability is as good as 0 or 1
	least, greatest, at := of(0), of(1), math.Log(r.rate)
	for i := range b.p {
		switch x := (b.from + float64(i)*b.step - at) / width; {
		case x < -far:
			b.p[i] += least
		case x > far:
			b.p[i] += greatest
		default:
			b.p[i] += of(1 / (1 + math.Exp(-x)))
		}
	}
}

// normalise turns logarithms of weights into probabilities.
func (b *belief) normalise() {
	top, sum := math.Inf(-1), 0.0
	for _, p := range b.p {
		top = max(top, p)
	}
	for i := range b.p {
		b.p[i] = math.Exp(b.p[i] - top)
		sum += b.p[i]
	}
	for i := range b.p {
		b.p[i] /= sum
	}
}

// quantile returns the rate below which the largest rate that holds lies with probability q.
func (b *belief) quantile(q float64) float64 {
	sum := 0.0
	for i, p := range b.p {
		if sum += p; sum >= q {
			inside := 1 - (sum-q)/p // the part of this point's mass that counts
			return math.Exp(b.from + (float64(i)-0.5+inside)*b.step)
		}
	}
	return math.Exp(b.from + float64(len(b.p)-1)*b.step)
}

// within says whether the central 95 % lie within a precision.
func (b *belief) within(precision float64) bool {
	return b.quantile(0.975) <= b.quantile(0.025)*(1+precision)
}
