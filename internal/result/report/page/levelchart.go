package page

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/chart"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// byRate splits levels, sorted by rate, into groups with the same rate.
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

// middle returns the median, the lower of two middle values; NaN if there is none.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	slices.Sort(all)
	return all[(len(all)-1)/2]
}

// responsesOf returns a statistic of a verb's responses by rate: the median of the tries at each rate, NaN if there is none, and all tries.
func responsesOf(rates [][]run.Level, verb string, of func(l *run.Latency) *float64) (medians, tries []chart.Point) {
	for _, same := range rates {
		var all []float64
		for i := range same {
			o := same[i].Op[verb]
			if o == nil {
				continue
			}
			if v := of(&o.Response); v != nil {
				all = append(all, *v)
				tries = append(tries, chart.Point{X: same[i].Rate, Y: *v})
			}
		}
		medians = append(medians, chart.Point{X: same[0].Rate, Y: middle(all)})
	}
	return medians, tries
}

// levelChart draws rate against latency: dots for all levels, and a line through the medians at each rate.
func levelChart(ph *run.Phase) (figure, *chart.Chart) {
	levels := slices.DeleteFunc(slices.Clone(ph.Levels), func(l run.Level) bool { return l.Rate == 0 }) // a closed load asks for none
	slices.SortStableFunc(levels, func(a, b run.Level) int { return int(math.Copysign(1, a.Rate-b.Rate)) })
	if len(levels) < 2 || levels[0].Rate == levels[len(levels)-1].Rate {
		return figure{}, nil
	}
	c := &chart.Chart{}
	var r extent
	present := ph.Verbs()
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
		for j, q := range quantiles {
			line := chart.Line{Name: q.name, Class: q.class}
			if len(present) > 1 {
				line.Name = verb + " " + q.name
				line.Class = "c" + strconv.Itoa((2*i+j)%colours)
			}
			medians, tries := responsesOf(rates, verb, q.of)
			for _, try := range tries {
				r.add(try.Y)
			}
			for k, at := range medians {
				if !math.IsNaN(at.Y) {
					texts[k] += "\n" + line.Name + " " + quantity.Duration(at.Y)
				}
			}
			line.Points = medians
			c.Lines = append(c.Lines, line, chart.Line{Class: line.Class, Loose: true, Points: tries})
		}
	}
	if ph.Search != nil {
		for _, o := range ph.Search.Objectives {
			r.add(o.LimitSeconds)
			c.Marks = append(c.Marks, chart.Mark{Y: o.LimitSeconds, Text: strings.TrimSpace(o.Op+" "+o.Quantile) + " ≤ " + quantity.Duration(o.LimitSeconds)})
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
		text := "asked " + quantity.Whole(rate) + "/s"
		if len(same) > 1 {
			text += fmt.Sprintf(", %d times; medians", len(same))
		} else if same[0].AchievedRate != nil {
			text += "\nsustained " + quantity.Whole(*same[0].AchievedRate) + "/s"
		}
		text += texts[i]
		for k := range same {
			text += "\n" + words.LevelWord(ph, &same[k])
		}
		c.Hits = append(c.Hits, chart.Hit{X0: from, X1: to, Text: text})
	}
	return figure{Title: "Rate against latency"}, c
}
