package rpc

import (
	"errors"
	"fmt"
	"sync"
	"time"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// member is the coordinator's view of a worker, from its first hello to the end of the run. It implements worker.Worker; see remote.go.
type member struct {
	server      *Server
	name        string
	incarnation string
	host        string
	version     string
	metrics     string        // host:port of its metrics page; "" for none
	arrived     chan struct{} // holds one value: inbox is not empty
	gone        chan struct{} // closed when the worker is lost
	part        bool          // it takes part in the run; guarded by the server's lock
	suspected   *alarm
	givenUp     *alarm

	mu        sync.Mutex
	conn      *conn // nil while there is no stream
	link      link
	inbox     []*pb.Envelope // envelopes accepted but not taken
	heard     time.Duration  // when the newest heartbeat came, on the coordinator's clock
	health    health         // the state that this heartbeat reported
	zero      time.Duration  // the coordinator's clock at the run clock's zero
	clock     health         // its clock's state, as assumed for the run
	lost      *worker.Loss
	dismissed bool // the run is over, or began without this worker
}

func newMember(s *Server, h *pb.Hello) *member {
	m := &member{
		server: s, name: h.GetName(), incarnation: h.GetIncarnation(), host: h.GetHost(), version: h.GetVersion(),
		metrics: h.GetMetrics(),
		arrived: make(chan struct{}, 1), gone: make(chan struct{}), heard: s.now(),
	}
	m.suspected = s.alarm(s.cfg.Timing.Suspect, m.suspect)
	m.givenUp = s.alarm(s.cfg.Timing.Lost, m.giveUp)
	m.suspected.set()
	m.givenUp.set()
	return m
}

// attach gives the worker a new stream, in place of its old one. received is the last envelope the worker has.
func (m *member) attach(received uint64, c *conn) *pb.Goodbye {
	m.mu.Lock()
	if m.lost != nil {
		defer m.mu.Unlock()
		return &pb.Goodbye{Reason: "the run goes on without this worker: " + m.lost.Why}
	}
	if err := m.link.attach(received); err != nil {
		m.mu.Unlock()
		m.strike("it came back with another state: " + err.Error())
		return &pb.Goodbye{Reason: "what this worker remembers does not fit the run: " + err.Error()}
	}
	old := m.conn
	m.conn = c
	m.mu.Unlock()
	if old != nil {
		old.with(func() { old.closed = true })
	}
	return nil
}

// detach notes that a stream has ended.
func (m *member) detach(c *conn) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn == c {
		m.conn = nil
	}
}

// attached says whether the worker has a stream.
func (m *member) attached() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.conn != nil && m.lost == nil
}

func (m *member) isLost() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost != nil
}

func (m *member) welcome() *pb.Welcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := m.server.cfg.Timing
	return &pb.Welcome{Protocol: protocol, Run: m.server.cfg.Run, HeartbeatNs: int64(t.Heartbeat), LeaseNs: int64(t.Lease), Stored: m.link.taken}
}

// pop returns the next envelope to send on a stream; nil if there is none, or if another stream has replaced this one.
func (m *member) pop(c *conn) *pb.Envelope {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.conn != c {
		return nil
	}
	return m.link.pop()
}

// push queues an envelope, to be sent now or when the worker is back.
func (m *member) push(e *pb.Envelope) {
	m.mu.Lock()
	m.link.push(e)
	c := m.conn
	m.mu.Unlock()
	if c != nil {
		c.with(func() {})
	}
}

// handle handles a message received on a stream at the given time.
func (m *member) handle(c *conn, msg *pb.FromWorker, at time.Duration) error {
	m.mu.Lock()
	current := m.conn == c && m.lost == nil
	m.mu.Unlock()
	if !current {
		return nil
	}
	switch {
	case msg.GetHeartbeat() != nil:
		h, err := decodeHealth(msg.GetHeartbeat())
		if err != nil {
			return err
		}
		m.beat(h, at)
		c.echo(msg.GetHeartbeat().GetSentNs(), at)
		return nil
	case msg.GetReceived() > 0:
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.link.ack(msg.GetReceived())
	case msg.GetEnvelope() != nil:
		return m.accept(msg.GetEnvelope())
	case msg.GetPart() != nil:
		e, err := c.join(msg)
		if err != nil || e == nil {
			return err
		}
		return m.accept(e)
	case msg.GetGoodbye() != nil:
		m.lose("it has left: " + plain(msg.GetGoodbye().GetReason()))
		return nil
	}
	return errors.New("a message that has no place there")
}

// accept passes a new envelope on to whoever waits for it.
func (m *member) accept(e *pb.Envelope) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	fresh, err := m.link.accept(e)
	if err != nil || !fresh {
		return err
	}
	m.inbox = append(m.inbox, e)
	poke(m.arrived)
	return nil
}

// beat records a heartbeat.
func (m *member) beat(h health, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != nil || m.dismissed {
		return
	}
	m.heard, m.health = at, h
	m.suspected.set()
	m.givenUp.set()
}

// uncertainty bounds the difference between the worker's clock and what the run assumes of it. Clocks drift, and heartbeats keep comparing them.
func (m *member) uncertainty() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.health.offset == 0 && m.health.uncertainty == 0 { // it has reported none yet
		return m.clock.uncertainty
	}
	return (m.health.offset - m.clock.offset).Abs() + m.health.uncertainty
}

func (m *member) suspect() {
	m.server.cfg.Logger.Warn("worker suspected: no heartbeat", "worker", m.name, "for", m.server.cfg.Timing.Suspect)
}

func (m *member) giveUp() { m.lose(fmt.Sprintf("no heartbeat for %v", m.server.cfg.Timing.Lost)) }

// lose gives the worker up for the rest of the run, and tells it so.
func (m *member) lose(why string) {
	if m.strike(why) {
		m.say("the run goes on without this worker: " + why)
		m.server.forget(m)
	}
}

// strike gives the worker up, if it has not been already.
func (m *member) strike(why string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lost != nil {
		return false
	}
	m.lost = &worker.Loss{Worker: m.name, Why: why, LoadedSeconds: (m.heard + m.server.cfg.Timing.Lease - m.zero).Seconds()}
	m.suspected.stop()
	m.givenUp.stop()
	close(m.gone)
	return true
}

// dismiss ends the worker's part in this run.
func (m *member) dismiss(why string) {
	m.mu.Lock()
	m.dismissed = true
	m.suspected.stop()
	m.givenUp.stop()
	m.mu.Unlock()
	m.say(why)
}

// say ends the stream with a goodbye.
func (m *member) say(reason string) {
	m.mu.Lock()
	c := m.conn
	m.mu.Unlock()
	if c != nil {
		c.with(func() { c.goodbye = &pb.Goodbye{Reason: reason} })
	}
}
