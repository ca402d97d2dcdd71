package report

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/words"
)

// op adds the ledger, the rates and the latencies of one verb or scenario.
func (p *printer) op(d words.Done) {
	p.line("")
	p.told(d.Told())
	p.latencies(d.Rows())
	for i, line := range d.Grown() {
		label := ""
		if i == 0 {
			label = "growth"
		}
		p.item(label, line)
	}
}

// latencies adds a table. A mark follows each doubtful figure. A quantile is a dash if it has too few samples or falls on a failed op.
func (p *printer) latencies(rows []words.Row) {
	if len(rows) == 0 {
		return
	}
	head := spaces(labelWidth)
	heads := rows[0].Heads()
	omitted := []string{}
	for _, name := range []string{"sd", "min", "p90"} {
		chosen := rows[0].Latency.Quantiles[name] != nil
		if !chosen && slices.Contains(heads, name) && !p.roomy(len(heads)-len(omitted)) {
			omitted = append(omitted, name)
		}
	}
	shows := func(head string) bool { return !slices.Contains(omitted, head) }
	for _, name := range heads {
		if shows(name) {
			head += right(name, words.CellWidth-1) + " "
		}
	}
	p.line("  %s", head)
	for _, r := range rows {
		line := left(r.Label, labelWidth)
		for i, c := range r.Cells() {
			if shows(heads[i]) {
				line += right(c.Text, words.CellWidth-1) + left(c.Doubt, 1)
			}
		}
		p.line("  %s %s", line, r.Unit())
	}
	if i := slices.IndexFunc(rows, func(r words.Row) bool { return r.Latency.Failed > 0 && strings.HasSuffix(r.Path, ".response") }); i >= 0 {
		l := rows[i].Latency
		p.line("  %sslower than any of these: %s of %s, which failed", spaces(labelWidth+1), quantity.Thousands(l.Failed), quantity.Count(l.Count+l.Failed, "op"))
	}
}
