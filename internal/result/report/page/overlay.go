package page

import (
	"fmt"
	"html/template"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/report/chart"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/pkg/plan"
)

const (
	colours   = 6  // in the style sheet
	maxLines  = 24 // in one chart: colours times dashes
	maxRatios = 60 // in a forest
)

// classOf returns the class with which the i-th variant is drawn everywhere.
func classOf(i int) string {
	class := "c" + strconv.Itoa(i%colours)
	if dash := i / colours; dash > 0 {
		class += " d" + strconv.Itoa(dash)
	}
	return class
}

// forest draws a metric's ratios to the baseline; nil if there are none.
func forest(x *run.Experiment, c *tables.Comparison) *figure {
	first := c.Figures[0]
	f := &chart.Forest{
		Name: metricName(first.Metric) + " of " + first.Op + " in phase " + first.Phase + ", times the baseline's", Label: "times the baseline", Text: tickRatio,
	}
	there := false
	brief, _ := tables.Briefly(x)
	for i := range c.Figures[:min(len(c.Figures), maxRatios)] {
		g := &c.Figures[i]
		r := chart.Ratio{Name: brief(g.Variant), Class: "unknown", At: orNaN(g.Ratio), Lo: orNaN(g.RatioLo), Hi: orNaN(g.RatioHi), Text: c.Text(i, "ratio") + g.Validity.Mark()}
		r.Hint = g.Variant + ": " + g.Finding
		switch {
		case g.Variant == x.Baseline:
			r.At, r.Class, r.Text = 1, "base", "baseline"
		case g.Differs:
			r.Class = "differs"
		}
		if g.RatioLo != nil {
			r.Hint += "\n95 % CI " + c.Text(i, "interval")
		}
		there = there || g.Ratio != nil
		f.Rows = append(f.Rows, r)
	}
	if !there {
		return nil
	}
	note := "dot: ratio to the baseline; line: its 95 % confidence interval; filled where a difference is shown"
	if n := len(c.Figures); n > maxRatios {
		note += fmt.Sprintf("; %d of %d variants", maxRatios, n)
	}
	return &figure{Title: upperFirst(metricName(first.Metric)) + " of " + first.Op, Note: note, SVG: template.HTML(f.SVG())}
}

