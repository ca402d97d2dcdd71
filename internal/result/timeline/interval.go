package timeline

import (
	"math"
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
)

// fewRows is the number of seconds below which time bins show more than the series.
const fewRows = 8

// Interval is the sum of one or more rows of the series.
type Interval struct {
	From, To      float64 // seconds since the phase's origin
	OK, Miss, Bad float64
	Highest       []float64 // the highest of any row, for each quantile; NaN if there is none
}

// Intervals joins rows so that at most maxColumns remain, each of the same number of seconds except the first and the last. They have the quantiles
// of these names of the response times.
func Intervals(rows []run.Row, quantiles ...string) (all []Interval, seconds int) {
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
			all, next = append(all, Interval{From: from, Highest: slices.Repeat([]float64{math.NaN()}, len(quantiles))}), at
		}
		c := &all[len(all)-1]
		c.To = r.T
		c.OK += float64(r.OK)
		c.Miss += float64(r.Miss)
		c.Bad += float64(r.Bad)
		for j, name := range quantiles {
			c.Highest[j] = higher(c.Highest[j], r.Response.Quantile(name))
		}
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

// Finest returns how a phase's ops ended over time, and the length of an interval in seconds: a second or longer, or less if the phase lasted only
// few seconds. st is nil if snapshots are not available.
func Finest(ph *run.Phase, st *Step) (all []Interval, seconds float64) {
	all, longer := Intervals(ph.Series)
	if len(all) < fewRows && st != nil && (len(ph.Levels) == 0 || ph.Closed()) {
		if finer, width := binned(&st.Totals); len(finer) >= fewRows {
			return finer, width
		}
	}
	return all, float64(longer)
}

// binned returns the time bins of a step: how its ops ended, at a resolution finer than a second.
func binned(t *measure.Totals) (all []Interval, width float64) {
	var shift uint8
	var ends [driver.NumOutcomes][]*measure.Bins
	for _, o := range t.Ops {
		if o == nil {
			continue
		}
		for outcome, b := range o.Bins {
			if b.Total() > 0 {
				shift = max(shift, b.Shift())
				ends[outcome] = append(ends[outcome], b)
			}
		}
	}
	end := t.Span.Last - t.Origin
	for end>>shift > maxColumns/3 { // more columns would show noise
		shift++
	}
	for from := int64(0); from < end; from += 1 << shift {
		to := from + 1<<shift
		c := Interval{From: float64(from) / 1e9, To: float64(to) / 1e9}
		for outcome, bins := range ends {
			n := 0.0
			for _, b := range bins {
				ended, _ := b.Between(from, to)
				n += float64(ended)
			}
			switch driver.Outcome(outcome) {
			case driver.OK:
				c.OK += n
			case driver.Miss:
				c.Miss += n
			case driver.Shed:
			default:
				c.Bad += n
			}
		}
		all = append(all, c)
	}
	return all[:max(len(all)-1, 0)], float64(int64(1)<<shift) / 1e9 // the last bin is cut short
}
