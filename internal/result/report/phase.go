package report

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/report/words"
	"github.com/loadgen/loadgen/internal/result/run"
)

// maxEndpoints bounds the lines on requests.
const maxEndpoints = 8

func (p *printer) phase(name string, ph *run.Phase) {
	word := string(ph.Validity)
	if ph.Validity != run.Valid {
		word = strings.ToUpper(word)
	}
	if what := words.Untimed(ph); what != "" && !p.Full {
		p.rule(name+": "+what, word)
		p.items("an item", ", ", words.PerItem(ph)...)
		return
	}
	p.rule(name, word)
	if ph.OfferedRate != nil && ph.AchievedRate != nil {
		p.item("rate", "offered "+words.Arriving(ph, *ph.OfferedRate)+", sustained "+words.Arriving(ph, *ph.AchievedRate)+words.Mark(ph, "achieved_rate"))
	}
	p.told(words.About(ph))
	p.levels(ph)
	for _, verb := range ph.Apart() {
		p.line("")
		p.item(verb, ph.Nulls["op."+verb])
	}
	for _, d := range words.DoneIn(ph) {
		p.op(d)
	}
	if facts, rows := words.Connections(ph); facts != nil {
		p.line("")
		p.items("connections", "; ", facts...)
		p.latencies(rows)
	}
	p.line("")
	p.told(words.Noted(ph))
	p.requests(ph)
	p.items("away", "; ", words.Away(ph, maxEndpoints)...)
	p.told(words.Generated(ph))
	p.observed(ph)
	p.told(words.Beside(ph))
}

// told adds facts.
func (p *printer) told(facts []words.Fact) {
	for _, f := range facts {
		if len(f.Text) == 1 {
			p.item(f.Name, f.Text[0])
		} else {
			p.items(f.Name, f.Sep, f.Text...)
		}
	}
}

// unused lists the nodes of a cluster that got no requests, usually replicas.
func unused(ph *run.Phase) (idle []string) {
	if !ph.Target.InCluster() {
		return nil
	}
	used := map[string]bool{}
	for _, r := range ph.Requests {
		used[r.Endpoint] = used[r.Endpoint] || r.Sent+r.Refused > 0
	}
	for _, e := range ph.Target.Endpoints {
		if !used[e] {
			idle = append(idle, e)
		}
	}
	return idle
}

// requests lists, by verb, the requests to each endpoint.
func (p *printer) requests(ph *run.Phase) {
	var endpoints []string
	lines := map[string][]string{}
	idle := unused(ph)
	for _, r := range ph.Requests {
		if slices.Contains(idle, r.Endpoint) {
			continue
		}
		at := r.Endpoint
		if len(ph.Others) > 0 {
			at = r.Target + " at " + at
			if r.Sent+r.Refused == 0 {
				continue // no step sends it there
			}
		}
		if _, there := lines[at]; !there {
			endpoints = append(endpoints, at)
		}
		counts := words.Counts([]string{"moved", "ask", "timeout", "error", "refused", "in flight"}, r.Moved, r.Ask, r.Timeout, r.Error, r.Refused, uint64(r.InFlight))
		lines[at] = append(lines[at], strings.Join(append([]string{r.Verb + " " + quantity.Thousands(r.Sent) + " sent"}, counts...), ", "))
	}
	wide := 0
	for _, e := range endpoints {
		wide = max(wide, columns(e))
	}
	for i, e := range endpoints {
		label := "requests"
		if i > 0 {
			label = ""
		}
		if i == maxEndpoints {
			p.item(label, "and "+quantity.Count(len(endpoints)-i, "other endpoint"))
			break
		}
		p.line("  %s%s  %s", left(label, labelWidth), left(e, wide), strings.Join(lines[e], "; "))
	}
	if len(idle) > 0 {
		p.item("", "none to "+quantity.Count(len(idle), "other node"))
	}
	for i, c := range ph.Counted {
		p.item([]string{"counted", ""}[min(i, 1)], c.Said)
	}
}