func orNaN(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

func tickRatio(f float64) string { return strconv.FormatFloat(f, 'g', 3, 64) }

// tickPlain formats a number of any size.
func tickPlain(f float64) string {
	if f >= 1000 {
		return tickSI(f)
	}
	return tickRatio(f)
}

// upperFirst capitalises a title; p99 stays as it is.
func upperFirst(text string) string {
	if len(text) < 2 || text[0] < 'a' || text[0] > 'z' || text[1] >= '0' && text[1] <= '9' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}

// overlays draws a phase of all variants in the same charts.
func overlays(s *timeline.Study, phase string, ops []string) (all []figure) {
	add := func(f figure, c *chart.Chart) {
		if n := len(s.Experiment.Variants); n > maxLines {
			f.Note += fmt.Sprintf("; %d of %d variants", maxLines, n)
		}
		all = append(all, f.drawn(c)...)
	}
	for _, op := range ops {
		add(overlaidQuantiles(s, phase, op))
	}
	add(overlaidRates(s, phase))
	for _, q := range []struct {
		name string
		q    float64
	}{{"Median", 0.5}, {"p99", 0.99}} {
		add(overlaidLatency(s, phase, q.name, q.q))
	}
	return all
}

// eachPool calls do for each variant that has the phase, as many as fit in a chart.
func eachPool(s *timeline.Study, phase string, do func(name, class string, p *timeline.Pool)) {
	for i, v := range s.Experiment.Variants[:min(len(s.Experiment.Variants), maxLines)] {
		if p := s.Pool(v.Name, phase); p != nil {
			class := classOf(i)
			if v.Name == s.Experiment.Baseline {
				class += " base"
			}
			do(v.Name, class, p)
		}
	}
}

func overlaidQuantiles(s *timeline.Study, phase, verb string) (figure, *chart.Chart) {
	var curves []named
	eachPool(s, phase, func(name, class string, p *timeline.Pool) {
		if o := p.Op(verb); o != nil {
			curves = append(curves, named{name, class, new(o.ResponseAll())})
		}
	})
	if curves == nil {
		return figure{}, nil
	}
	return figure{Title: "Quantiles of " + verb, Note: "all repetitions together; " + quantileNote}, quantileChart("response (log)", curves)
}

// overlaidRates draws the mean of the repetitions over time.
func overlaidRates(s *timeline.Study, phase string) (figure, *chart.Chart) {
	end, step := 0.0, 0.0
	eachPool(s, phase, func(_, _ string, p *timeline.Pool) {
		to, widest := p.End()
		end, step = max(end, to), max(step, widest)
	})
	for step > 0 && end/step > timeline.MaxPoints {
		step *= 2
	}
	c := &chart.Chart{}
	most, points := 0.0, 0
	texts := map[float64]string{}
	eachPool(s, phase, func(name, class string, p *timeline.Pool) {
		line := chart.Line{Name: name, Class: class}
		at, rates := p.Rates(step)
		for i, t := range at {
			line.Points = append(line.Points, chart.Point{X: t, Y: rates[i]})
			most = max(most, rates[i])
			texts[t] += "\n" + name + " " + quantity.Whole(rates[i]) + "/s"
		}
		points = max(points, len(at))
		c.Lines = append(c.Lines, line)
	})
	if points < fewPoints || most == 0 {
		return figure{}, nil
	}
	c.X = timeScale(end)
	c.Y = chart.Linear("ok a second", most, chart.Step(most, 5), tickSI)
	c.Hits = hitsAt(texts, step)
	return figure{Title: "Throughput over time", Note: "mean of the repetitions; each point is " + quantity.Duration(step)}, c
}

// hitsAt makes hits for points a step wide.
func hitsAt(texts map[float64]string, step float64) (hits []chart.Hit) {
	for _, t := range slices.Sorted(maps.Keys(texts)) {
		hits = append(hits, chart.Hit{X0: t - step/2, X1: t + step/2, Text: between(t-step/2, t+step/2) + texts[t]})
	}
	return hits
}

// overlaidLatency draws a quantile over time, over the ops of all repetitions by time since the start.
func overlaidLatency(s *timeline.Study, phase, name string, q float64) (figure, *chart.Chart) {
	seconds, columns := 1, 0
	eachPool(s, phase, func(_, _ string, p *timeline.Pool) {
		if p.Kept != nil {
			seconds, columns = max(seconds, p.Kept.Seconds), max(columns, len(p.Kept.Columns)*p.Kept.Seconds)
		}
	})
	if columns/seconds < fewPoints {
		return figure{}, nil
	}
	c := &chart.Chart{X: timeScale(float64(columns))}
	var r extent
	texts := map[float64]string{}
	eachPool(s, phase, func(variant, class string, p *timeline.Pool) {
		if p.Kept == nil {
			return
		}
		p.Kept.Coarsen(seconds)
		line := chart.Line{Name: variant, Class: class}
		for i := range p.Kept.Columns {
			at, v := (float64(i)+0.5)*float64(seconds), supported(&p.Kept.Columns[i], q)
			line.Points = append(line.Points, chart.Point{X: at, Y: v})
			if v > 0 {
				r.add(v)
				texts[at] += "\n" + variant + " " + quantity.Duration(v)
			}
		}
		c.Lines = append(c.Lines, line)
	})
	if r.least == 0 {
		return figure{}, nil
	}
	c.Y = r.log("response, ok and miss (log)")
	c.Hits = hitsAt(texts, float64(seconds))
	return figure{Title: name + " over time", Note: "all repetitions together; " + each(float64(seconds))}, c
}

// planned draws the i-th chart of the plan; nil if none of its lines has points.
func planned(x *run.Experiment, i int) (figure, *chart.Chart) {
	of := &x.Charts[i]
	f := figure{Title: of.Title, Note: map[string]string{
		"time": "mean of the repetitions", "ops": "mean of the repetitions", "quantile": "all repetitions together; " + quantileNote,
	}[of.Over]}
	variable := plan.Over(of.Over).Variable()
	if variable != "" {
		f.Note = "mean of the repetitions"
	}
	c := &chart.Chart{}
	var up, across extent
	end, several := 0.0, 0
	texts := map[float64]string{}
	var missing []tables.Missed
	var named []string
	for _, l := range of.Lines {
		named = append(named, l.Variant)
		if l.Variant == of.Lines[0].Variant {
			several++
		}
	}
	variants := drawnVariants(x, named)
	brief := briefly(variants)
	for i, l := range of.Lines {
		name := brief(l.Variant)
		switch {
		case variable != "":
			name = l.Name
		case several > 1:
			name += " " + l.Name
		}
		if l.Reason != "" {
			missing = append(missing, tables.Missed{Place: name, Reason: l.Reason, Cause: l.Cause})
			continue
		}
		if len(c.Lines) == maxLines {
			f.Note += fmt.Sprintf("; %d of %d lines", maxLines, len(of.Lines))
			break
		}
		line := chart.Line{Name: name, Class: lineClass(x, i, several, variants, l.Variant), Dots: variable != ""}
		for j, x := range l.X {
			y := math.NaN()
			if v := l.Y[j]; v != nil {
				y = expr.Shown(*v, of.Unit)
				up.add(y)
				texts[x] += "\n" + name + " " + expr.Format(*v, of.Unit) + unitBehind(of.Unit)
			}
			end = max(end, x)
			across.add(x)
			line.Points = append(line.Points, chart.Point{X: x, Y: y})
		}
		c.Lines = append(c.Lines, line)
	}
	f.Missing = tables.Missing(missing)
	if len(c.Lines) == 0 || end == 0 {
		return f, nil
	}
	label := expr.UnitText(of.Unit)
	if of.Log && up.least > 0 {
		c.Y = chart.Log(strings.TrimSpace(label+" (log)"), up.least, up.most, tickPlain)
	} else {
		most := max(up.most, 1e-9)
		c.Y = chart.Linear(label, most, chart.Step(most, 5), tickPlain)
	}
	switch of.Over {
	case "quantile":
		c.X = chart.Nines("share of ops", nines, tickPercent)
	case "ops":
		c.X = chart.Span("ops that had ended", end, chart.Step(end, 6), tickSI)
	case string(plan.OverTime):
		c.X = timeScale(end)
	default:
		c.X = variableScale(variable, across, end)
	}
	c.Hits = hitsBetween(texts, of.Over)
	return f, c
}

// variableScale returns a scale for a variable's values: logarithmic if they are above 0 and far apart.
func variableScale(name string, r extent, end float64) chart.Scale {
	const far = 20
	if r.least > 0 && r.most > far*r.least {
		return chart.Log(name+" (log)", r.least, r.most, tickPlain)
	}
	return chart.Span(name, end, chart.Step(end, 6), tickPlain)
}

// lineClass gives each variant of a chart, by its place there, a colour, and each of its lines a dash; with one line per variant it is as everywhere.
// The lines of a single variant have colours of their own, too.
func lineClass(x *run.Experiment, i, several int, variants []string, variant string) string {
	at := placeOf(variant, variants, x)
	class := classOf(at)
	if len(variants) == 1 {
		at = i
	}
	if several > 1 {
		class = "c" + strconv.Itoa(at%colours) + " d" + strconv.Itoa(i%several%4)
	}
	if variant == x.Baseline {
		class += " base"
	}
	return class
}

// unitBehind returns a plan's unit as people read it after a number that has none yet.
func unitBehind(unit string) string {
	switch unit {
	case "", "%", "x":
		return ""
	case "/s", "/min":
		return unit
	}
	return " " + expr.UnitText(unit)
}

// hitsBetween makes hits for points, each up to the middle between it and the next.
func hitsBetween(texts map[float64]string, over string) (hits []chart.Hit) {
	at := slices.Sorted(maps.Keys(texts))
	for i, x := range at {
		from, to := x, x
		if i > 0 {
			from = (at[i-1] + x) / 2
		}
		if i+1 < len(at) {
			to = (x + at[i+1]) / 2
		}
		if name := plan.Over(over).Variable(); name != "" {
			hits = append(hits, chart.Hit{X0: from, X1: to, Text: name + " = " + quantity.Number(x) + texts[x]})
			continue
		}
		head := map[string]string{"quantile": quantity.Percent(x) + " took at most", "ops": "after " + quantity.Thousands(int64(x)) + " ops"}[over]
		if head == "" {
			head = moment(math.Round(x*10) / 10)
		}
		hits = append(hits, chart.Hit{X0: from, X1: to, Text: head + texts[x]})
	}
	return hits
}

// repetitions draws the rate of each run, in the order they ran, which shows drift.
func repetitions(s *timeline.Study, comparisons []tables.Comparison) (all []figure) {
	for _, f := range ratesCompared(comparisons) {
		c := &chart.Chart{Name: "rate of each run"}
		most, dots := 0.0, 0
		lines := make([]chart.Line, len(s.Experiment.Variants))
		for i, v := range s.Experiment.Variants {
			lines[i] = chart.Line{Name: v.Name, Class: classOf(i % colours), Loose: true}
		}
		for i, one := range s.Experiment.Runs {
			of := slices.IndexFunc(s.Experiment.Variants, func(v run.Variant) bool { return v.Name == one.Variant })
			rate, _, doubt := rateOf(s, one, f)
			if rate == nil || !one.Counts() {
				continue
			}
			dots++
			most = max(most, *rate)
			lines[of].Points = append(lines[of].Points, chart.Point{X: float64(i + 1), Y: *rate})
			c.Hits = append(c.Hits, chart.Hit{X0: float64(i) + 0.5, X1: float64(i) + 1.5, Text: fmt.Sprintf(
				"run %d: %s, repetition %d\n%s/s%s", i+1, one.Variant, one.Repetition, quantity.Whole(*rate), doubt)})
		}
		if dots < fewPoints || most == 0 {
			continue
		}
		c.Lines = lines[:min(len(lines), maxLines)]
		n := float64(len(s.Experiment.Runs) + 1)
		c.X = chart.Span("run, in the order they were run", n, max(chart.Step(n, 8), 1), tickSI)
		c.Y = chart.Linear("ok a second", most, chart.Step(most, 5), tickSI)
		all = append(all, figure{Title: "Rate of " + f.Op + " in phase " + f.Phase, Note: "each dot is a run", SVG: template.HTML(c.SVG())})
	}
	return all
}
