package words

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Texts returns the texts of reasons.
func Texts(reasons []run.Reason) []string {
	var texts []string
	for _, why := range reasons {
		texts = append(texts, why.Text)
	}
	return texts
}

// Level is a row of the table of levels: one op of one level.
type Level struct {
	Op    string // "" if the load has only one
	More  bool   // not the first op of its level
	Cells LevelCells
	P99   *float64 // of the response
	Word  string
	Why   string // why it did not hold
	Doubt string // reasons for doubt, in a line
}

// LevelCells are the cells of a row, or the heads of the table's columns.
type LevelCells [7]string

// LevelHeads returns the heads of the table's columns. Quantiles are of the response, except for the lag's.
func LevelHeads(ph *run.Phase) LevelCells {
	if ph.Closed() {
		return LevelCells{"sessions", "ops", "ops/s", "p50", "p99", "p99.9", "failed"}
	}
	return LevelCells{"asked", "sustained", "p50", "p99", "p99.9", "lag p99", "busy"}
}

// Levels lists the levels of stages in order, those of a search by rate.
func Levels(ph *run.Phase) (rows []Level) {
	levels := slices.Clone(ph.Levels)
	if ph.Search != nil {
		slices.SortStableFunc(levels, func(a, b run.Level) int { return int(math.Copysign(1, a.Rate-b.Rate)) })
	}
	for i := range levels {
		l := &levels[i]
		did := didIn(l)
		for j, o := range did {
			row := Level{More: j > 0, P99: o.Response.P99, Word: LevelWord(ph, l), Why: l.Why, Doubt: strings.Join(Texts(l.Reasons), " · ")}
			if len(did) > 1 || len(l.Op) > 1 {
				row.Op = o.Name
			}
			asked := quantity.Whole(l.Rate)
			if l.Rate == 0 {
				asked = "closed"
			}
			row.Cells = LevelCells{
				asked, whole(l.AchievedRate), Latency(o.Response.P50), Latency(o.Response.P99), Latency(o.Response.P999),
				Latency(o.Lag.P99), quantity.Percent(rounded(l.Busy)),
			}
			if ph.Closed() {
				row.Doubt = "" // the phase's own
				row.Cells = LevelCells{
					quantity.Thousands(l.Sessions), quantity.Thousands(o.Due), whole(o.Answered),
					Latency(o.Response.P50), Latency(o.Response.P99), Latency(o.Response.P999), quantity.Thousands(o.Due - o.OK - o.Miss),
				}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// whole formats a rate; "-" if there is none.
func whole(rate *float64) string {
	if rate == nil {
		return "-"
	}
	return quantity.Whole(*rate)
}

// didIn lists the ops of a level, and in place of one that went to several targets its steps.
func didIn(l *run.Level) (all []Done) {
	did := &run.Phase{Op: l.Op}
	for _, verb := range did.Verbs() {
		all = append(all, Done{Name: verb, Figures: &l.Op[verb].Figures})
	}
	apart := did.Apart()
	for _, name := range slices.Sorted(maps.Keys(l.Scenario)) {
		for _, step := range l.Scenario[name].StepOrder {
			if s := l.Scenario[name].Step[step]; slices.Contains(apart, s.Op) {
				all = append(all, Done{Name: name + ", " + step, Figures: &s.Figures})
			}
		}
	}
	return all
}

// Found describes the result of a search in sentences: the answer, the rate that was too high, what gave out first, and how the search ended.
func Found(ph *run.Phase) []string {
	s := ph.Search
	var goals []string
	for _, o := range s.Objectives {
		goals = append(goals, strings.TrimSpace(o.Op+" "+o.Quantile)+" ≤ "+quantity.Duration(o.LimitSeconds))
	}
	goal := "response " + strings.Join(goals, ", ")
	parts := []string{strings.Join(found(ph, goal), "; ")}
	above := func(rate *float64, what string, bound bool) {
		if rate == nil {
			return
		}
		i := slices.IndexFunc(ph.Levels, func(l run.Level) bool {
			return (l.Offered() == *rate || l.Rate == *rate) && l.Why != "" && (l.Outcome == clientBound) == bound
		})
		part := quantity.Whole(*rate) + "/s " + what
		if i >= 0 {
			part = rateOf(ph, i, *rate) + " " + what + ": " + ph.Levels[i].Why
		}
		parts = append(parts, part)
	}
	above(s.FirstFailed, "do not", false)
	if s.Tries > 0 || s.Low == nil { // elsewhere the answer says it
		above(s.ClientBound, "are client-bound", true)
	}
	if s.Noise != nil && *s.Noise > loud && s.End != "below_from" {
		parts = append(parts, "Levels differed by "+quantity.Percent(*s.Noise)+" (standard deviation of the limit that a level shows)")
	}
	if s.Evidence != "" {
		parts = append(parts, "What gave out first: "+s.Evidence)
	}
	end := strings.ToUpper(s.Ended[:min(1, len(s.Ended))]) + s.Ended[min(1, len(s.Ended)):]
	if s.Rate != nil && ph.Levels[*s.Level].Rate == s.To {
		end = `That is the highest rate asked for ("to"): the limit lies above it`
	}
	if s.Knee != nil {
		parts = append(parts, "Knee at "+rateOf(ph, *s.KneeLevel, *s.Knee)+": throughput divided by latency is greatest there")
	}
	if end != "" {
		parts = append(parts, end)
	}
	return parts
}

// loud is the noise of levels above which it is told.
const loud = 0.02

// found says what a search found: a rate that holds, and between which rates the limit lies.
func found(ph *run.Phase, goal string) (parts []string) {
	s, rate := ph.Search, ""
	if s.Rate != nil {
		rate = rateOf(ph, *s.Level, *s.Rate)
	}
	open := s.ClientBound != nil && s.High == nil
	switch {
	case s.Rate == nil && s.End == "" && s.High != nil:
		return append(parts, "so far, the limit of "+goal+" lies between "+quantity.Whole(*s.Low)+"/s and "+quantity.Whole(*s.High)+"/s (95 %)")
	case s.Rate == nil && s.End == "":
		return append(parts, "so far, no limit of "+goal+" is known")
	case s.Rate == nil && !slices.ContainsFunc(ph.Reasons, func(why run.Reason) bool { return why.Code == reason.CannotTell }):
		return append(parts, "no rate holds "+goal)
	case s.Rate == nil && s.Low == nil:
		return append(parts, "cannot be told: "+s.Ended+" before any rate held "+goal)
	case s.Rate == nil:
		limit := "at least " + quantity.Whole(*s.Low) + "/s"
		switch {
		case s.High != nil && *s.Low < s.From:
			limit = "below " + quantity.Whole(*s.High) + "/s: search for longer, or from a lower rate than " + quantity.Whole(s.From) + "/s"
		case s.High != nil:
			limit = "between " + quantity.Whole(*s.Low) + "/s and " + quantity.Whole(*s.High) + "/s; " + longer(s) + " for ± 3 %"
		}
		in := ""
		if s.End == "spent" {
			in = " in " + quantity.Duration(s.Budget)
		}
		return append(parts, "cannot be told"+in+": "+goal+" up to a limit "+limit)
	case open || s.Low == nil && ph.Bound("search.rate") == reason.AtLeast:
		parts = append(parts, "at least "+rate+" were served within "+goal+", loadgen's delays included")
	default:
		parts = append(parts, rate+" hold "+goal)
	}
	switch {
	case s.Tries > 0: // an older result
		parts[0] += fmt.Sprintf(" (held %d of %d)", s.Held, s.Tries)
	case open:
		return append(parts, "above that, the client was the bound")
	default:
		parts[0] += " (fresh " + quantity.Duration(ph.Levels[*s.Level].DurationSeconds) + " level)"
	}
	if s.Low != nil && s.High != nil {
		parts = append(parts, "the limit lies between "+quantity.Whole(*s.Low)+" and "+quantity.Whole(*s.High)+"/s (95 %)")
	}
	return parts
}

// longer estimates the budget with which the interval would be ± 3 %: its width falls with the root of the budget. A confirming level takes a part of it.
func longer(s *run.Search) string {
	wide := (*s.High / *s.Low - 1) / 0.06
	switch seconds := s.Budget * max(1.5, wide*wide); {
	case seconds > 3600:
		return "an hour or more"
	case seconds > 100:
		return fmt.Sprintf("about %.0fm", math.Ceil(seconds/60))
	default:
		return fmt.Sprintf("about %.0fs", math.Ceil(seconds/10)*10)
	}
}

// Limit says what a search knows so far.
func Limit(k *run.Seeking) string {
	switch {
	case k.Rate == 0:
		return "not known yet"
	case math.IsInf(k.High, 1):
		return "above " + quantity.SI(k.Low) + "/s"
	}
	return quantity.SI(k.Rate) + "/s (" + quantity.SI(k.Low) + " to " + quantity.SI(k.High) + ")"
}

// rateOf formats a rate that a search found, with the one that its level asked for if that is another.
func rateOf(ph *run.Phase, level int, rate float64) string {
	text, asked := quantity.Whole(rate)+"/s", quantity.Whole(ph.Levels[level].Rate)+"/s"
	if text == asked {
		return text
	}
	return text + " (" + asked + " asked)"
}

// clientBound is the outcome of a level that the generator could not offer.
const clientBound = "client-bound"

// LevelWord describes a level in a word or two.
func LevelWord(ph *run.Phase, l *run.Level) string {
	word := l.Outcome
	if l.Rate == 0 {
		return "" // the first column says that it is a closed load
	}
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

// Latency formats seconds; "-" if there are none.
func Latency(seconds *float64) string {
	if seconds == nil {
		return "-"
	}
	return quantity.Duration(*seconds)
}
