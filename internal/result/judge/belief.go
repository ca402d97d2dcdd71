package judge

import (
	"math"
	"slices"
)

const (
	side  = 1.6  // a score further from 0 only says on which side of the limit its level was
	fewer = 3    // so does the score of a level with fewer slow ops
	lapse = 0.03 // probability that something disturbed a level
	wider = 1.2  // what quantiles of the belief are stretched by
)

// belief is what the scores of levels say about the largest rate that holds. It takes the score of a level at the log rate x for a Student t variable
// with three degrees of freedom around slope·(x − θ), where θ is the log of that rate, with a scale of slope·noise for a level of the usual length.
// Slope and noise are learnt with θ, on a grid.
type belief struct {
	from, step   float64 // the first point of θ, and the distance of points
	p            []float64
	slope, noise float64 // geometric means
}

// seen is a level as a belief takes it.
type seen struct {
	x, y  float64
	scale float64 // of its noise: √(usual length ÷ its length), 1 or more
	side  int     // +1 or -1: the score is y or beyond; 0: it is y
}

// believe computes the belief for θ between two log rates, and again for the part in which it turned out to lie, until that is most of it. Above the
// rate of the closed load it begins with e^(−(θ−closed)/0.05).
func believe(levels []seen, low, high, closed float64) belief {
	b := pass(levels, low, high, closed, 70)
	for range 4 {
		low, high = b.at(0.0005), b.at(0.9995)
		margin := 0.15 * (high - low)
		b = pass(levels, low-margin, high+margin, closed, 90)
		if b.at(0.9995)-b.at(0.0005) > 0.5*(high-low) {
			break
		}
	}
	return b
}

func pass(levels []seen, low, high, closed float64, n int) belief {
	const slopes, noises = 10, 9
	b := belief{from: low, step: (high - low) / float64(n-1), p: make([]float64, n)}
	slope := func(at int) float64 { return 1.5 * math.Pow(800/1.5, float64(at/noises)/(slopes-1)) }
	noise := func(at int) float64 { return 0.002 * math.Pow(0.3/0.002, float64(at%noises)/(noises-1)) }
	before, weights := make([]float64, n), make([]float64, slopes*noises*n)
	for k := range before {
		before[k] = math.Exp(-max(0, b.theta(k)-closed) / 0.05)
	}
	var scales [slopes * noises]float64 // logs of what weights were divided by
	for at := range scales {
		p := weights[at*n:][:n]
		steep, loose := slope(at), noise(at)
		copy(p, before)
		for i, l := range levels {
			l.weigh(p, &b, steep, loose)
			if i%32 == 31 { // before they vanish
				top := slices.Max(p)
				for k := range p {
					p[k] /= top
				}
				scales[at] += math.Log(top)
			}
		}
	}
	sum, top := 0.0, slices.Max(scales[:])
	for at, scale := range scales {
		all, part := 0.0, math.Exp(scale-top)
		for k, w := range weights[at*n:][:n] {
			w *= part
			b.p[k] += w
			all += w
		}
		sum += all
		b.slope += all * math.Log(slope(at))
		b.noise += all * math.Log(noise(at))
	}
	for k := range b.p {
		b.p[k] /= sum
	}
	b.slope, b.noise = math.Exp(b.slope/sum), math.Exp(b.noise/sum)
	return b
}

// weigh multiplies each of p by the density of the level's score, or by the probability of its side, at a point of θ. A level averages shares of slow
// ops, not their log odds, which shifts the score by half the variance.
func (l *seen) weigh(p []float64, b *belief, slope, noise float64) {
	sd := slope * noise * l.scale
	u := (l.y - slope*(l.x-b.from) + min(sd*sd/2, 1)) / sd / math.Sqrt(3)
	step := slope * b.step / sd / math.Sqrt(3)
	density := (1 - lapse) * 2 / (math.Pi * math.Sqrt(3) * sd)
	for k := range p {
		if l.side == 0 {
			d := 1 + u*u
			p[k] *= density/(d*d) + lapse/6
		} else {
			p[k] *= (1-lapse)*student(-float64(l.side)*u) + lapse/2
		}
		u += step
	}
}

// student is the distribution of Student's t with three degrees of freedom, divided by √3.
func student(u float64) float64 {
	const far = 20 // where it is 0 or 1 but for 3e-5
	switch {
	case u > far:
		return 1
	case u < -far:
		return 0
	}
	return 0.5 + (math.Atan(u)+u/(1+u*u))/math.Pi
}

func (b *belief) theta(k int) float64 { return b.from + float64(k)*b.step }

// quantile returns the log rate below which the largest rate that holds lies with probability q.
func (b *belief) quantile(q float64) float64 {
	middle := b.at(0.5)
	return middle + wider*(b.at(q)-middle)
}

// at returns a quantile of the grid.
func (b *belief) at(q float64) float64 {
	sum := 0.0
	for k, p := range b.p {
		if sum+p >= q {
			return b.theta(k) + b.step*((q-sum)/max(p, 1e-300)-0.5)
		}
		sum += p
	}
	return b.theta(len(b.p) - 1)
}
