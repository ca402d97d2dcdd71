// Package plan turns the text of a plan into validated data.
//
//	text --Parse--> *File --Resolve(variables)--> *Plan --JSON--> canonical bytes --Decode--> *Plan
//
// A [Plan] is complete, plain data: no expression, default or reference is left in it, and the same bytes run the same load
// anywhere. All defaults of loadgen are applied here and nowhere else.
//
// # Text
//
// A plan is HCL: the blocks plan, variable, locals, target, dataset, observe, phase, assert, experiment and table, each argument on a line of its own. Unknown
// words are errors; all errors of a text are reported at once, each with its place and what to write instead. An argument that is
// null counts as not written.
//
// # Quantities
//
//	quantity   text                    number   units
//	duration   "10s" "1m30s" "100us"   seconds  those of time.ParseDuration
//	size       "64MiB" "200B"          bytes    B, KiB MiB GiB TiB (1,024), kB MB GB TB (1,000)
//	rate       "50k/s" "300/min"       per s    /s /min /h, with k, M or G before it
//	share      "1%"                    0 to 1   %
//
// Every quantity may also be a number in its base unit, which is what the functions duration, size, rate and percent return. Units
// are case-sensitive, and signs, exponents, NaN and infinities are no quantities.
//
// # Hostile text
//
// Plans come from strangers. A text is bounded in bytes, tokens, nesting and operators before HCL parses it; every value that an
// expression or a part of one yields is bounded before anything is made of it (package lang). Functions are pure. Parse and
// Resolve together allocate less than 64 MiB and take time in proportion to the text; so does Decode for its form.
//
// # Canonical form
//
// What crosses the wire, names a run and is printed is one JSON text per plan: sorted keys, no white space, every field present.
// [Decode] takes no other, so a plan's SHA-256 is its identity. A secret is its name; the value is looked up where the load runs.
package plan

// Plan is what to run, and against what.
type Plan struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Seed        uint64 `json:"seed"`

	// OnWorkerLoss is Continue, Abort or Replace; "": as the coordinator is told.
	OnWorkerLoss string `json:"on_worker_loss,omitempty"`

	Targets  []*Target  `json:"targets"`  // those that a phase or an observation uses, in the file's order
	Datasets []*Dataset `json:"datasets"` // those that a phase uses, likewise
	Observes []*Observe `json:"observes"` // in the file's order
	Phases   []*Phase   `json:"phases"`   // in the order they run; a phase whose `when` was false is not here
	Asserts  []*Assert  `json:"asserts"`
}

// What is done when a worker is lost: go on without it, end the run, or have another worker take its sessions over from the next phase on.
const (
	Continue = "continue"
	Abort    = "abort"
	Replace  = "replace"
)

// Irreplaceable returns a phase that needs what the same sessions have left on their worker's machine in an earlier phase, so that no other worker
// can take them over in between; "" when there is none.
func (p *Plan) Irreplaceable() (phase, earlier string) {
	first := map[string]string{} // phase, by target
	for _, ph := range p.Phases {
		t := p.Target(ph.Target)
		if t == nil || t.Executor != Thread {
			continue
		}
		if before, there := first[t.Name]; there {
			return ph.Name, before
		}
		first[t.Name] = ph.Name
	}
	return "", ""
}

// Phase returns the phase with the given name, or nil.
func (p *Plan) Phase(name string) *Phase {
	for _, ph := range p.Phases {
		if ph.Name == name {
			return ph
		}
	}
	return nil
}

// Target returns the target with the given name, or nil.
func (p *Plan) Target(name string) *Target {
	for _, t := range p.Targets {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Dataset returns the dataset with the given name, or nil.
func (p *Plan) Dataset(name string) *Dataset {
	for _, d := range p.Datasets {
		if d.Name == name {
			return d
		}
	}
	return nil
}
