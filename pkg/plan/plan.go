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
// expression or a part of one yields is bounded before anything is made of it (guard.go, eval.go). Functions are pure. Parse and
// Resolve together allocate less than 64 MiB and take time in proportion to the text; so does Decode for its form.
//
// # Canonical form
//
// What crosses the wire, names a run and is printed is one JSON text per plan: sorted keys, no white space, every field present.
// [Decode] takes no other, so a plan's SHA-256 is its identity. A secret is its name; the value is looked up where the load runs.
package plan

import (
	"fmt"
	"strconv"
	"time"
)

// Plan is what to run, and against what.
type Plan struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Seed        uint64     `json:"seed"`
	Targets     []*Target  `json:"targets"`  // those that a phase or an observation uses, in the file's order
	Datasets    []*Dataset `json:"datasets"` // those that a phase uses, likewise
	Observes    []*Observe `json:"observes"` // in the file's order
	Phases      []*Phase   `json:"phases"`   // in the order they run; a phase whose `when` was false is not here
	Asserts     []*Assert  `json:"asserts"`
}

// Target is a system under load.
type Target struct {
	Name        string        `json:"name"`
	Driver      string        `json:"driver"`
	Endpoints   []string      `json:"endpoints"` // host:port, or unix:// and a path; names for a driver without a wire; empty when Builtin starts them
	Builtin     *Builtin      `json:"builtin"`   // nil when Endpoints are given
	Timeout     time.Duration `json:"timeout_ns"`
	Executor    string        `json:"executor"`    // EventLoop, Blocking or Thread
	Placement   string        `json:"placement"`   // Ketama, Rendezvous or Slots: how keys are divided between endpoints
	TLS         *TLS          `json:"tls"`         // nil: connections are plain TCP
	Replication *Replication  `json:"replication"` // nil: each key lives on one endpoint
	Config      any           `json:"config"`      // the driver's own attributes: what its NewConfig returned, filled
}

// The executors that can carry a target.
const (
	EventLoop = "event loop" // a thread with non-blocking sockets
	Blocking  = "blocking"   // goroutines for each connection
	Thread    = "thread"     // a thread for each session, which does the work itself
)

// The placements of keys on endpoints. The first two go by the endpoints' names n0, n1, … and not by their addresses.
const (
	Ketama     = "ketama"     // on a ring with points of each name
	Rendezvous = "rendezvous" // by the highest random weight
	Slots      = "slots"      // as a cluster says, whose nodes Endpoints are some of; no other target has it, nor a cluster another
)

// TLS says how connections to a target are encrypted. Its files are PEM, and read where the load runs.
type TLS struct {
	CA         string `json:"ca"`          // path of the authorities to trust; "" for those of the system
	Cert       string `json:"cert"`        // path of the client's certificate and those up to its authority; "" for none
	Key        string `json:"key"`         // path of the client's private key; "" without Cert
	ServerName string `json:"server_name"` // whose certificate the server must show; "" for the endpoint's host
}

// Builtin asks for built-in cache nodes on this machine.
type Builtin struct {
	Nodes  int           `json:"nodes"`
	Memory int64         `json:"memory_bytes"` // of each node
	Delay  time.Duration `json:"delay_ns"`     // before each reply
}

// Replication says on how many endpoints a key lives and how many answers make an op.
type Replication struct {
	Coordinate string        `json:"coordinate"` // "client"
	N          int           `json:"n"`
	W          int           `json:"w"`
	R          int           `json:"r"`
	Timeout    time.Duration `json:"timeout_ns"`  // of the op
	ReadFanout string        `json:"read_fanout"` // "n" asks all N, "r" asks R and the next on failure
	ReadFrom   string        `json:"read_from"`   // for read_fanout "r": "first" in the placement's order, or "random"
}

// Dataset is a key space and what is stored under its keys.
type Dataset struct {
	Name   string `json:"name"`
	Keys   Keys   `json:"keys"`
	Values Values `json:"values"`
}

