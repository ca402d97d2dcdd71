// Package rpc carries a worker.Worker to another process: [Listen] is the coordinator's end, [Join] the worker's.
//
// A worker dials out and keeps one bidirectional stream. Streams break, but no message that matters may be lost or arrive twice. So those
// messages travel in numbered envelopes, and each end keeps the envelopes that the other has not acknowledged: a link. After a stream has
// broken, the worker attaches again with a new one. Both ends say how far they have got, and whatever is missing is sent again unchanged. A
// snapshot is acknowledged only once it is on the coordinator's disk, so the worker can forget it.
//
// # Who is alive
//
// Heartbeats travel beside the envelopes and ahead of them. A worker has only few bytes in flight whose arrival is not confirmed. So a full disk, a
// long queue or a slow link does not delay a heartbeat by much. The coordinator suspects a worker whose heartbeats are missing, and later gives it up
// for the rest of the run. The worker holds a lease on its load. The lease ends a fixed time after the sending of the newest heartbeat that the
// coordinator has echoed, on the worker's own clock. The load ends with the lease, whatever else works or fails.
//
//	heartbeat sent ──► echoed ──► lease until sent + Lease            worker
//	        └────────► heard  ──► suspect after Suspect, lost after Lost    coordinator
//
// Lost is at least Lease, and a heartbeat is heard after it was sent. So when a worker is given up, its load has ended.
//
// While the coordinator's process is stopped or not scheduled, the workers are not silent: what they send waits in sockets, or will be sent again. So
// the coordinator counts silence only in time its process was awake. It may then detect a loss later by the time it slept, but not so late that a
// healthy worker has forgotten the run.
//
// # Clocks
//
// Each heartbeat also measures the offset between the two monotonic clocks, with four timestamps (RFC 5905, section 8). Of the latest
// measurements, the one with the shortest round trip counts; its error is at most half that round trip. The worker fixes the run clock when it is
// assigned the run, and keeps it.
//
// # Many workers
//
// Intervals end at the same time on all workers, and the coordinator takes one snapshot after another. So workers send in groups of 16, the
// groups 16 ms apart, or less when there are more than 800 workers. That way none of a thousand waits for all the others. For each worker the
// coordinator keeps a stream, both ledgers of the step, and 64 bits for the latencies of each verb ([measure.Account]).
package rpc

import "time"

// protocol is the version of the stream's messages. Both ends must use the same.
const protocol = 6

const (
	maxMessage   = 16 << 20 // bytes: the limit of a run directory for one snapshot, so whatever can be sent can be kept
	maxHeaders   = 16 << 10 // bytes of a stream's headers
	maxStreams   = 4        // per connection, which needs only one
	windowBytes  = 1 << 20  // bytes of unacknowledged envelopes that one end may have sent; a single larger one is allowed
	windowCount  = 256      // the same in envelopes
	bufferBytes  = 4 << 10  // bytes of a connection's read and write buffers: what a worker sends in a second
	defaultSpool = 64 << 20
	maxText      = 4 << 10 // bytes of an error reported by a worker
	maxLine      = 255     // bytes of a host or version
)

// Timing holds the intervals and timeouts between the two ends.
type Timing struct {
	Heartbeat time.Duration // between heartbeats
	Suspect   time.Duration // without a heartbeat, after which a worker is suspected
	Lost      time.Duration // without a heartbeat, after which it is lost
	Lease     time.Duration // of a worker's load, from a heartbeat on; at most Lost
	Attach    time.Duration // for the first message on a new stream
	Idle      time.Duration // without a snapshot of a running step, after which a worker that sends heartbeats is lost
	Farewell  time.Duration // for the last messages of a run
}

// DefaultTiming is the timing of a run that does not ask for another.
func DefaultTiming() Timing { return TimingOf(10 * time.Second) }

// TimingOf returns the timing for a lease of the given length. Attach and Farewell do not depend on it.
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
