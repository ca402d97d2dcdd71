package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Measures of a chart, in units.
const (
	width, height       = 440, 260
	left, right         = 58, 14 // around the plot
	top, bottom         = 34, 40
	plotWide, plotHigh  = width - left - right, height - top - bottom
	textWide            = 6.8 // of a letter, approximately
	keyWide, keySpacing = 14, 14
	keyHigh             = 16 // of each row of the legend
	keyLetters          = 40 // of a name in it
)

// Chart holds the data and settings that [Chart.SVG] draws.
type Chart struct {
	Name  string // for screen readers
	X, Y  Scale
	Lines []Line
	Cells []Cell
	Hits  []Hit
	Marks []Mark

	Moments []Moment
}

// Line joins points from left to right.
type Line struct {
	Name   string // in the legend; left out if ""
	Class  string // for the style sheet
	Dots   bool   // at the points
	Loose  bool   // dots without a line
	Points []Point
}

// Point is a value; a NaN Y breaks the line.
type Point struct{ X, Y float64 }

// Cell is a rectangle of a heatmap. Level is 1, few, to [Levels], many.
type Cell struct {
	X0, X1, Y0, Y1 float64
	Level          int
}

// Levels is the number of shades of a heatmap.
const Levels = 6

// Hit is the text shown between two places of the X axis.
type Hit struct {
	X0, X1 float64
	Text   string
}

// Mark is a horizontal line at a value of the Y axis.
type Mark struct {
	Y    float64
	Text string
}

// Moment is a vertical line at a value of the X axis.
type Moment struct {
	X    float64
	Text string
}

