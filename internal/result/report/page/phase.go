package page

import (
	"html/template"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/report/chart"
	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
)

type phaseView struct {
	Key, Name   string
	Class, Word string // of its validity
	Timed       bool
	Tiles       []tile
	Sentences   []string
	Facts       []words.Fact
	Ops         []opView
	Levels      []levelView
	MoreLevels  []levelView // other tries of a search, by rate
	Lead        []figure    // the chart with the answer, on the first screen: rate against latency, of a search or of stages
	Figures     []figure
	Observed    []observedView
	Requests    []run.Requests
	Counted     []run.Counted
	Away        string // which connections were away, and for how long
	Cluster     bool   // the target is a cluster
	More        int    // number of endpoints not shown
}

// tile is a prominently shown figure.
type tile struct{ Name, Value, Doubt string }

type opView struct {
	Verb   string
	Shares template.HTML
	Facts  []string
	Heads  []string // of Rows
	Rows   []latencyView
	Notes  []string // why figures are missing
}

type latencyView struct {
	Name  string
	Cells []tables.Cell
	Unit  string
}

// levelView is a row of the table of levels, for the page.
type levelView struct {
	words.Level
	Heads words.LevelCells
}

func newPhaseView(ph *run.Phase, name, key string, st []*timeline.Step) phaseView {
	v := phaseView{Key: key, Name: name, Class: string(ph.Validity), Word: string(ph.Validity)}
	v.Timed = ph.Kind.Timed()
	doubt := ""
	if ph.Validity != run.Valid {
		v.Word = strings.ToUpper(v.Word)
		doubt = v.Word
	}
	v.Tiles = tilesOf(ph, doubt)
	v.Sentences = sentencesOf(ph)
	v.Facts = phaseFacts(ph)
	for _, d := range words.DoneIn(ph) {
		v.Ops = append(v.Ops, newOpView(d))
	}
	if facts, rows := words.Connections(ph); facts != nil {
		c := opView{Verb: "connections", Facts: facts}
		c.tabulate(rows)
		v.Ops = append(v.Ops, c)
	}
	v.Levels, v.MoreLevels = levelsOf(ph)
	f, c := levelChart(ph)
	v.Lead = f.drawn(c)
	if v.Timed {
		v.Figures = figures(ph, st)
	}
	v.Observed = observedViews(ph)
	v.Cluster = ph.Target.InCluster()
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
	v.Counted = ph.Counted
	v.Away = strings.Join(words.Away(ph, maxRequests), "; ")
	return v
}

// maxRequests bounds the endpoints in the page's tables.
const maxRequests = 100

// tilesOf returns the rates of a phase: offered and sustained.
func tilesOf(ph *run.Phase, doubt string) []tile {
	var tiles []tile
	switch {
	case !ph.Kind.Timed():
	case ph.Search != nil && ph.Search.Rate != nil:
		holds := "holds"
		if ph.Search.FirstFailed == nil {
			holds += " at least"
		}
		if ph.ValidityOf("search") == run.Valid { // doubts about latencies do not affect this
			doubt = ""
		}
		tiles = append(tiles, tile{holds, quantity.Whole(*ph.Search.Rate) + "/s", doubt})
	case ph.OfferedRate != nil && ph.AchievedRate != nil:
		of := ""
		if len(ph.Scenario) > 0 {
			of = words.Arrivals(ph) + " "
		}
		tiles = append(tiles, tile{of + "offered", quantity.Whole(*ph.OfferedRate) + "/s", ""}, tile{of + "sustained", quantity.Whole(*ph.AchievedRate) + "/s", doubt})
	case ph.Closed():
		for _, verb := range ph.Verbs() {
			if o := ph.Op[verb]; o.Rate != nil {
				tiles = append(tiles, tile{verb + ", sustained", quantity.Whole(*o.Rate) + "/s", doubt})
				if o.Batched() && o.Keys.Rate != nil {
					tiles = append(tiles, tile{"keys of " + verb, quantity.Whole(*o.Keys.Rate) + "/s", doubt})
				}
			}
		}
		if all := ph.Total; all != nil && all.Rate != nil && len(tiles) > 1 {
			tiles = append(tiles, tile{"total, sustained", quantity.Whole(*all.Rate) + "/s", doubt})
		}
	}
	return tiles
}

