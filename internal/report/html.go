package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/chart"
	"github.com/loadgen/loadgen/internal/run"
)

//go:embed page
var parts embed.FS

// HTML writes runs as one page that needs nothing else: no script, font or picture from elsewhere. Its own style and its script, which
// the page does without, are the only ones that its policy lets a browser take; all names and texts from plans, servers and workers are
// escaped. Figures are in the digits of [Text].
func HTML(w io.Writer, all []Source) error {
	style, err := parts.ReadFile("page/page.css")
	if err != nil {
		return err
	}
	script, err := parts.ReadFile("page/page.js")
	if err != nil {
		return err
	}
	form, err := template.New("").Funcs(template.FuncMap{
		"observedHeads": func() []string { return observedHeads[:] },
		"levelHeads":    func() []string { return levelHeads[:] },
	}).ParseFS(parts, "page/*.html")
	if err != nil {
		return err
	}
	v := view{
		Style: template.CSS(style), Script: template.JS(script),
		Policy: "default-src 'none'; style-src '" + source(style) + "'; script-src '" + source(script) + "'",
	}
	v.Words = wordsOf(all)
	var names []string
	for i := range all {
		key := fmt.Sprintf("r%d", i+1)
		if s := all[i].Study; s != nil {
			v.Articles = append(v.Articles, article{Study: newStudyView(&all[i], key)})
			names = append(names, s.Experiment.Plan)
			continue
		}
		v.Articles = append(v.Articles, article{Run: newRunView(&all[i], key)})
		names = append(names, all[i].Run.Plan)
	}
	v.Title = strings.Join(slices.Compact(names), ", ")
	var b bytes.Buffer
	if err := form.ExecuteTemplate(&b, "page.html", v); err != nil {
		return fmt.Errorf("make report: %w", err)
	}
	if _, err := b.WriteTo(w); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// wordsOf explains what the page says shortly.
func wordsOf(all []Source) []fact {
	words := []fact{
		{"?", []string{"behind a figure: SUSPECT. Quote it with the reason only, which stands at its phase."}},
		{"!", []string{"behind a figure, or struck through: INVALID. Do not use it; the reason stands at its phase."}},
		{"–", []string{"there is no such figure: of a quantile, fewer than 10 samples lie beyond it; elsewhere the reason stands below."}},
		{"response", []string{"from when the op was due to its answer; service: from when it was sent; lag: from due to sent."}},
		{"p99", []string{"99 % of the ops took no longer; read from merged histograms, less than 0.8 % too high."}},
	}
	if slices.ContainsFunc(all, func(s Source) bool { return s.Study != nil }) {
		words = append(words,
			fact{"±", []string{"half of the 99.9 % confidence interval of a mean."}},
			fact{"× and 95 % CI", []string{"ratio to the baseline, of geometric means, and its confidence interval."}},
			fact{"spread", []string{"between restarts: standard deviation of the repetitions' means, as a share."}},
			fact{"differs", []string{"the interval excludes 1, the ratio is further from 1 than restarts explain, and p (Holm) is below 0.05."}},
			fact{"MDE", []string{"minimum detectable effect: a difference of this size would have been shown nine times in ten."}},
			fact{"p (Holm)", []string{"of Welch's t test, adjusted for all comparisons of the experiment: the more there are, the more of them differ by chance."}},
		)
	}
	return words
}

// source names a text of the page in its policy (Content Security Policy Level 3, section 2.3.1).
func source(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// view is what the page shows.
type view struct {
	Title    string
	Style    template.CSS
	Script   template.JS
	Policy   string
	Articles []article
	Words    []fact
}

// article is a run or an experiment.
type article struct {
	Run   *runView
	Study *studyView
}

type runView struct {
	Key           string // of this run's places in the page
	Plan, ID      string
	Facts         []string
	Machine       []string
	Class         string // of the verdict
	Word          string
	Verdict       []string
	Reasons       []string
	MoreReasons   []string
	Phases        []phaseView
	Asserts       []assertView
	Workers       []fact
	Losses        []string
	Environment   []fact
	Servers       []serverView
	PlanText      string
	WithoutDetail bool

	Variant, Experiment string // that it is of; "": none
	Repetition          int
}

// fact is a name and what is to be said under it.
type fact struct {
	Name string
	Text []string
}

type assertView struct {
	Word, Class, Name, That string
	Why                     []string
}

type serverView struct {
	Name  string
	Facts []fact
}

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

func newRunView(s *Source, key string) *runView {
	r := s.Run
	v := &runView{
		Key: key, Plan: r.Plan, ID: r.ID, Facts: factsOf(r), Verdict: verdictOf(r),
		WithoutDetail: s.Detail == nil,
	}
	v.Reasons = r.Verdict.Reasons[:min(len(r.Verdict.Reasons), maxReasons)]
	v.MoreReasons = r.Verdict.Reasons[len(v.Reasons):]
	v.Class, v.Word = standingOf(r.Verdict)
	v.Variant, v.Experiment, v.Repetition = r.Variant, r.Experiment, r.Repetition
	if r.Environment.Hostname != "" {
		v.Machine = machineOf(&r.Environment)
	}
	measured := s.Detail.of(r)
	for i, name := range r.PhaseOrder {
		v.Phases = append(v.Phases, newPhaseView(r.Phase[name], name, fmt.Sprintf("%s-p%d", key, i+1), measured[name]))
	}
	for _, a := range r.Asserts {
		v.Asserts = append(v.Asserts, newAssertView(a))
	}
	for i := range r.Fleet {
		v.Workers = append(v.Workers, fact{r.Fleet[i].Name, workerOf(&r.Fleet[i])})
	}
	for i := range r.Losses {
		v.Losses = append(v.Losses, r.Losses[i].Worker+": "+lossOf(&r.Losses[i]))
	}
	v.Environment = environmentOf(&r.Environment)
	v.Servers = serversOf(&r.Environment)
	v.PlanText = indented(s.Plan)
	return v
}

// standingOf is the verdict in a word, and the class of its colour.
func standingOf(v run.Verdict) (class, word string) {
	switch {
	case v.Completeness == run.Failed:
		return "invalid", "Failed"
	case v.Completeness == run.Aborted:
		return "invalid", "Aborted"
	case v.Validity == run.Invalid:
		return "invalid", "No"
	case v.Completeness == run.Degraded, v.Completeness == run.Capped:
		return "suspect", "In part"
	case v.Validity == run.Suspect:
		return "suspect", "With care"
	}
	return "valid", "Yes"
}

func newAssertView(a run.AssertResult) assertView {
	v := assertView{Word: "pass", Class: "valid", Name: a.Name, That: a.That}
	if !passed(a) {
		v.Word, v.Class = "FAIL", "invalid"
	}
	for _, why := range []string{a.Value, a.Reason} {
		if why != "" {
			v.Why = append(v.Why, why)
		}
	}
	return v
}

func newPhaseView(ph *run.Phase, name, key string, st []*steps) phaseView {
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
			all = append(all, verb+": "+ledger(&o.Ledger)+", untimed, in "+duration(ph.Seconds))
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

// latencySentence says of something that was done how long it took; "" when that is not known.
func latencySentence(done string, l *run.Latency) string {
	var parts []string
	for _, q := range []struct {
		v    *float64
		text string
	}{{l.P50, "half of them within "}, {l.P99, "99 % within "}, {l.P999, "99.9 % within "}, {l.Max, "the slowest after "}} {
		if q.v != nil {
			parts = append(parts, q.text+duration(*q.v))
		}
	}
	if parts == nil {
		return ""
	}
	return done + ": " + strings.Join(parts, ", ") + "."
}

func phaseFacts(ph *run.Phase) []fact {
	facts := []fact{{"load", []string{loadOf(ph) + "; took " + duration(ph.Seconds)}}, {"target", []string{targetOf(ph)}}, {"dataset", []string{datasetOf(ph)}}}
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

func environmentOf(e *run.Environment) []fact {
	facts := []fact{
		{"host", []string{e.Hostname}},
		{"system", []string{strings.TrimSpace(e.OS + " " + e.Kernel + " " + e.Arch)}},
		{"CPU", []string{e.CPUModel}},
		{"CPUs", []string{count(e.CPUs)}},
		{"governor", []string{e.Governor}},
		{"clock", []string{e.ClockSource}},
		{"Go", []string{e.Go + ", GOMAXPROCS " + count(e.GOMAXPROCS)}},
	}
	bytes := func(name string, n *int64) {
		if n != nil {
			facts = append(facts, fact{name, []string{size(*n)}})
		}
	}
	bytes("memory", e.MemoryBytes)
	bytes("memory limit", e.MemoryLimitBytes)
	if e.CgroupCPUs != nil {
		facts = append(facts, fact{"CPU limit", []string{digits(*e.CgroupCPUs)}})
	}
	if e.FDSoft != nil {
		facts = append(facts, fact{"open files", []string{"at most " + count(*e.FDSoft)}})
	}
	return slices.DeleteFunc(facts, func(f fact) bool { return strings.Join(f.Text, "") == "" })
}

func serversOf(e *run.Environment) []serverView {
	var all []serverView
	for _, target := range slices.Sorted(maps.Keys(e.Servers)) {
		for _, endpoint := range slices.Sorted(maps.Keys(e.Servers[target])) {
			said := e.Servers[target][endpoint]
			v := serverView{Name: target + " at " + endpoint}
			for _, name := range slices.Sorted(maps.Keys(said)) {
				v.Facts = append(v.Facts, fact{name, []string{said[name]}})
			}
			if len(all) < maxRequests {
				all = append(all, v)
			}
		}
	}
	return all
}

// indented is JSON for people; what is none is shown as it is.
func indented(b []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}
