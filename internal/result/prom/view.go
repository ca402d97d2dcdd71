package prom

import (
	"slices"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/result/expr"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// maxFields is how many fields of an observation are shown.
const maxFields = 30

// View is the current state of a run, as the metrics page shows it.
type View struct {
	Run     string // its ID
	Current string // the phase in progress; "" before the first and after the last
	Ended   bool   // Verdict is final
	Verdict run.Verdict
	Phases  []Phase // all phases of the plan, in order

	Events   []Event       // those of the plan's phases that the coordinator carries out, in order
	Asserts  []Assert      // all asserts of the plan, in order
	Observed []Observation // all observations of the plan, in order
}

// Event is one of a phase's events.
type Event struct {
	Phase, Name string
	On          bool // it has happened, is not undone, and its phase goes on
}

// Assert is one of the plan's asserts.
type Assert struct {
	Name     string
	OK       *bool   // nil if not decided
	Figure   string  // the figure that it compares with a constant, as the plan writes it
	Limit    float64 // the constant
	HasLimit bool    // it compares a figure with a constant
}

// Observation is one of the plan's observations.
type Observation struct {
	Name   string
	Fields []string           // those that are shown: the first maxFields
	Value  map[string]float64 // the values that the last probe read, which must not change; nil if there are none
}

// Phase is one phase of a View. NewView sets everything that the plan determines; Offered, Setup and Load are set as the run is measured.
type Phase struct {
	Name    string
	Plan    *plan.Phase
	Verbs   []driver.Verb   // of the mix, in order
	Words   driver.Words    // for their names
	Targets []Target        // in the order in which requests are counted
	Files   bool            // the target is files on the workers' machines: reading them sends nothing
	Syncs   bool            // ops that store wait for a sync of their own
	Copies  int             // the largest N of targets with client-side replication; 0 if there are none
	Offered float64         // current ops per second; 0 in a closed phase, and while none are offered
	Setup   *measure.Totals // untimed puts before the load, cumulative; nil before the first
	Load    *measure.Totals // the phase's load, populate or clear, cumulative; nil before it begins
}

// Target is one of a phase's targets.
type Target struct {
	Name      string
	Verbs     []driver.Verb // verbs that the phase sends to it
	Endpoints int           // from the plan; for a cluster, more than have names
	Rows      int           // rows in the ledger of requests; 0 for a cluster whose number of nodes is still unknown
	later     int           // of these, the row for nodes that join later
}

// NewView returns the view of a run before it begins: every phase of the plan, with nothing counted. The plan must be valid.
func NewView(runID string, p *plan.Plan) View {
	v := View{Run: runID, Verdict: run.Verdict{Completeness: run.Complete, Validity: run.Valid, Assertions: run.None}}
	for _, ph := range p.Phases {
		v.Phases = append(v.Phases, newPhase(p, ph))
		for i := range ph.Events {
			if !p.ByWorkers(&ph.Events[i]) {
				v.Events = append(v.Events, Event{Phase: ph.Name, Name: ph.Events[i].Name})
			}
		}
	}
	for _, a := range p.Asserts {
		figure, limit, ok := expr.Limit(a)
		v.Asserts = append(v.Asserts, Assert{Name: a.Name, Figure: figure, Limit: limit, HasLimit: ok})
	}
	for _, o := range p.Observes {
		one := Observation{Name: o.Name}
		for _, field := range o.Fields[:min(len(o.Fields), maxFields)] {
			one.Fields = append(one.Fields, field.Name)
		}
		v.Observed = append(v.Observed, one)
	}
	return v
}

func newPhase(p *plan.Plan, ph *plan.Phase) Phase {
	out := Phase{Name: ph.Name, Plan: ph, Files: p.Target(ph.Target).Executor == plan.Thread, Words: p.Words()}
	if c, ok := p.Target(ph.Target).Config.(interface{ Syncs() bool }); ok {
		out.Syncs = c.Syncs()
	}
	verbs := func(mix []plan.Weight) (list []driver.Verb) {
		for _, w := range mix {
			if verb, ok := out.Words.Verb(w.Op); ok {
				list = append(list, verb)
			}
		}
		return list
	}
	out.Verbs = verbs(ph.Counted())
	endpoints := p.EndpointsOf(ph)
	for _, name := range ph.Targets() {
		t := p.Target(name)
		mine := Target{Name: name, Verbs: verbs(ph.OpsOn(name)), Endpoints: endpoints[name], Rows: endpoints[name]}
		if t.Discovers() { // it has more nodes than the plan names; their number is not known yet
			mine.Endpoints, mine.Rows = maxEndpoints+1, 0
		}
		if t.Placement == plan.Slots {
			mine.later = 1
		}
		out.Targets = append(out.Targets, mine)
		if t.Replication != nil {
			out.Copies = max(out.Copies, t.Replication.N)
		}
	}
	return out
}

// found records how many nodes the clusters among the phase's targets have; nodes is by target name. The ledger of requests has one more row for each
// cluster with slots, for nodes that join later.
func (ph *Phase) found(nodes map[string][]string) {
	ph.Targets = slices.Clone(ph.Targets) // views already shown share the old ones
	for i := range ph.Targets {
		if t := &ph.Targets[i]; len(nodes[t.Name]) > 0 {
			t.Rows = len(nodes[t.Name]) + t.later
		}
	}
}

// shares divides the ledger of requests among the targets. A cluster whose number of nodes is unknown gets everything after it.
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

// Phase returns the phase with the given name, which the caller may change in place; nil if the plan has none.
func (v *View) Phase(name string) *Phase {
	if i := slices.IndexFunc(v.Phases, func(ph Phase) bool { return ph.Name == name }); i >= 0 {
		return &v.Phases[i]
	}
	return nil
}

// frozen returns a copy that shares only the Totals with v.
func (v *View) frozen() *View {
	c := *v
	c.Phases, c.Events, c.Asserts, c.Observed = slices.Clone(v.Phases), slices.Clone(v.Events), slices.Clone(v.Asserts), slices.Clone(v.Observed)
	return &c
}
