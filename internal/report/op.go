package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

// done is what a phase did of one kind: the ops of a verb, or the runs of a scenario.
type done struct {
	name  string
	at    string // path below the phase
	steps string // of a scenario; "" of a verb
	*run.Figures
	op *run.Op // nil of a scenario
}

// batched says that ops had several keys each.
func (d done) batched() bool { return d.op != nil && d.op.Batched() }

// doneIn lists the verbs of a phase and then its scenarios. A search in which no rate held has figures in its levels only.
func doneIn(ph *run.Phase) []done {
	var all []done
	if ph.Search != nil && ph.Search.Rate == nil {
		return nil
	}
	for _, verb := range verbs(ph.Op) {
		all = append(all, done{verb, "op." + verb, "", &ph.Op[verb].Figures, ph.Op[verb]})
	}
	for _, name := range slices.Sorted(maps.Keys(ph.Scenario)) {
		s := ph.Scenario[name]
		all = append(all, done{name, "scenario." + name, strings.Join(s.Steps, " → "), &s.Figures, nil})
	}
	return all
}

// op adds the ledger, the rates and the latencies of one verb or scenario.
func (p *page) op(ph *run.Phase, d done) {
	p.line("")
	if d.steps == "" {
		p.item(d.name, ledger(&d.Ledger))
	} else {
		p.item("scenario", d.name+": "+d.steps)
		p.item("", ledger(&d.Ledger))
	}
	if causes := causes(ph, d.Causes); causes != "" {
		p.item("", "caused by "+causes)
	}
	p.items("", " · ", rates(ph, d)...)
	p.items("", " · ", keys(ph, d)...)
	p.items("", " · ", volume(ph, d)...)
	p.latencies(ph, rowsOf(d))
}

// ledger is the op ledger as an equation. Outcomes that did not occur are left out.
func ledger(o *run.Ledger) string {
	var terms []string
	for _, t := range []struct {
		name string
		n    uint64
	}{
		{"ok", o.OK},
		{"miss", o.Miss},
		{"conflict", o.Conflict},
		{"quorum failed", o.QuorumFailed},
		{"timeout", o.Timeout},
		{"error", o.Error},
		{"shed", o.Shed},
		{"in flight", uint64(o.InFlight)},
	} {
		if t.n > 0 {
			terms = append(terms, count(t.n)+" "+t.name)
		}
	}
	if terms == nil {
		return "none due"
	}
	return count(o.Due) + " due = " + strings.Join(terms, " + ")
}

// keys are the ledger and the rate of the keys of ops that have several; nothing where each has one.
func keys(ph *run.Phase, d done) []string {
	if !d.batched() {
		return nil
	}
	k := &d.op.Keys
	parts := []string{"keys " + ledger(&k.Ledger)}
	if k.Rate != nil {
		parts = append(parts, whole(*k.Rate)+" keys/s"+mark(ph, d.at+".keys.rate"))
	}
	return parts
}

func causes(ph *run.Phase, c run.Causes) string {
	var terms []string
	for _, t := range []struct {
		name string
		n    uint64
	}{{"reply", c.Reply}, {"timeout", c.Timeout}, {ph.Lost(), c.Lost}, {"refused", c.Refused}, {"op timeout", c.OpTimeout}} {
		if t.n > 0 {
			terms = append(terms, count(t.n)+" "+t.name)
		}
	}
	return strings.Join(terms, ", ")
}

// rates are the figures that are quoted, with doubts about them.
func rates(ph *run.Phase, o done) []string {
	var parts []string
	if ph.Kind == string(run.Load) {
		if o.Rate != nil {
			parts = append(parts, whole(*o.Rate)+"/s"+mark(ph, o.at+".rate"), whole(*o.RatePerMinute)+"/min"+mark(ph, o.at+".rate_per_minute"))
			if o.Miss > 0 {
				parts = append(parts, whole(*o.Answered)+"/s"+mark(ph, o.at+".answered")+" answered")
			}
		} else {
			parts = append(parts, "no rate ("+ph.Nulls[o.at+".rate"]+")")
		}
	}
	if o.RateWall != nil {
		parts = append(parts, whole(*o.RateWall)+"/s"+mark(ph, o.at+".rate_wall")+" from first start to last end")
	}
	return parts
}

