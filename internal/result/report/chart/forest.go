package chart

import (
	"html"
	"math"
	"unicode/utf8"
)

// Ratio is a row of a [Forest]: a ratio with its interval.
type Ratio struct {
	Name   string
	Class  string  // of the dot and the line, for the style sheet
	At     float64 // NaN if unknown
	Lo, Hi float64 // ends of the interval; NaN if unknown
	Text   string  // shown at its right
	Hint   string  // shown when pointed at
}

// Forest draws ratios one below the other on a logarithmic axis, with a line at 1.
type Forest struct {
	Name  string // for screen readers
	Label string // what the ratios are of
	Rows  []Ratio
	Text  func(float64) string // of a tick
}

// Measures of a forest, in units.
const (
	rowHigh    = 18
	forestTop  = 10
	forestAxis = 38 // below the rows
	leastRoom  = 120.0
	rowWide    = 7.6 // of a letter: more than most fonts need, so that names are not cut off
)

// SVG returns the forest as an svg element.
func (f *Forest) SVG() string {
	names, texts := 0.0, 0.0
	least, most := 1/1.05, 1.05
	for _, r := range f.Rows {
		names = max(names, wide(short(r.Name)))
		texts = max(texts, wide(r.Text))
		for _, v := range []float64{r.At, r.Lo, r.Hi} {
			if v > 0 && !math.IsInf(v, 0) {
				least, most = min(least, v), max(most, v)
			}
		}
	}
	names += 8
	from := names + 12
	to := max(width-texts-12, from+leastRoom)
	scale := around(f.Label, least, most, f.Text)
	x := func(v float64) string { return number(from + (to-from)*scale.at(v)) }
	high := len(f.Rows) * rowHigh
	d := &drawing{}
	d.add(`<svg class="plot forest" viewBox="0 0 %s %d" role="img" aria-label="%s">`,
		number(max(width, to+texts+12)), forestTop+high+forestAxis, html.EscapeString(f.Name))
	end := math.Inf(-1)
	for _, t := range scale.ticks {
		at, half := from+(to-from)*scale.at(t.at), wide(t.text)/2
		d.add(`<line class="grid" x1="%s" x2="%s" y1="%d" y2="%d"/>`, number(at), number(at), forestTop, forestTop+high)
		if at-half >= end+6 {
			end = at + half
			d.add(`<text class="tick" x="%s" y="%d" text-anchor="middle">%s</text>`, number(at), forestTop+high+15, html.EscapeString(t.text))
		}
	}
	d.add(`<line class="one" x1="%s" x2="%s" y1="%d" y2="%d"/>`, x(1), x(1), forestTop, forestTop+high)
	d.add(`<text class="label" x="%s" y="%d" text-anchor="middle">%s</text>`, number((from+to)/2), forestTop+high+32, html.EscapeString(f.Label))
	for i, r := range f.Rows {
		y := forestTop + rowHigh*i + rowHigh/2
		d.add(`<text class="row" x="%s" y="%d" text-anchor="end">%s</text>`, number(names), y+4, html.EscapeString(short(r.Name)))
		if r.Lo > 0 && r.Hi > 0 {
			d.add(`<path class="line %s" d="M%s %dH%s"/>`, r.Class, x(r.Lo), y, x(r.Hi))
		}
		if r.At > 0 {
			d.add(`<circle class="dot %s" cx="%s" cy="%d" r="4"/>`, r.Class, x(r.At), y)
		}
		d.add(`<text class="row" x="%s" y="%d">%s</text>`, number(to+12), y+4, html.EscapeString(r.Text))
		if r.Hint != "" {
			d.add(`<rect class="hit" x="0" y="%d" width="%d" height="%d"><title>%s</title></rect>`, y-rowHigh/2, width, rowHigh, html.EscapeString(r.Hint))
		}
	}
	d.b.WriteString("</svg>")
	return d.b.String()
}

// wide returns the width reserved for text.
func wide(text string) float64 { return float64(utf8.RuneCountInString(text)) * rowWide }

// around returns a logarithmic scale of ratios that contains least, 1 and most, with at most seven round ticks.
func around(label string, least, most float64, text func(float64) string) Scale {
	if most/least > 5 {
		return Log(label, least, most, text)
	}
	step := Step(most-least, 5)
	lo, hi := math.Floor(least/step+1e-9)*step, math.Ceil(most/step-1e-9)*step
	if lo <= 0 {
		lo = least
	}
	s := Scale{Label: label, place: func(v float64) float64 { return math.Log(v/lo) / math.Log(hi/lo) }}
	for i := math.Ceil(lo/step - 1e-9); i*step <= hi*(1+1e-9); i++ {
		s.ticks = append(s.ticks, tick{i * step, text(i * step)})
	}
	return s
}
