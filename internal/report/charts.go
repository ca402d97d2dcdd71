package report

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/chart"
	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

// figure is a chart on the page.
type figure struct {
	Title string
	Note  string
	SVG   template.HTML // of package chart, which escapes what it is given

	Missing []string // what is not drawn, and why
}

const (
	fewRows   = 8   // seconds below which throughput is drawn by time bins
	fewPoints = 4   // below which there is nothing to see over time
	curveSize = 120 // points of a quantile curve
	beyond    = 10  // values that must lie beyond a quantile for it to be drawn
	nines     = 4   // to p99.99
)

// figures draws a phase: st is what its snapshots hold, in the order of its steps, and empty without them.
func figures(ph *run.Phase, st []*steps) []figure {
	var sum, best *steps // over time, and what the figures are of
	if len(st) > 0 {
		sum = together(st)
		best = sum
		if s := ph.Search; s != nil && s.Level != nil {
			best = st[*s.Level]
		}
	}
	var all []figure
	add := func(f figure, c *chart.Chart) {
		if c != nil {
			c.Name = f.Title
			f.SVG = template.HTML(c.SVG())
			all = append(all, f)
		}
	}
	add(levelChart(ph))
	add(throughput(ph, sum))
	add(latencyOverTime(ph, sum))
	if best != nil {
		add(quantileCurves(ph, best))
		for _, verb := range verbs(ph.Op) {
			add(ackCurves(verb, best))
		}
		add(heatmap(sum))
	}
	return all
}

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
			return finer, "each point is " + duration(width)
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
				texts[i] += "\n" + n.name + " " + duration(v)
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

// supported returns a quantile in seconds, and NaN where too few values lie beyond it. q = 1 is the largest value.
func supported(h *hist.Hist, q float64) float64 {
	if n := float64(h.Count()); n == 0 || q < 1 && n*(1-q) < beyond {
		return math.NaN()
	}
	return float64(h.Quantile(q)) / 1e9
}

// extent is where values above 0 lie.
type extent struct{ least, most float64 }

func (e *extent) add(v float64) {
	if v > 0 {
		if e.least == 0 {
			e.least = v
		}
		e.least, e.most = min(e.least, v), max(e.most, v)
	}
}

func (e *extent) log(label string) chart.Scale {
	return chart.Log(label, e.least, e.most, tickDuration)
}

// named is a histogram to be drawn.
type named struct {
	name, class string
	h           hist.Hist
}

// quantileCurves draws what share of the ops took no longer than what.
func quantileCurves(ph *run.Phase, st *steps) (figure, *chart.Chart) {
	var curves []named
	present := verbs(ph.Op)
	for i, verb := range present {
		o := opOf(st.settled, verb)
		if o == nil {
			continue
		}
		prefix, class := "", "c1"
		if len(present) > 1 {
			prefix, class = verb+" ", "c"+strconv.Itoa(i)
		}
		curves = append(curves, named{prefix + "response", "c" + strconv.Itoa(i), o.ResponseAll()}, named{prefix + "service", class + " thin", o.ServiceAll()})
	}
	return figure{Title: "Quantiles of latency", Note: quantileNote}, quantileChart("latency, ok and miss (log)", curves)
}

const quantileNote = "each curve ends where fewer than 10 samples lie beyond"

// ackCurves draws the time to the k-th good answer.
func ackCurves(verb string, st *steps) (figure, *chart.Chart) {
	o := opOf(st.settled, verb)
	if o == nil || len(o.Acks) < 2 {
		return figure{}, nil
	}
	const classes = 5
	var curves []named
	for k := range min(len(o.Acks), classes) {
		curves = append(curves, named{"ack " + strconv.Itoa(k+1), "c" + strconv.Itoa(k), o.Acks[k]})
	}
	return figure{Title: "To the k-th answer of a " + verb, Note: quantileNote}, quantileChart("since the start (log)", curves)
}

// opOf returns the totals of a verb by its name, or nil.
func opOf(t *measure.Totals, verb string) *measure.Op {
	if v, ok := driver.ParseVerb(verb); ok {
		return t.Ops[v]
	}
	return nil
}

