package page

import (
	"bytes"
	"cmp"
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

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/live"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

//go:embed *.css *.js *.html
var parts embed.FS

// Write writes runs as one self-contained page: no script, font or picture from elsewhere. Its policy lets a browser use only its own style and its
// own script, and the page works without the script. All names and texts from plans, servers and workers are escaped, and none of them changes the
// writing direction. Figures have the digits of the text on a terminal.
func Write(w io.Writer, all []timeline.Source) error {
	v, err := newView("page.js")
	if err != nil {
		return err
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
		v.Articles = append(v.Articles, article{Run: newRunView(&all[i], key, false)})
		names = append(names, all[i].Run.Plan)
	}
	v.Title = strings.Join(slices.Compact(names), ", ")
	text, err := filled("page.html", v)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(w, live.Whole(text)); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// newView returns the frame of a page with these scripts, one after another.
func newView(scripts ...string) (v view, err error) {
	style, err := parts.ReadFile("page.css")
	if err != nil {
		return v, err
	}
	var script []byte
	for _, name := range scripts {
		text, err := parts.ReadFile(name)
		if err != nil {
			return v, err
		}
		script = append(script, text...)
	}
	v.Style, v.Script = template.CSS(style), template.JS(script)
	v.Policy = "default-src 'none'; style-src '" + source(style) + "'; script-src '" + source(script) + "'"
	return v, nil
}

// filled fills in a template. It removes characters that change the writing direction.
func filled(name string, with any) (string, error) {
	form, err := template.New("").Funcs(template.FuncMap{
		"observedHeads": func() []string { return observedHeads[:] },
	}).ParseFS(parts, "*.html")
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	if err := form.ExecuteTemplate(&b, name, with); err != nil {
		return "", fmt.Errorf("make report: %w", err)
	}
	return quantity.Plain(b.String()), nil
}

// wordsOf explains the page's abbreviations.
func wordsOf(all []timeline.Source) []words.Fact {
	list := []words.Fact{
		{Name: "?", Text: []string{"after a figure: SUSPECT. Quote it only with the reason, which is at the top."}},
		{Name: "!", Text: []string{"after a figure, or struck through: INVALID. Do not use it; the reason is at the top."}},
		{Name: "–", Text: []string{"no such figure: for a quantile, fewer than 10 samples lie beyond it; for any other, the reason is below."}},
		{Name: "response", Text: []string{"from when the op was due to its answer; service: from when it was sent; lag: from due to sent."}},
		{Name: "p99", Text: []string{"99 % of the ops took no longer; read from merged histograms, less than 0.8 % too high."}},
	}
	if slices.ContainsFunc(all, func(s timeline.Source) bool { return s.Study != nil }) {
		list = append(list,
			words.Fact{Name: "±", Text: []string{"half of the 95 % confidence interval of a mean."}},
			words.Fact{Name: "× and 95 %", Text: []string{"ratio to the baseline, of geometric means, and its confidence interval: unadjusted, as if it were the only one."}},
			words.Fact{Name: "spread", Text: []string{"between restarts: standard deviation of the repetitions' means, as a share."}},
			words.Fact{Name: "differs", Text: []string{"p (Holm) is below 0.05, and the whole interval is beyond what matters."}},
			words.Fact{Name: "MDE", Text: []string{"minimum detectable effect: a difference of this size would have been shown nine times in ten."}},
			words.Fact{Name: "p (Holm)", Text: []string{"of a test by round, adjusted for all comparisons of the experiment, since of many comparisons, some differ by chance."}},
		)
	}
	return list
}

// source identifies a text of the page in its policy (Content Security Policy Level 3, section 2.3.1).
func source(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// view holds the page's content.
type view struct {
	Title    string
	Style    template.CSS
	Script   template.JS
	Policy   string
	Live     bool // its content comes later
	Articles []article
	Words    []words.Fact
}

// article is a run or an experiment.
type article struct {
	Run   *runView
	Study *studyView
}

type runView struct {
	*run.Run
	Key         string // for this run's anchors in the page
	Over        string // the kind of page
	Facts       []string
	Machine     []string
	Answer      string // in a line, to what the plan asks
	Class       string // of the verdict
	Word        string
	Verdict     []string
	Reasons     []string // reasons for the run's end, and asserts that did not pass
	Doubts      []doubtView
	Phases      []phaseView
	Asserts     []assertView
	Workers     []words.Fact
	Losses      []string
	Environment []words.Fact
	Servers     []serverView
	PlanText    string
}

// doubtView is a reason for doubt, with the explanation of its code.
type doubtView struct {
	tables.Doubt
	Mark string
	More []string
}

func doubtsOf(doubts []tables.Doubt) (all []doubtView) {
	for _, d := range doubts {
		e, _ := words.Explain(d.Code)
		all = append(all, doubtView{d, d.Validity.Mark(), e.More})
	}
	return all
}

type assertView struct {
	Word, Class, Name, That string
	Why                     []string
}

type serverView struct {
	Name  string
	Facts []words.Fact
}

// newRunView returns the page's content for a run; soFar says that the run is in progress.
func newRunView(s *timeline.Source, key string, soFar bool) *runView {
	r := s.Run
	v := &runView{
		Run: r, Key: key, Over: "loadgen report", Facts: words.Facts(r), Verdict: words.Verdict(r),
		PlanText: indented(s.Plan),
	}
	if all := words.Answers(r); len(all) > 0 {
		v.Answer = all[0]
	}
	v.Reasons = words.Shortcomings(r, soFar)
	v.Doubts = doubtsOf(tables.Doubts(r))
	v.Class, v.Word = standingOf(r.Verdict)
	if soFar {
		v.Over, v.Verdict = "so far: the figures as if the run ended now", []string{words.Standing(r)}
	}
	if r.Environment.Hostname != "" {
		v.Machine = words.Machine(r)
	}
	measured := s.Detail.Phases(r)
	for i, name := range r.PhaseOrder {
		ph := newPhaseView(r.Phase[name], name, fmt.Sprintf("%s-p%d", key, i+1), measured[name])
		if r.Phase[name].Search != nil && strings.HasPrefix(v.Answer, ph.Sentences[0]) {
			ph.Sentences = ph.Sentences[1:] // the answer says it
		}
		v.Phases = append(v.Phases, ph)
	}
	for _, a := range r.Asserts {
		v.Asserts = append(v.Asserts, newAssertView(a, soFar))
	}
	for i := range r.Fleet {
		v.Workers = append(v.Workers, words.Fact{Name: r.Fleet[i].Name, Text: words.Worker(&r.Fleet[i])})
	}
	for i := range r.Losses {
		v.Losses = append(v.Losses, r.Losses[i].Worker+": "+r.Losses[i].Brief())
	}
	v.Environment = environmentOf(r)
	v.Servers = serversOf(r)
	return v
}

// standingOf returns the verdict in a word, and the class of its colour.
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

func newAssertView(a run.AssertResult, soFar bool) assertView {
	word, why := words.Outcome(a)
	if soFar && a.OK == nil { // whatever is missing may still come
		word, why = "open", nil
	}
	class := map[string]string{"pass": "valid", "FAIL": "invalid"}[word]
	return assertView{Word: word, Class: cmp.Or(class, "suspect"), Name: a.Name, That: a.That, Why: why}
}

func environmentOf(r *run.Run) []words.Fact {
	e := &r.Environment
	facts := []words.Fact{
		{Name: "host", Text: []string{e.Hostname}},
		{Name: "system", Text: []string{strings.TrimSpace(e.OS + " " + e.Kernel + " " + e.Arch)}},
		{Name: "CPU", Text: []string{e.CPUModel}},
		{Name: "CPUs", Text: []string{quantity.Thousands(e.CPUs)}},
		{Name: "governor", Text: []string{e.Governor}},
		{Name: "clock", Text: []string{e.ClockSource}},
		{Name: "Go", Text: []string{e.Go + ", GOMAXPROCS " + quantity.Thousands(e.GOMAXPROCS)}},
	}
	bytes := func(name string, n *int64) {
		if n != nil {
			facts = append(facts, words.Fact{Name: name, Text: []string{quantity.Bytes(*n)}})
		}
	}
	bytes("memory", e.MemoryBytes)
	bytes("memory limit", e.MemoryLimitBytes)
	if e.CgroupCPUs != nil {
		facts = append(facts, words.Fact{Name: "CPU limit", Text: []string{quantity.Digits(*e.CgroupCPUs)}})
	}
	if e.FDSoft != nil {
		facts = append(facts, words.Fact{Name: "open files", Text: []string{"at most " + quantity.Thousands(*e.FDSoft)}})
	}
	return slices.DeleteFunc(facts, func(f words.Fact) bool { return strings.Join(f.Text, "") == "" })
}

func serversOf(r *run.Run) []serverView {
	var all []serverView
	for _, target := range slices.Sorted(maps.Keys(r.Environment.Servers)) {
		for _, endpoint := range slices.Sorted(maps.Keys(r.Environment.Servers[target])) {
			said := r.Environment.Servers[target][endpoint]
			v := serverView{Name: target + " at " + endpoint}
			for _, name := range slices.Sorted(maps.Keys(said)) {
				v.Facts = append(v.Facts, words.Fact{Name: name, Text: []string{said[name]}})
			}
			if len(all) < maxRequests {
				all = append(all, v)
			}
		}
	}
	return all
}

// indented formats JSON for people; other text stays as it is.
func indented(b []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}
