package run

import (
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/pace"
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
	Last  bool // of its phase: connections close after it. Where it is not known beforehand, they close before those of another phase open
	From  int  // the worker drives sessions From ≤ i < To of the phase, the same in all its steps
	To    int

	// Of a load whose ops are due by a schedule; the plan alone does not say what the coordinator decides as it goes.
	Level int        // of its phase, from 0
	Shape pace.Shape // of this step
}

// Ready is a worker's answer to a prepared step.
type Ready struct {
	Step        int
	Sessions    int                          // driven by this worker
	Connections int                          // open
	Ops         uint64                       // that its sessions will start; 0: a duration or a schedule decides
	Endpoints   []string                     // nodes that the worker has found, of a target that is a cluster; else none
	Servers     map[string]map[string]string // what each endpoint says it is; only for a phase's first step
	Executor    string                       // "event loop", "blocking" or "thread"
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
	Totals    *measure.Totals // nil with an error
	Generator Generator
	Log       *Log // of the last step of a phase on log files; nil of any other
	Stopped   bool // asked to end early
	Expired   bool // ended early by itself: its lease was over

	Uncertainty time.Duration // as that of Ready, by the end of the step
}

// Generator is what a worker's own process spent on a step, and what kept it from running. A null is a quantity that the kernel or the
// executor does not count.
type Generator struct {
	Executor    string  `json:"executor"` // "event loop", "blocking" or "thread"
	Loops       int     `json:"loops"`
	CPUSeconds  float64 `json:"cpu_seconds"` // user + system of the process
	GCCycles    uint32  `json:"gc_cycles"`
	MaxRSSBytes int64   `json:"max_rss_bytes"`
	Mallocs     uint64  `json:"mallocs"` // heap objects allocated by the process

	// Busy is the share of the step, 0 to 1, in which the busiest loop's thread computed; looking at the clock for want of work is left
	// out. On the blocking executor it is at least the share that the whole process used of the processors it may use.
	Busy              float64  `json:"busy"`
	ProductiveSeconds float64  `json:"productive_seconds"` // the same time, summed over loops; on the blocking executor that of the process
	RunQueueWait      *float64 `json:"run_queue_wait"`     // share of the step, 0 to 1, that a loop's thread was ready and had no processor, 10 µs for each waking left out; the largest

	GCPauseMaxSeconds      float64    `json:"gc_pause_max_seconds"`      // longest time that the garbage collector stopped the process
	SchedLatencyP99Seconds float64    `json:"sched_latency_p99_seconds"` // from when a goroutine can run to when it does: 99 % took no longer
	Throttled              *Throttled `json:"throttled"`                 // by the process' control groups
	TCP                    *TCP       `json:"tcp"`                       // of the load's own connections

	Interrupted *measure.Interrupted `json:"interrupted"` // of open loads on event loops

	Machine        *measure.Machine `json:"machine"`
	MachineUnknown string           `json:"-"` // why Machine is nil
}

// Throttled is how often and for how long control groups kept their processes from running because their CPU quota was spent.
type Throttled struct {
	Periods uint64  `json:"periods"` // of the quota
	Seconds float64 `json:"seconds"` // summed over processors
}

// TCP is what the kernel counts on connections (tcp_info in linux/tcp.h).
type TCP struct {
	BytesSent          uint64 `json:"bytes_sent"` // those sent again included
	BytesRetransmitted uint64 `json:"bytes_retransmitted"`
	Retransmits        uint64 `json:"retransmits"` // segments sent again
}
