package stat

import "math"

// Line is the least-squares straight line through points: y = At0 + Slope·x.
type Line struct {
	At0, Slope float64
	Half       float64 // half of the slope's confidence interval; +Inf with fewer than three points
}

// LineThrough returns the line through points, of which at least two have different x. Its interval misses the true slope with probability p, if the
// deviations from the line are normal and independent (Student's t with n − 2 degrees of freedom).
func LineThrough(x, y []float64, p float64) Line {
	mx, my := Mean(x), Mean(y)
	var xx, xy float64
	for i := range x {
		xx += (x[i] - mx) * (x[i] - mx)
		xy += (x[i] - mx) * (y[i] - my)
	}
	l := Line{Slope: xy / xx, Half: math.Inf(1)}
	l.At0 = my - l.Slope*mx
	if len(x) < 3 {
		return l
	}
	var squares float64
	for i := range x {
		off := y[i] - l.At0 - l.Slope*x[i]
		squares += off * off
	}
	free := float64(len(x) - 2)
	l.Half = StudentLimit(p, free) * math.Sqrt(squares/free/xx)
	return l
}
