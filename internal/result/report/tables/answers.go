package tables

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// maxAnswers bounds the variants whose differences open an experiment's report.
const maxAnswers = 6

// Answers say what differs from the baseline and by how much; then whether anything differs, and why that is unknown for some figures.
func Answers(x *run.Experiment) (lines []string) {
	_, all := Comparisons(x)
	if x.Gate != nil && x.Gate.Text != "" {
		return append([]string{x.Gate.Text}, JoinAlike(x.Gate.Why)...)
	}
	lines = append(Effects(x, all), "Different from the baseline "+x.Baseline+"? "+AnswerOf(x.Baseline, all))
	return append(lines, Untold(x.Figures)...)
}

// Effects say what differs from the baseline and by how much, a line for each variant, the largest difference first. Figures that an open load sets
// are left out.
func Effects(x *run.Experiment, all []Comparison) (lines []string) {
	var found []effect
	for i, v := range x.Variants {
		if of := effectsOf(all, i); len(of) > 0 {
			var texts []string
			for _, e := range of {
				texts = append(texts, e.text)
			}
			found = append(found, effect{v.Name + ": " + strings.Join(texts, "; "), of[0].size})
		}
	}
	slices.SortStableFunc(found, func(a, b effect) int { return cmp.Compare(b.size, a.size) })
	for _, e := range found[:min(len(found), maxAnswers)] {
		lines = append(lines, e.text)
	}
	if more := len(found) - maxAnswers; more > 0 {
		lines = append(lines, "and "+quantity.Count(more, "more variant")+", in the tables")
	}
	return lines
}

// Untold says why it is unknown whether figures differ, once for all figures with the same reason.
func Untold(figures []run.Figure) (lines []string) {
	told := func(f run.Figure) bool { return f.Code != "undecided" || f.Nulls["p"] == "" }
	untold := slices.DeleteFunc(slices.Clone(figures), told)
	for _, why := range Alikes(untold, func(f run.Figure) string { return f.Nulls["p"] }) {
		var variants []string
		for _, f := range why.Members {
			variants = append(variants, f.Variant)
		}
		slices.Sort(variants)
		lines = append(lines, "Cannot tell of "+Some(slices.Compact(variants), "variant")+", in "+quantity.Count(len(why.Members), "comparison")+": "+why.String()+".")
	}
	return lines
}

// effect is a difference that was found.
type effect struct {
	text string
	size float64 // of the logarithm of the ratio or, of a share, of the difference
}

// effectsOf returns what differs in a variant: of each op the median if that does, and otherwise what differs most. The largest is first.
func effectsOf(all []Comparison, variant int) (found []effect) {
	var ops []string
	best := map[string]*run.Figure{}
	for i := range all {
		f := &all[i].Figures[variant]
		if !f.Differs || f.Validity == run.Invalid {
			continue
		}
		op := nameOf(f)
		had := best[op]
		if had == nil {
			ops = append(ops, op)
		}
		if had == nil || f.Metric == median || had.Metric != median && size(f) > size(had) {
			best[op] = f
		}
	}
	for _, op := range ops {
		found = append(found, effect{op + " " + by(best[op]), size(best[op])})
	}
	slices.SortStableFunc(found, func(a, b effect) int { return cmp.Compare(b.size, a.size) })
	return found
}

// median is the metric that says most about how long ops take.
const median = "response.p50"

func size(f *run.Figure) float64 {
	if f.Share() {
		return math.Abs(f.Above())
	}
	return math.Abs(math.Log1p(f.Above()))
}

// nameOf names an op, with its phase unless that has the same name.
func nameOf(f *run.Figure) string {
	if f.Phase == f.Op {
		return f.Op
	}
	return f.Phase + " " + f.Op
}

// by says how a figure differs from the baseline's, with its interval.
func by(f *run.Figure) string {
	of, which, _ := strings.Cut(f.Metric, ".")
	name, more, less := strings.ReplaceAll(of, "_", " "), "higher", "lower"
	if f.Unit == "s" {
		name, more, less = which, "slower", "faster"
		if f.Metric == median {
			name = "median"
		}
	}
	at, lo, hi, times := f.Ratio, f.RatioLo, f.RatioHi, " × "
	up := f.Above() > 0
	amount := func(v float64) string {
		if up {
			return quantity.Digits(v)
		}
		return quantity.Digits(1 / v)
	}
	if f.Share() {
		at, lo, hi, times = f.Difference, f.DifferenceLo, f.DifferenceHi, " points "
		amount = func(v float64) string {
			if !up {
				v = -v
			}
			return quantity.Digits(100 * v)
		}
	}
	if !up {
		more, lo, hi = less, hi, lo
	}
	text := name + " " + amount(*at) + f.Validity.Mark() + times + more
	if lo != nil && hi != nil {
		text += ", 95 % CI " + amount(*lo) + " to " + amount(*hi)
	}
	return text
}

// AnswerOf says whether the variants differ.
func AnswerOf(baseline string, comparisons []Comparison) string {
	differ, alike, unknown, invalid, unordered := 0, 0, 0, 0, false
	for _, c := range comparisons {
		for i := range c.Figures {
			switch f := &c.Figures[i]; {
			case f.Variant == baseline && f.Score != nil:
			case f.Validity == run.Invalid:
				invalid++
			case f.Code == "set_by_load":
			case f.Differs:
				differ++
				unordered = unordered || f.Code == "differs_unordered"
			case f.Undecided():
				unknown++
			default:
				alike++
			}
		}
	}
	all := differ + alike + unknown
	rest := "."
	if unordered {
		rest = "; the order of the runs was not random, so something else may have changed meanwhile."
	}
	if invalid > 0 {
		rest = strings.TrimSuffix(rest, ".") + "; " + quantity.Count(invalid, "other") + " INVALID."
	}
	switch {
	case all+invalid == 0:
		return "There is nothing to compare yet."
	case all == 0:
		return "That cannot be told: the figures are INVALID."
	case unknown == all:
		return "That cannot be told: there are too few values" + rest
	case differ == 0:
		return "No difference was shown" + rest
	case differ == all:
		return "Yes, in every figure" + rest
	}
	return fmt.Sprintf("Yes, in %s of %s%s", quantity.Thousands(differ), quantity.Count(all, "comparison"), rest)
}
