package stat

import "math"

// Welch is Welch's t test (Biometrika 34, 1947) between two sides, each of at least two values. Differences up to Blur count as no difference: the
// null hypothesis is that the true one is at most Blur.
type Welch struct {
	At   float64 // difference of the means
	SE   float64 // standard error of At; 0 if neither side varies
	Free float64 // degrees of freedom
	Blur float64
}

// NewWelch compares b with a.
func NewWelch(a, b []float64, blur float64) Welch {
	n, m := float64(len(a)), float64(len(b))
	ofA, ofB := Variance(a)/n, Variance(b)/m
	return Welch{Mean(b) - Mean(a), math.Sqrt(ofA + ofB), WelchFreedom(ofA, ofB, n, m), blur}
}

// WelchFreedom returns the degrees of freedom of the difference of the means of n and m values, of which ofA and ofB are the squared standard errors.
func WelchFreedom(ofA, ofB, n, m float64) float64 {
	share := ofA / (ofA + ofB)
	return 1 / (share*share/(n-1) + (1-share)*(1-share)/(m-1))
}

// P returns the two-sided probability that chance makes a difference as large.
func (w Welch) P() float64 { return Student(max(0, math.Abs(w.At)-w.Blur)/w.SE, w.Free) }

// Interval returns the confidence interval of the difference that misses the true one with probability p. It excludes 0 exactly if P is below p.
func (w Welch) Interval(p float64) (lo, hi float64) {
	half := w.Blur + StudentLimit(p, w.Free)*w.SE
	return w.At - half, w.At + half
}
