package plan

import (
	"slices"
	"time"
)

// Observe is figures of the target's side that are read while the plan runs: before and after each phase, and in between.
type Observe struct {
	Name    string        `json:"name"`
	Kind    string        `json:"kind"`       // one of the kinds below; it says which of the following fields are set
	Target  string        `json:"target"`     // server, process: whose endpoints are asked, or who listens on them
	Combine string        `json:"combine"`    // how the figures of several endpoints become one: "sum", "mean", "min" or "max"; "" where there is one
	Port    int           `json:"port"`       // process: that it listens on, here; 0: not given
	PID     int           `json:"pid"`        // process; 0: not given
	Path    string        `json:"path"`       // directory
	URL     string        `json:"url"`        // prometheus
	Hook    string        `json:"hook"`       // hook: a command's name; what it is, the command line says
	Fields  []Field       `json:"fields"`     // one or more, each with a name of its own
	Every   time.Duration `json:"every_ns"`   // between two probes during a phase; 0: none
	Timeout time.Duration `json:"timeout_ns"` // of a probe
}

// The kinds of observations.
const (
	ObserveServer     = "server"     // what the servers of a target tell about themselves
	ObserveProcess    = "process"    // what the kernel counts of a process on the coordinator's machine
	ObserveDirectory  = "directory"  // what a directory on the coordinator's machine takes
	ObservePrometheus = "prometheus" // series of an endpoint for Prometheus
	ObserveHook       = "hook"       // what a command prints
)

// Field is one figure of an observation.
type Field struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`    // "bytes", "s", "us"; "" for a plain number
	Counter bool   `json:"counter"` // it only grows, until what counts is started anew
	Series  string `json:"series"`  // prometheus: which series it is the sum of
}

// FixedFields are those of every observation of a kind; nil where the plan says which.
func FixedFields(kind string) []Field {
	switch kind {
	case ObserveProcess:
		return []Field{
			{Name: "rss_bytes", Unit: "bytes"},
			{Name: "cpu_seconds", Unit: "s", Counter: true},
			{Name: "cpu_user_seconds", Unit: "s", Counter: true},
			{Name: "cpu_system_seconds", Unit: "s", Counter: true},
			{Name: "minor_faults", Counter: true},
			{Name: "major_faults", Counter: true},
			{Name: "read_bytes", Unit: "bytes", Counter: true},
			{Name: "write_bytes", Unit: "bytes", Counter: true},
			{Name: "threads"},
		}
	case ObserveDirectory:
		return []Field{
			{Name: "used_bytes", Unit: "bytes"},
			{Name: "size_bytes", Unit: "bytes"},
			{Name: "files"},
			{Name: "free_bytes", Unit: "bytes"},
		}
	}
	return nil
}

// Observe returns the observation with the given name, or nil.
func (p *Plan) Observe(name string) *Observe {
	for _, o := range p.Observes {
		if o.Name == name {
			return o
		}
	}
	return nil
}

// Hooks lists the commands that the plan names and the command line has to say, each once. That of an experiment is not among them.
func (p *Plan) Hooks() []string {
	var names []string
	for _, o := range p.Observes {
		if o.Kind == ObserveHook {
			names = append(names, o.Hook)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
