package rpc

import (
	"google.golang.org/protobuf/proto"

	pb "github.com/loadgen/loadgen/internal/rpc/loadgenpb"
)

const (
	flightBytes = 8 << 10 // of envelopes on the way ahead of a heartbeat: a second at 64 kbit/s
	partBytes   = 4 << 10 // the most that is sent of an envelope at once
)

// flight is what a worker's stream carries of envelopes. Streams deliver in order, so a heartbeat waits for all that was sent before it, in
// buffers that nobody here knows the size of; on a slow link that can take longer than the lease. Therefore little is sent before it is
// known to have arrived: it has when a heartbeat that was sent after it is echoed.
type flight struct {
	sent    int    // bytes on this stream
	arrived int    // of them, known to have arrived
	marks   []mark // heartbeats without an echo, in the order in which they were sent
	rest    []byte // of the envelope that has begun to leave
}

// mark is a heartbeat and what was sent before it.
type mark struct {
	at   int64 // when it was sent, worker's clock
	sent int
}

// beat enters a heartbeat that is sent now.
func (f *flight) beat(at int64) { f.marks = append(f.marks, mark{at, f.sent}) }

// echoed takes the echo of the heartbeat that was sent at a time. Echoes are left out where they would be too many, and never come out
// of order.
func (f *flight) echoed(at int64) {
	for len(f.marks) > 0 && f.marks[0].at < at {
		f.marks = f.marks[1:]
	}
	if len(f.marks) > 0 && f.marks[0].at == at {
		f.arrived = f.marks[0].sent
		f.marks = f.marks[1:]
	}
}

// probe says whether only an echo of a heartbeat that is still to be sent would tell that all has arrived.
func (f *flight) probe() bool {
	return f.sent > f.arrived && (len(f.marks) == 0 || f.marks[len(f.marks)-1].sent < f.sent)
}

// next returns the next envelope, or part of one, of a link; nil while there is none. Full says that there is one, and that too much
// is on the way for it.
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
		return &pb.FromWorker{Message: &pb.FromWorker_Envelope{Envelope: e}}, false, nil
	}
	if f.rest, err = proto.Marshal(e); err != nil {
		return nil, false, err
	}
	return f.part(), false, nil
}

// part returns the next piece of the envelope at hand.
func (f *flight) part() *pb.FromWorker {
	n := min(len(f.rest), partBytes)
	p := &pb.Part{Content: f.rest[:n], Last: n == len(f.rest)}
	f.rest = f.rest[n:]
	f.sent += n
	return &pb.FromWorker{Message: &pb.FromWorker_Part{Part: p}}
}
