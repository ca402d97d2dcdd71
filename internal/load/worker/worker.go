package worker

import (
	"context"
	"time"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/plan/pace"
)

// Worker carries out steps for its share of a plan's sessions.
type Worker interface {
	// Assign gives the worker its part of a run.
	Assign(ctx context.Context, a Assignment) error
	// Prepare gets ready for a step.
	Prepare(ctx context.Context, step Step) (Ready, error)
	// Run carries out the prepared step from the given time on the run clock. Each second it passes a snapshot to sink, one at a time. When ctx ends,
	// Run returns soon, and counts unfinished ops as in flight. It returns an error of sink or kept, and a *Loss if the worker was lost; so do Assign
	// and Prepare.
	Run(ctx context.Context, at time.Duration, sink Sink) (Final, error)
	// Drain ends the current step and all later ones early: no more ops start, and outstanding ones are waited for as long as answers come.
	Drain()
}

// Progress returns how many bytes of files a worker has read and written to make steps ready; 0 if it does not say.
func Progress(w Worker) int64 {
	if p, ok := w.(interface{ Progress() int64 }); ok {
		return p.Progress()
	}
	return 0
}

// Sink takes a snapshot. Once it returns without an error, the worker may reuse the snapshot's memory. The worker then calls kept; once that returns
// nil, the snapshot is stored.
type Sink func(snap *measure.Snapshot) (kept func() error, err error)

// Forget is a Sink that keeps nothing.
func Forget(*measure.Snapshot) (kept func() error, err error) {
	return func() error { return nil }, nil
}

// Member is a worker and its name.
type Member struct {
	Name    string
	Host    string // "" for this process
	Version string // of its program
	Worker  Worker

	// Attend waits until ctx ends, or until the worker is lost, and then returns the loss. Attend is nil for a worker that cannot be lost.
	Attend func(ctx context.Context) *Loss
}

// Status describes a worker during a run.
type Status struct {
	Name    string
	Metrics string        // host:port of its metrics page; "" for none
	Up      bool          // it takes part: it is neither lost nor gone
	Silent  time.Duration // time since its newest heartbeat or, before the first, since its hello; 0 in this process

	// The state that this heartbeat reported; 0 before the first.
	Offset      time.Duration // its monotonic clock minus the coordinator's; they start at different moments, so only its changes matter
	Uncertainty time.Duration // the most by which the offset may be wrong
	CPU         time.Duration // user and system time of its process
}

// Assignment holds the facts that a worker gets once, before its first step. In JSON, as a Final is, it lacks what package rpc carries otherwise.
type Assignment struct {
	RunID   string
	Plan    []byte              `json:"-"` // canonical JSON
	Digest  string              // its SHA-256, in hex
	Nodes   map[string][]string // endpoints of the built-in nodes, by target
	WallNS  int64               // wall time of the run clock's zero, Unix nanoseconds
	Zero    time.Time           `json:"-"` // zero of the run clock, with this process's monotonic reading
	Index   int                 // this worker's number, from 0
	Workers int                 // number of workers, among which the sessions are divided
	DrawsAs int                 // the repetition whose random draws its loads make, from 1
}

// Step is the unit of work that the coordinator hands out.
type Step struct {
	Seq   int // from 0, over the whole run
	Phase string
	Kind  StepKind
	Last  bool // the last step of its phase: connections close after it. If that is not known in advance, they close before the next phase opens its own
	From  int  // the worker drives sessions From ≤ i < To of the phase, in all its steps
	To    int

	// For a load with a schedule: decided by the coordinator as it goes, not by the plan alone.
	Level int        // number of the level in its phase, from 0
	Shape pace.Shape // shape of this step's load
}

// Ready is a worker's answer to a prepared step.
type Ready struct {
	Step        int
	Sessions    int                                     // sessions that this worker drives
	Connections int                                     // open connections
	Ops         uint64                                  // ops that its sessions will start; 0 if a duration or a schedule decides
	Nodes       map[string][]string                     // nodes that the worker found, for each target that is a cluster
	Servers     map[string]map[string]map[string]string // what each endpoint of each target says about itself; only for a phase's first step
	Executor    string                                  // "event loop", "blocking" or "thread"
	Loops       int

	// Offset between the worker's monotonic clock and the coordinator's; zero in the coordinator's own process.
	Remote      bool
	Offset      time.Duration // worker's − coordinator's
	Uncertainty time.Duration // the most by which the offset may be wrong
	RTT         time.Duration // shortest round trip seen
}

// Final is a worker's final report on a step.
type Final struct {
	Step      int
	Totals    *measure.Totals   `json:"-"` // nil after an error, and from a worker in another process
	Account   *measure.Account  `json:"-"` // account of the totals of a worker in another process; nil in this one
	Generator measure.Generator `json:"-"`
	Log       *Log              // for the last step of a phase on log files; otherwise nil
	Stopped   bool              // the step was asked to end early
	Expired   bool              // the step ended early because the worker's lease was over

	Uncertainty time.Duration `json:"-"` // as in Ready, by the end of the step
}
