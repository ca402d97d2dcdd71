package words

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/metric"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Done holds the ops of one kind in a phase: those of a verb, of a scenario, or of a step of one.
type Done struct {
	Name     string
	At       string // path relative to the phase
	Sequence string // of a scenario or a step; "" for a verb
	*run.Figures
	Op *run.Op    // nil for a scenario or a step
	ph *run.Phase // its phase
}

// total is the name and the path of all ops together.
const total = "total"

// Batched says whether ops had several keys each.
func (d Done) Batched() bool { return d.Op != nil && d.Op.Batched() }

// DoneIn lists the verbs of a phase, their total if there are several, and then its scenarios. A search in which no rate held has figures only in its
// levels.
func DoneIn(ph *run.Phase) []Done {
	var all []Done
	if ph.Search != nil && ph.Search.Rate == nil {
		return nil
	}
	for _, verb := range ph.Verbs() {
		all = append(all, Done{verb, "op." + verb, "", &ph.Op[verb].Figures, ph.Op[verb], ph})
	}
	if ph.Total != nil && len(all) > 1 {
		all = append(all, Done{total, total, "", ph.Total, nil, ph})
	}
	for _, name := range slices.Sorted(maps.Keys(ph.Scenario)) {
		s := ph.Scenario[name]
		all = append(all, Done{name, "scenario." + name, strings.Join(s.StepOrder, " → "), &s.Figures, nil, ph})
		if len(s.StepOrder) < 2 {
			continue // the step is the whole scenario
		}
		for _, step := range s.StepOrder {
			all = append(all, Done{name + ", " + step, "scenario." + name + ".step." + step, stepOf(s.Step[step]), &s.Step[step].Figures, nil, ph})
		}
	}
	return all
}

// Ledger formats the op ledger as an equation, without outcomes that did not occur.
func Ledger(o *run.Ledger) string {
	var terms []string
	for _, m := range metric.Ledger() {
		if n := *m.Value(o); n > 0 && m.Name != "due" {
			terms = append(terms, quantity.Thousands(uint64(n))+" "+m.Words())
		}
	}
	if terms == nil {
		return "none due"
	}
	return quantity.Thousands(o.Due) + " due = " + strings.Join(terms, " + ")
}

// Keys returns the ledger and the rate of keys if ops have several; otherwise nothing.
func (d Done) Keys() []string {
	if !d.Batched() {
		return nil
	}
	k := &d.Op.Keys
	parts := []string{"keys " + Ledger(&k.Ledger)}
	if k.Rate != nil {
		parts = append(parts, quantity.Whole(*k.Rate)+" keys/s"+Mark(d.ph, d.At+".keys.rate"))
	}
	return parts
}

// Caused says why ops failed; "" if none did.
func (d Done) Caused() string {
	var terms []string
	for _, m := range metric.Causes() {
		name := m.Words()
		if name == "lost" {
			name = d.ph.Lost()
		}
		if n := *m.Value(&d.Causes); n > 0 {
			terms = append(terms, quantity.Thousands(uint64(n))+" "+name)
		}
	}
	return strings.Join(terms, ", ")
}

// Rates returns the figures that are usually quoted, with their doubts.
func (d Done) Rates() []string {
	var parts []string
	timed := d.ph.Kind.Timed()
	if timed && d.Rate == nil {
		parts = append(parts, "no rate ("+d.ph.Nulls[d.At+".rate"]+")")
	}
	for _, m := range metric.Figures() {
		v := m.Value(d.Figures)
		switch {
		case m.Line != metric.RateLine || v == nil:
		case !timed && m.Name != "rate_wall":
		case m.Name == "answered" && d.Miss == 0: // it is the rate
		default:
			parts = append(parts, quoted(d, &m, *v))
		}
	}
	return parts
}

// Volume returns the bytes and hits of a verb; nothing for a scenario.
func (d Done) Volume() []string {
	if d.Op == nil {
		return nil
	}
	var parts []string
	for _, m := range metric.Op() {
		v := m.Value(d.Op)
		if m.Line != metric.VolumeLine || v == nil || m.Name == "hit_ratio" && d.ph.Cache != nil {
			continue
		}
		text := quoted(d, &m, *v)
		if m.Name == "hit_ratio" {
			text += d.hitsAsked()
		}
		parts = append(parts, text)
	}
	return parts
}

// hitsAsked says which hit ratio the plan asked for, to follow the measured one; "" if it asked for none.
func (d Done) hitsAsked() (text string) {
	if asked := d.ph.Load.HitRatio; asked > 0 {
		text = " of " + quantity.Percent(asked) + " asked"
	}
	if d.ph.Load.OnMiss != "" {
		text += ", each miss filled by a " + d.ph.Load.OnMiss
	}
	return text
}

