package page

import (
	"math"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/chart"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// each says how long a point lasts.
func each(seconds float64) string {
	switch {
	case seconds == 1:
		return "each second"
	case seconds == math.Trunc(seconds):
		return "each point is " + moment(seconds)
	}
	return "each point is " + quantity.Duration(seconds)
}

// throughput draws the rate that the plan asked for, and how ops ended.
func throughput(ph *run.Phase, st *timeline.Step) (figure, *chart.Chart) {
	cols, width := timeline.Finest(ph, st)
	if len(cols) < fewPoints {
		return figure{}, nil
	}
	lines := []struct {
		name, class string
		of          func(c *timeline.Interval) float64 // ops a second
	}{
		{"asked", "offered", func(c *timeline.Interval) float64 { return asked(ph, (c.From+c.To)/2) }},
		{"ok", "c0", func(c *timeline.Interval) float64 { return c.OK / (c.To - c.From) }},
		{"miss", "c2", func(c *timeline.Interval) float64 { return c.Miss / (c.To - c.From) }},
		{"bad", "bad", func(c *timeline.Interval) float64 { return c.Bad / (c.To - c.From) }},
	}
	c := &chart.Chart{}
	most := 0.0
	texts := make([]string, len(cols))
	for _, l := range lines {
		line := chart.Line{Name: l.name, Class: l.class}
		highest := 0.0
		for i := range cols {
			rate := l.of(&cols[i])
			highest = max(highest, rate)
			line.Points = append(line.Points, chart.Point{X: (cols[i].From + cols[i].To) / 2, Y: rate})
		}
		if highest == 0 {
			continue
		}
		most = max(most, highest)
		for i, p := range line.Points {
			texts[i] += "\n" + l.name + " " + quantity.Whole(p.Y) + "/s"
		}
		c.Lines = append(c.Lines, line)
	}
	if most == 0 {
		return figure{}, nil
	}
	end := cols[len(cols)-1].To
	c.X = timeScale(end)
	c.Y = chart.Linear("ops a second", most, chart.Step(most, 5), tickSI)
	for i := range cols {
		c.Hits = append(c.Hits, chart.Hit{X0: cols[i].From, X1: cols[i].To, Text: between(cols[i].From, cols[i].To) + texts[i]})
	}
	c.Moments = moments(ph)
	return figure{Title: "Throughput over time", Note: each(width)}, c
}

// asked returns the rate of ops that the plan wants at a time, in seconds since the start. It is 0 for a closed load, and if the plan does not say:
// for a trace with recorded timing, and for scenarios. The count of ops due is no substitute: when a full load waits, they are counted late.
func asked(ph *run.Phase, t float64) float64 {
	if words.AsRecorded(ph) || len(ph.Scenario) > 0 {
		return 0
	}
	ramped := func(from, to, ramp, since float64) float64 {
		if since >= ramp {
			return to
		}
		return from + (to-from)*since/ramp
	}
	for _, l := range slices.Backward(ph.Levels) {
		if since := t - l.StartSeconds; since >= 0 {
			if since > l.DurationSeconds {
				return 0
			}
			return ramped(l.RateFrom, l.Rate, l.RampSeconds, since)
		}
	}
	if t > ph.Load.DurationSeconds {
		return 0
	}
	return ramped(0, ph.Load.Rate, ph.Load.RampSeconds, t)
}

// overTime holds the values of one column: quantiles and, if it is known, the maximum.
type overTime struct {
	from, to float64
	times    []float64
}

// latencyOverTime draws response times: from histograms if available, otherwise from the series.
func latencyOverTime(ph *run.Phase, st *timeline.Step) (figure, *chart.Chart) {
	var points []overTime
	names := shownOverTime(ph)
	note := ""
	switch {
	case st != nil:
		note = each(float64(st.Seconds))
		for i := range st.Columns {
			from := float64(i * st.Seconds)
			p := overTime{from: from, to: min(from+float64(st.Seconds), lastT(ph, from+float64(st.Seconds)))}
			for _, name := range names {
				share, _ := quantity.Quantile(name)
				p.times = append(p.times, supported(&st.Columns[i], share))
			}
			p.times = append(p.times, supported(&st.Columns[i], 1))
			points = append(points, p)
		}
	default:
		cols, seconds := timeline.Intervals(ph.Series, names...)
		note = each(float64(seconds))
		if seconds > 1 {
			note += ", the highest second in it"
		}
		for _, c := range cols {
			points = append(points, overTime{c.From, c.To, append(c.Highest, math.NaN())})
		}
	}
	if len(points) < fewPoints {
		return figure{}, nil
	}
	c := &chart.Chart{}
	var r extent
	texts := make([]string, len(points))
	for j := range slices.Backward(points[0].times) {
		line := chart.Line{Name: "max", Class: "c" + strconv.Itoa(colours-1)}
		if j < len(names) {
			line.Name, line.Class = quantity.QuantileText(names[j]), "c"+strconv.Itoa(j%(colours-1))
			if again := j / (colours - 1); again > 0 {
				line.Class += " d" + strconv.Itoa(again) // dashed
			}
		}
		any := false
		for i := range points {
			p := &points[i]
			v := p.times[j]
			line.Points = append(line.Points, chart.Point{X: (p.from + p.to) / 2, Y: v})
			if !math.IsNaN(v) {
				any = true
				r.add(v)
				texts[i] += "\n" + line.Name + " " + quantity.Duration(v)
			}
		}
		if any {
			c.Lines = append(c.Lines, line)
		}
	}
	if r.least == 0 {
		return figure{}, nil
	}
	c.X = timeScale(points[len(points)-1].to)
	c.Y = r.log("response, ok and miss (log)")
	for i := range points {
		text := texts[i]
		if text == "" {
			text = "\ntoo few answers"
		}
		c.Hits = append(c.Hits, chart.Hit{X0: points[i].from, X1: points[i].to, Text: between(points[i].from, points[i].to) + text})
	}
	c.Moments = moments(ph)
	return figure{Title: "Latency over time", Note: note}, c
}

// shownOverTime lists the quantiles that each second of a phase has, and that are to be shown.
func shownOverTime(ph *run.Phase) []string {
	if len(ph.Series) == 0 {
		return new(run.RowResponse).Shown()
	}
	return ph.Series[0].Response.Shown()
}

// moments lists when the phase's events happened.
func moments(ph *run.Phase) (list []chart.Moment) {
	for _, name := range words.EventNames(ph) {
		e := ph.Event[name]
		if at := e.HappenedSeconds; at != nil {
			list = append(list, chart.Moment{X: *at, Text: name})
		}
		if at := e.UndoneSeconds; at != nil {
			list = append(list, chart.Moment{X: *at})
		}
	}
	return list
}

// lastT returns the end of the series, or t if there is none.
func lastT(ph *run.Phase, t float64) float64 {
	if n := len(ph.Series); n > 0 {
		return max(ph.Series[n-1].T, t-1)
	}
	return t
}
