// Package plan turns the text of a plan into validated data.
//
//	text --Parse--> *File --Resolve(variables)--> *Plan --JSON--> canonical bytes --Decode--> *Plan
//
// A [Plan] is complete, plain data: it holds no expressions, references or missing defaults, and the same bytes run the same load
// anywhere. All of loadgen's defaults are applied here and nowhere else.
//
// # Text
//
// A plan is HCL: the blocks plan, variable, locals, target, dataset, observe, phase, assert, experiment, table and chart, with each argument on its own
// line. Unknown words are errors. All errors are reported at once, each with its place and what to write instead. A null argument counts as absent.
//
// # Quantities
//
//	quantity   text                    number   units
//	duration   "10s" "1m30s" "100us"   seconds  those of time.ParseDuration
//	size       "64MiB" "200B"          bytes    B, KiB MiB GiB TiB (1,024), kB MB GB TB (1,000)
//	rate       "50k/s" "300/min"       per s    /s /min /h, with k, M or G before it
//	share      "1%"                    0 to 1   %
//
// A quantity may also be a number in its base unit, which is what the functions duration, size, rate and percent return. Units
// are case-sensitive. Signs, exponents, NaN and infinities are errors.
//
// # Hostile text
//
// Plans come from strangers. The text's bytes, tokens, nesting and operators are bounded before HCL parses it, and the value of every
// expression and subexpression is bounded before it is used (package dialect). Functions are pure. Parse and Resolve together
// allocate less than 64 MiB and take time linear in the text; so does Decode in the canonical form.
//
// # Canonical form
//
// A plan has exactly one JSON text, which crosses the wire, names the run and is printed: sorted keys, no white space, every field
// present except empty ones tagged omitempty. [Decode] accepts no other, so the text's SHA-256 identifies the plan. The text holds
// only the names of secrets; their values are looked up where the load runs.
package plan

import "slices"

// Plan says what to run, and against which targets.
type Plan struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Seed        uint64 `json:"seed"`

	// OnWorkerLoss is Continue, Abort or Replace; "" for the coordinator's setting.
	OnWorkerLoss string `json:"on_worker_loss,omitempty"`

	// Quantiles lists the quantiles of latencies to show, above 0 and below 1; none for the usual ones.
	Quantiles []float64 `json:"quantiles,omitempty"`

	Targets  []*Target  `json:"targets"`  // used by a phase or an observation, in file order
	Datasets []*Dataset `json:"datasets"` // used by a phase, in file order
	Observes []*Observe `json:"observes"` // in file order
	Phases   []*Phase   `json:"phases"`   // in run order, without those whose `when` was false
	Asserts  []*Assert  `json:"asserts"`

	LeftOut bool `json:"-"` // this variant is left out: the experiment's `when` is false
}

// What to do when a worker is lost: go on without it, end the run, or have another worker take over its sessions from the next phase on.
const (
	Continue = "continue"
	Abort    = "abort"
	Replace  = "replace"
)

// Irreplaceable returns a phase that needs data that its sessions left on their worker's machine in an earlier phase, so that no other worker can
// take these sessions over in between. what names the data. It returns "" if there is no such phase.
func (p *Plan) Irreplaceable() (phase, earlier, what string) {
	first := map[string]string{} // phase, by target
	for _, ph := range p.Phases {
		if before := p.firstFollowed(ph); ph.Verify != nil && before != ph {
			return ph.Name, before.Name, "acknowledged versions"
		}
		t := p.Target(ph.Target)
		if t == nil || t.Executor != Thread {
			continue
		}
		if before, there := first[t.Name]; there {
			return ph.Name, before, "log files"
		}
		first[t.Name] = ph.Name
	}
	return "", "", ""
}

// Phase returns the phase with the given name, or nil.
func (p *Plan) Phase(name string) *Phase {
	return first(p.Phases, func(ph *Phase) bool { return ph.Name == name })
}

// Target returns the target with the given name, or nil.
func (p *Plan) Target(name string) *Target {
	return first(p.Targets, func(t *Target) bool { return t.Name == name })
}

// Dataset returns the dataset with the given name, or nil.
func (p *Plan) Dataset(name string) *Dataset {
	return first(p.Datasets, func(d *Dataset) bool { return d.Name == name })
}

// Observe returns the observation with the given name, or nil.
func (p *Plan) Observe(name string) *Observe {
	return first(p.Observes, func(o *Observe) bool { return o.Name == name })
}

// namesOf returns the name of each element of a list.
func namesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, of := range list {
		names[i] = name(of)
	}
	return names
}

// first returns the first element of a list that is so; the zero value if there is none.
func first[T any](list []T, so func(T) bool) (none T) {
	if i := slices.IndexFunc(list, so); i >= 0 {
		return list[i]
	}
	return none
}
