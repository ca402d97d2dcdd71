package report

import (
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/chart"
	"github.com/loadgen/loadgen/internal/detail"
	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

type phaseView struct {
	Key, Name   string
	Class, Word string // of its validity
	Timed       bool
	Tiles       []tile
	Sentences   []string
	Reasons     []string
	Facts       []fact
	Ops         []opView
	Levels      []levelView
	Figures     []figure
	Observed    []observedView
	Requests    []run.Requests
	Cluster     bool // the target is one
	More        int  // endpoints that are not shown
}

// tile is a figure to be seen from afar.
type tile struct{ Name, Value, Doubt string }

type opView struct {
	Verb   string
	Shares template.HTML
	Facts  []string
	Rates  []string
	Rows   []latencyView
	Notes  []string // why figures are missing
}

type latencyView struct {
	Name  string
	Cells []gridCell
	Unit  string
}

// levelView is a row of the table of levels, for the page.
type levelView struct {
	Op, Word, Why, Doubt string
	Cells                [len(levelHeads)]string
}

func newPhaseView(ph *run.Phase, name, key string, st []*detail.Step) phaseView {
	v := phaseView{Key: key, Name: name, Class: string(ph.Validity), Word: string(ph.Validity)}
	for _, why := range ph.Reasons {
		v.Reasons = append(v.Reasons, marks[why.Validity]+" "+why.Text)
	}
	v.Timed = ph.Kind == string(run.Load)
	doubt := ""
	if ph.Validity != run.Valid {
		v.Word = strings.ToUpper(v.Word)
		doubt = v.Word
	}
	v.Tiles = tilesOf(ph, doubt)
	v.Sentences = sentencesOf(ph)
	v.Facts = phaseFacts(ph)
	for _, d := range doneIn(ph) {
		v.Ops = append(v.Ops, newOpView(ph, d))
	}
	v.Levels = levelsOf(ph)
	if v.Timed {
		v.Figures = figures(ph, st)
	}
	v.Observed = observedViews(ph)
	v.Cluster = inCluster(ph)
	var endpoints []string
	for _, r := range ph.Requests {
		if !slices.Contains(endpoints, r.Endpoint) {
			endpoints = append(endpoints, r.Endpoint)
		}
		if len(endpoints) <= maxRequests {
			v.Requests = append(v.Requests, r)
		}
	}
	v.More = max(len(endpoints)-maxRequests, 0)
	return v
}

// maxRequests bounds the endpoints of the page's tables.
const maxRequests = 100

// tilesOf are the rates of a phase: what was offered and what was sustained.
func tilesOf(ph *run.Phase, doubt string) []tile {
	var tiles []tile
	switch {
	case ph.Kind != string(run.Load):
	case ph.Search != nil && ph.Search.Rate != nil:
		holds := "holds"
		if ph.Search.FirstFailed == nil {
			holds += " at least"
		}
		if ph.ValidityOf("search") == run.Valid { // doubts about how long ops took are none about this
			doubt = ""
		}
		tiles = append(tiles, tile{holds, whole(*ph.Search.Rate) + "/s", doubt})
	case ph.OfferedRate != nil && ph.AchievedRate != nil:
		of := ""
		if len(ph.Scenario) > 0 {
			of = arrivals(ph) + " "
		}
		tiles = append(tiles, tile{of + "offered", whole(*ph.OfferedRate) + "/s", ""}, tile{of + "sustained", whole(*ph.AchievedRate) + "/s", doubt})
	case ph.Model == "closed":
		for _, verb := range verbs(ph.Op) {
			if o := ph.Op[verb]; o.Rate != nil {
				tiles = append(tiles, tile{verb + ", sustained", whole(*o.Rate) + "/s", doubt})
				if o.Batched() && o.Keys.Rate != nil {
					tiles = append(tiles, tile{"keys of " + verb, whole(*o.Keys.Rate) + "/s", doubt})
				}
			}
		}
	}
	return tiles
}

// sentencesOf says in plain words what a phase has come to.
func sentencesOf(ph *run.Phase) []string {
	var all []string
	if ph.Search != nil {
		all = append(all, foundOf(ph, ph.Search))
	}
	for _, verb := range verbs(ph.Op) {
		o := ph.Op[verb]
		if ph.Kind != string(run.Load) {
			all = append(all, verb+": "+ledger(&o.Ledger)+", untimed, in "+quantity.Duration(ph.Seconds))
			continue
		}
		if why := ph.Nulls["op."+verb+".rate"]; o.Rate == nil && ph.Model == "closed" {
			all = append(all, "There is no rate of "+verb+": "+why+".")
		}
		all = append(all, latencySentence(plural(o.Response.Count, verb)+" answered", &o.Response))
	}
	for _, name := range slices.Sorted(maps.Keys(ph.Scenario)) {
		if s := ph.Scenario[name]; len(s.Steps) > 1 {
			all = append(all, latencySentence("Scenario "+name+", "+plural(s.Response.Count, "time"), &s.Response))
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// noBreak stands between a number and its unit where a line may end.
const noBreak = "\u00a0"

// latencySentence says of something that was done how long it took; "" when that is not known.
func latencySentence(done string, l *run.Latency) string {
	var parts []string
	for _, q := range []struct {
		v    *float64
		text string
	}{{l.P50, "half of them within "}, {l.P99, "99 % within "}, {l.P999, "99.9 % within "}, {l.Max, "the slowest after "}} {
		if q.v != nil {
			parts = append(parts, q.text+strings.ReplaceAll(quantity.Duration(*q.v), " ", noBreak))
		}
	}
	if parts == nil {
		return ""
	}
	return done + ": " + strings.Join(parts, ", ") + "."
}

func phaseFacts(ph *run.Phase) []fact {
	facts := []fact{{"load", []string{loadOf(ph) + "; took " + quantity.Duration(ph.Seconds)}}, {"target", []string{targetOf(ph)}}, {"dataset", []string{datasetOf(ph)}}}
	if trace := traceOf(ph); trace != nil {
		facts = append(facts, fact{"trace", trace})
	}
	if ph.Setup != nil {
		var text []string
		for _, verb := range verbs(ph.Setup.Op) {
			text = append(text, verb+": "+ledger(&ph.Setup.Op[verb].Ledger)+", untimed")
		}
		facts = append(facts, fact{"setup", text})
	}
	facts = append(facts, logFacts(ph)...)
	if ph.Search != nil {
		facts = append(facts, fact{"found", []string{foundOf(ph, ph.Search)}})
	}
	if steady := steadyOf(ph); steady != nil {
		facts = append(facts, fact{"steady", steady})
	}
	if ph.Generator.Executor != "" {
		facts = append(facts, fact{"generator", append(generatorOf(ph), oddOf(ph)...)})
	}
	if note := noteOn(ph); note != "" {
		facts = append(facts, fact{"note", []string{note}})
	}
	for _, e := range ph.Errors {
		facts = append(facts, fact{"error", []string{"“" + e.Text + "” × " + count(e.Count)}})
	}
	return facts
}

func newOpView(ph *run.Phase, o done) opView {
	v := opView{Verb: o.name, Facts: slices.Concat([]string{ledger(&o.Ledger)}, keys(ph, o)), Rates: rates(ph, o)}
	if o.steps != "" {
		v.Verb = "scenario " + o.name
		v.Facts = append([]string{o.steps}, v.Facts...)
	}
	if causes := causes(ph, o.Causes); causes != "" {
		v.Facts = append(v.Facts, "caused by "+causes)
	}
	if volume := volume(ph, o); volume != nil {
		v.Facts = append(v.Facts, strings.Join(volume, " · "))
	}
	v.Shares = template.HTML(chart.Shares("outcomes of "+v.Verb, []chart.Share{
		{Name: count(o.OK) + " ok", Class: "c0", N: float64(o.OK)},
		{Name: count(o.Miss) + " miss", Class: "c2", N: float64(o.Miss)},
		{Name: count(o.Conflict) + " conflict", Class: "c3", N: float64(o.Conflict)},
		{Name: count(o.QuorumFailed) + " quorum failed", Class: "c1", N: float64(o.QuorumFailed)},
		{Name: count(o.Timeout) + " timeout", Class: "bad", N: float64(o.Timeout)},
		{Name: count(o.Error) + " error", Class: "bad", N: float64(o.Error)},
		{Name: count(o.Shed) + " shed", Class: "offered", N: float64(o.Shed)},
	}))
	var missing, whys []string
	for _, r := range rowsOf(o) {
		if r.l.Count == 0 {
			continue
		}
		v.Rows = append(v.Rows, newLatencyView(ph, r))
		for i, c := range r.cells(ph, unitOf(r.l)) {
			if c.why != "" {
				missing, whys = append(missing, strings.TrimSpace(r.label)+" "+latencyHeads[i]), append(whys, c.why)
			}
		}
	}
	v.Notes = missingNotes(missing, whys)
	return v
}

func newLatencyView(ph *run.Phase, r row) latencyView {
	u := unitOf(r.l)
	v := latencyView{Name: strings.TrimSpace(r.label), Unit: u.name}
	for _, c := range r.cells(ph, u) {
		v.Cells = append(v.Cells, gridCell{c.text + c.doubt, c.why})
	}
	return v
}

// textsOf are the words of reasons.
func textsOf(reasons []run.Reason) []string {
	var texts []string
	for _, why := range reasons {
		texts = append(texts, why.Text)
	}
	return texts
}

func levelsOf(ph *run.Phase) (views []levelView) {
	for _, row := range levelRows(ph) {
		views = append(views, levelView{row.op, row.word, row.why, row.doubt, row.cells})
	}
	return views
}
