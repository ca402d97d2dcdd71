package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/servertest"
)

// pipe is a worker's stream at the coordinator: what arrives on it, and what was sent.
type pipe struct {
	grpc.BidiStreamingServer[pb.FromWorker, pb.FromCoordinator]
	ctx    context.Context
	over   context.CancelFunc
	come   chan *pb.FromWorker // closed: the end of the stream
	sent   []*pb.FromCoordinator
	refuse error
}

func newPipe(t *testing.T) *pipe {
	ctx, over := context.WithCancel(t.Context())
	return &pipe{ctx: ctx, over: over, come: make(chan *pb.FromWorker, 16)}
}

func (p *pipe) Context() context.Context { return p.ctx }

func (p *pipe) Send(m *pb.FromCoordinator) error {
	p.sent = append(p.sent, m)
	return p.refuse
}

func (p *pipe) Recv() (*pb.FromWorker, error) {
	select { // what has come is read first
	case m := <-p.come:
		if m != nil {
			return m, nil
		}
		return nil, io.EOF
	default:
	}
	select {
	case m, more := <-p.come:
		if !more {
			return nil, io.EOF
		}
		return m, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

// kinds lists what was sent.
func (p *pipe) kinds() (all []string) {
	for _, m := range p.sent {
		switch m := m.GetMessage().(type) {
		case *pb.FromCoordinator_Welcome:
			all = append(all, "welcome")
		case *pb.FromCoordinator_Echo:
			all = append(all, "echo")
		case *pb.FromCoordinator_Stored:
			all = append(all, "stored")
		case *pb.FromCoordinator_Envelope:
			all = append(all, "envelope")
		case *pb.FromCoordinator_Goodbye:
			all = append(all, "goodbye: "+m.Goodbye.GetReason())
		}
	}
	return all
}

func saysHello(name string) *pb.FromWorker {
	return &pb.FromWorker{Message: &pb.FromWorker_Hello{Hello: &pb.Hello{Protocol: protocol, Name: name, Incarnation: name}}}
}

// serving has a coordinator serve streams in a bubble of time.
func serving(t *testing.T, test func(t *testing.T, s *Server, join func(*pipe) chan error)) {
	servertest.Bubble(t, func(t *testing.T) {
		s := newServer(Config{Timing: DefaultTiming(), Logger: slog.New(slog.DiscardHandler)})
		defer func() {
			for _, m := range s.members {
				m.dismiss("the test is over")
			}
			s.routine.Wait()
		}()
		test(t, s, func(p *pipe) chan error {
			ended := make(chan error, 1)
			go func() {
				err := s.Join(p)
				p.over() // as gRPC does
				ended <- err
			}()
			synctest.Wait()
			return ended
		})
	})
}

// Echoes are sent first, then acknowledgements, then envelopes, and a goodbye last.
func TestWhatACoordinatorSendsFirst(t *testing.T) {
	serving(t, func(t *testing.T, s *Server, join func(*pipe) chan error) {
		p := newPipe(t)
		p.come <- saysHello("w")
		ended := join(p)
		m := s.members["w"]
		require.Equal(t, []string{"welcome"}, p.kinds())
		c := m.conn
		c.mu.Lock() // until all is there
		c.echoes = []*pb.Echo{{SentNs: 1}, {SentNs: 2}}
		c.stored, c.goodbye = 5, &pb.Goodbye{Reason: "it is over"}
		c.mu.Unlock()
		time.Sleep(3 * time.Second)
		m.push(payload(7))
		require.NoError(t, <-ended)
		require.Equal(t, []string{"welcome", "echo", "echo", "stored", "envelope", "goodbye: it is over"}, p.kinds())
		for i, sent := range []int64{1, 2} {
			require.Equal(t, sent, p.sent[1+i].GetEcho().GetSentNs())
			require.EqualValues(t, 3*time.Second, p.sent[1+i].GetEcho().GetEchoedNs(), "when it is sent")
		}
		require.EqualValues(t, 5, p.sent[3].GetStored())
		require.False(t, m.attached())
		c.with(func() { c.stored = 6 })
		synctest.Wait()
		require.Len(t, p.sent, 6, "nothing follows a goodbye")
	})
}

// Every message is sent at once, and an acknowledgement only once.
func TestACoordinatorSpeaksWhenThereIsSomething(t *testing.T) {
	serving(t, func(t *testing.T, s *Server, join func(*pipe) chan error) {
		p := newPipe(t)
		p.come <- saysHello("w")
		ended := join(p)
		m := s.members["w"]
		m.push(payload(7))
		synctest.Wait()
		require.Equal(t, []string{"welcome", "envelope"}, p.kinds())
		m.push(payload(8))
		synctest.Wait()
		require.Len(t, p.sent, 3)
		m.conn.with(func() { m.conn.stored = 4 })
		m.conn.with(func() {})
		synctest.Wait()
		require.Equal(t, []string{"welcome", "envelope", "envelope", "stored"}, p.kinds())
		p.come <- &pb.FromWorker{Message: &pb.FromWorker_Heartbeat{Heartbeat: &pb.Heartbeat{SentNs: 9, CpuNs: 3}}}
		synctest.Wait()
		require.EqualValues(t, 9, p.sent[4].GetEcho().GetSentNs())
		require.EqualValues(t, 3, m.status(0).CPU)
		c := m.conn
		close(p.come)
		require.NoError(t, <-ended)
		require.False(t, m.attached())
		c.with(func() { c.stored = 5 })
		m.push(payload(9))
		synctest.Wait()
		require.Len(t, p.sent, 5, "the stream has ended")
	})
}

// A stream on which sending fails ends with that error, whatever arrives on it.
func TestAStreamThatTakesNothing(t *testing.T) {
	serving(t, func(t *testing.T, s *Server, join func(*pipe) chan error) {
		p := newPipe(t)
		p.refuse = errors.New("why")
		p.come <- saysHello("w")
		require.Equal(t, p.refuse, <-join(p))
		require.Equal(t, []string{"welcome"}, p.kinds())
	})
}

// A worker that comes back has the new stream, and the old one ends without a word.
func TestAStreamTakesAnothersPlace(t *testing.T) {
	serving(t, func(t *testing.T, s *Server, join func(*pipe) chan error) {
		first, second := newPipe(t), newPipe(t)
		first.come <- saysHello("w")
		one := join(first)
		m := s.members["w"]
		old := m.conn
		second.come <- saysHello("w")
		two := join(second)
		require.NoError(t, <-one)
		require.Same(t, m, s.members["w"])
		require.NotSame(t, old, m.conn)
		require.True(t, m.attached(), "the end of the old one takes nothing from the new one")
		require.Nil(t, m.pop(old))
		m.push(payload(7))
		synctest.Wait()
		require.Equal(t, []string{"welcome"}, first.kinds())
		require.Equal(t, []string{"welcome", "envelope"}, second.kinds())
		require.NoError(t, m.handle(old, &pb.FromWorker{}, 0), "what comes on the old one is not heard")
		require.Error(t, m.handle(m.conn, &pb.FromWorker{}, 0))
		close(second.come)
		require.NoError(t, <-two)
	})
}

// The first message is a hello that is admitted; otherwise the stream ends, in a way that depends on the reason.
func TestFirstWordsOfAWorker(t *testing.T) {
	for name, c := range map[string]struct {
		come  []*pb.FromWorker
		end   bool // of the stream, behind that
		sends []string
		err   string
		after time.Duration
	}{
		"a hello, and the end": {[]*pb.FromWorker{saysHello("w")}, true, []string{"welcome"}, "", 0},
		"nothing":              {nil, false, nil, "no hello came", 5 * time.Second},
		"the end":              {nil, true, nil, "", 0},
		"something else":       {[]*pb.FromWorker{{}, saysHello("w")}, false, nil, "", 0},
		"a name that is none":  {[]*pb.FromWorker{saysHello("a b"), saysHello("w")}, false, []string{"goodbye: a worker's name is 1 to 64 letters, digits, dots, hyphens and underscores, the first a letter or digit"}, "", 0},
	} {
		serving(t, func(t *testing.T, s *Server, join func(*pipe) chan error) {
			p := newPipe(t)
			for _, m := range c.come {
				p.come <- m
			}
			if c.end {
				close(p.come)
			}
			began := time.Now()
			err := <-join(p)
			require.Equal(t, c.after, time.Since(began), name)
			require.Equal(t, c.sends, p.kinds(), name)
			if c.err == "" {
				require.NoError(t, err, name)
			} else {
				require.EqualError(t, err, c.err, name)
			}
		})
	}
}

// A worker that breaks the protocol is given up and told why, and nothing more is read from it.
func TestAWorkerThatBreaksTheProtocol(t *testing.T) {
	part := func(content []byte, last bool) *pb.FromWorker {
		return &pb.FromWorker{Message: &pb.FromWorker_Part{Part: &pb.Part{Content: content, Last: last}}}
	}
	for name, c := range map[string]struct {
		says *pb.FromWorker
		want string // "": it may
	}{
		"nothing":                {&pb.FromWorker{}, "it broke the protocol: a message that has no place there"},
		"a second hello":         {saysHello("w"), "it broke the protocol: a message that has no place there"},
		"a wrong heartbeat":      {&pb.FromWorker{Message: &pb.FromWorker_Heartbeat{Heartbeat: &pb.Heartbeat{CpuNs: -1}}}, "it broke the protocol: a heartbeat with"},
		"a heartbeat":            {&pb.FromWorker{Message: &pb.FromWorker_Heartbeat{Heartbeat: &pb.Heartbeat{}}}, ""},
		"took what was not sent": {&pb.FromWorker{Message: &pb.FromWorker_Received{Received: 1}}, "it broke the protocol: it has taken envelope 1"},
		"took nothing":           {&pb.FromWorker{Message: &pb.FromWorker_Received{}}, ""},
		"an envelope too early":  {&pb.FromWorker{Message: &pb.FromWorker_Envelope{Envelope: &pb.Envelope{Number: 2}}}, "it broke the protocol: envelope 2 came after 0"},
		"an envelope":            {&pb.FromWorker{Message: &pb.FromWorker_Envelope{Envelope: &pb.Envelope{Number: 1}}}, ""},
		"half an envelope":       {part([]byte{8}, false), ""},
		"a whole one in a part":  {part([]byte{8, 1}, true), ""},
		"one too early":          {part([]byte{8, 2}, true), "it broke the protocol: envelope 2 came after 0"},
		"what is none":           {part([]byte{8}, true), "it broke the protocol: "},
		"goodbye":                {&pb.FromWorker{Message: &pb.FromWorker_Goodbye{Goodbye: &pb.Goodbye{Reason: "a\x07b"}}}, "it has left: a\uFFFDb"},
	} {
		serving(t, func(t *testing.T, s *Server, join func(*pipe) chan error) {
			p := newPipe(t)
			p.come <- saysHello("w")
			ended := join(p)
			m := s.members["w"]
			m.part = true
			p.come <- c.says
			broken := strings.HasPrefix(c.want, "it broke")
			if broken {
				p.come <- c.says
			}
			synctest.Wait()
			require.Equal(t, c.want != "", m.isLost(), name)
			require.Same(t, m, s.members["w"], "its name stays taken")
			if c.want == "" {
				require.True(t, m.attached(), name)
				close(p.come)
				require.NoError(t, <-ended)
				return
			}
			require.NoError(t, <-ended, name)
			require.Contains(t, m.lost.Why, c.want, name)
			require.False(t, m.attached(), name)
			require.Equal(t, broken, len(p.come) == 1, "%s: nothing more of it is read", name)
			require.Equal(t, "goodbye: the run goes on without this worker: "+m.lost.Why, p.kinds()[1], name)
			back := newPipe(t)
			back.come <- saysHello("w")
			require.NoError(t, <-join(back))
			require.Equal(t, []string{"goodbye: the run goes on without this worker: " + m.lost.Why}, back.kinds(), name)
		})
	}
}

// A worker that comes back with a different memory of the stream is given up, and told why.
func TestAWorkerWithAnotherMemory(t *testing.T) {
	serving(t, func(t *testing.T, s *Server, _ func(*pipe) chan error) {
		m := newMember(s, &pb.Hello{Name: "w"})
		require.Nil(t, m.attach(0, &conn{}))
		bye := m.attach(3, &conn{})
		require.Equal(t, "what this worker remembers does not go with the run: it has taken envelope 3, and 0 is the last that was sent", bye.GetReason())
		require.Equal(t, "it came back with another memory: it has taken envelope 3, and 0 is the last that was sent", m.lost.Why)
		require.Equal(t, "the run goes on without this worker: "+m.lost.Why, m.attach(0, &conn{}).GetReason())
	})
}

// Parts of an envelope are joined to the byte, up to the size limit, and the next envelope starts afresh.
func TestPartsAreJoined(t *testing.T) {
	whole, err := proto.Marshal(&pb.Envelope{Number: 7, Content: &pb.Envelope_Snapshot{Snapshot: []byte(strings.Repeat("x", 100))}})
	require.NoError(t, err)
	c := &conn{}
	for range 2 {
		for i := range len(whole) - 1 {
			e, err := c.join(&pb.Part{Content: whole[i : i+1]})
			require.NoError(t, err)
			require.Nil(t, e)
		}
		e, err := c.join(&pb.Part{Content: whole[len(whole)-1:], Last: true})
		require.NoError(t, err)
		require.EqualValues(t, 7, e.GetNumber())
		require.Len(t, e.GetSnapshot(), 100)
	}
	c.parts = make([]byte, maxMessage)
	_, err = c.join(&pb.Part{Content: make([]byte, maxHeaders)})
	require.NoError(t, err)
	_, err = c.join(&pb.Part{Content: make([]byte, 1)})
	require.EqualError(t, err, "an envelope of more than 16777216 bytes")
}

// If a worker does not take its echoes, only the latest heartbeats are echoed.
func TestEchoesThatAreNotTaken(t *testing.T) {
	c := &conn{}
	for sent := range int64(maxEchoes + 3) {
		c.echo(sent, time.Duration(100+sent))
	}
	require.Len(t, c.echoes, maxEchoes)
	for i, e := range c.echoes {
		require.EqualValues(t, i+3, e.GetSentNs())
		require.EqualValues(t, i+103, e.GetReceivedNs())
	}
}

// A snapshot to decode into belongs to one caller until it is done, and then to the next; errors are returned.
func TestDecodersAreShared(t *testing.T) {
	s := newServer(Config{})
	n := len(s.scratch)
	require.Equal(t, cap(s.scratch), n)
	why := errors.New("why")
	for range 3 * n {
		called := false
		require.Equal(t, why, s.decode(func(scratch *measure.Snapshot) error {
			require.NotNil(t, scratch)
			require.Len(t, s.scratch, n-1)
			called = true
			return why
		}))
		require.True(t, called)
	}
	require.NoError(t, s.decode(func(*measure.Snapshot) error { return nil }))
	require.Len(t, s.scratch, n)
}

// A frugal process collects garbage at half the usual growth, unless its user has set GOGC, and as before once that is undone.
func TestFrugal(t *testing.T) {
	now := func() int {
		is := debug.SetGCPercent(100)
		debug.SetGCPercent(is)
		return is
	}
	defer debug.SetGCPercent(debug.SetGCPercent(77))
	t.Setenv("GOGC", "")
	undo := Frugal()
	require.Equal(t, 50, now())
	undo()
	require.Equal(t, 77, now())
	t.Setenv("GOGC", "77")
	undo = Frugal()
	require.Equal(t, 77, now())
	undo()
	require.Equal(t, 77, now())
}

// Waiting is called each time that a worker joins or leaves.
func TestWhoWaitsIsToldOfEachChange(t *testing.T) {
	serving(t, func(t *testing.T, s *Server, join func(*pipe) chan error) {
		s.gate = &gate{Listener: &street{}}
		var told [][]string
		s.cfg.Waiting = func(come []string, of int) {
			require.Equal(t, 3, of)
			told = append(told, come)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan error, 1)
		go func() {
			_, err := s.Wait(ctx, 3)
			waits <- err
		}()
		synctest.Wait()
		first, second := newPipe(t), newPipe(t)
		first.come <- saysHello("b")
		one := join(first)
		second.come <- saysHello("a")
		two := join(second)
		close(first.come)
		require.NoError(t, <-one)
		synctest.Wait()
		require.Equal(t, [][]string{nil, {"b"}, {"a", "b"}, {"a"}}, told)
		cancel()
		require.EqualError(t, <-waits, "only 1 of 3 workers have come to "+s.Addr()+": a")
		close(second.come)
		require.NoError(t, <-two)
	})
}

// A coordinator reads its clock twice per heartbeat, and has one snapshot to decode into per processor, however many workers there are.
func TestWhatAServerIsMadeOf(t *testing.T) {
	procs := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(procs)
	s := newServer(Config{Timing: Timing{Heartbeat: 3 * time.Second}})
	require.Equal(t, 1500*time.Millisecond, s.awake.beat)
	require.Equal(t, 3, runtime.GOMAXPROCS(3))
	require.Len(t, s.scratch, 3)
}
