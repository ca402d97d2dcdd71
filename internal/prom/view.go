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
	Verbs     []driver.Verb   // of the mix, in verb order
	Scenarios []string        // their names, in the plan's order
	HasSetup  bool            // Setup will come
	Endpoints int             // of the target
	Batch     int             // keys of an op
	Files     bool            // the target is files of the workers' machines: what is read of them sends nothing
	Copies    int             // N when the client replicates, otherwise 0
	Offered   float64         // ops per second at this moment; 0 in a closed phase, and when none are offered
	Setup     *measure.Totals // untimed puts before the load, cumulative; nil: none yet
	Load      *measure.Totals // the phase's load, populate or clear, cumulative; nil: none yet
}

// Worker is one worker of a run, as it is now.
type Worker struct {
	Name             string
	Metrics          string  // host:port of its own page; "": it has none
	Up               bool    // it takes part: not lost, and not gone
	LastSeen         float64 // seconds since its last heartbeat; 0 in this process
	ClockOffset      float64 // its monotonic clock minus the coordinator's, seconds; they count from different moments: its change matters
	ClockUncertainty float64 // seconds; the offset is off by no more
	CPUSeconds       float64 // user and system time of its process
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
	t := p.Target(ph.Target)
	out := Phase{Name: ph.Name, HasSetup: len(ph.Setup) > 0, Endpoints: len(t.Endpoints), Batch: ph.Batch, Files: t.Executor == plan.Thread}
	if t.Builtin != nil {
		out.Endpoints = t.Builtin.Nodes
	}
	if t.Placement == plan.Slots { // it has more than the plan names; how many is not known before
		out.Endpoints = maxEndpoints + 1
	}
	if t.Replication != nil && t.Replication.Coordinate == "client" {
		out.Copies = t.Replication.N
	}
	for _, w := range ph.Ops {
		if verb, ok := driver.ParseVerb(w.Op); ok {
			out.Verbs = append(out.Verbs, verb)
		}
	}
	for _, s := range ph.Scenarios {
		out.Scenarios = append(out.Scenarios, s.Name)
	}
	return out
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
