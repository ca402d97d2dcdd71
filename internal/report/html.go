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

	"github.com/loadgen/loadgen/internal/detail"
	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

//go:embed page
var parts embed.FS

// HTML writes runs as one page that needs nothing else: no script, font or picture from elsewhere. Its own style and its script, which
// the page does without, are the only ones that its policy lets a browser take; all names and texts from plans, servers and workers are
// escaped. Figures are in the digits of [Text].
func HTML(w io.Writer, all []detail.Source) error {
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
func wordsOf(all []detail.Source) []fact {
	words := []fact{
		{"?", []string{"behind a figure: SUSPECT. Quote it with the reason only, which stands at its phase."}},
		{"!", []string{"behind a figure, or struck through: INVALID. Do not use it; the reason stands at its phase."}},
		{"–", []string{"there is no such figure: of a quantile, fewer than 10 samples lie beyond it; elsewhere the reason stands below."}},
		{"response", []string{"from when the op was due to its answer; service: from when it was sent; lag: from due to sent."}},
		{"p99", []string{"99 % of the ops took no longer; read from merged histograms, less than 0.8 % too high."}},
	}
	if slices.ContainsFunc(all, func(s detail.Source) bool { return s.Study != nil }) {
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

func newRunView(s *detail.Source, key string) *runView {
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
	measured := s.Detail.Phases(r)
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
		facts = append(facts, fact{"CPU limit", []string{quantity.Digits(*e.CgroupCPUs)}})
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
