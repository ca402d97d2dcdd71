package page

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

// studyView holds the page's content for an experiment.
type studyView struct {
	Key, Plan, ID string
	Facts         []string
	Machine       []string
	Class, Word   string // of the verdict
	Verdict       []string
	Reasons       []string // its own
	Doubts        []doubtView
	Question      string   // what the experiment answers
	Answer        string   // whether the variants differ, or the gate's decision
	Effects       []string // by how much, and what cannot be told
	Differences   []differenceView
	Phases        []studyPhase
	Tables        []tableView // of the plan
	Charts        []figure    // of the plan
	Variants      []variantView
	LeftOut       string // variants that the plan left out; "" for none
	Runs          tableView
	RunFigures    []figure
	Environment   []words.Fact
	Unlike        []string // how the runs' environments differ
	PlanText      string
}

// studyPhase compares the variants in a phase.
type studyPhase struct {
	Key, Name   string
	Class, Word string
	Facts       []words.Fact
	Ops         []studyOp
	Figures     []figure
}

// studyOp compares the variants in an op.
type studyOp struct {
	Verb      string
	Sentences []string
	Forest    *figure // of the rate
	Tables    []tableView
	Forests   []figure
}

type variantView struct {
	Name, Values, Became string
}

// tableView is a table as shown.
type tableView struct {
	Title string
	Head  []tables.Cell
	Rows  [][]tables.Cell
	Notes []string
	Words bool // the last column holds words
}

// newTableView makes a tableView, with brief names for an experiment's variants.
func newTableView(x *run.Experiment, t run.Table) tableView {
	brief, keys := tables.Briefly(x)
	t.Rows = slices.Clone(t.Rows)
	for i := range t.Rows {
		if row := &t.Rows[i]; !row.Elsewhere {
			row.Name = brief(row.Name)
		}
	}
	rows := tables.Grid(t)
	if !t.Transpose {
		rows[0][0].Text = keys
	}
	return tableView{Title: t.Title, Head: rows[0], Rows: rows[1:], Notes: tables.Notes(t), Words: tables.HasFindings(t)}
}

func newStudyView(s *timeline.Source, key string) *studyView {
	x := s.Study.Experiment
	plans, comparisons := tables.Comparisons(x)
	v := &studyView{
		Key: key, Plan: x.Plan, ID: x.ID, Facts: words.Experiment(x), Verdict: tables.Judgement(x), PlanText: indented(s.Plan),
	}
	if _, keys := tables.Briefly(x); keys != "" {
		v.Facts = append(v.Facts, "variants by "+keys)
	}
	v.Class, v.Word = standingOf(x.Verdict)
	if !x.Finished && v.Class == "valid" {
		v.Class, v.Word = "suspect", "In part"
	}
	own, doubts := tables.DoubtsOf(x)
	v.Reasons, v.Doubts = own, doubtsOf(doubts)
	v.Answer, v.Effects = tables.AnswerOf(x.Baseline, comparisons), append(tables.Effects(x, comparisons), tables.Untold(x.Figures)...)
	v.Question = "Is it different from the baseline?"
	if x.Gate != nil {
		v.Question = "Is it worse than the baseline?"
		if v.Class == "invalid" && x.Verdict.Completeness == run.Complete && !slices.ContainsFunc(x.Runs, func(r run.ExperimentRun) bool { return r.Verdict.Miscounted() }) { // doubts about time
			v.Class, v.Word = "suspect", "The gate, yes"
		}
		v.Answer, v.Effects = x.Gate.Text, append(tables.JoinAlike(x.Gate.Why), v.Effects...)
	}
	for i := range comparisons {
		v.Differences = append(v.Differences, newDifferenceView(x, &comparisons[i]))
	}
	for _, t := range plans {
		v.Tables = append(v.Tables, newTableView(x, t))
	}
	for i := range x.Charts {
		f, c := planned(x, i)
		v.Charts = append(v.Charts, append(f.drawn(c), f)[0]) // without a chart, it says what is missing
	}
	for _, one := range x.Variants {
		v.Variants = append(v.Variants, variantView{Name: one.Name, Values: valuesOf(one), Became: tables.Became(one, x.Repeat)})
	}
	v.LeftOut = tables.Some(x.LeftOut, "variant")
	for i, name := range phasesOf(comparisons) {
		v.Phases = append(v.Phases, newStudyPhase(s.Study, comparisons, name, fmt.Sprintf("%s-p%d", key, i+1)))
	}
	v.Runs = runsTable(s.Study, comparisons)
	v.RunFigures = repetitions(s.Study, comparisons)
	if first := baselineRun(s.Study); first != nil {
		v.Environment = environmentOf(first)
		if first.Environment.Hostname != "" {
			v.Machine = words.Machine(first)
		}
		v.Unlike = unlike(s.Study, first)
	}
	return v
}

