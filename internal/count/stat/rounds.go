package stat

import (
	"cmp"
	"math"
	"slices"
)

// Difference is a test of a difference between two means. Differences up to Blur count as no difference: the null hypothesis is that the true one is
// at most Blur.
type Difference struct {
	At     float64 // difference of the means
	Errors []Error // estimates of its error; a difference is shown if each of them shows it
	Blur   float64
}

// Error is an estimate of the error of a mean or a difference.
type Error struct {
	SE   float64 // standard error; 0 if nothing varies
	Free float64 // degrees of freedom
}

// SE returns the largest standard error.
func (d Difference) SE() (se float64) {
	for _, e := range d.Errors {
		se = max(se, e.SE)
	}
	return se
}

// P returns the two-sided probability that chance makes a difference as large.
func (d Difference) P() (p float64) {
	beyond := math.Abs(d.At) - d.Blur
	if beyond <= 0 {
		return 1
	}
	for _, e := range d.Errors {
		p = max(p, Student(beyond/e.SE, e.Free))
	}
	return p
}

// Interval returns the confidence interval of the difference that misses the true one with probability p. It excludes 0 exactly if P is below p.
func (d Difference) Interval(p float64) (lo, hi float64) {
	half := 0.0
	for _, e := range d.Errors {
		half = max(half, StudentLimit(p, e.Free)*e.SE)
	}
	return d.At - half - d.Blur, d.At + half + d.Blur
}

// NewWelch compares the means of two sides, each of at least two values, by Welch's test (Biometrika 34, 1947). No side counts as less variable than
// all sides on average, which `others` belong to as well: a few runs of a target with two modes may by chance show only one.
func NewWelch(a, b []float64, blur float64, others ...[]float64) Difference {
	squares, free := 0.0, 0.0
	for _, side := range append([][]float64{a, b}, others...) {
		squares, free = squares+Variance(side)*float64(len(side)-1), free+float64(len(side)-1)
	}
	return Difference{Mean(b) - Mean(a), []Error{welch(max(Variance(a), squares/free), max(Variance(b), squares/free), len(a), len(b))}, blur}
}

// welch returns the error of the difference between means of n and m values with these variances.
func welch(ofA, ofB float64, n, m int) Error {
	ofA, ofB = ofA/float64(n), ofB/float64(m)
	share := ofA / (ofA + ofB)
	return Error{math.Sqrt(ofA + ofB), 1 / (share*share/float64(n-1) + (1-share)*(1-share)/float64(m-1))}
}

// LeastRounds is the fewest rounds that show a difference between two of several sides. With fewer, targets whose runs have two modes differ by
// chance alone in one experiment of ten or more.
func LeastRounds(sides int) int {
	if sides < 3 {
		return guarded
	}
	return 4
}

// guarded is the number of rounds from which the larger of a guard's two errors is enough.
const guarded = 5

// NewRounds compares the first two of several sides that were measured in rounds, once each a round: rounds[i][j] is side j's value in round i. What a
// round does to all sides alike cancels out. The error is guarded: it is that of the pair's differences, or that of the residuals of all sides about
// their means and their rounds' (a two-way analysis of variance), whichever is larger. The former has few degrees of freedom; the latter alone would
// trust a pair that varies more than the rest. Below five rounds, both must show the difference.
func NewRounds(rounds [][]float64, blur float64) Difference {
	n, sides := len(rounds), len(rounds[0])
	differences, means := make([]float64, n), make([]float64, n)
	for i, values := range rounds {
		differences[i], means[i] = values[1]-values[0], Mean(values)
	}
	squares := 0.0
	for j := range sides {
		own := make([]float64, n) // without what the round did
		for i, values := range rounds {
			own[i] = values[j] - means[i]
		}
		squares += Variance(own) * float64(n-1)
	}
	return Difference{Mean(differences), Guard(Variance(differences), squares/float64((sides-1)*(n-1)), n, sides), blur}
}

// Guard returns the errors of the difference between two of several sides over n rounds: pair is the variance of their differences, residual that of
// a single value about its side and its round.
func Guard(pair, residual float64, n, sides int) []Error {
	both := []Error{{math.Sqrt(pair / float64(n)), float64(n - 1)}, {math.Sqrt(2 * residual / float64(n)), float64((sides - 1) * (n - 1))}}
	if n < guarded {
		return both
	}
	return []Error{slices.MaxFunc(both, func(a, b Error) int { return cmp.Compare(a.SE, b.SE) })}
}

// Wilson returns the 95 % confidence interval of a share that was k of n in a sample (Wilson, Journal of the American Statistical Association 22,
// 1927).
func Wilson(k, n float64) (low, high float64) {
	return wilson(k, n, 1.959963984540054) // the normal distribution's quantile of 97.5 %
}

func wilson(k, n, z float64) (low, high float64) {
	centre := (k + z*z/2) / (n + z*z)
	half := z / (n + z*z) * math.Sqrt(k*(n-k)/n+z*z/4)
	return max(0, centre-half), min(1, centre+half)
}

// leastBursts is the fewest blocks of time with an event whose interval is known.
const leastBursts = 10

// Bursts returns the 95 % confidence interval of a share whose events come in bursts: k[i] of n[i] in block i of time. It is Wilson's, of as many fewer
// as explain how much the blocks differ, or pairs or fours of neighbouring blocks, whichever differ most; with Student's t over the blocks with an
// event. There is none, and false, if there are fewer than ten of these.
func Bursts(k, n []float64) (low, high float64, known bool) {
	bursts, all, of := 0.0, 0.0, 0.0
	for i := range k {
		if all, of = all+k[i], of+n[i]; k[i] > 0 {
			bursts++
		}
	}
	if bursts < leastBursts {
		return 0, 0, false
	}
	share, alike := all/of, 1.0 // how many gets are worth an independent one
	for _, length := range []int{1, 2, 4} {
		squares, blocks := 0.0, 0.0
		for ks := range slices.Chunk(k, length) {
			at := int(blocks) * length
			rest := float64(len(ks)) * (Mean(ks) - share*Mean(n[at:at+len(ks)]))
			squares, blocks = squares+rest*rest, blocks+1
		}
		if blocks >= leastBursts && share < 1 {
			alike = max(alike, squares*blocks/(blocks-1)/(of*share*(1-share)))
		}
	}
	low, high = wilson(all/alike, of/alike, StudentLimit(0.05, bursts-1))
	return low, high, true
}