// Keys is a key space and how keys are picked from it.
type Keys struct {
	Pick    string  `json:"pick"`               // "uniform", "zipf", "hotspot", "latest" or "sequence"
	Skew    float64 `json:"skew"`               // s of zipf(s) and latest(s), > 0
	Form    string  `json:"form,omitempty"`     // of zipf: "" for the exact distribution, "ycsb" for YCSB's
	HotOps  float64 `json:"hot_ops,omitempty"`  // of hotspot: share of ops on the hot keys, 0 to 1, and
	HotKeys float64 `json:"hot_keys,omitempty"` // of the keys that are hot
	Count   int64   `json:"count"`              // keys in the space, or in each session's pool
	Scope   string  `json:"scope"`              // "shared" or "session"
	Format  string  `json:"format"`             // one integer verb, e.g. key:%012d; not looked at with File

	File *EntryFile `json:"file,omitempty"` // nil: keys are made by Format
}

// Values says what a put, an append or a write stores.
type Values struct {
	Size            int               `json:"size_bytes"`                // of the largest value
	Sizes           *Sizes            `json:"sizes,omitempty"`           // nil: all values are of one size
	Checked         bool              `json:"checked"`                   // writer, version and checksum stand in the value's first 24 bytes
	Fill            string            `json:"fill"`                      // "text", or a byte such as "0xff"; see parseFill
	Record          map[string]string `json:"record,omitempty"`          // types of the fields of JSON objects that are the values, see internal/record; nil: as Fill says
	File            *ValueFile        `json:"file,omitempty"`            // that has the values; nil: they are made
	Compressibility *float64          `json:"compressibility,omitempty"` // share of a value that compresses away, the rest being random bytes; nil: as Fill says

	TTL time.Duration `json:"ttl_ns"` // after a put, the store forgets it by itself; 0: never
}

// Phase is a load on a target. Exactly one of Closed, Open, Stages, Search, Populate and Clear is set.
type Phase struct {
	Name       string     `json:"name"`
	Target     string     `json:"target"`
	Dataset    string     `json:"dataset"`
	Ops        []Weight   `json:"ops"`                 // in verb order; of Populate: put, of Clear: delete; of Scenarios: what they bring
	Scenarios  []Scenario `json:"scenarios"`           // what sessions draw from instead of Ops; empty for ops that stand for themselves
	Batch      int        `json:"batch"`               // keys of an op of the load
	Setup      []Weight   `json:"setup"`               // untimed ops before the load, each session every key of its pool once; empty for none
	Closed     *Closed    `json:"closed"`              //
	Open       *Open      `json:"open"`                //
	Stages     *Stages    `json:"stages"`              //
	Search     *Search    `json:"search"`              //
	Populate   *Populate  `json:"populate"`            //
	Clear      *Clear     `json:"clear"`               //
	ExpectHits *float64   `json:"expect_hits"`         // share of gets, 0 to 1; nil: nothing is expected
	HitRatio   *float64   `json:"hit_ratio,omitempty"` // share of gets that ask for keys of the dataset, above 0; the others for keys that nobody puts. nil: all
	Bound      string     `json:"bound,omitempty"`     // an earlier phase, whose speed the phase's is shown as a share of; "" for none
	MaxBad     float64    `json:"max_bad"`             // share of due ops, 0 to 1
	Stop       *Stop      `json:"stop"`                // nil: a load goes on whatever its ops end in
}

// Stop says how many ops have to fail until a load ends, and the run with it: one of the two, the other is 0. An op has failed that
// ended in timeout, error or quorum_failed.
type Stop struct {
	Errors int64   `json:"errors"` // so many
	Share  float64 `json:"share"`  // more than this share of the ops that have ended, 0 to 1, once stopLeast have
}

// stopLeast is how many ops have to have ended before a share of them says something.
const stopLeast = 100

// Reached says whether so many failures among the ops that have ended are enough.
func (s *Stop) Reached(failed, ended uint64) bool {
	if s.Errors > 0 {
		return failed >= uint64(s.Errors)
	}
	return ended >= stopLeast && float64(failed) > s.Share*float64(ended)
}

func (s *Stop) String() string {
	switch {
	case s.Errors == 0:
		return fmt.Sprintf("stop_after = %q", strconv.FormatFloat(100*s.Share, 'g', 6, 64)+"%")
	case s.Errors == 1:
		return `on_error = "stop"`
	}
	return fmt.Sprintf("stop_after = %d", s.Errors)
}

