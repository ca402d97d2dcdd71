package page

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/chart"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// times are the latencies of ops.
type times interface {
	Quantile(q float64) (ns int64, known bool)
	Count() uint64
}

// named is latencies with the name and class to draw them with.
type named struct {
	name, class string
	of          times
}

// quantileCurves draws the share of ops that took no longer than each time.
func quantileCurves(ph *run.Phase, st *timeline.Step) (figure, *chart.Chart) {
	var curves []named
	present := ph.Verbs()
	for i, verb := range present {
		o := st.Op(verb)
		if o == nil {
			continue
		}
		prefix, class := "", "c1"
		if len(present) > 1 {
			prefix, class = verb+" ", "c"+strconv.Itoa(i)
		}
		curves = append(curves, named{prefix + "response", "c" + strconv.Itoa(i), new(o.ResponseAll())}, named{prefix + "service", class + " thin", new(o.ServiceAll())})
		if write, sync := o.SplitAll(); sync.Count() > 0 {
			parts := [...]string{"c2 thin", "c3 thin"}
			if len(present) > 1 {
				parts = [...]string{class + " d2", class + " d3"}
			}
			curves = append(curves, named{prefix + "write", parts[0], &write}, named{prefix + "sync", parts[1], &sync})
		}
	}
	return figure{Title: "Quantiles of latency", Note: quantileNote}, quantileChart("latency (log)", curves)
}

const quantileNote = "each curve ends where fewer than 10 samples lie beyond, or where the ops begin that failed"

// ackCurves draws the time to the k-th good answer.
func ackCurves(verb string, st *timeline.Step) (figure, *chart.Chart) {
	o := st.Op(verb)
	if o == nil || len(o.Acks) < 2 {
		return figure{}, nil
	}
	const classes = 5
	var curves []named
	for k := range min(len(o.Acks), classes) {
		curves = append(curves, named{"ack " + strconv.Itoa(k+1), "c" + strconv.Itoa(k), new(o.AckAll(k + 1))})
	}
	return figure{Title: "To the k-th answer of a " + verb, Note: quantileNote}, quantileChart("since the start (log)", curves)
}

func quantileChart(label string, curves []named) *chart.Chart {
	c := &chart.Chart{X: chart.Nines("share of ops", nines, tickPercent)}
	var r extent
	texts := make([]string, curveSize+1)
	at := func(i int) float64 { return 1 - math.Pow(10, -nines*float64(i)/curveSize) }
	for _, n := range curves {
		line := chart.Line{Name: n.name, Class: n.class}
		for i := range curveSize + 1 {
			v := supported(n.of, at(i))
			if v == 0 { // it has no place on a logarithmic axis
				v = math.NaN()
			}
			line.Points = append(line.Points, chart.Point{X: at(i), Y: v})
			if v > 0 {
				r.add(v)
				texts[i] += "\n" + n.name + " " + quantity.Duration(v)
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
			c.Hits = append(c.Hits, chart.Hit{X0: at(max(i-1, 0)), X1: at(i), Text: quantity.Percent(at(i)) + " took at most" + text})
		}
	}
	return c
}

// perDecade is the number of heatmap rows for each power of ten.
const perDecade = 10

// heatmap draws how many ops took how long, over time.
func heatmap(st *timeline.Step) (figure, *chart.Chart) {
	type place struct{ x, y int }
	cells := map[place]float64{}
	var r extent
	most, columns := 0.0, 0
	for x := range st.Columns {
		h := &st.Columns[x].Answered
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
	c := &chart.Chart{X: timeScale(float64(len(st.Columns) * st.Seconds)), Y: r.log("response, ok and miss (log)")}
	for _, p := range slices.SortedFunc(maps.Keys(cells), func(a, b place) int { return cmp.Or(a.x-b.x, a.y-b.y) }) {
		share := math.Log1p(cells[p]) / math.Log1p(most)
		c.Cells = append(c.Cells, chart.Cell{
			X0: float64(p.x * st.Seconds), X1: float64((p.x + 1) * st.Seconds),
			Y0: math.Pow(10, float64(p.y)/perDecade), Y1: math.Pow(10, float64(p.y+1)/perDecade),
			Level: min(1+int(share*chart.Levels), chart.Levels),
		})
	}
	for x := range st.Columns {
		h := &st.Columns[x].Answered
		if h.Count() == 0 {
			continue
		}
		from := float64(x * st.Seconds)
		c.Hits = append(c.Hits, chart.Hit{X0: from, X1: from + float64(st.Seconds), Text: fmt.Sprintf("%s\n%s answered\n%s to %s",
			between(from, from+float64(st.Seconds)), quantity.Thousands(h.Count()), quantity.Duration(float64(h.Min())/1e9), quantity.Duration(float64(h.Max())/1e9))})
	}
	return figure{Title: "Heatmap of latency", Note: each(float64(st.Seconds)) + "; the stronger the colour, the more ops (log)"}, c
}
