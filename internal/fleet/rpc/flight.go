package rpc

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
)

const (
	flightBytes = 8 << 10 // the most bytes of envelopes in flight ahead of a heartbeat: a second at 64 kbit/s
	partBytes   = 4 << 10 // the most bytes of an envelope sent at once
)

// flight limits the envelope bytes in flight on a worker's stream. Streams deliver in order, so a heartbeat waits behind everything sent before it,
// in buffers of unknown size. On a slow link that can take longer than the lease. So the worker sends few bytes until it knows that earlier ones have
// arrived. It knows when a heartbeat sent after them is echoed.
type flight struct {
	sent    int    // bytes sent on this stream
	arrived int    // those of them that are known to have arrived
	marks   []mark // heartbeats not yet echoed, in the order sent
	rest    []byte // the rest of the envelope that is partly sent
}

// mark is a heartbeat and the number of bytes sent before it.
type mark struct {
	at   int64 // when it was sent, worker's clock
	sent int
}

// beat records a heartbeat sent now.
func (f *flight) beat(at int64) { f.marks = append(f.marks, mark{at, f.sent}) }

// echoed takes the echo of the heartbeat sent at the given time. Some echoes may be dropped when there are too many, but they never come out of
// order.
func (f *flight) echoed(at int64) {
	for len(f.marks) > 0 && f.marks[0].at < at {
		f.marks = f.marks[1:]
	}
	if len(f.marks) > 0 && f.marks[0].at == at {
		f.arrived = f.marks[0].sent
		f.marks = f.marks[1:]
	}
}

// probe says whether only a new heartbeat can confirm that everything has arrived.
func (f *flight) probe() bool {
	return f.sent > f.arrived && (len(f.marks) == 0 || f.marks[len(f.marks)-1].sent < f.sent)
}

// next returns a link's next envelope, or a part of one; nil if there is nothing to send. full says that there is something to send, but too much is in
// flight.
func (f *flight) next(l *link) (msg *pb.FromWorker, full bool, err error) {
	room := flightBytes - (f.sent - f.arrived)
	switch {
	case len(f.rest) > 0:
		if room < min(len(f.rest), partBytes) {
			return nil, true, nil
		}
		return f.part(), false, nil
	case !l.more():
		return nil, false, nil
	case room < min(l.queue[l.next].size, partBytes):
		return nil, true, nil
	}
	size := l.queue[l.next].size
	e := l.pop()
	if size <= partBytes {
		f.sent += size
		return &pb.FromWorker{Envelope: e}, false, nil
	}
	if f.rest, err = proto.Marshal(e); err != nil {
		return nil, false, err
	}
	return f.part(), false, nil
}

// part returns the next piece of the current envelope.
func (f *flight) part() *pb.FromWorker {
	n := min(len(f.rest), partBytes)
	msg := &pb.FromWorker{Part: f.rest[:n], Last: n == len(f.rest)}
	f.rest = f.rest[n:]
	f.sent += n
	return msg
}
