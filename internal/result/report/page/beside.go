package page

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/chart"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// observedView is what the page shows for an observation of a phase.
type observedView struct {
	Name    string
	Facts   []string
	Rows    []latencyView // of fields
	Notes   []string
	Figures []figure
}

// observedHeads are the heads of a field's figures.
var observedHeads = [...]string{"before", "after", "grown by", "a second", "min", "mean", "max"}

// observedViews shows the observations of a phase, with each field that changed drawn against the load.
func observedViews(ph *run.Phase) (all []observedView) {
	for _, name := range slices.Sorted(maps.Keys(ph.Probes)) {
		how := ph.Probes[name]
		v := observedView{Name: name, Facts: append(strings.Split(how.Kind+" "+how.Of, ", "), words.Probes(how)...)}
		var missing []tables.Missed
		for _, field := range slices.Sorted(maps.Keys(ph.Observe[name])) {
			f := ph.Observe[name][field]
			if f.Last == nil {
				missing = append(missing, tables.Missed{Place: field, Reason: ph.Why("observe", name, field, "last").Text})
				continue
			}
			row := latencyView{Name: field}
			for i, value := range []*float64{f.Before, f.After, f.Delta, f.Rate, f.Min, f.Mean, f.Max} {
				is := [...]string{"before", "after", "delta", "rate", "min", "mean", "max"}[i]
				c := tables.Cell{Text: "–", Reason: ph.Why("observe", name, field, is).Text}
				if i == 3 && !f.Counter {
					c = tables.Cell{} // growth is meaningless for a figure that goes up and down
				} else if value != nil {
					c = tables.Cell{Text: observedText(*value, &f, i == 3)}
				} else if c.Reason != "" {
					missing = append(missing, tables.Missed{Place: field + " " + observedHeads[i], Reason: c.Reason})
				}
				row.Cells = append(row.Cells, c)
			}
			v.Rows = append(v.Rows, row)
			fig, c := besideLoad(ph, name, field)
			v.Figures = append(v.Figures, fig.drawn(c)...)
		}
		v.Notes = tables.Missing(missing)
		for _, e := range how.Errors {
			v.Notes = append(v.Notes, e.Text+" × "+quantity.Thousands(e.Count))
		}
		all = append(all, v)
	}
	return all
}

// observedText formats a figure of a field; seconds per second become a share of the time.
func observedText(v float64, f *run.Observed, perSecond bool) string {
	switch {
	case perSecond && f.Unit == "s":
		return quantity.Percent(v)
	case perSecond:
		return quantity.Amount(v, f.Unit) + "/s"
	}
	return quantity.Amount(v, f.Unit)
}

// tickObserved is observedText in the short form for an axis.
func tickObserved(v float64, f *run.Observed) string {
	switch {
	case f.Unit == "" && f.Counter:
		return tickSI(v) + "/s"
	case f.Unit == "":
		return tickPlain(v)
	}
	return trim(observedText(v, f, f.Counter))
}

// besideLoad draws a field that changed over the phase's time, and behind it the ops that ended ok, to their own scale.
func besideLoad(ph *run.Phase, observation, field string) (figure, *chart.Chart) {
	f := ph.Observe[observation][field]
	how := ph.Probes[observation]
	if len(how.Series) < fewPoints || f.Min == nil || *f.Min == *f.Max {
		return figure{}, nil
	}
	fig := figure{Title: observation + ": " + field, Note: "at each probe"}
	if f.Counter {
		fig.Note = "growth a second between probes"
	}
	line := chart.Line{Name: field, Class: "c0"}
	most, end := 0.0, 0.0
	var hits []chart.Hit
	for _, s := range stretchesOf(how, field, f.Counter) {
		end = max(end, s.to)
		text := between(s.from, s.to) + "\n" + field + " "
		if math.IsNaN(s.value) {
			text += "is missing"
		} else {
			text += observedText(s.value, &f, f.Counter)
			most = max(most, s.value)
		}
		if s.to > s.from {
			hits = append(hits, chart.Hit{X0: s.from, X1: s.to, Text: text})
		}
		at := s.to
		if f.Counter {
			at = (s.from + s.to) / 2 // as for the load in the background
		}
		line.Points = append(line.Points, chart.Point{X: at, Y: s.value})
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

// stretch is a field's value from one probe, and the time since the probe before, in seconds since the phase's origin.
type stretch struct {
	from, to float64
	value    float64 // for a counter, its growth per second; NaN if missing
}

// stretchesOf lists the stretches of a field. The stretch before the last probe, which follows the end of the load, may be a fraction of a second:
// its growth is meaningless, and it is left out.
func stretchesOf(how *run.Probes, field string, counter bool) (all []stretch) {
	widest := 0.0
	for i, row := range how.Series {
		s := stretch{from: max(row.T, 0), to: max(row.T, 0), value: math.NaN()}
		now := row.Value[field]
		if !counter && now != nil {
			s.value = *now
		}
		if i > 0 {
			last := how.Series[i-1]
			s.from = max(last.T, 0)
			if before := last.Value[field]; counter && now != nil && before != nil && row.T > last.T {
				s.value = max((*now-*before)/(row.T-last.T), 0)
			}
		}
		if counter && (i == 0 || s.to-s.from < widest/2) {
			continue
		}
		widest = max(widest, s.to-s.from)
		all = append(all, s)
	}
	return all
}

// behind returns the rate of ops that ended ok, scaled to fit a chart that goes up to most.
func behind(ph *run.Phase, most float64) chart.Line {
	l := chart.Line{Name: "ok a second, in a scale of its own", Class: "offered"}
	cols, _ := timeline.Intervals(ph.Series)
	highest := 0.0
	for _, c := range cols {
		if rate := c.OK / (c.To - c.From); c.To-c.From > 0.5 {
			highest = max(highest, rate)
			l.Points = append(l.Points, chart.Point{X: (c.From + c.To) / 2, Y: rate})
		}
	}
	for i := range l.Points {
		l.Points[i].Y *= most / max(highest, 1)
	}
	return l
}
