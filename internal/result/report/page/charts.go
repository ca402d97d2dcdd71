package page

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/chart"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// figure is a chart on the page.
type figure struct {
	Title string
	Note  string
	SVG   template.HTML // from package chart, which escapes its input

	Missing []string // data that is not drawn, and why
}

// drawn returns the figure with its chart; none if there is no chart.
func (f figure) drawn(c *chart.Chart) []figure {
	if c == nil {
		return nil
	}
	c.Name = f.Title
	f.SVG = template.HTML(c.SVG())
	return []figure{f}
}

const (
	fewPoints = 4   // fewer show nothing over time
	curveSize = 120 // points of a quantile curve
	beyond    = 10  // values that must lie beyond a drawn quantile
	nines     = 4   // up to p99.99
)

// figures draws a phase. st is the contents of its snapshots, in the order of its steps, or empty without them.
func figures(ph *run.Phase, st []*timeline.Step) []figure {
	var sum, best *timeline.Step // over time, and for the figures
	if len(st) > 0 {
		sum = timeline.Together(st)
		best = sum
		if s := ph.Search; s != nil && s.Level != nil {
			best = st[*s.Level]
		}
	}
	var all []figure
	add := func(f figure, c *chart.Chart) { all = append(all, f.drawn(c)...) }
	for _, d := range words.DoneIn(ph) {
		add(growthChart(d))
	}
	add(throughput(ph, sum))
	add(latencyOverTime(ph, sum))
	if best != nil {
		add(quantileCurves(ph, best))
		for _, verb := range ph.Verbs() {
			add(ackCurves(verb, best))
		}
		add(heatmap(sum))
	}
	return all
}

// supported returns a quantile in seconds, or NaN if too few values lie beyond it. q = 1 is the largest value.
func supported(t times, q float64) float64 {
	ns, known := t.Quantile(q)
	if !known || q < 1 && float64(t.Count())*(1-q) < beyond {
		return math.NaN()
	}
	return float64(ns) / 1e9
}

// extent is the range of the values above 0.
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

func timeScale(end float64) chart.Scale {
	if end < 1 {
		return chart.Span("since the start", end, chart.Step(end, 6), tickDuration)
	}
	return chart.Span("since the start", end, chart.StepOfTime(end, 6), moment)
}

// between names a period of time.
func between(from, to float64) string {
	if to-from < 0.5 {
		return quantity.Duration(from) + " to " + quantity.Duration(to)
	}
	return moment(math.Round(from*10)/10) + " to " + moment(math.Round(to*10)/10)
}

// moment formats seconds as people say them: 30 s, 5 min, 1:30 min, 2 h.
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

// tickSI and tickDuration are quantity.SI and quantity.Duration without trailing zeros.
func tickSI(f float64) string { return trim(quantity.SI(f)) }

func tickDuration(seconds float64) string { return trim(quantity.Duration(seconds)) }

// trim removes trailing zeros from a number's decimals, before its unit.
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
	return quantity.Percent(share)
}