func quantileChart(label string, curves []named) *chart.Chart {
	c := &chart.Chart{X: chart.Nines("share of ops", nines, tickPercent)}
	var r extent
	texts := make([]string, curveSize+1)
	at := func(i int) float64 { return 1 - math.Pow(10, -nines*float64(i)/curveSize) }
	for _, n := range curves {
		line := chart.Line{Name: n.name, Class: n.class}
		for i := range curveSize + 1 {
			v := supported(&n.h, at(i))
			line.Points = append(line.Points, chart.Point{X: at(i), Y: v})
			if v > 0 {
				r.add(v)
				texts[i] += "\n" + n.name + " " + duration(v)
			}
		}
		c.Lines = append(c.Lines, line)
	}
	if r.least == 0 {
		return nil
	}
	c.Y = r.log(label)
	for i, text := range texts {
		if text != "" {
			c.Hits = append(c.Hits, chart.Hit{X0: at(max(i-1, 0)), X1: at(i), Text: percent(at(i)) + " took at most" + text})
		}
	}
	return c
}

// perDecade is the number of rows of a heatmap for each power of ten.
const perDecade = 10

// heatmap draws how many ops took how long, over time.
func heatmap(st *steps) (figure, *chart.Chart) {
	type place struct{ x, y int }
	cells := map[place]float64{}
	var r extent
	most, columns := 0.0, 0
	for x := range st.columns {
		h := &st.columns[x]
		if h.Count() > 0 {
			columns++
		}
		for upper, n := range h.Buckets() {
			v := max(float64(upper), 1) / 1e9
			r.add(v)
			p := place{x, int(math.Floor(math.Log10(v) * perDecade))}
			cells[p] += float64(n)
			most = max(most, cells[p])
		}
	}
	if columns < fewPoints {
		return figure{}, nil
	}
	c := &chart.Chart{X: timeScale(float64(len(st.columns) * st.seconds)), Y: r.log("response, ok and miss (log)")}
	for _, p := range slices.SortedFunc(maps.Keys(cells), func(a, b place) int {
		if a.x != b.x {
			return a.x - b.x
		}
		return a.y - b.y
	}) {
		share := math.Log1p(cells[p]) / math.Log1p(most)
		c.Cells = append(c.Cells, chart.Cell{
			X0: float64(p.x * st.seconds), X1: float64((p.x + 1) * st.seconds),
			Y0: math.Pow(10, float64(p.y)/perDecade), Y1: math.Pow(10, float64(p.y+1)/perDecade),
			Level: min(1+int(share*chart.Levels), chart.Levels),
		})
	}
	for x := range st.columns {
		h := &st.columns[x]
		if h.Count() == 0 {
			continue
		}
		from := float64(x * st.seconds)
		c.Hits = append(c.Hits, chart.Hit{X0: from, X1: from + float64(st.seconds), Text: fmt.Sprintf("%s\n%s answered\n%s to %s",
			between(from, from+float64(st.seconds)), count(h.Count()), duration(float64(h.Min())/1e9), duration(float64(h.Max())/1e9))})
	}
	return figure{Title: "Heatmap of latency", Note: each(st.seconds) + "; the stronger the colour, the more ops (log)"}, c
}

// byRate cuts levels, which are in the order of their rates, into those of one rate each.
func byRate(levels []run.Level) (rates [][]run.Level) {
	for from := 0; from < len(levels); {
		to := from + 1
		for to < len(levels) && levels[to].Rate == levels[from].Rate {
			to++
		}
		rates = append(rates, levels[from:to])
		from = to
	}
	return rates
}

// middle returns the median, of two values in the middle the lower; NaN of none.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

