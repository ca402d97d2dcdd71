package tables

import (
	"regexp"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Doubt is a reason for doubt, wherever in a run it stands.
type Doubt struct {
	Validity run.Validity // the worst; "" if it is not known
	Code     string       // "" in results of an older form
	Means    string       // in a sentence; "" without a code
	Facts    []string     // what was measured, and where
}

// Line returns the doubt in a line: what its code means, what was measured, and the code. A longer line than so many columns ends in …, unless there is
// room for any: 0.
func (d Doubt) Line(columns int) (line string, whole bool) {
	text, code := strings.Join(d.Facts, "; "), ""
	if d.Means != "" {
		text, code = strings.TrimSuffix(strings.TrimSuffix(d.Means, ".")+": "+text, ": "), " ["+d.Code+"]"
	}
	if runes, room := []rune(text), columns-len(code); columns > 0 && len(runes) > room {
		return string(runes[:room-1]) + "…" + code, false
	}
	return text + code, true
}

// seen is a reason at a place, in a run of an experiment if it is of one.
type seen struct {
	place string // phase or stage; "" for the only one
	op    string // "" for all ops
	text  string
	run   *run.ExperimentRun
}

// DoubtsOf lists the reasons of an experiment's runs, including those for their end and for asserts that do not hold, and the experiment's own
// reasons. A reason that several runs share is listed once.
func DoubtsOf(x *run.Experiment) (own []string, all []Doubt) {
	own = JoinAlike(x.Own())
	if len(x.Own()) == len(x.Verdict.Reasons) { // an older form does not say which reasons belong to runs
		return own, nil
	}
	ops := map[string]bool{}
	for _, f := range x.Figures {
		ops[f.Op] = true
	}
	g := &doubts{x: x}
	for i := range x.Runs {
		r := &x.Runs[i]
		for j, text := range r.Verdict.Reasons {
			code := ""
			if j < len(r.Verdict.Codes) {
				code = string(r.Verdict.Codes[j])
			}
			place, rest, ok := strings.Cut(text, ": ")
			if !ok || !strings.HasPrefix(place, "phase ") {
				place, rest = "", text
			}
			s := seen{place: strings.TrimPrefix(place, "phase "), text: rest, run: r}
			if op, after, ok := strings.Cut(rest, ": "); ok && ops[op] {
				s.op, s.text = op, after
			}
			g.add("", code, s)
		}
	}
	return own, g.list()
}

// Doubts lists the reasons for doubt in a run, the worst first. A reason that several phases, levels or ops share is listed once.
func Doubts(r *run.Run) []Doubt {
	g := &doubts{}
	for _, name := range r.PhaseOrder {
		ph := r.Phase[name]
		for _, why := range ph.Reasons {
			if r.EndedBy(&why) {
				continue // the reason for the run's end says it
			}
			s := placeOf(ph, why.Text)
			if ph.Answers(why) {
				s.text = ""
			}
			if Loads(r) > 1 || !ph.Kind.Timed() {
				s.place = strings.TrimSuffix(name+" "+s.place, " ")
			}
			g.add(why.Validity, string(why.Code), s)
		}
	}
	return g.list()
}

// Loads counts the loads of a run.
func Loads(r *run.Run) (n int) {
	for _, ph := range r.Phase {
		if ph.Kind.Timed() {
			n++
		}
	}
	return n
}

// stage is how reasons of a stage begin: with its number and rate.
var stage = regexp.MustCompile(`^(stage \d+), [^:]*: `)

// placeOf splits off where in its phase a reason arose: its stage, and its op.
func placeOf(ph *run.Phase, text string) (s seen) {
	s.text = text
	if m := stage.FindStringSubmatch(text); m != nil && len(ph.Levels) > 0 {
		s.place, s.text = m[1], text[len(m[0]):]
	}
	if op, after, ok := strings.Cut(s.text, ": "); ok && (ph.Op[op] != nil || ph.Scenario[strings.TrimPrefix(op, "scenario ")] != nil) {
		s.op, s.text = op, after
	}
	return s
}

// doubts collects reasons by code.
type doubts struct {
	x    *run.Experiment // nil for a run
	all  []Doubt
	seen [][]seen // of each
}

func (g *doubts) add(v run.Validity, code string, s seen) {
	i := slices.IndexFunc(g.all, func(d Doubt) bool { return code != "" && d.Code == code })
	if i < 0 {
		i = len(g.all)
		e, _ := words.Explain(code)
		g.all, g.seen = append(g.all, Doubt{Code: code, Means: e.Means, Validity: v}), append(g.seen, nil)
	}
	g.all[i].Validity = g.all[i].Validity.And(v)
	g.seen[i] = append(g.seen[i], s)
}

// list returns the doubts with their facts, the worst first.
func (g *doubts) list() []Doubt {
	for i := range g.all {
		g.all[i].Facts = g.together(g.seen[i])
	}
	slices.SortStableFunc(g.all, func(a, b Doubt) int {
		switch {
		case a.Validity.Worse(b.Validity):
			return -1
		case b.Validity.Worse(a.Validity):
			return 1
		}
		return 0
	})
	return g.all
}

// together joins texts that differ only in their numbers, behind the places where they stand.
func (g *doubts) together(all []seen) (facts []string) {
	for _, one := range Alikes(all, func(s seen) string { return s.text }) {
		text := one.String()
		if at := placesOf(one.Members); at != "" && text != "" {
			text = at + ": " + text
		} else if text == "" {
			text = at
		}
		if g.x != nil {
			text = g.runs(one.Members) + ", " + text
		}
		if text != "" {
			facts = append(facts, text)
		}
	}
	return facts
}

// runs names the runs of some reasons.
func (g *doubts) runs(all []seen) string {
	var runs []run.ExperimentRun
	for _, s := range all {
		if !slices.ContainsFunc(runs, func(r run.ExperimentRun) bool { return r.ID == s.run.ID }) {
			runs = append(runs, *s.run)
		}
	}
	if len(runs) == len(g.x.Runs) && len(runs) > 1 {
		return "all " + quantity.Count(len(runs), "run")
	}
	return ofRuns(g.x, runs)
}

// placesOf names the places of some reasons: ops stand behind the phases and stages that share them.
func placesOf(all []seen) string {
	var places []string
	ops := map[string][]string{} // by place
	for _, s := range all {
		if _, known := ops[s.place]; !known {
			places, ops[s.place] = append(places, s.place), nil
		}
		if s.op != "" && !slices.Contains(ops[s.place], s.op) {
			ops[s.place] = append(ops[s.place], s.op)
		}
	}
	var texts []string
	for len(places) > 0 {
		of := ops[places[0]]
		together := slices.DeleteFunc(slices.Clone(places), func(at string) bool { return !slices.Equal(ops[at], of) })
		places = slices.DeleteFunc(places, func(at string) bool { return slices.Contains(together, at) })
		comma := ""
		if len(together) > 1 && len(of) > 0 {
			comma = ","
		}
		texts = append(texts, strings.TrimSpace(named(together)+comma+" "+named(of)))
	}
	return strings.Join(texts, "; ")
}

// named lists places, or the first of them if there are many.
func named(places []string) string {
	if more := len(places) - maxPlaces; more > 0 {
		return strings.Join(places[:maxPlaces], ", ") + " and " + quantity.Count(more, "more place")
	}
	if len(places) == 2 {
		return places[0] + " and " + places[1]
	}
	return strings.Join(places, ", ")
}
