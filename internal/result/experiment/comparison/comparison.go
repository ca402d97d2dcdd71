// Package comparison holds comparisons of stored runs with other stored runs as data: the figures, and the differences between plans and
// environments. Package experiment computes the statistics.
package comparison

import (
	"slices"

	"github.com/loadgen/loadgen/internal/result/run"
)

// Result is how two sides compare. Its JSON is described in docs/result.md.
type Result struct {
	Schema      int          `json:"schema"`
	Variant     string       `json:"variant"`         // the variant, if runs of two experiments are compared; "" if sides were named individually
	Sides       []Side       `json:"sides"`           // A, the baseline, and B
	Differences []Difference `json:"differences"`     // of plan and environment
	Notes       []string     `json:"notes"`           // questions that these runs cannot answer, and runs that were left out
	Gates       []*run.Gate  `json:"gates,omitempty"` // of B by A, one for each load or op; absent if none was asked for
	Figures     []run.Figure `json:"figures"`         // as an experiment's, with sides as variants
	Tables      []run.Table  `json:"tables"`          // one for each phase, op and metric, then for each observation of a phase
}

// Side is the runs of one side.
type Side struct {
	Name string              `json:"name"`
	Runs []run.ExperimentRun `json:"runs"`
}

// Difference is something that is not the same for all runs.
type Difference struct {
	Of     string   `json:"of"`     // "plan" or "environment"
	Path   string   `json:"path"`   // in the plan's JSON or the result's
	Values []string `json:"values"` // by side, as text; several values of a side are joined by " | "; "–" means none
}

// Kept is a stored run and its plan.
type Kept struct {
	*run.Run
	Plan []byte // canonical JSON
}

// New returns a comparison without figures. Its notes say where runs share draws.
func New(a, b []Kept) *Result {
	notes := shared(a, b)
	for _, k := range slices.Concat(a, b) {
		if k.Imported {
			notes = append(notes, k.ID+" was imported")
		}
	}
	return &Result{
		Schema: run.NewExperiment("").Schema, Sides: []Side{side("A", a), side("B", b)},
		Differences: differences(a, b), Notes: notes, Figures: []run.Figure{}, Tables: []run.Table{},
	}
}

func side(name string, kept []Kept) Side {
	s := Side{Name: name, Runs: []run.ExperimentRun{}}
	for _, k := range kept {
		s.Runs = append(s.Runs, k.Ended())
	}
	return s
}