// levelChart draws rate against latency: dots for all levels, and a line through the medians of those at one rate.
func levelChart(ph *run.Phase) (figure, *chart.Chart) {
	levels := slices.Clone(ph.Levels)
	slices.SortStableFunc(levels, func(a, b run.Level) int { return int(math.Copysign(1, a.Rate-b.Rate)) })
	if len(levels) < 2 || levels[0].Rate == levels[len(levels)-1].Rate {
		return figure{}, nil
	}
	c := &chart.Chart{}
	var r extent
	present := verbs(ph.Op)
	rates := byRate(levels)
	texts := make([]string, len(rates))
	quantiles := []struct {
		name, class string
		of          func(l *run.Latency) *float64
	}{
		{"p99", "c1", func(l *run.Latency) *float64 { return l.P99 }},
		{"p50", "c0", func(l *run.Latency) *float64 { return l.P50 }},
	}
	for i, verb := range present {
		for _, q := range quantiles {
			line := chart.Line{Name: q.name, Class: q.class}
			if len(present) > 1 {
				line.Name = verb + " " + q.name
				line.Class = "c" + strconv.Itoa((2*i+len(c.Lines)%2)%6)
			}
			tries := chart.Line{Class: line.Class, Loose: true}
			for j, same := range rates {
				var all []float64
				for k := range same {
					if o := same[k].Op[verb]; o != nil {
						if v := q.of(&o.Response); v != nil {
							all = append(all, *v)
							r.add(*v)
							tries.Points = append(tries.Points, chart.Point{X: same[k].Rate, Y: *v})
						}
					}
				}
				y := middle(all)
				if !math.IsNaN(y) {
					texts[j] += "\n" + line.Name + " " + duration(y)
				}
				line.Points = append(line.Points, chart.Point{X: same[0].Rate, Y: y})
			}
			c.Lines = append(c.Lines, line, tries)
		}
	}
	if ph.Search != nil {
		for _, o := range ph.Search.Objectives {
			r.add(o.LimitSeconds)
			c.Marks = append(c.Marks, chart.Mark{Y: o.LimitSeconds, Text: strings.TrimSpace(o.Op+" "+o.Quantile) + " ≤ " + duration(o.LimitSeconds)})
		}
	}
	if r.least == 0 {
		return figure{}, nil
	}
	most := levels[len(levels)-1].Rate
	c.X = chart.Linear("asked, ops a second", most, chart.Step(most, 6), tickSI)
	c.Y = r.log("response (log)")
	for i, same := range rates {
		rate, from, to := same[0].Rate, 0.0, most*1.1
		if i > 0 {
			from = (rates[i-1][0].Rate + rate) / 2
		}
		if i+1 < len(rates) {
			to = (rate + rates[i+1][0].Rate) / 2
		}
		text := "asked " + whole(rate) + "/s"
		if len(same) > 1 {
			text += fmt.Sprintf(", %d times; medians", len(same))
		} else if same[0].AchievedRate != nil {
			text += "\nsustained " + whole(*same[0].AchievedRate) + "/s"
		}
		text += texts[i]
		for k := range same {
			text += "\n" + wordOf(ph, &same[k])
		}
		c.Hits = append(c.Hits, chart.Hit{X0: from, X1: to, Text: text})
	}
	return figure{Title: "Rate against latency"}, c
}

func timeScale(end float64) chart.Scale {
	if end < 1 {
		return chart.Span("since the start", end, chart.Step(end, 6), tickDuration)
	}
	return chart.Span("since the start", end, chart.StepOfTime(end, 6), moment)
}

// between names a stretch of time.
func between(from, to float64) string {
	if to-from < 0.5 {
		return duration(from) + " to " + duration(to)
	}
	return moment(math.Round(from*10)/10) + " to " + moment(math.Round(to*10)/10)
}

// moment writes seconds as people say them: 30 s, 5 min, 1:30 min, 2 h.
func moment(seconds float64) string {
	s := int(seconds)
	switch {
	case seconds < 60:
		return strconv.FormatFloat(seconds, 'f', -1, 64) + " s"
	case s < 3600 && s%60 == 0:
		return strconv.Itoa(s/60) + " min"
	case s < 3600:
		return fmt.Sprintf("%d:%02d min", s/60, s%60)
	case s%3600 == 0:
		return strconv.Itoa(s/3600) + " h"
	}
	return fmt.Sprintf("%d:%02d h", s/3600, s/60%60)
}

// tickSI and tickDuration are si and duration without zeros after the point.
func tickSI(f float64) string { return trim(si(f)) }

func tickDuration(seconds float64) string { return trim(duration(seconds)) }

// trim removes the zeros at the end of a number's decimals, which its unit follows.
func trim(text string) string {
	end := strings.LastIndexAny(text, "0123456789") + 1
	digits, unit := text[:end], text[end:]
	if strings.Contains(digits, ".") {
		digits = strings.TrimSuffix(strings.TrimRight(digits, "0"), ".")
	}
	return digits + unit
}

func tickPercent(share float64) string {
	if share == 0 {
		return "0"
	}
	return percent(share)
}
