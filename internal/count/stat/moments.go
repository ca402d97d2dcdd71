package stat

import "math"

// Mean returns the mean of values, NaN if there are none. For equal values it is exactly their value, unlike their sum divided by their number, so
// that values that do not vary have a variance of 0.
func Mean(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	mean := 0.0
	for i, v := range values {
		mean += (v - mean) / float64(i+1)
	}
	return mean
}

// Variance returns the sample variance of values, dividing by their number less one: 0 for a single value, NaN for none.
func Variance(values []float64) float64 {
	switch len(values) {
	case 0:
		return math.NaN()
	case 1:
		return 0
	}
	mean, squares := Mean(values), 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return squares / float64(len(values)-1)
}

// MeanWithin returns the mean of at least two values, and half the width of the interval around it that misses the true mean with probability p, by
// Student's t.
func MeanWithin(values []float64, p float64) (mean, half float64) {
	n := float64(len(values))
	return Mean(values), StudentLimit(p, n-1) * math.Sqrt(Variance(values)/n)
}
