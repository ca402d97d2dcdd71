package metric

import (
	"cmp"
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Of describes a number of T that reports show, plans compare and databases keep. The lists below hold each number once.
type Of[T any] struct {
	entry
	place place
	Only  func(*T) bool // whether it adds something to the other metrics of a T; nil if it always does
	known func(*T) bool // whether it is available, besides that the JSON is not null; nil if it always is
}

// entry is a line of metrics.tsv (see the package comment).
type entry struct {
	Name     string // its path in the JSON of T
	Unit     string // "ops", "ops/s", "s", "bytes", …; "share" is from 0 to 1
	Kind     Kind
	Compared Compared // whether experiments compare variants by it
	Line     Line     // the line of a report's text that quotes it
	Text     string   // the text after it there
	Title    string   // its name in a sentence, if that is not Name in plain words
	Says     string   // its meaning, for loadgen explain
}

// Kind says how a metric of several ops is computed from those of each op.
type Kind int

const (
	Count Kind = iota // a number or an amount: the sum
	Rate              // per second or minute: the sum
	Time              // seconds: from the samples of all ops together, never from their quantiles
	Share             // from 0 to 1: the quotient of two counts, each of which is summed
)

// Line is a place in a report's text.
type Line int

const (
	NoLine     Line = iota // not in a line of the text
	RateLine               // 1,000/s · 60,000/min
	VolumeLine             // 10 MB out · 2 MB in · 99 % hits
)

// Compared says whether experiments compare variants by a metric.
type Compared int

const (
	NotCompared Compared = iota // no experiment compares by it
	IfNamed                     // only if `compare` names it
	Usually                     // also if `compare` names none
)

//go:embed metrics.tsv
var metrics string

// lists are the parts of metrics.tsv, by name.
var lists = sync.OnceValue(func() map[string][]entry {
	all := map[string][]entry{}
	part := ""
	for line := range strings.Lines(metrics) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "# "); ok {
			part = name
			continue
		}
		f := slices.Concat(strings.Split(line, "\t"), make([]string, 8))
		e := entry{
			Name: f[0], Unit: f[1], Says: f[2], Text: f[5], Title: f[6],
			Compared: map[string]Compared{"named": IfNamed, "usually": Usually}[f[3]],
			Line:     map[string]Line{"rate": RateLine, "volume": VolumeLine}[f[4]],
		}
		switch {
		case e.Unit == "share" || f[7] == "share":
			e.Kind = Share
		case e.Unit == "s":
			e.Kind = Time
		case strings.Contains(e.Unit, "/"):
			e.Kind = Rate
		}
		all[part] = append(all[part], e)
	}
	return all
})

// listed returns a part of metrics.tsv as metrics of T, in whose JSON the names follow at, with as many quantiles as that part's. Each is compared at
// most as given.
func listed[T any](part, at string, most Compared, quantiles ...string) (all []Of[T]) {
	entries := lists()[part]
	for _, name := range quantiles {
		_, ok := quantity.Quantile(name)
		if ok && !slices.ContainsFunc(entries, func(e entry) bool { return e.Name == name }) {
			entries = append(slices.Clip(entries), entry{Name: name, Unit: "s", Kind: Time, Compared: IfNamed})
		}
	}
	for _, e := range entries {
		e.Name, e.Compared = at+e.Name, min(e.Compared, most)
		all = append(all, Of[T]{entry: e, place: placeIn[T](e.Name)})
	}
	return all
}

// Ledger lists the counts of a ledger: how many ops were due, and how they ended.
func Ledger() []Of[run.Ledger] { return listed[run.Ledger]("ledger", "", NotCompared) }

// Causes lists the causes of ops that went wrong.
func Causes() []Of[run.Causes] { return listed[run.Causes]("causes", "", NotCompared) }

// Latency lists the figures of a latency: its counts, and then seconds that ascend from min on.
func Latency() []Of[run.Latency] { return listed[run.Latency]("latency", "", Usually) }

// Figures lists what there is of every kind of op: of a verb, of scenarios and of a step of one. Latencies have these quantiles besides the usual ones.
func Figures(quantiles ...string) []Of[run.Figures] {
	return figures[run.Figures]("", Usually, quantiles)
}

