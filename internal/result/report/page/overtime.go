package page

import (
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/result/quantity"
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

// throughput draws what was asked for and how ops ended.
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

// overTime is the quantiles of one column.
type overTime struct{ from, to, p50, p99, most float64 }

// latencyOverTime draws response times: from histograms if available, otherwise from the series.
func latencyOverTime(ph *run.Phase, st *timeline.Step) (figure, *chart.Chart) {
	var points []overTime
	note := ""
	switch {
	case st != nil:
		note = each(float64(st.Seconds))
		for i := range st.Columns {
			h := &st.Columns[i]
			from := float64(i * st.Seconds)
			points = append(points, overTime{
				from, min(from+float64(st.Seconds), lastT(ph, from+float64(st.Seconds))), supported(h, 0.5), supported(h, 0.99), supported(h, 1),
			})
		}
	default:
		cols, seconds := timeline.Intervals(ph.Series)
		note = each(float64(seconds))
		if seconds > 1 {
			note += ", the highest second in it"
		}
		for _, c := range cols {
			points = append(points, overTime{c.From, c.To, c.P50, c.P99, math.NaN()})
		}
	}
	if len(points) < fewPoints {
		return figure{}, nil
	}
	names := []struct {
		name, class string
		of          func(p *overTime) float64
	}{
		{"max", "c3", func(p *overTime) float64 { return p.most }},
		{"p99", "c1", func(p *overTime) float64 { return p.p99 }},
		{"p50", "c0", func(p *overTime) float64 { return p.p50 }},
	}
	c := &chart.Chart{}
	var r extent
	texts := make([]string, len(points))
	for _, n := range names {
		line := chart.Line{Name: n.name, Class: n.class}
		any := false
		for i := range points {
			p := &points[i]
			v := n.of(p)
			line.Points = append(line.Points, chart.Point{X: (p.from + p.to) / 2, Y: v})
			if !math.IsNaN(v) {
				any = true
				r.add(v)
				texts[i] += "\n" + n.name + " " + quantity.Duration(v)
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