// quoted is a figure as a line of text has it, with its doubt.
func quoted[T any](d Done, m *metric.Of[T], v float64) string {
	text := quantity.Thousands(uint64(v))
	switch {
	case m.Unit == "bytes":
		text = quantity.Bytes(uint64(v))
	case m.Unit == "bytes/s":
		text = quantity.Bytes(uint64(v)) + "/s" + Mark(d.ph, d.At+"."+m.Name)
	case m.Kind == metric.Rate:
		_, per, _ := strings.Cut(m.Unit, "/")
		text = quantity.Whole(v) + "/" + per + Mark(d.ph, d.At+"."+m.Name)
	case m.Kind == metric.Share:
		text = quantity.Percent(v)
	case m.Kind == metric.Time:
		text = quantity.Duration(v)
	}
	return strings.TrimSpace(text + " " + m.Text)
}

// Row is a line of latencies.
type Row struct {
	Label   string
	Latency run.Latency
	Path    string     // relative to the phase
	ph      *run.Phase // its phase
}

// Rows lists the latencies that exist; classes only if there are several.
func (d Done) Rows() []Row {
	at, o, ph := d.At, d, d.ph
	rows := []Row{{"response", o.Response, at + ".response", ph}, {"service", o.Service, at + ".service", ph}}
	if o.Op != nil && o.Op.Sync != nil {
		rows = append(rows, Row{"  write", *o.Op.Write, at + ".write", ph}, Row{"  sync", *o.Op.Sync, at + ".sync", ph})
	}
	if o.Latency.Miss.Response.Count > 0 && o.Latency.OK.Response.Count > 0 {
		rows = append(rows, Row{"  ok", o.Latency.OK.Service, at + ".latency.ok.service", ph},
			Row{"  miss", o.Latency.Miss.Service, at + ".latency.miss.service", ph})
	}
	if o.Latency.Bad.Response.Count > 0 {
		rows = append(rows, Row{"  bad", o.Latency.Bad.Service, at + ".latency.bad.service", ph})
	}
	if o.Op != nil {
		for _, kind := range slices.Sorted(maps.Keys(o.Op.Kind)) {
			rows = append(rows, Row{"  " + kind, o.Op.Kind[kind].Service, at + ".kind." + kind + ".service", ph})
		}
	}
	rows = append(rows, Row{"lag", o.Lag, at + ".lag", ph})
	if o.Op != nil && len(o.Op.Acks) > 1 {
		for k, l := range o.Op.Acks {
			rows = append(rows, Row{"ack " + strconv.Itoa(k+1), l, at + ".acks." + strconv.Itoa(k), ph})
		}
	}
	return slices.DeleteFunc(rows, func(r Row) bool { return r.Latency.Count == 0 })
}

// unit is the unit of a row of latencies.
type unit struct {
	name     string
	seconds  float64
	decimals int
}

// CellWidth is the width in columns of a latency in a text.
const CellWidth = 10

// Heads returns the heads of the row's figures.
func (r Row) Heads() (heads []string) {
	for _, name := range r.names() {
		heads = append(heads, quantity.QuantileText(name))
	}
	return heads
}

// names lists the row's figures.
func (r Row) names() []string {
	return slices.Concat([]string{"mean", "sd", "min"}, r.Latency.Shown(), []string{"max"})
}

// Cell is a figure and how far it can be trusted, or why there is none.
type Cell struct{ Text, Doubt, Why string }

// Unit returns the unit of the row's cells.
func (r Row) Unit() string { return unitOf(r.Latency).name }

// Cells returns the row's figures in the order of Heads.
func (r Row) Cells() (cells []Cell) {
	u, figures := unitOf(r.Latency), metric.Latency()
	for _, name := range r.names() {
		path, v := r.Path+"."+name, r.Latency.Quantile(name)
		if i := slices.IndexFunc(figures, func(m metric.Of[run.Latency]) bool { return m.Name == name }); i >= 0 {
			v = figures[i].Value(&r.Latency)
		} else {
			path = r.Path + ".quantiles." + name
		}
		c := Cell{Text: "–", Why: r.ph.Nulls[path]}
		if v != nil {
			c = Cell{Text: u.text(*v), Doubt: Mark(r.ph, path)}
		}
		cells = append(cells, c)
	}
	return cells
}

// unitOf returns the unit that suits the median, or else the mean, or a larger one if the maximum would not fit.
func unitOf(l run.Latency) unit {
	u, middle, most := unit{"µs", 1e-6, 1}, *l.Min, *l.Min
	for _, f := range []*float64{l.Max, l.Mean, l.P999, l.P99, l.P90, l.P50} {
		if f != nil {
			most, middle = max(most, *f), *f
		}
	}
	if l.P50 == nil && l.Mean != nil {
		middle = *l.Mean
	}
	for _, larger := range []unit{{"ms", 1e-3, 3}, {"s", 1, 3}} {
		if middle >= larger.seconds || utf8.RuneCountInString(u.text(most)) >= CellWidth {
			u = larger
		}
	}
	return u
}

func (u unit) text(seconds float64) string {
	return strconv.FormatFloat(seconds/u.seconds, 'f', u.decimals, 64)
}

// stepOf describes a step of a scenario.
func stepOf(s *run.Step) string {
	text := s.Op + " to " + s.Target
	if s.Times > 1 {
		text += fmt.Sprintf(", %d times", s.Times)
	}
	return text
}
