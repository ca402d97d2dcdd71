// Package rpc carries a worker.Worker to another process: [Listen] is the coordinator's end, [Join] the worker's.
//
// A worker dials out and keeps one bidirectional stream. Streams break; what the two ends have to tell each other must not be lost
// with them, nor arrive twice. So everything that matters travels in numbered envelopes, and each end keeps those that the
// other has not acknowledged: a link. After a stream has broken, the same worker attaches again with a new one, both say how far they
// have got, and what is missing is sent again as it was. A snapshot is acknowledged once it is kept, so what the worker has
// forgotten the coordinator's disk remembers.
//
// # Who is alive
//
// Heartbeats go beside the envelopes and before them, and little is sent before it is known that what was sent earlier has arrived: a
// flight. So neither a full disk nor a long queue nor a slow link delays one by much.
// The coordinator suspects a worker whose heartbeats are missing, then gives it up for the rest of the run. The worker holds
// a lease on its load: it ends a fixed time after the newest heartbeat that the coordinator has echoed was sent, on the worker's own
// clock, and the load ends with it, whatever else works or does not.
//
//	heartbeat sent ──► echoed ──► lease until sent + Lease            worker
//	        └────────► heard  ──► suspect after Suspect, lost after Lost    coordinator
//
// Lost is no less than Lease, and a heartbeat is heard after it was sent: when a worker is given up, its load has ended.
//
// What the coordinator's process slept, because it was stopped or not scheduled, is no silence of a worker's: what was sent meanwhile lies
// in sockets, or is about to be sent again. So silence is counted in time in which the process was awake, and a loss is found later by what
// it slept; but not after a worker that is well has forgotten the run.
//
// # Clocks
//
// Each heartbeat is also a measurement of how the two monotonic clocks stand to each other, by four timestamps (RFC 5905,
// section 8). The one with the shortest round trip among the latest counts; it is off by half of that trip at most. The worker
// takes the run clock over when the run is assigned and keeps it.
//
// # Many workers
//
// Intervals end at the same time on all workers. Each waits for its turn before it sends what it has counted, with 15 others and 16 ms
// after those before it, or less where there are more than 800: the coordinator takes one snapshot after the other, and one of a thousand
// does not wait for all others. What it keeps for a worker is a stream, both ledgers of the step and 64 bits for the latencies of each verb ([measure.Account]).
package rpc

import "time"

// protocol is the version of what is said over a stream. Both ends must speak the same.
const protocol = 3

const (
	maxMessage   = 16 << 20 // bytes: what a run directory takes as one snapshot, so whatever can be sent can be kept
	maxHeaders   = 16 << 10 // bytes of a stream's headers
	maxStreams   = 4        // on one connection, which needs one
	windowBytes  = 1 << 20  // of envelopes that one end may have sent and not seen acknowledged; a single one may be larger
	windowCount  = 256      // the same in envelopes
	bufferBytes  = 4 << 10  // of a connection's reads and writes: as much as a worker has to say in a second
	defaultSpool = 64 << 20
	maxText      = 4 << 10 // bytes of an error that a worker reports
	maxLine      = 255     // bytes of a host or version
)

// Timing is how long the two ends wait for each other.
type Timing struct {
	Heartbeat time.Duration // between heartbeats
	Suspect   time.Duration // without a heartbeat until a worker is suspected
	Lost      time.Duration // without one until it is lost
	Lease     time.Duration // of a worker's load, from a heartbeat on; not longer than Lost
	Attach    time.Duration // for the first message on a new stream
	Idle      time.Duration // without a snapshot of a running step until a worker that sends heartbeats is lost
	Farewell  time.Duration // for the last messages of a run
}

// DefaultTiming is that of runs for which nothing else was asked.
func DefaultTiming() Timing { return TimingOf(10 * time.Second) }

// TimingOf is that of runs with leases of a length. How long a stream takes to begin and to end does not hang on it.
func TimingOf(lease time.Duration) Timing {
	return Timing{
		Heartbeat: lease / 10,
		Suspect:   3 * lease / 10,
		Lost:      lease,
		Lease:     lease,
		Attach:    5 * time.Second,
		Idle:      3 * lease,
		Farewell:  500 * time.Millisecond,
	}
}
