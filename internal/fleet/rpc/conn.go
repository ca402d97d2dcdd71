package rpc

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
)

// maxEchoes bounds the echoes owed to a worker that keeps sending heartbeats without reading.
const maxEchoes = 16

// conn is one stream of a worker. One goroutine receives. Another sends, but only while there is something to send: a thousand idle senders would
// keep the stacks of their deepest calls.
type conn struct {
	stream grpc.BidiStreamingServer[pb.FromWorker, pb.FromCoordinator]
	first  chan *pb.Hello // the first message
	owner  chan *member   // the worker whose stream it is; buffers one
	ended  chan struct{}  // closed when nothing more will be received
	said   chan struct{}  // closed when nothing more will be sent
	parts  []byte         // an envelope still being received; used by the receiver only
	sender sync.WaitGroup // the sending goroutine

	mu      sync.Mutex
	to      *member // the worker to send to; nil before the welcome and after the end
	sending bool
	err     error // from the last send
	echoes  []*pb.Echo
	stored  uint64 // number to acknowledge, unless told equals it
	told    uint64
	goodbye *pb.Goodbye // ends the stream, once all else has been sent
	closed  bool        // another stream has replaced it
}

// receive handles messages until the stream ends. An invalid message ends the stream.
func (c *conn) receive(s *Server) {
	defer close(c.ended)
	msg, err := c.stream.Recv()
	if err != nil || msg.GetHello() == nil {
		return
	}
	select {
	case c.first <- msg.GetHello():
	case <-c.stream.Context().Done():
		return
	}
	var m *member
	select {
	case m = <-c.owner:
	case <-c.stream.Context().Done():
		return
	}
	for {
		msg, err := c.stream.Recv()
		if err != nil {
			return
		}
		if err := m.handle(c, msg, s.now()); err != nil {
			m.lose("it broke the protocol: " + err.Error())
			return
		}
	}
}

// join appends a message's part to those before it, and returns the envelope once it is complete.
func (c *conn) join(msg *pb.FromWorker) (*pb.Envelope, error) {
	if len(c.parts)+len(msg.GetPart()) > maxMessage+maxHeaders {
		return nil, fmt.Errorf("an envelope of more than %d bytes", maxMessage)
	}
	c.parts = append(c.parts, msg.GetPart()...)
	if !msg.GetLast() {
		return nil, nil
	}
	e := &pb.Envelope{}
	err := proto.Unmarshal(c.parts, e)
	c.parts = nil
	return e, err
}

// carry sends a welcome, then whatever is queued, until the stream ends.
func (c *conn) carry(m *member) error {
	c.mu.Lock()
	c.to, c.sending = m, true
	c.sender.Go(func() {
		if c.sent(&pb.FromCoordinator{Welcome: m.welcome()}, false) {
			c.send(m)
		}
	})
	c.mu.Unlock()
	select {
	case <-c.said:
	case <-c.ended:
	}
	c.mu.Lock()
	c.to = nil
	c.mu.Unlock()
	c.sender.Wait() // the sender may still be running
	return c.err
}

// send sends whatever is queued.
func (c *conn) send(m *member) {
	for {
		msg, last := c.pick(m)
		if msg == nil && !last || !c.sent(msg, last) {
			return
		}
	}
}

// sent sends a message, and says whether more may follow it.
func (c *conn) sent(msg *pb.FromCoordinator, last bool) bool {
	var err error
	if msg != nil {
		err = c.stream.Send(msg)
	}
	if err == nil && !last {
		return true
	}
	c.mu.Lock()
	c.to, c.err = nil, err
	c.mu.Unlock()
	close(c.said)
	return false
}

// pick returns the next message: echoes before acknowledgements before envelopes before a goodbye. last says that none will follow. If there is none,
// the sender counts as stopped.
func (c *conn) pick(m *member) (msg *pb.FromCoordinator, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, true
	case len(c.echoes) > 0:
		e := c.echoes[0]
		c.echoes = c.echoes[1:]
		e.EchoedNs = int64(m.server.now())
		return &pb.FromCoordinator{Echo: e}, false
	case c.stored > c.told:
		c.told = c.stored
		return &pb.FromCoordinator{Stored: c.stored}, false
	}
	if e := m.pop(c); e != nil {
		return &pb.FromCoordinator{Envelope: e}, false
	}
	if c.goodbye != nil {
		return &pb.FromCoordinator{Goodbye: c.goodbye}, true
	}
	c.sending = false
	return nil, false
}

// with changes what is to be sent, and starts the sender if needed.
func (c *conn) with(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	if m := c.to; m != nil && !c.sending {
		c.sending = true
		c.sender.Go(func() { c.send(m) })
	}
}

// echo queues the answer to a heartbeat.
func (c *conn) echo(sent int64, at time.Duration) {
	c.with(func() {
		if len(c.echoes) == maxEchoes {
			c.echoes = c.echoes[1:]
		}
		c.echoes = append(c.echoes, &pb.Echo{SentNs: sent, ReceivedNs: int64(at)})
	})
}
