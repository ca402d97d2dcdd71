package run

import (
	"time"

	"github.com/loadgen/loadgen/internal/measure"
)

// Assignment is what a worker is told once, before its first step.
type Assignment struct {
	RunID   string
	Plan    []byte              // canonical JSON
	Digest  string              // its SHA-256, in hex
	Nodes   map[string][]string // endpoints of the built-in nodes that were started, by target
	WallNS  int64               // wall time of the run clock's zero, Unix nanoseconds
	Zero    time.Time           // of the run clock, with this process' monotonic reading
	Index   int                 // this worker, counted from 0, of
	Workers int                 // all: sessions are divided exactly between them
}

// StepKind says what a step is for.
type StepKind string

const (
	Setup    StepKind = "setup"    // untimed puts of a phase's session pools
	Populate StepKind = "populate" // the shared key range once
	Clear    StepKind = "clear"    // deletes
	Load     StepKind = "load"     // the measured load
)

// Step is the unit the coordinator hands out.
type Step struct {
	Seq   int // from 0, over the whole run
	Phase string
	Kind  StepKind
	Last  bool // of its phase: connections close after it
	From  int  // the worker drives sessions From ≤ i < To of the phase, the same in all its steps
	To    int
}

// Ready is a worker's answer to a prepared step.
type Ready struct {
	Step        int
	Sessions    int                          // driven by this worker
	Connections int                          // open
	Ops         uint64                       // that its sessions will start; 0: a duration or a schedule decides
	Servers     map[string]map[string]string // what each endpoint says it is; only for a phase's first step
	Executor    string                       // "event loop" or "blocking"
	Loops       int

	// How the worker's monotonic clock stands to the coordinator's. Zero in the coordinator's own process.
	Remote      bool
	Offset      time.Duration // worker's − coordinator's
	Uncertainty time.Duration // the true offset is not further away than this
	RTT         time.Duration // shortest round trip seen
}

// Final is a worker's last word on a step.
type Final struct {
	Step      int
	Totals    measure.Totals
	Generator Generator
	Stopped   bool // asked to end early
	Expired   bool // ended early by itself: its lease was over
	Error     string
}

// Generator is what a worker's own process spent on a step.
type Generator struct {
	Executor    string  `json:"executor"` // "event loop" or "blocking"
	Loops       int     `json:"loops"`
	CPUSeconds  float64 `json:"cpu_seconds"` // user + system of the process
	GCCycles    uint32  `json:"gc_cycles"`
	MaxRSSBytes int64   `json:"max_rss_bytes"`
	Mallocs     uint64  `json:"mallocs"` // heap objects allocated by the process
	Busy        float64 `json:"busy"`    // share of the step that the busiest loop spent working, 0 to 1; waiting and spinning are not work
}
