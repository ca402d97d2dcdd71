package rpc

import (
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/loadgen/loadgen/internal/rpc/loadgenpb"
)

// maxEchoes bounds what is owed to a worker that sends heartbeats without pause and does not listen.
const maxEchoes = 16

// conn is one stream of a worker. The handler's goroutine sends, another one receives.
type conn struct {
	stream grpc.BidiStreamingServer[pb.FromWorker, pb.FromCoordinator]
	first  chan *pb.Hello // the first message
	owner  chan *member   // who it is from; holds one
	wake   chan struct{}  // holds one: there is something to send
	ended  chan struct{}  // closed when nothing more comes
	parts  []byte         // of an envelope that is still coming; the receiver's

	mu      sync.Mutex
	echoes  []*pb.Echo
	stored  uint64 // to be acknowledged, unless that was told already
	told    uint64
	goodbye *pb.Goodbye // ends the stream, once all else is sent
	closed  bool        // another stream has taken its place
}

// receive handles what comes until the stream ends. A stream that says something wrong is ended by it.
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

// join puts a part to those before it, and returns the envelope when that was its last.
func (c *conn) join(p *pb.Part) (*pb.Envelope, error) {
	if len(c.parts)+len(p.GetContent()) > maxMessage+maxHeaders {
		return nil, fmt.Errorf("an envelope of more than %d bytes", maxMessage)
	}
	c.parts = append(c.parts, p.GetContent()...)
	if !p.GetLast() {
		return nil, nil
	}
	e := &pb.Envelope{}
	err := proto.Unmarshal(c.parts, e)
	c.parts = nil
	return e, err
}

// send sends what there is until the stream ends.
func (c *conn) send(m *member) error {
	welcome := m.welcome()
	if err := c.stream.Send(&pb.FromCoordinator{Message: &pb.FromCoordinator_Welcome{Welcome: welcome}}); err != nil {
		return err
	}
	for {
		msg, last := c.pick(m)
		if msg != nil {
			if err := c.stream.Send(msg); err != nil {
				return err
			}
		}
		switch {
		case last:
			return nil
		case msg != nil:
			continue
		}
		select {
		case <-c.wake:
		case <-c.ended:
			return nil
		}
	}
}

// pick returns the next message: echoes before acknowledgements before envelopes before a goodbye. Last says that none will follow.
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
		return &pb.FromCoordinator{Message: &pb.FromCoordinator_Echo{Echo: e}}, false
	case c.stored > c.told:
		c.told = c.stored
		return &pb.FromCoordinator{Message: &pb.FromCoordinator_Stored{Stored: c.stored}}, false
	}
	if e := m.pop(c); e != nil {
		return &pb.FromCoordinator{Message: &pb.FromCoordinator_Envelope{Envelope: e}}, false
	}
	if c.goodbye != nil {
		return &pb.FromCoordinator{Message: &pb.FromCoordinator_Goodbye{Goodbye: c.goodbye}}, true
	}
	return nil, false
}

// with changes what is to be sent.
func (c *conn) with(change func()) {
	c.mu.Lock()
	change()
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// echo owes the answer to a heartbeat.
func (c *conn) echo(sent int64, at time.Duration) {
	c.with(func() {
		if len(c.echoes) == maxEchoes {
			c.echoes = c.echoes[1:]
		}
		c.echoes = append(c.echoes, &pb.Echo{SentNs: sent, ReceivedNs: int64(at)})
	})
}