// Weight is an op's share in a mix, relative to the sum of weights.
type Weight struct {
	Op     string  `json:"op"` // a driver.Verb's name
	Weight float64 `json:"weight"`
}

// Closed is a fixed number of sessions, each with Pipeline ops in flight: the next op is due when one has ended.
type Closed struct {
	Sessions   int           `json:"sessions"`
	Pipeline   int           `json:"pipeline"`
	Iterations int64         `json:"iterations"`  // ops of each session; 0: until Duration, or the end of a sequence
	Duration   time.Duration `json:"duration_ns"` // 0: until Iterations
	Ramp       time.Duration `json:"ramp_ns"`     // session i of n starts at Ramp·i/n
	WarmUp     time.Duration `json:"warmup_ns"`   // left out of rates and latencies; 0: found in the series
	Think      time.Duration `json:"think_ns"`    // from the end of an op to the due time of the next

	Trace *Trace `json:"trace,omitempty"` // ops come from it; nil: they do not
}

// Open is arrivals at one rate, which do not wait for the target.
type Open struct {
	Schedule
	Rate     float64       `json:"rate"`        // arrivals per second after Ramp
	Duration time.Duration `json:"duration_ns"` // Ramp included
	Ramp     time.Duration `json:"ramp_ns"`     // the rate rises from 0 linearly
	WarmUp   time.Duration `json:"warmup_ns"`   // left out of rates and latencies, Ramp included; 0: found in the series
	Trace    *Trace        `json:"trace"`       // ops and due times come from it, and Rate and Duration are its own; nil: they do not
}

// Schedule is what open, stages and search have in common: how arrivals come, and who takes them.
type Schedule struct {
	Arrivals string        `json:"arrivals"` // "constant" or "poisson"
	Sessions int           `json:"sessions"`
	Pipeline int           `json:"pipeline"`
	InFlight int           `json:"in_flight"` // bound on started and not ended ops, at most Sessions × Pipeline
	OnFull   string        `json:"on_full"`   // "wait" or "shed"
	Drain    time.Duration `json:"drain_ns"`  // how long after the last due time of a step ops may still start and end
	Streams  int           `json:"streams"`   // a multiple of Sessions, at least 1,024
}

// Stages is arrivals at one rate after another.
type Stages struct {
	Schedule
	Stages []Stage `json:"stages"` // in their order
}

// Stage is one step of Stages. It begins when the ops of the one before have ended.
type Stage struct {
	Rate     float64       `json:"rate"`        // arrivals per second after Ramp
	Duration time.Duration `json:"duration_ns"` // Ramp included
	Ramp     time.Duration `json:"ramp_ns"`     // the rate goes from the last stage's to this one's linearly; in the first from 0
}

// Search looks for the largest rate at which every SLO holds, by steps at rates of From to To.
type Search struct {
	Schedule
	From         float64       `json:"from"`             // arrivals per second of the first step, and the lowest
	To           float64       `json:"to"`               // the highest
	StepDuration time.Duration `json:"step_duration_ns"` // of a step's schedule
	Precision    float64       `json:"precision"`        // the rates that hold and fail may be so far apart, as a share of the former
	Budget       time.Duration `json:"budget_ns"`        // for all steps together
	SLOs         []SLO         `json:"slos"`             // one or more
}

// SLO is what the response times of ops must not exceed. A quantile that is 0 is not looked at; one is not.
type SLO struct {
	Op           string        `json:"op"` // "": each op of the mix
	ResponseP50  time.Duration `json:"response_p50_ns"`
	ResponseP90  time.Duration `json:"response_p90_ns"`
	ResponseP99  time.Duration `json:"response_p99_ns"`
	ResponseP999 time.Duration `json:"response_p999_ns"`
}

// Populate puts every key of a shared dataset exactly once.
type Populate struct {
	Sessions int `json:"sessions"`
	Pipeline int `json:"pipeline"`
}

// Clear deletes every key of the dataset; built-in nodes are flushed instead.
type Clear struct {
	Sessions int `json:"sessions"`
	Pipeline int `json:"pipeline"`
}

// Assert is a condition on the result, kept as text and evaluated after the run.
type Assert struct {
	Name string `json:"name"`
	That string `json:"that"`
	File string `json:"file"`
	Line int    `json:"line"`
}
