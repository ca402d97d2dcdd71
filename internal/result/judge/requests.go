package judge

import (
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// row is where requests are counted: an endpoint of a target.
type row struct {
	target, endpoint string
	later            bool // not one endpoint, but all nodes that joined a cluster during the phase
}

// rowsOf lists the rows of targets in the order of measure's ledger: for each target its endpoints and, for a cluster, a row for the nodes that join
// it.
func rowsOf(targets []run.Target) (rows []row) {
	for _, t := range targets {
		for _, endpoint := range t.Endpoints {
			rows = append(rows, row{target: t.Name, endpoint: endpoint})
		}
		if t.Placement == plan.Slots {
			rows = append(rows, row{target: t.Name, endpoint: "joined later", later: true})
		}
	}
	return rows
}

// targets lists the phase's targets, its own first.
func (p *phase) targets() []run.Target {
	return append([]run.Target{p.Target}, p.Others...)
}

// rowAt returns a row of the ledger.
func rowAt(rows []row, i int) row {
	if i < len(rows) {
		return rows[i]
	}
	return row{endpoint: "an endpoint that nobody named", later: true}
}

// asked returns the verbs that a phase's load sends to each of its targets.
func (p *phase) asked(ph *plan.Phase) map[string][]driver.Verb {
	all := map[string][]driver.Verb{}
	for _, name := range ph.Targets() {
		all[name] = p.verbsOf(ph.OpsOn(name))
	}
	return all
}

// requests lists, by endpoint, the ledgers of the verbs that targets should get, and of any other verb that was sent.
func (p *phase) requests(t *measure.Totals, asked map[string][]driver.Verb) []run.Requests {
	list, rows := []run.Requests{}, rowsOf(p.targets())
	for i, r := range t.Requests {
		at, verb := rowAt(rows, i/driver.NumVerbs), driver.Verb(i%driver.NumVerbs)
		if r == (measure.Requests{}) && (!slices.Contains(asked[at.target], verb) || at.later) {
			continue
		}
		list = append(list, run.Requests{Target: at.target, Endpoint: at.endpoint, Verb: p.words.Name(verb), Requests: r})
	}
	return list
}

// away sets, by endpoint, for how long connections were away.
func (p *phase) away(t *measure.Totals) {
	rows := rowsOf(p.targets())
	p.Away, p.AwaySeconds = nil, 0 // a search has those of its best level
	for i, ns := range t.Away {
		if ns > 0 {
			at := rowAt(rows, i)
			p.Away = append(p.Away, run.Away{Target: at.target, Endpoint: at.endpoint, Seconds: seconds(float64(ns))})
			p.AwaySeconds += seconds(float64(ns))
		}
	}
}
