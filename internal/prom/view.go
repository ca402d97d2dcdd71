package prom

import (
	"slices"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// View is a run as it stands: what the metrics page shows.
type View struct {
	Run     string // its ID
	Current string // the phase under way; "" before the first and after the last
	Ended   bool   // Verdict is the last one
	Verdict run.Verdict
	Phases  []Phase // all of the plan's, in its order
}

// Phase is one phase of a View. NewView sets all that the plan tells; Offered, Setup and Load are for whoever measures.
type Phase struct {
	Name      string
	Verbs     []driver.Verb   // of the mix, in its order
	Words     driver.Words    // their names
	Scenarios []Scenario      // in the plan's order
	HasSetup  bool            // Setup will come
	Targets   []Target        // in the order in which requests are counted
	Batch     int             // keys of an op
	Files     bool            // the target is files of the workers' machines: what is read of them sends nothing
	Copies    int             // the largest N of targets that the client replicates on, otherwise 0
	Offered   float64         // ops per second at this moment; 0 in a closed phase, and when none are offered
	Setup     *measure.Totals // untimed puts before the load, cumulative; nil: none yet
	Load      *measure.Totals // the phase's load, populate or clear, cumulative; nil: none yet
}

// Scenario is one of a phase's scenarios.
type Scenario struct {
	Name  string
	Steps []Step
}

// Step is one step of a scenario.
type Step struct {
	Name   string
	Target string // where it goes
}

// Target is one of a phase's targets.
type Target struct {
	Name      string
	Verbs     []driver.Verb // that it is asked for
	Endpoints int           // as the plan says; of a cluster more than have names
	Rows      int           // of the ledger of requests; 0: it is a cluster, and nobody has said how many nodes that has
}

// NewView returns the view of a run that has not begun: every phase of the plan, with nothing counted. The plan must be valid.
func NewView(runID string, p *plan.Plan) View {
	v := View{Run: runID, Verdict: run.Verdict{Completeness: run.Complete, Validity: run.Valid, Assertions: run.None}}
	for _, ph := range p.Phases {
		v.Phases = append(v.Phases, newPhase(p, ph))
	}
	return v
}

func newPhase(p *plan.Plan, ph *plan.Phase) Phase {
	out := Phase{Name: ph.Name, HasSetup: len(ph.Setup) > 0, Batch: ph.Batch, Files: p.Target(ph.Target).Executor == plan.Thread, Words: p.Words()}
	verbs := func(mix []plan.Weight) (list []driver.Verb) {
		for _, w := range mix {
			if verb, ok := out.Words.Verb(w.Op); ok {
				list = append(list, verb)
			}
		}
		return list
	}
	out.Verbs = verbs(ph.Ops)
	endpoints := p.EndpointsOf(ph)
	for _, name := range ph.Targets() {
		t := p.Target(name)
		mine := Target{Name: name, Verbs: verbs(ph.OpsOn(name)), Endpoints: endpoints[name], Rows: endpoints[name]}
		if t.Placement == plan.Slots { // it has more than the plan names; how many is not known before
			mine.Endpoints, mine.Rows = maxEndpoints+1, 0
		}
		out.Targets = append(out.Targets, mine)
		if t.Replication != nil && t.Replication.ByClient() {
			out.Copies = max(out.Copies, t.Replication.N)
		}
	}
	for i := range ph.Scenarios {
		s := &ph.Scenarios[i]
		one := Scenario{Name: s.Name}
		for j, name := range s.StepNames() {
			one.Steps = append(one.Steps, Step{name, s.Steps[j].TargetIn(ph)})
		}
		out.Scenarios = append(out.Scenarios, one)
	}
	return out
}

// found enters how many nodes the clusters among the phase's targets have, by their names. The ledger of requests has one row more for each: that of the
// nodes that join later.
func (ph *Phase) found(nodes map[string][]string) {
	ph.Targets = slices.Clone(ph.Targets) // views that are shown have the old ones
	for i := range ph.Targets {
		if t := &ph.Targets[i]; len(nodes[t.Name]) > 0 {
			t.Rows = len(nodes[t.Name]) + 1
		}
	}
}

// shares divides the ledger of requests between the targets. All behind a cluster of which nobody has said how many nodes it has is that cluster's.
func (ph *Phase) shares(requests []measure.Requests) [][]measure.Requests {
	list := make([][]measure.Requests, len(ph.Targets))
	for i, t := range ph.Targets {
		n := min(t.Rows*driver.NumVerbs, len(requests))
		if t.Rows == 0 || i == len(list)-1 {
			n = len(requests)
		}
		list[i], requests = requests[:n], requests[n:]
	}
	return list
}

// Phase returns the phase with the given name, to be changed in place; nil when the plan has none of the name.
func (v *View) Phase(name string) *Phase {
	if i := slices.IndexFunc(v.Phases, func(ph Phase) bool { return ph.Name == name }); i >= 0 {
		return &v.Phases[i]
	}
	return nil
}

// frozen returns a copy that shares only the Totals with v.
func (v *View) frozen() *View {
	c := *v
	c.Phases = slices.Clone(v.Phases)
	return &c
}
