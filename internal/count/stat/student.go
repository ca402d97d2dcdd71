package stat

import "math"

// Student returns the probability that Student's t, with free degrees of freedom (not necessarily whole), is further from 0 than t on either side. It
// is NaN if t is, or if free is not positive.
//
// It is I_x(free/2, ½) with x = free / (free + t²), where I is the regularized incomplete beta function (DLMF 8.17). The relative error is below
// 1e-10, however small the result, up to a million degrees of freedom.
func Student(t, free float64) float64 {
	switch {
	case math.IsNaN(t) || !(free > 0):
		return math.NaN()
	case math.IsInf(t, 0):
		return 0
	case t == 0:
		return 1
	}
	a, squared := free/2, t*t
	x, rest := free/(free+squared), squared/(free+squared) // 1 − x would lose the digits of a small t
	power := math.Exp(-a * math.Log1p(squared/free))       // x^a
	factor := power * math.Sqrt(rest) * gammaRatio(a) / math.SqrtPi
	if x < (a+1)/(a+2.5) {
		return factor / a * betaFraction(x, a, 0.5)
	}
	return 1 - 2*factor*betaFraction(rest, 0.5, a)
}

// StudentLimit returns the t that Student's t exceeds in absolute value with probability p: Student(t, free) = p.
func StudentLimit(p, free float64) float64 {
	switch {
	case math.IsNaN(p) || !(free > 0):
		return math.NaN()
	case p <= 0:
		return math.Inf(1)
	}
	return end(func(t float64) bool { return Student(t, free) > p }) // at the latest at infinity, where Student is 0
}

// end returns where a condition that holds from 0 on ends.
func end(holds func(float64) bool) float64 {
	low, high := 0.0, 1.0
	for holds(high) {
		low, high = high, 2*high
	}
	for {
		mid := low + (high-low)/2
		if mid <= low || mid >= high {
			return high
		}
		if holds(mid) {
			low = mid
		} else {
			high = mid
		}
	}
}

// gammaRatio returns Γ(a + ½) / Γ(a), a > 0. Logarithms of large factorials leave few digits behind the decimal point, so beyond 50 it uses the
// series of DLMF 5.11.13.
func gammaRatio(a float64) float64 {
	if a < 50 {
		above, _ := math.Lgamma(a + 0.5)
		below, _ := math.Lgamma(a)
		return math.Exp(above - below)
	}
	u := 1 / (8 * a)
	return math.Sqrt(a) * (1 + u*(-1+u*(0.5+u*(2.5-u*2.625))))
}

// betaFraction returns the continued fraction of I_x(a, b), 1 / (1 + d₁ / (1 + d₂ / …)) (DLMF 8.17.22). It converges for x < (a + 1) / (a + b + 2),
// in about as many steps as the square root of the larger of a and b. It is evaluated forwards, by Lentz's method.
func betaFraction(x, a, b float64) float64 {
	const (
		most = 100_000
		near = 1e-15
	)
	value, up, down := 1.0, 1.0, 0.0
	for i := 1; i <= most; i++ {
		m := float64(i / 2)
		d := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		if i%2 == 1 {
			d = -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		}
		down = 1 / (1 + d*down)
		up = 1 + d/up
		value *= up * down
		if i > 2 && math.Abs(up*down-1) < near {
			break
		}
	}
	return 1 / value
}
