package pace

import "math"

// double is the unevaluated sum of two float64, hi the nearest to it: about 32 decimal digits. Its operations are Dekker's (1971) with a fused
// multiply-add (Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed., §4.4, §4.7 and §14.1).
type double struct{ hi, lo float64 }

// whole returns n, exactly.
func whole(n int64) double {
	hi := float64(n)
	return double{hi, float64(n - int64(hi))}
}

// sum returns a + b, exactly.
func sum(a, b float64) double {
	s := a + b
	t := s - a
	return double{s, (a - (s - t)) + (b - t)}
}

// product returns a·b, exactly.
func product(a, b float64) double {
	p := a * b
	return double{p, math.FMA(a, b, -p)}
}

func (a double) plus(b double) double {
	s := sum(a.hi, b.hi)
	return sum(s.hi, s.lo+(a.lo+b.lo))
}

func (a double) negative() double { return double{-a.hi, -a.lo} }

func (a double) times(b double) double {
	p := product(a.hi, b.hi)
	return sum(p.hi, p.lo+(a.hi*b.lo+a.lo*b.hi))
}

func (a double) over(b double) double {
	q := a.hi / b.hi
	rest := a.plus(b.times(double{hi: q}).negative())
	return sum(q, rest.hi/b.hi)
}

// root returns √a, a > 0.
func (a double) root() double {
	r := math.Sqrt(a.hi)
	rest := a.plus(product(-r, r))
	return sum(r, rest.hi/(2*r))
}

// round returns the integer nearest to a ≥ 0, or never if that is out of range.
func (a double) round() int64 {
	if a.hi >= never/2 {
		return never
	}
	whole := math.Floor(a.hi)
	return int64(whole) + int64(math.Floor(a.hi-whole+a.lo+0.5))
}
