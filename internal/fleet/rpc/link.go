package rpc

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
)

// link is one end of a channel that delivers every envelope once and in order, over streams that break. It knows nothing of streams or time: it says
// what to send, and which received envelopes are new. Its owner's lock guards it.
//
//	        acked            first not sent on this stream
//	          │                │
//	queue ────┴── on the way ──┴── waiting ──►      numbers rise
type link struct {
	queue    []outgoing // envelopes not acknowledged, in the order of their numbers
	acked    uint64     // the number before that of the first in queue
	next     int        // index in queue of the first not sent on this stream
	onTheWay int        // size of queue[:next], in bytes
	held     int        // size of queue, in bytes
	touched  uint64     // highest number sent on any stream; envelopes after it may still change

	received uint64 // highest number received
	taken    uint64 // highest number that the owner has handled
	untaken  []int  // sizes of the envelopes between taken and received
	backlog  int    // their sum
}

// outgoing is an envelope and its size in bytes.
type outgoing struct {
	*pb.Envelope
	size int
}

// push numbers an envelope and queues it.
func (l *link) push(e *pb.Envelope) {
	e.Number = l.acked + uint64(len(l.queue)) + 1
	size := proto.Size(e)
	l.queue = append(l.queue, outgoing{e, size})
	l.held += size
}

// tail returns the newest envelope if it has never been sent.
func (l *link) tail() *pb.Envelope {
	if n := len(l.queue); n > 0 && l.queue[n-1].Number > l.touched {
		return l.queue[n-1].Envelope
	}
	return nil
}

// amend updates the sizes after a change of tail.
func (l *link) amend() {
	last := &l.queue[len(l.queue)-1]
	l.held -= last.size
	last.size = proto.Size(last.Envelope)
	l.held += last.size
}

// attach begins a stream whose other end has taken everything up to acked. Everything after that is sent again.
func (l *link) attach(acked uint64) error {
	if acked < l.acked {
		return fmt.Errorf("it has taken envelope %d, but said before that it had taken %d", acked, l.acked)
	}
	if err := l.ack(acked); err != nil {
		return err
	}
	l.next, l.onTheWay = 0, 0
	return nil
}

// more says whether there is an envelope to send on this stream, and the window has room for it.
func (l *link) more() bool {
	return l.next < len(l.queue) && (l.next == 0 || l.onTheWay+l.queue[l.next].size <= windowBytes && l.next < windowCount)
}

// pop returns the next envelope to send on this stream; nil if there is none or the window is full.
func (l *link) pop() *pb.Envelope {
	if !l.more() {
		return nil
	}
	e := l.queue[l.next]
	l.next++
	l.onTheWay += e.size
	l.touched = max(l.touched, e.Number)
	return e.Envelope
}

// ack drops the envelopes that the other end has taken: those up to number.
func (l *link) ack(number uint64) error {
	if number > l.touched {
		return fmt.Errorf("it has taken envelope %d, but %d is the last that was sent", number, l.touched)
	}
	for l.acked < number {
		size := l.queue[0].size
		l.queue[0] = outgoing{}
		l.queue = l.queue[1:]
		l.acked++
		l.held -= size
		if l.next > 0 { // else the other end got it over an earlier stream
			l.next--
			l.onTheWay -= size
		}
	}
	return nil
}

// accept says whether a received envelope is new. A gap in the numbers is an error, and so is an envelope beyond the window.
func (l *link) accept(e *pb.Envelope) (fresh bool, err error) {
	switch number := e.GetNumber(); {
	case number == 0:
		return false, fmt.Errorf("an envelope without a number")
	case number <= l.received:
		return false, nil
	case number > l.received+1:
		return false, fmt.Errorf("envelope %d came after %d", number, l.received)
	}
	size := proto.Size(e)
	if n := len(l.untaken); n > 0 && (l.backlog+size > windowBytes || n >= windowCount) {
		return false, fmt.Errorf("envelope %d: more are on the way than the window allows", e.GetNumber())
	}
	l.received++
	l.untaken = append(l.untaken, size)
	l.backlog += size
	return true, nil
}

// take marks the oldest accepted envelope not yet taken as done.
func (l *link) take() {
	l.taken++
	l.backlog -= l.untaken[0]
	l.untaken = l.untaken[1:]
}
