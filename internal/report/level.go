package report

import (
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/run"
)

// barWidth is that of the longest bar of a curve.
const barWidth = 12

// levels adds what a search found and a table of the levels: the curve of rate against latency.
func (p *page) levels(ph *run.Phase) {
	if len(ph.Levels) == 0 {
		return
	}
	rows := slices.Clone(ph.Levels)
	if s := ph.Search; s != nil {
		p.item("found", foundOf(ph, s))
		slices.SortStableFunc(rows, func(a, b run.Level) int { return int(math.Copysign(1, a.Rate-b.Rate)) })
	}
	p.line("")
	p.line("  %s%s%s%s%s%s", left("levels", labelWidth), right("asked", 11), right("sustained", 12), right("p50", 10), right("p99", 10), right("p99.9", 10))
	c := curveOf(rows)
	for i := range rows {
		p.level(ph, &rows[i], c)
	}
}

// foundOf says what a search has come to.
func foundOf(ph *run.Phase, s *run.Search) string {
	var goals []string
	for _, o := range s.Objectives {
		goals = append(goals, strings.TrimSpace(o.Op+" "+o.Quantile)+" ≤ "+duration(o.LimitSeconds))
	}
	goal := strings.Join(goals, ", ")
	if s.Rate == nil {
		return "no rate that holds response " + goal + "; " + s.Ended
	}
	parts := []string{whole(*s.Rate) + "/s hold response " + goal}
	above := func(rate *float64, what string) {
		if rate == nil {
			return
		}
		i := slices.IndexFunc(ph.Levels, func(l run.Level) bool { return l.Rate == *rate && l.Why != "" })
		parts = append(parts, whole(*rate)+"/s "+what+" ("+ph.Levels[i].Why+")")
	}
	above(s.FirstFailed, "do not")
	above(s.ClientBound, "are more than the generator can offer")
	if s.Knee != nil {
		parts = append(parts, "knee at "+whole(*s.Knee)+"/s")
	}
	return strings.Join(append(parts, s.Ended), "; ")
}

// level adds one row for each op.
func (p *page) level(ph *run.Phase, l *run.Level, c curve) {
	asked, sustained := whole(l.Rate), "-"
	if l.AchievedRate != nil {
		sustained = whole(*l.AchievedRate)
	}
	for i, verb := range verbs(l.Op) {
		r := l.Op[verb].Response
		label, word := "", wordOf(ph, l)
		if len(l.Op) > 1 {
			label = verb
		}
		if i > 0 {
			asked, sustained, word = "", "", ""
		}
		p.line("  %s%s%s%s%s%s  %s %s", left("  "+label, labelWidth), right(asked, 11), right(sustained, 12),
			right(quantity(r.P50), 10), right(quantity(r.P99), 10), right(quantity(r.P999), 10), left(c.bar(r.P99), barWidth), word)
	}
}

// wordOf says what is to be said of a level in a word or two.
func wordOf(ph *run.Phase, l *run.Level) string {
	word := l.Outcome
	if s := ph.Search; s != nil {
		is := func(i *int) bool { return i != nil && ph.Levels[*i].StartSeconds == l.StartSeconds }
		if is(s.KneeLevel) {
			word += ", knee"
		}
		if is(s.Level) {
			word += " ◄"
		}
	} else if l.Validity != run.Valid {
		word = strings.ToUpper(string(l.Validity))
	}
	return word
}

func quantity(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return duration(*seconds)
}

// curve scales latencies to bars, by their logarithm.
type curve struct{ least, most float64 }

func curveOf(levels []run.Level) curve {
	c := curve{math.Inf(1), 0}
	for _, l := range levels {
		for _, o := range l.Op {
			if o.Response.P99 != nil && *o.Response.P99 > 0 {
				c.least, c.most = min(c.least, *o.Response.P99), max(c.most, *o.Response.P99)
			}
		}
	}
	return c
}

func (c curve) bar(p99 *float64) string {
	if p99 == nil || c.most <= c.least {
		return ""
	}
	share := math.Log(max(*p99, c.least)/c.least) / math.Log(c.most/c.least)
	return strings.Repeat("█", 1+int(math.Round(share*(barWidth-1))))
}
