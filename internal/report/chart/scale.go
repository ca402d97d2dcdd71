package chart

import (
	"math"
	"slices"
)

// Scale places values between 0 and 1, and says which of them to name. It is made by [Linear], [Log] or [Nines].
type Scale struct {
	Label string // what is on the axis, with its unit

	place func(v float64) float64
	ticks []tick
}

type tick struct {
	at   float64
	text string
}

// at places v. Values beyond the ends are at the ends.
func (s *Scale) at(v float64) float64 { return min(max(s.place(v), 0), 1) }

// Linear goes from 0 to the first multiple of step that is not below most, with a tick at each. Step is above 0.
func Linear(label string, most, step float64, text func(float64) string) Scale {
	steps := max(math.Ceil(most/step-1e-9), 1)
	s := Scale{Label: label, place: func(v float64) float64 { return v / (steps * step) }}
	for i := range int(steps) + 1 {
		s.ticks = append(s.ticks, tick{float64(i) * step, text(float64(i) * step)})
	}
	return s
}

// Span is [Linear] that ends at most, wherever that is.
func Span(label string, most, step float64, text func(float64) string) Scale {
	s := Linear(label, most, step, text)
	s.place = func(v float64) float64 { return v / most }
	s.ticks = slices.DeleteFunc(s.ticks, func(t tick) bool { return t.at > most*(1+1e-9) })
	return s
}

// Log goes by the logarithm, from least or less to most or more: both are above 0, and are moved to 1, 2 or 5 times a power of ten. Ticks
// are at those, or at powers of ten only where there are more than three.
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

// Nines is for shares q from 0 to 1 − 10^−nines, by the logarithm of 1 − q: what is left over takes as much room from 0.9 to 0.99 as from
// 0.99 to 0.999.
func Nines(label string, nines int, text func(float64) string) Scale {
	s := Scale{Label: label, place: func(q float64) float64 { return -math.Log10(1-min(q, 1-1e-15)) / float64(nines) }}
	s.ticks = []tick{{0, text(0)}, {0.5, text(0.5)}}
	for i := range nines {
		q := 1 - math.Pow(10, -float64(i+1))
		s.ticks = append(s.ticks, tick{q, text(q)})
	}
	return s
}

// Step returns the smallest of 1, 2 and 5 times a power of ten that cuts span into at most n steps.
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

// StepOfTime is [Step] for seconds: above ten it counts as clocks do.
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