// baselineRun returns the run that represents all where they are alike: the first of the baseline, or else of any variant; nil if there is none.
func baselineRun(s *timeline.Study) *run.Run {
	for _, r := range s.Runs {
		if r.Variant == s.Experiment.Baseline {
			return r
		}
	}
	if len(s.Runs) > 0 {
		return s.Runs[0]
	}
	return nil
}

// unlike says how the runs' environments differ from that of first.
func unlike(s *timeline.Study, first *run.Run) []string {
	var all []string
	want := environmentOf(first)
	for _, r := range s.Runs {
		for _, f := range environmentOf(r) {
			i := slices.IndexFunc(want, func(g words.Fact) bool { return g.Name == f.Name })
			if i >= 0 && slices.Equal(want[i].Text, f.Text) {
				continue
			}
			all = append(all, fmt.Sprintf("%s, repetition %d: %s is %s", r.Variant, r.Repetition, f.Name, strings.Join(f.Text, " ")))
		}
	}
	if more := len(all) - tables.MaxReasons; more > 0 {
		all = append(all[:tables.MaxReasons], "and "+quantity.Count(more, "other difference"))
	}
	return all
}

// phasesOf lists the phases compared.
func phasesOf(comparisons []tables.Comparison) (names []string) {
	for _, c := range comparisons {
		if name := c.Figures[0].Phase; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// valuesOf formats the values that a variant sets.
func valuesOf(v run.Variant) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(v.Values)) {
		parts = append(parts, name+" = "+v.Values[name])
	}
	return strings.Join(parts, ", ")
}

func newStudyPhase(s *timeline.Study, comparisons []tables.Comparison, name, key string) studyPhase {
	v := studyPhase{Key: key, Name: name, Class: string(run.Valid), Word: string(run.Valid)}
	worst := run.Valid
	metrics := map[string][]*tables.Comparison{}
	var ops []string
	for i := range comparisons {
		c := &comparisons[i]
		if c.Figures[0].Phase != name {
			continue
		}
		op := c.Figures[0].Op
		if metrics[op] == nil {
			ops = append(ops, op)
		}
		metrics[op] = append(metrics[op], c)
		for _, f := range c.Figures {
			if f.Validity == run.Invalid || worst == run.Valid && f.Validity != "" {
				worst = f.Validity
			}
		}
	}
	if worst != run.Valid {
		v.Class, v.Word = string(worst), strings.ToUpper(string(worst))
	}
	for _, f := range []struct {
		name string
		of   func(ph *run.Phase) string
	}{{"load", words.Load}, {"target", words.Target}, {"dataset", words.Dataset}} {
		v.Facts = append(v.Facts, words.Fact{Name: f.name, Text: said(s, name, f.of)})
	}
	for _, op := range ops {
		v.Ops = append(v.Ops, newStudyOp(s, op, metrics[op]))
	}
	v.Figures = overlays(s, name, ops)
	return v
}

