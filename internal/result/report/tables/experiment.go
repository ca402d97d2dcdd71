package tables

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Became says how far the runs of a variant got.
func Became(v run.Variant, repeat int) string {
	how := map[run.Stop]string{
		run.StopFinished: "finished", run.StopCap: "ended by its CAP, and counts as far as it got",
		run.StopAborted: "ABORTED: by the user, --timeout or on_error", run.StopFailed: "FAILED in part",
	}[v.Stopped]
	return quantity.Thousands(v.Runs) + " of " + quantity.Count(repeat, "run") + " that count, " + how
}

// MaxReasons bounds the lines that give reasons.
const MaxReasons = 12

// ShownReasons returns the first MaxReasons reasons, and how many more there are.
func ShownReasons(reasons []string) []string {
	shown := slices.Clone(reasons[:min(len(reasons), MaxReasons)])
	if more := len(reasons) - MaxReasons; more > 0 {
		shown = append(shown, "and "+quantity.Count(more, "other reason")+", in the runs' own results")
	}
	return shown
}

// Judgement returns the verdict over an experiment's runs in sentences.
func Judgement(x *run.Experiment) []string {
	sentences := []string{map[run.Completeness]string{
		run.Complete: "All runs are complete.",
		run.Capped:   "All runs are complete, but for those that the plan's CAP has ended or left out.",
		run.Degraded: "The experiment is DEGRADED: a part of a run was lost.",
		run.Aborted:  "A run was ABORTED before all that was planned was done.",
		run.Failed:   "A run FAILED: something could not be run.",
	}[x.Verdict.Completeness]}
	if !x.Finished {
		sentences = []string{"The experiment is UNFINISHED: it is going on, or was cut off."}
	}
	sentences = append(sentences, map[run.Validity]string{
		run.Valid:   "All figures are valid.",
		run.Suspect: "Some figures are SUSPECT: quote none of those without the reasons.",
		run.Invalid: "Some figures are INVALID: use none of those.",
	}[x.Verdict.Validity])
	if x.Verdict.Assertions == run.Fail {
		sentences = append(sentences, "Asserts FAILED.")
	}
	if x.Verdict.Assertions == run.Undecided {
		sentences = append(sentences, "Asserts could not be decided.")
	}
	if len(x.Logs) > 0 {
		sentences = append(sentences, "Logs: "+strings.Join(x.Logs, "; ")+".")
	}
	return sentences
}

// Comparison is one metric of one op, in all variants.
type Comparison struct {
	Figures []run.Figure // in the order of the variants
	Table   run.Table
}

// Comparisons returns the tables of an experiment's plan, and its comparisons.
func Comparisons(x *run.Experiment) (plans []run.Table, all []Comparison) {
	n := len(x.Variants)
	first := len(x.Tables) - len(x.Figures)/n
	if first < 0 || len(x.Figures)%n != 0 {
		return x.Tables, nil
	}
	for i, t := range x.Tables[first:] {
		all = append(all, Comparison{x.Figures[i*n : (i+1)*n], t})
	}
	return x.Tables[:first], all
}

// Text returns what the table shows for a variant in a column.
func (c *Comparison) Text(variant int, column string) string {
	i := slices.IndexFunc(c.Table.Columns, func(col run.Column) bool { return col.Name == column })
	if i < 0 || variant >= len(c.Table.Rows) {
		return "–"
	}
	return Text(c.Table.Rows[variant].Cells[i])
}

// ofRuns names runs: a single one by its variant and repetition, several by their number and variants.
func ofRuns(x *run.Experiment, runs []run.ExperimentRun) string {
	if len(runs) == 1 {
		return fmt.Sprintf("%s, repetition %d", runs[0].Variant, runs[0].Repetition)
	}
	var variants []string
	for _, v := range x.Variants {
		if slices.ContainsFunc(runs, func(r run.ExperimentRun) bool { return r.Variant == v.Name }) {
			variants = append(variants, v.Name)
		}
	}
	return quantity.Count(len(runs), "run") + " of " + Some(variants, "variant")
}

// Some lists names, or says how many there are if they are many.
func Some(names []string, noun string) string {
	if len(names) > maxPlaces {
		return quantity.Count(len(names), noun)
	}
	return strings.Join(names, ", ")
}

// Settings splits the name of a variant of a matrix.
func Settings(name string) (keys, values []string, ok bool) {
	for part := range strings.SplitSeq(name, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, nil, false
		}
		keys, values = append(keys, key), append(values, value)
	}
	return keys, values, true
}

// longName is the length in letters from which a page shortens names of a matrix's variants.
const longName = 30

// Briefly returns how to name variants if there is little room: those of a matrix with long names by their values, such as "raw 1024" for
// "layout=raw,size=1024", with the variables as keys; others by their names.
func Briefly(x *run.Experiment) (name func(variant string) string, keys string) {
	var all []string
	longest := 0
	for _, v := range x.Variants {
		own, _, ok := Settings(v.Name)
		if !ok || all != nil && !slices.Equal(all, own) {
			return func(variant string) string { return variant }, ""
		}
		all, longest = own, max(longest, utf8.RuneCountInString(v.Name))
	}
	if longest < longName {
		return func(variant string) string { return variant }, ""
	}
	return func(variant string) string {
		_, values, _ := Settings(variant)
		return strings.Join(values, " ")
	}, strings.Join(all, ", ")
}