// sentencesOf says in plain words what a phase achieved.
func sentencesOf(ph *run.Phase) []string {
	var all []string
	if ph.Search != nil {
		all = append(all, words.Found(ph)...)
	} else if len(ph.Levels) > 0 && !ph.Closed() {
		all = append(all, words.Course(ph)...)
	}
	for _, verb := range ph.Verbs() {
		o := ph.Op[verb]
		if !ph.Kind.Timed() {
			all = append(all, verb+": "+words.Ledger(&o.Ledger)+", untimed, in "+quantity.Duration(ph.Seconds))
			continue
		}
		if why := ph.Nulls["op."+verb+".rate"]; o.Rate == nil && ph.Closed() {
			all = append(all, "There is no rate of "+verb+": "+why+".")
		}
		all = append(all, latencySentence(ph, "op."+verb, quantity.Count(o.Response.Count, verb)+" answered", &o.Response))
	}
	for _, verb := range ph.Apart() {
		all = append(all, "There are no figures of "+verb+": "+ph.Nulls["op."+verb]+".")
	}
	for _, name := range slices.Sorted(maps.Keys(ph.Scenario)) {
		if s := ph.Scenario[name]; len(s.Steps) > 1 {
			all = append(all, latencySentence(ph, "scenario."+name, "Scenario "+name+", "+quantity.Count(s.Response.Count, "time"), &s.Response))
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// noBreak separates a number and its unit where a line may wrap.
const noBreak = "\u00a0"

// latencySentence says how long an op at a path took, with the marks of doubtful figures; "" if that is unknown.
func latencySentence(ph *run.Phase, at, done string, l *run.Latency) string {
	var parts []string
	for _, q := range []struct {
		name string
		v    *float64
		text string
	}{{"p50", l.P50, "half of them within "}, {"p99", l.P99, "99 % within "}, {"p999", l.P999, "99.9 % within "}, {"max", l.Max, "the slowest after "}} {
		if q.v != nil {
			parts = append(parts, q.text+strings.ReplaceAll(quantity.Duration(*q.v), " ", noBreak)+words.Mark(ph, at+".response."+q.name))
		}
	}
	if parts == nil {
		return ""
	}
	return done + ": " + strings.Join(parts, ", ") + "."
}

func phaseFacts(ph *run.Phase) []words.Fact {
	found := []words.Fact{}
	if ph.Search != nil {
		found = append(found, words.Fact{Name: "found", Text: words.Found(ph), Sep: ", "})
	}
	return slices.Concat(words.About(ph), found, words.Noted(ph), words.Generated(ph), words.Beside(ph))
}

func newOpView(o words.Done) opView {
	v := opView{Verb: o.Name}
	if o.Sequence != "" {
		v.Verb = "scenario " + o.Name
	}
	for _, f := range o.Told() {
		v.Facts = append(v.Facts, f.Text...)
	}
	v.Facts = append(v.Facts, o.Grown()...)
	classes := map[string]string{"ok": "c0", "miss": "c2", "conflict": "c3", "quorum_failed": "c1", "timeout": "bad", "error": "bad", "shed": "offered"}
	var shares []chart.Share
	for _, m := range metric.Ledger() {
		if class, ended := classes[m.Name]; ended {
			n := *m.Value(&o.Ledger)
			shares = append(shares, chart.Share{Name: quantity.Thousands(uint64(n)) + " " + m.Words(), Class: class, N: n})
		}
	}
	v.Shares = template.HTML(chart.Shares("outcomes of "+v.Verb, shares))
	v.tabulate(o.Rows())
	return v
}

// tabulate makes the table of latencies.
func (v *opView) tabulate(rows []words.Row) {
	var missing []tables.Missed
	for _, r := range rows {
		v.Heads = r.Heads()
		row := latencyView{Name: strings.TrimSpace(r.Label), Unit: r.Unit()}
		for i, c := range r.Cells() {
			row.Cells = append(row.Cells, tables.Cell{Text: c.Text + c.Doubt, Reason: c.Why})
			if c.Why != "" {
				missing = append(missing, tables.Missed{Place: row.Name + " " + v.Heads[i], Reason: c.Why})
			}
		}
		v.Rows = append(v.Rows, row)
	}
	v.Notes = tables.Missing(missing)
}

func levelsOf(ph *run.Phase) (shown, folded []levelView) {
	failed, last := false, ""
	for _, row := range words.Levels(ph) {
		view := levelView{row, words.LevelHeads(ph)}
		lowest := row.Why != "" && !failed // by rate: the lowest that did not hold
		failed = failed || row.Why != ""
		if ph.Search == nil || lowest || strings.ContainsAny(row.Word, "◄,") { // the answer, the knee
			shown = append(shown, view)
			continue
		}
		if view.Cells[0] == last {
			view.Cells[0] = ""
		} else {
			last = view.Cells[0]
		}
		folded = append(folded, view)
	}
	return shown, folded
}
