package chart

import (
	"math"
	"slices"
)

// Scale maps values to 0 to 1, and chooses ticks. [Linear], [Span], [Log] and [Nines] make one.
type Scale struct {
	Label string // what is on the axis, with its unit

	place func(v float64) float64
	ticks []tick
}

type tick struct {
	at   float64
	text string
}

// at returns the place of v. Values beyond an end are placed there.
func (s *Scale) at(v float64) float64 { return min(max(s.place(v), 0), 1) }

// Linear runs from 0 to the first multiple of step that is at least most, with a tick at each multiple. step must be above 0.
func Linear(label string, most, step float64, text func(float64) string) Scale {
	steps := max(math.Ceil(most/step-1e-9), 1)
	s := Scale{Label: label, place: func(v float64) float64 { return v / (steps * step) }}
	for i := range int(steps) + 1 {
		s.ticks = append(s.ticks, tick{float64(i) * step, text(float64(i) * step)})
	}
	return s
}

// Span is [Linear], but ends exactly at most.
func Span(label string, most, step float64, text func(float64) string) Scale {
	s := Linear(label, most, step, text)
	s.place = func(v float64) float64 { return v / most }
	s.ticks = slices.DeleteFunc(s.ticks, func(t tick) bool { return t.at > most*(1+1e-9) })
	return s
}

// Log is logarithmic. It runs from at most least to at least most, both above 0, extended to 1, 2 or 5 times a power of ten. Ticks are at those, or
// only at powers of ten if there are more than three of them.
func Log(label string, least, most float64, text func(float64) string) Scale {
	var marks []float64
	for exponent := math.Floor(math.Log10(least)) - 1; ; exponent++ {
		for _, digit := range []float64{1, 2, 5} {
			marks = append(marks, digit*math.Pow(10, exponent))
		}
		if marks[len(marks)-1] > most {
			break
		}
	}
	from, to := 0, len(marks)-1
	for from+1 < len(marks) && marks[from+1] <= least*(1+1e-9) {
		from++
	}
	for to-1 > from && marks[to-1] >= most*(1-1e-9) {
		to--
	}
	lo, hi := math.Log(marks[from]), math.Log(marks[to])
	s := Scale{Label: label, place: func(v float64) float64 { return (math.Log(v) - lo) / (hi - lo) }}
	for i := from; i <= to; i++ {
		if to-from <= 9 || i%3 == 0 {
			s.ticks = append(s.ticks, tick{marks[i], text(marks[i])})
		}
	}
	return s
}

// Nines is for shares q from 0 to 1 − 10^−nines, by the logarithm of 1 − q: 0.9 to 0.99 takes as much room as 0.99 to 0.999.
func Nines(label string, nines int, text func(float64) string) Scale {
	s := Scale{Label: label, place: func(q float64) float64 { return -math.Log10(1-min(q, 1-1e-15)) / float64(nines) }}
	s.ticks = []tick{{0, text(0)}, {0.5, text(0.5)}}
	for i := range nines {
		q := 1 - math.Pow(10, -float64(i+1))
		s.ticks = append(s.ticks, tick{q, text(q)})
	}
	return s
}

// Step returns the smallest of 1, 2 and 5 times a power of ten that divides span into at most n steps.
func Step(span float64, n int) float64 {
	least := span / float64(n)
	power := math.Pow(10, math.Floor(math.Log10(least)))
	for _, digit := range []float64{1, 2, 5} {
		if digit*power >= least*(1-1e-9) {
			return digit * power
		}
	}
	return 10 * power
}

// StepOfTime is [Step] for seconds: above ten seconds it uses the steps of a clock.
func StepOfTime(span float64, n int) float64 {
	if span <= 10*float64(n) {
		return Step(span, n)
	}
	for _, step := range []float64{15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200} {
		if span <= step*float64(n) {
			return step
		}
	}
	return 86400 * math.Ceil(Step(span/86400, n))
}