// figures lists the figures in the JSON of T that follow at.
func figures[T any](at string, most Compared, quantiles []string) []Of[T] {
	ledger, own := listed[T]("ledger", at, NotCompared), listed[T]("figures", at, most)
	all := slices.Concat(ledger[:1], own[:1], ledger[1:], listed[T]("causes", at+"causes.", NotCompared), own[1:])
	for _, p := range []struct {
		path     string
		compared Compared
	}{
		{"response.", Usually},
		{"service.", IfNamed},
		{"lag.", NotCompared},
		{"latency.ok.response.", NotCompared},
		{"latency.ok.service.", NotCompared},
		{"latency.miss.response.", NotCompared},
		{"latency.miss.service.", NotCompared},
		{"latency.bad.response.", NotCompared},
		{"latency.bad.service.", NotCompared},
	} {
		all = append(all, listed[T]("latency", at+p.path, min(p.compared, most), quantiles...)...)
	}
	return all
}

// Op lists the figures of the ops of a verb, with quantiles as in [Figures].
func Op(quantiles ...string) []Of[run.Op] {
	all := figures[run.Op]("", Usually, quantiles)
	for _, m := range listed[run.Op]("ledger", "keys.", NotCompared) {
		if m.Says = "keys, as the ops above"; m.Name == "keys.due" {
			m.Says = "= ok + miss + conflict + quorum_failed + timeout + error + shed + in_flight"
		}
		m.Unit = "keys"
		all = append(all, m)
	}
	for _, part := range []string{"write.", "sync."} { // of the service times of ops that store entries or values in files
		all = append(all, listed[run.Op]("latency", part, IfNamed, quantiles...)...)
	}
	all = append(all, listed[run.Op]("op", "", Usually)...)
	for i := range all {
		switch of, _, _ := strings.Cut(all[i].Name, "."); of {
		case "keys":
			all[i].Only = (*run.Op).Batched
		case "write", "sync":
			all[i].Only = func(o *run.Op) bool { return o.Sync != nil }
		}
	}
	return all
}

// Row lists the figures of each second of a phase, with these quantiles besides the usual ones.
func Row(quantiles ...string) []Of[run.Row] {
	all := listed[run.Row]("row", "", NotCompared)
	for i := range all {
		if name := all[i].Name; name == "compared" || name == "stale" {
			all[i].known = func(r *run.Row) bool { return r.Compared > 0 }
		}
	}
	times := listed[run.Row]("response of a row", "response.", NotCompared, quantiles...)
	slices.SortFunc(times[1:], func(a, b Of[run.Row]) int { return cmp.Compare(a.Name, b.Name) }) // behind the mean
	return slices.Concat(all, times, listed[run.Row]("caches of a row", "cache.", NotCompared))
}

// Phase lists the figures of a phase as a whole. Its total has quantiles as in [Figures].
func Phase(quantiles ...string) []Of[run.Phase] {
	total := figures[run.Phase]("total.", NotCompared, quantiles)
	for i := range total {
		total[i].Line, total[i].Text, total[i].Title = NoLine, "", ""
		total[i].Only = func(p *run.Phase) bool { return len(p.Op) > 1 }
	}
	parts := listed[run.Phase]("parts of a phase", "", NotCompared)
	for _, stage := range []string{"connect.", "tcp.", "tls.", "greeting."} {
		parts = append(parts, listed[run.Phase]("latency", "connections."+stage, NotCompared, quantiles...)...)
	}
	return slices.Concat(parts, total, listed[run.Phase]("phase", "", NotCompared))
}

// Value returns the number, in base units; nil if it is not available.
func (m *Of[T]) Value(t *T) *float64 {
	var f float64
	switch n := m.Exact(t).(type) {
	case nil:
		return nil
	case uint64:
		f = float64(n)
	case int64:
		f = float64(n)
	case float64:
		f = n
	}
	return &f
}

// Exact returns the number as an integer if it is a whole one, else as a float64; nil if it is not available.
func (m *Of[T]) Exact(t *T) any {
	if m.known != nil && !m.known(t) {
		return nil
	}
	n := m.place.number(t)
	if f, ok := n.(float64); ok && m.Kind == Count {
		return int64(f)
	}
	return n
}

// Words returns the metric's name in a sentence: rate of answers, hit ratio, p99 response.
func (m *Of[T]) Words() string {
	if m.Title != "" {
		return m.Title
	}
	of, which, latency := strings.Cut(m.Name, ".")
	if !latency {
		return strings.ReplaceAll(m.Name, "_", " ")
	}
	return strings.Replace(which, "p50", "median", 1) + " " + of
}

// Named returns the metric of an op with a name, which may be that of any quantile: response.p9999.
func Named(name string) (m Of[run.Op], known bool) {
	all := Op(name[strings.LastIndexByte(name, '.')+1:])
	if i := slices.IndexFunc(all, func(m Of[run.Op]) bool { return m.Name == name }); i >= 0 {
		return all[i], true
	}
	return m, false
}
