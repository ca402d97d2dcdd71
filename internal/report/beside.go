package report

import (
	"html/template"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/chart"
	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

// observedView is what the page shows of an observation of a phase.
type observedView struct {
	Name    string
	Facts   []string
	Rows    []latencyView // of fields
	Notes   []string
	Figures []figure
}

// observedHeads are over the figures of a field.
var observedHeads = [...]string{"before", "after", "grown by", "a second", "min", "mean", "max"}

// observedViews shows the observations of a phase, each field that changed beside the load.
func observedViews(ph *run.Phase) (all []observedView) {
	for _, name := range slices.Sorted(maps.Keys(ph.Probes)) {
		how := ph.Probes[name]
		v := observedView{Name: name, Facts: append(strings.Split(how.Kind+" "+how.Of, ", "), probesOf(how)...)}
		var missing, whys []string
		for _, field := range slices.Sorted(maps.Keys(ph.Observe[name])) {
			f := ph.Observe[name][field]
			if f.Last == nil {
				missing, whys = append(missing, field), append(whys, whyNull(ph, "observe."+name+"."+field+".last"))
				continue
			}
			row := latencyView{Name: field}
			for i, value := range []*float64{f.Before, f.After, f.Delta, f.Rate, f.Min, f.Mean, f.Max} {
				path := strings.Join([]string{"observe", name, field, [...]string{"before", "after", "delta", "rate", "min", "mean", "max"}[i]}, ".")
				c := gridCell{Text: "–", Reason: whyNull(ph, path)}
				if i == 3 && !f.Counter {
					c = gridCell{} // the growth of what goes up and down says nothing
				} else if value != nil {
					c = gridCell{Text: observedText(*value, &f, i == 3)}
				} else if c.Reason != "" {
					missing, whys = append(missing, field+" "+observedHeads[i]), append(whys, c.Reason)
				}
				row.Cells = append(row.Cells, c)
			}
			v.Rows = append(v.Rows, row)
			if fig, c := besideLoad(ph, name, field); c != nil {
				c.Name = fig.Title
				fig.SVG = template.HTML(c.SVG())
				v.Figures = append(v.Figures, fig)
			}
		}
		v.Notes = missingNotes(missing, whys)
		for _, e := range how.Errors {
			v.Notes = append(v.Notes, e.Text+" × "+count(e.Count))
		}
		all = append(all, v)
	}
	return all
}

// whyNull is why a number below a phase is null, or an object above it.
func whyNull(ph *run.Phase, path string) string {
	for path != "" {
		if why, ok := ph.Nulls[path]; ok {
			return why
		}
		path = path[:max(strings.LastIndex(path, "."), 0)]
	}
	return ""
}

// observedText writes a figure of a field; of what grows by seconds in a second, the share of the time.
func observedText(v float64, f *run.Observed, perSecond bool) string {
	switch {
	case perSecond && f.Unit == "s":
		return quantity.Percent(v)
	case perSecond:
		return amountOf(v, f.Unit) + "/s"
	}
	return amountOf(v, f.Unit)
}

// tickObserved is observedText as short as an axis wants it.
func tickObserved(v float64, f *run.Observed) string {
	switch {
	case f.Unit == "" && f.Counter:
		return tickSI(v) + "/s"
	case f.Unit == "":
		return tickPlain(v)
	}
	return trim(observedText(v, f, f.Counter))
}

// besideLoad draws a field that changed over the phase's time, and behind it the ops that ended ok, in a scale of their own.
func besideLoad(ph *run.Phase, observation, field string) (figure, *chart.Chart) {
	f := ph.Observe[observation][field]
	rows := ph.Probes[observation].Series
	if len(rows) < fewPoints || f.Min == nil || *f.Min == *f.Max {
		return figure{}, nil
	}
	fig := figure{Title: observation + ": " + field, Note: "at each probe"}
	if f.Counter {
		fig.Note = "growth a second between probes"
	}
	line := chart.Line{Name: field, Class: "c0"}
	most, end := 0.0, 0.0
	var hits []chart.Hit
	for i, row := range rows {
		v, t := math.NaN(), max(row.T, 0)
		from := t
		if i > 0 {
			from = max(rows[i-1].T, 0)
		}
		end = max(end, t)
		switch at := row.Value[field]; {
		case at == nil:
		case !f.Counter:
			v = *at
		case i > 0 && rows[i-1].Value[field] != nil && row.T > rows[i-1].T:
			v = max((*at-*rows[i-1].Value[field])/(row.T-rows[i-1].T), 0)
		}
		text := between(from, t) + "\n" + field + " "
		if math.IsNaN(v) {
			text += "is missing"
		} else {
			text += observedText(v, &f, f.Counter)
			most = max(most, v)
		}
		if t > from {
			hits = append(hits, chart.Hit{X0: from, X1: t, Text: text})
		}
		line.Points = append(line.Points, chart.Point{X: t, Y: v})
	}
	if most <= 0 || end <= 0 {
		return figure{}, nil
	}
	c := &chart.Chart{X: timeScale(end), Hits: hits}
	c.Y = chart.Linear("", most, chart.Step(most, 5), func(v float64) string { return tickObserved(v, &f) })
	if load := behind(ph, most); load.Points != nil {
		c.Lines = append(c.Lines, load)
	}
	c.Lines = append(c.Lines, line)
	return fig, c
}

// behind is the rate of ops that ended ok, so high that it fits a chart that goes up to most.
func behind(ph *run.Phase, most float64) chart.Line {
	l := chart.Line{Name: "ok a second, in a scale of its own", Class: "offered"}
	cols, _ := columnsOf(ph.Series)
	highest := 0.0
	for _, c := range cols {
		if rate := c.ok / (c.to - c.from); c.to-c.from > 0.5 {
			highest = max(highest, rate)
			l.Points = append(l.Points, chart.Point{X: (c.from + c.to) / 2, Y: rate})
		}
	}
	for i := range l.Points {
		l.Points[i].Y *= most / max(highest, 1)
	}
	return l
}
