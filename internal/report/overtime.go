package report

import (
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/chart"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// column is what rows of the series add up to.
type column struct {
	from, to      float64
	ok, miss, bad float64
	p50, p99      float64 // the highest of any row; NaN: none
}

// columnsOf joins rows, so that at most maxColumns are left, each of the same number of seconds but for the first and the last.
func columnsOf(rows []run.Row) (all []column, seconds int) {
	seconds = lasts[0]
	if len(rows) == 0 {
		return nil, seconds
	}
	for _, longer := range lasts {
		if seconds = longer; rows[len(rows)-1].T/float64(seconds) <= maxColumns {
			break
		}
	}
	from, next := 0.0, -1
	for i, r := range rows {
		middle := (from + r.T) / 2
		if at := int(middle) / seconds; at != next || seconds == 1 {
			all, next = append(all, column{from: from, p50: math.NaN(), p99: math.NaN()}), at
		}
		c := &all[len(all)-1]
		c.to = r.T
		c.ok += float64(r.OK)
		c.miss += float64(r.Miss)
		c.bad += float64(r.Bad)
		c.p50, c.p99 = higher(c.p50, r.Response.P50), higher(c.p99, r.Response.P99)
		from = rows[i].T
	}
	return all, seconds
}

func higher(a float64, b *float64) float64 {
	if b == nil || a > *b {
		return a
	}
	return *b
}

// each says how long a point lasts.
func each(seconds int) string {
	if seconds == 1 {
		return "each second"
	}
	return "each point is " + moment(float64(seconds))
}

// throughput draws what was asked for and how ops ended.
func throughput(ph *run.Phase, st *steps) (figure, *chart.Chart) {
	cols, note := endsOf(ph, st)
	if len(cols) < fewPoints {
		return figure{}, nil
	}
	lines := []struct {
		name, class string
		of          func(c *column) float64 // ops a second
	}{
		{"asked", "offered", func(c *column) float64 { return asked(ph, (c.from+c.to)/2) }},
		{"ok", "c0", func(c *column) float64 { return c.ok / (c.to - c.from) }},
		{"miss", "c2", func(c *column) float64 { return c.miss / (c.to - c.from) }},
		{"bad", "bad", func(c *column) float64 { return c.bad / (c.to - c.from) }},
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
			line.Points = append(line.Points, chart.Point{X: (cols[i].from + cols[i].to) / 2, Y: rate})
		}
		if highest == 0 {
			continue
		}
		most = max(most, highest)
		for i, p := range line.Points {
			texts[i] += "\n" + l.name + " " + whole(p.Y) + "/s"
		}
		c.Lines = append(c.Lines, line)
	}
	if most == 0 {
		return figure{}, nil
	}
	end := cols[len(cols)-1].to
	c.X = timeScale(end)
	c.Y = chart.Linear("ops a second", most, chart.Step(most, 5), tickSI)
	for i := range cols {
		c.Hits = append(c.Hits, chart.Hit{X0: cols[i].from, X1: cols[i].to, Text: between(cols[i].from, cols[i].to) + texts[i]})
	}
	return figure{Title: "Throughput over time", Note: note}, c
}

// endsOf is how the ops of a phase ended over time: second by second, or finer where there are few of them; note says how fine.
func endsOf(ph *run.Phase, st *steps) (cols []column, note string) {
	cols, seconds := columnsOf(ph.Series)
	if len(cols) < fewRows && st != nil && len(ph.Levels) == 0 {
		if finer, width := binned(&st.totals); len(finer) >= fewRows {
			return finer, "each point is " + quantity.Duration(width)
		}
	}
	return cols, each(seconds)
}

// asked is the rate of ops that the plan wants at a time, in seconds since the start; 0 of a closed load, and where the plan does not say it: of a
// trace at its own times, and of scenarios. What was due cannot stand for it: where a full load waits, it is counted late.
func asked(ph *run.Phase, t float64) float64 {
	if asRecorded(ph) || len(ph.Scenario) > 0 {
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

// binned are the time bins of a step: how its ops ended, at a resolution finer than a second.
func binned(t *measure.Totals) (all []column, width float64) {
	var shift uint8
	var ends [driver.NumOutcomes][]*measure.Bins
	for _, o := range t.Ops {
		if o == nil {
			continue
		}
		for outcome, b := range o.Bins {
			if b.Total() > 0 {
				shift = max(shift, b.Shift)
				ends[outcome] = append(ends[outcome], b)
			}
		}
	}
	end := t.Span.Last - t.Origin
	for end>>shift > maxColumns/3 { // more would be noise
		shift++
	}
	for from := int64(0); from < end; from += 1 << shift {
		to := from + 1<<shift
		c := column{from: float64(from) / 1e9, to: float64(to) / 1e9}
		for outcome, bins := range ends {
			n := 0.0
			for _, b := range bins {
				ended, _ := b.Between(from, to)
				n += float64(ended)
			}
			switch driver.Outcome(outcome) {
			case driver.OK:
				c.ok += n
			case driver.Miss:
				c.miss += n
			case driver.Shed:
			default:
				c.bad += n
			}
		}
		all = append(all, c)
	}
	return all[:max(len(all)-1, 0)], float64(int64(1)<<shift) / 1e9 // the last is cut short
}

// overTime are quantiles of one column.
type overTime struct{ from, to, p50, p99, most float64 }

// latencyOverTime draws response times: from histograms where they are at hand, else from the series.
func latencyOverTime(ph *run.Phase, st *steps) (figure, *chart.Chart) {
	var points []overTime
	note := ""
	switch {
	case st != nil:
		note = each(st.seconds)
		for i := range st.columns {
			h := &st.columns[i]
			from := float64(i * st.seconds)
			points = append(points, overTime{
				from, min(from+float64(st.seconds), lastT(ph, from+float64(st.seconds))), supported(h, 0.5), supported(h, 0.99), supported(h, 1),
			})
		}
	default:
		cols, seconds := columnsOf(ph.Series)
		note = each(seconds)
		if seconds > 1 {
			note += ", the highest second in it"
		}
		for _, c := range cols {
			points = append(points, overTime{c.from, c.to, c.p50, c.p99, math.NaN()})
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
	return figure{Title: "Latency over time", Note: note}, c
}

// lastT is the end of the series, or t where there is none.
func lastT(ph *run.Phase, t float64) float64 {
	if n := len(ph.Series); n > 0 {
		return max(ph.Series[n-1].T, t-1)
	}
	return t
}
