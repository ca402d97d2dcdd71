package measure

import (
	"time"
)

// Generator describes what a worker's own process used in a step, and what kept it from running. A null means that the kernel or the executor does
// not count the quantity.
type Generator struct {
	Executor    string  `json:"executor"` // "event loop", "blocking" or "thread"
	Loops       int     `json:"loops"`
	CPUSeconds  float64 `json:"cpu_seconds"` // user + system of the process
	GCCycles    uint32  `json:"gc_cycles"`
	MaxRSSBytes int64   `json:"max_rss_bytes"`
	Spent
	Mallocs     uint64 `json:"mallocs"`       // heap objects allocated by the process
	NoLocalPort uint64 `json:"no_local_port"` // attempts to connect for which no local port or address was left
	Abandoned   uint64 `json:"abandoned"`     // connections that were closed at the end of the phase while the server was still at work for them

	Unasked Unasked `json:"unasked"`

	// Busy is the share of the step, 0 to 1, in which the busiest loop's thread computed, without polling the clock while idle. On the blocking
	// executor it is at least the share that the whole process used of the processors it may use.
	Busy              float64  `json:"busy"`
	ProductiveSeconds float64  `json:"productive_seconds"` // the same time, summed over loops; on the blocking executor, the process's
	RunQueueWait      *float64 `json:"run_queue_wait"`     // share of the step, 0 to 1, that a loop's thread was runnable but had no processor, less 10 µs per wake-up; the largest over loops

	GCPauseMaxSeconds      float64    `json:"gc_pause_max_seconds"`      // longest stop of the process by the garbage collector
	SchedLatencyP99Seconds float64    `json:"sched_latency_p99_seconds"` // 99th percentile of the time from when a goroutine is runnable until it runs
	Throttled              *Throttled `json:"throttled"`                 // by the process's control groups
	TCP                    *TCP       `json:"tcp"`                       // of the load's own connections

	Interrupted *Interrupted `json:"interrupted"` // of open and closed loads on event loops

	// The shares of the step, 0 to 1, in which the limits of the worker's policy kept due ops from starting; the largest over loops.
	RateWait  float64 `json:"policy_rate_wait"`
	BytesWait float64 `json:"policy_bytes_wait"`

	Machine        *Machine `json:"machine"`
	MachineUnknown string   `json:"-"` // why Machine is nil
}

// WholeGenerator is a Generator as JSON, with what of it is not in a result's.
type WholeGenerator struct {
	Generator      Generator `json:"generator"`
	MachineSeconds float64   `json:"machine_seconds"`
	MachineHost    string    `json:"machine_host"`
	MachineUnknown string    `json:"machine_unknown"`
}

// Whole returns all of g.
func (g *Generator) Whole() WholeGenerator {
	w := WholeGenerator{Generator: *g, MachineUnknown: g.MachineUnknown}
	if m := g.Machine; m != nil {
		w.MachineSeconds, w.MachineHost = m.Seconds, m.Host
	}
	return w
}

// Restored returns the Generator that w was made from.
func (w *WholeGenerator) Restored() Generator {
	g := w.Generator
	g.MachineUnknown = w.MachineUnknown
	if m := g.Machine; m != nil {
		m.Seconds, m.Host = w.MachineSeconds, w.MachineHost
	}
	return g
}

// Spent holds the resources that a client's process used for its load, as time(1) prints them for a command.
type Spent struct {
	CPUUserSeconds   float64 `json:"cpu_user_seconds"`
	CPUSystemSeconds float64 `json:"cpu_system_seconds"`
	MinorFaults      uint64  `json:"minor_faults"`    // page was in memory
	MajorFaults      uint64  `json:"major_faults"`    // page was read from a device
	BlocksRead       uint64  `json:"blocks_read"`     // 512-byte blocks, from a device
	BlocksWritten    uint64  `json:"blocks_written"`  // 512-byte blocks, to a device
	ElapsedSeconds   float64 `json:"elapsed_seconds"` // from the start of the step to its end
}

// Add adds what another process used. ElapsedSeconds does not change.
func (s *Spent) Add(o *Spent) {
	s.CPUUserSeconds += o.CPUUserSeconds
	s.CPUSystemSeconds += o.CPUSystemSeconds
	s.MinorFaults += o.MinorFaults
	s.MajorFaults += o.MajorFaults
	s.BlocksRead += o.BlocksRead
	s.BlocksWritten += o.BlocksWritten
}