// said returns what the runs say about a phase, joined if they say nearly the same; otherwise with the variants that say it.
func said(s *timeline.Study, phase string, of func(ph *run.Phase) string) []string {
	with := slices.DeleteFunc(slices.Clone(s.Runs), func(r *run.Run) bool { return r.Phase[phase] == nil })
	alikes := tables.Alikes(with, func(r *run.Run) string { return of(r.Phase[phase]) })
	all := make([]string, len(alikes))
	first := map[string]int{} // the first variant that says it
	for i, one := range alikes {
		var variants []string
		for _, v := range s.Experiment.Variants {
			if slices.ContainsFunc(one.Members, func(r *run.Run) bool { return r.Variant == v.Name }) {
				variants = append(variants, v.Name)
			}
		}
		all[i] = one.String()
		if len(alikes) > 1 {
			all[i] = tables.Some(variants, "variant") + ": " + all[i]
		}
		first[all[i]] = slices.IndexFunc(s.Experiment.Variants, func(v run.Variant) bool { return slices.Contains(variants, v.Name) })
	}
	slices.SortStableFunc(all, func(a, b string) int { return first[a] - first[b] })
	return all
}

func newStudyOp(s *timeline.Study, verb string, metrics []*tables.Comparison) studyOp {
	v := studyOp{Verb: verb}
	for _, c := range metrics {
		v.Tables = append(v.Tables, newTableView(s.Experiment, c.Table))
		f := forest(s.Experiment, c)
		if f == nil {
			continue
		}
		if c.Figures[0].Metric == "rate" {
			v.Forest = f
		}
		v.Forests = append(v.Forests, *f)
	}
	if len(metrics) > 0 {
		v.Sentences = sustained(s.Experiment, metrics[0])
	}
	return v
}

// runsTable lists the repetitions in the order they ran.
func runsTable(s *timeline.Study, comparisons []tables.Comparison) tableView {
	subjects := ratesCompared(comparisons)
	t := tableView{Head: []tables.Cell{{Text: "run"}, {Text: "variant"}, {Text: "repetition"}}, Words: true}
	for _, f := range subjects {
		t.Head = append(t.Head, tables.Cell{Text: nameOf(f) + " /s"})
	}
	t.Head = append(t.Head, tables.Cell{Text: "took"}, tables.Cell{Text: "exit code"}, tables.Cell{Text: "verdict and name"})
	for i, one := range s.Experiment.Runs {
		row := []tables.Cell{{Text: quantity.Thousands(i + 1)}, {Text: one.Variant}, {Text: quantity.Thousands(one.Repetition)}}
		for _, f := range subjects {
			rate, why, mark := rateOf(s, one, f)
			c := tables.Cell{Text: "–", Reason: why}
			if rate != nil {
				c = tables.Cell{Text: quantity.Whole(*rate) + mark}
			}
			row = append(row, c)
		}
		words := string(one.Verdict.Completeness) + ", " + string(one.Verdict.Validity) + " · " + one.ID
		if !one.Counts() {
			words = "does not count: " + words
		}
		t.Rows = append(t.Rows, append(row, tables.Cell{Text: quantity.Duration(one.Seconds)}, tables.Cell{Text: quantity.Thousands(one.ExitCode)}, tables.Cell{Text: words}))
	}
	return t
}

// rateOf returns a run's rate of an op, or why there is none.
func rateOf(s *timeline.Study, one run.ExperimentRun, f run.Figure) (rate *float64, why, doubt string) {
	at := slices.IndexFunc(s.Runs, func(r *run.Run) bool { return r.ID == one.ID })
	if at < 0 {
		return nil, "the run is not at hand", ""
	}
	ph := s.Runs[at].Phase[f.Phase]
	if ph == nil || ph.Op[f.Op] == nil {
		return nil, "the run did not get there", ""
	}
	path := "op." + f.Op + ".rate"
	return ph.Op[f.Op].Rate, ph.Nulls[path], words.Mark(ph, path)
}

// ratesCompared returns one figure of each op whose rate is compared.
func ratesCompared(comparisons []tables.Comparison) (all []run.Figure) {
	for _, c := range comparisons {
		if c.Figures[0].Metric == "rate" {
			all = append(all, c.Figures[0])
		}
	}
	return all
}