// SVG returns the chart as an svg element.
func (c *Chart) SVG() string {
	d := &drawing{}
	rows := keyRows(c.Lines)
	lower := keyHigh * max(len(rows)-1, 0) // the space that the legend takes
	d.add(`<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height+lower, html.EscapeString(c.Name))
	d.add(`<text class="label" x="4" y="12">%s</text>`, html.EscapeString(c.Y.Label))
	d.key(rows)
	d.add(`<g transform="translate(0 %d)">`, lower)
	d.axes(c)
	d.cells(c)
	for _, m := range c.Marks {
		y := c.y(m.Y)
		d.add(`<line class="mark" x1="%d" x2="%d" y1="%s" y2="%s"/>`, left, left+plotWide, y, y)
		d.text("note", left+4, c.Y.at(m.Y), m.Text)
	}
	for _, m := range c.Moments {
		d.add(`<line class="mark" x1="%[1]s" x2="%[1]s" y1="%[2]d" y2="%[3]d"/>`, c.x(m.X), top, top+plotHigh)
		d.text("note", left+plotWide*c.X.at(m.X)+3, 1-16./plotHigh, m.Text) // below the legend
	}
	for _, l := range c.Lines {
		d.line(c, &l)
	}
	if len(c.Hits) > 0 {
		d.add(`<line class="hair" x1="-9" x2="-9" y1="%d" y2="%d"/>`, top, top+plotHigh)
	}
	for _, h := range c.Hits {
		x0, x1 := left+plotWide*c.X.at(h.X0), left+plotWide*c.X.at(h.X1)
		d.add(`<rect class="hit" x="%s" y="%d" width="%s" height="%d"><title>%s</title></rect>`,
			number(x0), top, number(max(x1-x0, 0.5)), plotHigh, html.EscapeString(h.Text))
	}
	d.b.WriteString("</g></svg>")
	return d.b.String()
}

func (c *Chart) x(v float64) string { return number(left + plotWide*c.X.at(v)) }
func (c *Chart) y(v float64) string { return number(top + plotHigh*(1-c.Y.at(v))) }

// drawing is SVG being built.
type drawing struct{ b strings.Builder }

func (d *drawing) add(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

// text adds words just above a place.
func (d *drawing) text(class string, x, share float64, words string) {
	d.add(`<text class="%s" x="%s" y="%s" text-anchor="start">%s</text>`,
		class, number(x), number(top+plotHigh*(1-share)-4), html.EscapeString(words))
}

// axes draws the grid, its labels and those of the axes.
func (d *drawing) axes(c *Chart) {
	for _, t := range c.Y.ticks {
		y := top + plotHigh*(1-c.Y.at(t.at))
		d.add(`<line class="grid" x1="%d" x2="%d" y1="%s" y2="%s"/>`, left, left+plotWide, number(y), number(y))
		d.add(`<text class="tick" x="%d" y="%s" text-anchor="end">%s</text>`, left-6, number(y+4), html.EscapeString(t.text))
	}
	end := math.Inf(-1) // of the last label
	for _, t := range c.X.ticks {
		x := left + plotWide*c.X.at(t.at)
		d.add(`<line class="grid" x1="%s" x2="%s" y1="%d" y2="%d"/>`, number(x), number(x), top, top+plotHigh)
		half := float64(utf8.RuneCountInString(t.text)) * textWide / 2
		middle := min(x, width-half-1)
		if middle-half < end+4 {
			continue
		}
		end = middle + half
		d.add(`<text class="tick" x="%s" y="%d" text-anchor="middle">%s</text>`, number(middle), top+plotHigh+15, html.EscapeString(t.text))
	}
	d.add(`<line class="axis" x1="%d" x2="%d" y1="%d" y2="%d"/>`, left, left+plotWide, top+plotHigh, top+plotHigh)
	d.add(`<text class="label" x="%d" y="%d" text-anchor="end">%s</text>`, left+plotWide, height-6, html.EscapeString(c.X.Label))
}

// cells draws all cells of one level as one path: there may be thousands.
func (d *drawing) cells(c *Chart) {
	var paths [Levels + 1]strings.Builder
	for _, cell := range c.Cells {
		x0, x1 := left+plotWide*c.X.at(cell.X0), left+plotWide*c.X.at(cell.X1)
		y0, y1 := top+plotHigh*(1-c.Y.at(cell.Y0)), top+plotHigh*(1-c.Y.at(cell.Y1))
		fmt.Fprintf(&paths[cell.Level], "M%s %sH%sV%sH%sz", number(x0), number(y0), number(x1), number(y1), number(x0))
	}
	for level := range paths {
		if paths[level].Len() > 0 {
			d.add(`<path class="cell l%d" d="%s"/>`, level, paths[level].String())
		}
	}
}

func (d *drawing) line(c *Chart, l *Line) {
	var path strings.Builder
	pen := "M"
	for _, p := range l.Points {
		if math.IsNaN(p.Y) {
			pen = "M"
			continue
		}
		path.WriteString(pen + c.x(p.X) + " " + c.y(p.Y))
		pen = "L"
	}
	if path.Len() == 0 {
		return
	}
	if !l.Loose {
		d.add(`<path class="line %s" d="%s"/>`, l.Class, path.String())
	}
	if !l.Dots && !l.Loose {
		return
	}
	for _, p := range l.Points {
		if !math.IsNaN(p.Y) {
			d.add(`<circle class="dot %s" cx="%s" cy="%s" r="3"/>`, l.Class, c.x(p.X), c.y(p.Y))
		}
	}
}

// keyRows divides the legend of lines into rows.
func keyRows(lines []Line) (rows [][]Line) {
	room := 0.0
	for _, l := range lines {
		if l.Name == "" {
			continue
		}
		l.Name = short(l.Name)
		w := keyWidth(l.Name)
		if rows == nil || w > room {
			rows, room = append(rows, nil), left+plotWide
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], l)
		room -= w
	}
	return rows
}

// keyWidth returns the width of a name in the legend.
func keyWidth(name string) float64 {
	return float64(utf8.RuneCountInString(name))*textWide + keyWide + 4 + keySpacing
}

// short leaves out the middle of a name that is too long.
func short(name string) string {
	letters := []rune(name)
	if len(letters) <= keyLetters {
		return name
	}
	return string(letters[:keyLetters*2/3]) + "…" + string(letters[len(letters)-keyLetters/3:])
}

// key draws the legend above the chart, aligned with its right edge.
func (d *drawing) key(rows [][]Line) {
	for i, row := range rows {
		x := float64(left + plotWide)
		for j := len(row) - 1; j >= 0; j-- {
			x -= keyWidth(row[j].Name) - keySpacing
			if row[j].Loose {
				d.add(`<circle class="dot %s" cx="%s" cy="%d" r="3"/>`, row[j].Class, number(x+keyWide/2), 22+keyHigh*i)
			} else {
				d.add(`<path class="line %s" d="M%s %dh%d"/>`, row[j].Class, number(x), 22+keyHigh*i, keyWide)
			}
			d.add(`<text class="name" x="%s" y="%d">%s</text>`, number(x+keyWide+4), 26+keyHigh*i, html.EscapeString(row[j].Name))
			x -= keySpacing
		}
	}
}

// number formats a coordinate to a tenth of a unit, which is finer than anyone sees.
func number(f float64) string {
	return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64)
}