// AddSpent adds what another worker's process used in the same time.
func (g *Generator) AddSpent(o *Generator) {
	g.Add(&o.Spent)
	g.ElapsedSeconds = max(g.ElapsedSeconds, o.ElapsedSeconds)
}

// Unasked counts the times that a server sent what no request had asked for, each of which ended its connection.
type Unasked struct {
	Alone  uint64 `json:"alone"`  // no request was outstanding
	Behind uint64 `json:"behind"` // it came together with an answer that a request had asked for
}

// Count counts once.
func (u *Unasked) Count(alone bool) {
	if alone {
		u.Alone++
	} else {
		u.Behind++
	}
}

// Add adds other counts.
func (u *Unasked) Add(o Unasked) {
	u.Alone += o.Alone
	u.Behind += o.Behind
}

// Throttled says how often and for how long control groups stopped their processes because the CPU quota was used up.
type Throttled struct {
	Periods uint64  `json:"periods"` // quota periods
	Seconds float64 `json:"seconds"` // summed over processors
}

// TCP holds the kernel's counts of connections (tcp_info in linux/tcp.h).
type TCP struct {
	BytesSent          uint64 `json:"bytes_sent"` // including retransmitted bytes
	BytesRetransmitted uint64 `json:"bytes_retransmitted"`
	Retransmits        uint64 `json:"retransmits"` // segments retransmitted
}

// Machine says who used the processors that loadgen and its target may use on a worker's machine.
type Machine struct {
	OthersShare float64 `json:"others_share"` // share of their time, 0 to 1, used by neither loadgen nor the target, without interrupts
	IdleShare   float64 `json:"idle_share"`   // 0 to 1

	Seconds float64 `json:"-"` // summed over those processors
	Host    string  `json:"-"` // the same for all workers on one machine; "" once workers are merged
}

// Doubtful says whether the target may have needed the time that others used: they had more than 5 % of it, and less than 10 % was idle. It is false
// for nil.
func (m *Machine) Doubtful() bool {
	return m != nil && m.OthersShare > 0.05 && m.IdleShare < 0.10
}

// Worse says whether m casts more doubt on what was measured on it than another machine, which may be nil.
func (m *Machine) Worse(than *Machine) bool {
	switch {
	case than == nil:
		return true
	case m.Doubtful() != than.Doubtful():
		return m.Doubtful()
	}
	return m.OthersShare > than.OthersShare
}

// LongGap is the length from which a gap in a closed load counts in full: whatever kept the loop, the gap is in the latencies of the ops in flight.
const LongGap = 20 * time.Millisecond

// Interrupted says how often and for how long loops' threads were kept from their processors, for at least 200 µs at a stretch. Preemption by other
// threads is always seen; an interrupt or a hypervisor only while a loop has nothing to do but poll the clock. In a closed load, gaps of [LongGap] or
// longer count in full.
type Interrupted struct {
	Times         uint64  `json:"times"`
	Seconds       float64 `json:"seconds"`
	MaxSeconds    float64 `json:"max_seconds"`
	OthersSeconds float64 `json:"others_seconds"` // of Seconds, due to other threads
}

// Add adds the gaps of other loops.
func (i *Interrupted) Add(o *Interrupted) {
	i.Times += o.Times
	i.Seconds += o.Seconds
	i.MaxSeconds = max(i.MaxSeconds, o.MaxSeconds)
	i.OthersSeconds += o.OthersSeconds
}

// Thread says where a thread that executed ops itself ran. Numbers are the kernel's; −1 if it gives none.
type Thread struct {
	Session   int  `json:"session"`  // first session of the thread
	Sessions  int  `json:"sessions"` // number of consecutive sessions
	Pinned    bool `json:"pinned"`   // to CPU, by the worker's --pin
	CPU       int  `json:"cpu"`      // when the load began
	CPUAtEnd  int  `json:"cpu_at_end"`
	Node      int  `json:"node"` // NUMA node of CPU
	NodeAtEnd int  `json:"node_at_end"`
}
