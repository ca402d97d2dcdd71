package worker

import (
	"context"
	"time"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/pace"
)

// Worker carries out steps for its share of a plan's sessions.
type Worker interface {
	// Assign gives the worker its part in a run.
	Assign(ctx context.Context, a Assignment) error
	// Prepare makes ready to carry out a step.
	Prepare(ctx context.Context, step Step) (Ready, error)
	// Run carries out the prepared step from a time on the run clock on, passing a snapshot to sink each second, one at a time. When ctx ends,
	// Run returns soon, with what is in flight counted as that. It returns the error of sink or kept, and a *Loss when the worker was lost;
	// so do Assign and Prepare.
	Run(ctx context.Context, at time.Duration, sink Sink) (Final, error)
	// Drain ends the step at hand early, and those after it: nothing more is started, what is outstanding is awaited while
	// answers come.
	Drain()
}

// Progress returns how many bytes of files a worker has read and written to make steps ready; 0 of one that does not say.
func Progress(w Worker) int64 {
	if p, ok := w.(interface{ Progress() int64 }); ok {
		return p.Progress()
	}
	return 0
}

// Sink takes a snapshot. When it has returned without an error, the snapshot is taken and its memory is the worker's again; once kept, which the
// worker calls next, has returned nil, it is kept.
type Sink func(snap *measure.Snapshot) (kept func() error, err error)

// Member is a worker and the name it goes by.
type Member struct {
	Name    string
	Host    string // "": this process
	Version string // of its program
	Worker  Worker

	// Attend waits until ctx ends or the worker is lost, and returns the loss then. Nil for a worker that cannot be lost.
	Attend func(ctx context.Context) *Loss
}

// Status is what is known of a worker while a run goes on.
type Status struct {
	Name    string
	Metrics string        // host:port of its metrics page; "": it has none
	Up      bool          // it takes part: not lost, and not gone
	Silent  time.Duration // since its newest heartbeat came, or its first hello; 0 in this process

	// As the worker said with that heartbeat; 0 before the first.
	Offset      time.Duration // its monotonic clock minus the coordinator's; they count from different moments: its change matters
	Uncertainty time.Duration // by how much the offset may be off
	CPU         time.Duration // user and system time of its process
}

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
	Sessions    int                                     // driven by this worker
	Connections int                                     // open
	Ops         uint64                                  // that its sessions will start; 0: a duration or a schedule decides
	Nodes       map[string][]string                     // of each target that is a cluster, those that the worker has found
	Servers     map[string]map[string]map[string]string // what each endpoint of each target says it is; only for a phase's first step
	Executor    string                                  // "event loop", "blocking" or "thread"
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
	Totals    *measure.Totals  // nil with an error, and of a worker in another process
	Account   *measure.Account // of the totals of a worker in another process; nil in this one
	Generator measure.Generator
	Log       *Log // of the last step of a phase on log files; nil of any other
	Stopped   bool // asked to end early
	Expired   bool // ended early by itself: its lease was over

	Uncertainty time.Duration // as that of Ready, by the end of the step
}