// volume is the bytes and the hits of a verb; nothing of a scenario.
func volume(ph *run.Phase, d done) []string {
	o := d.op
	if o == nil {
		return nil
	}
	var parts []string
	if o.BytesOut != nil {
		parts = append(parts, size(*o.BytesOut)+" out")
	}
	parts = append(parts, size(o.BytesIn)+" in")
	if o.HitRatio != nil {
		hits := quantity.Percent(*o.HitRatio) + " hits"
		if asked := ph.Load.HitRatio; asked > 0 {
			hits += " of " + quantity.Percent(asked) + " asked"
		}
		parts = append(parts, hits)
	}
	return parts
}

// row is a line of latencies.
type row struct {
	label string
	l     run.Latency
	path  string // below the phase
}

// rowsOf lists latencies; classes only where there are several.
func rowsOf(o done) []row {
	at := o.at
	rows := []row{{"response", o.Response, at + ".response"}, {"service", o.Service, at + ".service"}}
	if o.Latency.Miss.Response.Count > 0 && o.Latency.OK.Response.Count > 0 {
		rows = append(rows, row{"  ok", o.Latency.OK.Service, at + ".latency.ok.service"},
			row{"  miss", o.Latency.Miss.Service, at + ".latency.miss.service"})
	}
	if o.Latency.Bad.Response.Count > 0 {
		rows = append(rows, row{"  bad", o.Latency.Bad.Service, at + ".latency.bad.service"})
	}
	rows = append(rows, row{"lag", o.Lag, at + ".lag"})
	if o.op != nil && len(o.op.Acks) > 1 {
		for k, l := range o.op.Acks {
			rows = append(rows, row{"ack " + strconv.Itoa(k+1), l, at + ".acks." + strconv.Itoa(k)})
		}
	}
	return rows
}

// unit is what a row of latencies is counted in.
type unit struct {
	name     string
	seconds  float64
	decimals int
}

const cell = 10 // columns of a latency

// latencyHeads are over the figures of a latency.
var latencyHeads = [...]string{"mean", "sd", "min", "p50", "p90", "p99", "p99.9", "max"}

// shows says whether there is room for a column of latencies.
func (p *page) shows(head string) bool { return p.roomy() || head != "sd" && head != "min" }

// latencies adds a table. A mark stands behind each figure that is in doubt; a quantile that has too few samples, or that of an op that failed, is a dash.
func (p *page) latencies(ph *run.Phase, rows []row) {
	rows = slices.DeleteFunc(rows, func(r row) bool { return r.l.Count == 0 })
	if len(rows) == 0 {
		return
	}
	head := spaces(labelWidth)
	for _, name := range latencyHeads {
		if p.shows(name) {
			head += right(name, cell-1) + " "
		}
	}
	p.line("  %s", head)
	for _, r := range rows {
		u := unitOf(r.l)
		line := left(r.label, labelWidth)
		for i, c := range r.cells(ph, u) {
			if p.shows(latencyHeads[i]) {
				line += right(c.text, cell-1) + left(c.doubt, 1)
			}
		}
		p.line("  %s %s", line, u.name)
	}
	if i := slices.IndexFunc(rows, func(r row) bool { return r.l.Failed > 0 && strings.HasSuffix(r.path, ".response") }); i >= 0 {
		l := rows[i].l
		p.line("  %sslower than any of these: %s of %s, which failed", spaces(labelWidth+1), count(l.Failed), plural(l.Count+l.Failed, "op"))
	}
}

// cellOf is a figure and how far it may be believed, or why there is none.
type cellOf struct{ text, doubt, why string }

// cells are the figures of a row in the order of the table's head.
func (r row) cells(ph *run.Phase, u unit) []cellOf {
	var cells []cellOf
	for _, v := range []struct {
		name  string
		value *float64
	}{
		{"mean", r.l.Mean},
		{"sd", r.l.SD},
		{"min", r.l.Min},
		{"p50", r.l.P50},
		{"p90", r.l.P90},
		{"p99", r.l.P99},
		{"p999", r.l.P999},
		{"max", r.l.Max},
	} {
		c := cellOf{text: "–", why: ph.Nulls[r.path+"."+v.name]}
		if v.value != nil {
			c = cellOf{text: u.text(*v.value), doubt: mark(ph, r.path+"."+v.name)}
		}
		cells = append(cells, c)
	}
	return cells
}

// unitOf returns the unit that the median, or else the mean, has before its point, or a larger one where the maximum would not fit.
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
		if middle >= larger.seconds || columns(u.text(most)) >= cell {
			u = larger
		}
	}
	return u
}

func (u unit) text(seconds float64) string {
	return strconv.FormatFloat(seconds/u.seconds, 'f', u.decimals, 64)
}
