package chart

import "html"

// Share is a part of a whole.
type Share struct {
	Name  string
	Class string // for the style sheet
	N     float64
}

// Shares draws the parts of a whole as one bar; every part above 0 is visible.
func Shares(name string, parts []Share) string {
	const wide, high, least = 440.0, 14, 1.5
	var sum, room float64
	for _, p := range parts {
		sum += p.N
		if p.N > 0 {
			room += least
		}
	}
	d := &drawing{}
	d.add(`<svg class="shares" viewBox="0 0 %s %d" preserveAspectRatio="none" role="img" aria-label="%s">`, number(wide), high, html.EscapeString(name))
	x := 0.0
	for _, p := range parts {
		if p.N <= 0 {
			continue
		}
		w := least + (wide-room)*p.N/sum
		d.add(`<rect class="share %s" x="%s" y="0" width="%s" height="%d"><title>%s</title></rect>`,
			p.Class, number(x), number(w), high, html.EscapeString(p.Name))
		x += w
	}
	d.b.WriteString("</svg>")
	return d.b.String()
}
