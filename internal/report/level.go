package report

import (
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

// barWidth is that of the longest bar of a curve.
const barWidth = 7

// levels adds what a search found and a table of the levels: the curve of rate against latency.
func (p *page) levels(ph *run.Phase) {
	if len(ph.Levels) == 0 {
		return
	}
	if s := ph.Search; s != nil {
		p.item("found", foundOf(ph, s))
	}
	line := func(label string, cells [len(levelHeads)]string, bar, word string) {
		text := "  " + left(label, 9)
		for i, cell := range cells {
			if levelHeads[i] != "p99.9" || p.roomy() {
				text += right(cell, [...]int{10, 11, 9, 9, 9, 9, 8}[i])
			}
		}
		if p.roomy() {
			text += "  " + left(bar, barWidth)
		}
		p.line("%s %s", text, word)
	}
	p.line("")
	line("levels", levelHeads, "", "")
	rows := levelRows(ph)
	c := curveOf(rows)
	for i := range rows {
		row := &rows[i]
		if row.more {
			row.cells[0], row.cells[1], row.cells[len(row.cells)-1], row.word = "", "", "", ""
		}
		line("  "+row.op, row.cells, c.bar(row.p99), row.word)
	}
}

// levelRow is a row of the table of levels: one op of one of them.
type levelRow struct {
	op    string // "" where the load has no other
	more  bool   // than the first op of its level
	cells [len(levelHeads)]string
	p99   *float64 // of the response
	word  string
	why   string // it did not hold
	doubt string // reasons for it, in a line
}

// levelHeads stand above the cells of the table. Quantiles are those of the response, but for the lag's.
var levelHeads = [...]string{"asked", "sustained", "p50", "p99", "p99.9", "lag p99", "busy"}

// levelRows lists the levels of stages as they were, those of a search by their rates.
func levelRows(ph *run.Phase) (rows []levelRow) {
	levels := slices.Clone(ph.Levels)
	if ph.Search != nil {
		slices.SortStableFunc(levels, func(a, b run.Level) int { return int(math.Copysign(1, a.Rate-b.Rate)) })
	}
	for i := range levels {
		l := &levels[i]
		sustained := "-"
		if l.AchievedRate != nil {
			sustained = whole(*l.AchievedRate)
		}
		for j, verb := range verbs(l.Op) {
			o := l.Op[verb]
			row := levelRow{more: j > 0, p99: o.Response.P99, word: wordOf(ph, l), why: l.Why, doubt: strings.Join(textsOf(l.Reasons), " · ")}
			if len(l.Op) > 1 {
				row.op = verb
			}
			row.cells = [...]string{
				whole(l.Rate), sustained, latency(o.Response.P50), latency(o.Response.P99), latency(o.Response.P999),
				latency(o.Lag.P99), quantity.Percent(rounded(l.Busy)),
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// foundOf says what a search has come to.
func foundOf(ph *run.Phase, s *run.Search) string {
	var goals []string
	for _, o := range s.Objectives {
		goals = append(goals, strings.TrimSpace(o.Op+" "+o.Quantile)+" ≤ "+quantity.Duration(o.LimitSeconds))
	}
	goal := "response " + strings.Join(goals, ", ")
	parts := []string{"no rate holds " + goal}
	if s.Rate != nil {
		parts[0] = whole(*s.Rate) + "/s hold " + goal
	}
	above := func(rate *float64, what string, bound bool) {
		if rate == nil {
			return
		}
		i := slices.IndexFunc(ph.Levels, func(l run.Level) bool {
			return l.Rate == *rate && l.Why != "" && (l.Outcome == clientBound) == bound
		})
		part := whole(*rate) + "/s " + what
		if i >= 0 {
			part += " (" + ph.Levels[i].Why + ")"
		}
		parts = append(parts, part)
	}
	above(s.FirstFailed, "do not", false)
	above(s.ClientBound, "are client-bound", true)
	if s.Knee != nil {
		parts = append(parts, "knee at "+whole(*s.Knee)+"/s")
	}
	if s.Rate != nil && *s.Rate == s.To {
		return strings.Join(append(parts, `that is the highest rate asked for ("to"): the limit lies above it`), "; ")
	}
	return strings.Join(append(parts, s.Ended), "; ")
}

// clientBound is the outcome of a level that the generator could not offer.
const clientBound = "client-bound"

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

func latency(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return quantity.Duration(*seconds)
}

// curve scales latencies to bars, by their logarithm.
type curve struct{ least, most float64 }

func curveOf(rows []levelRow) curve {
	c := curve{math.Inf(1), 0}
	for i := range rows {
		if p99 := rows[i].p99; p99 != nil && *p99 > 0 {
			c.least, c.most = min(c.least, *p99), max(c.most, *p99)
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
