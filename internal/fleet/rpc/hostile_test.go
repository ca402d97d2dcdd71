package rpc

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// seeds are messages, each valid in some situation.
func seeds(f *testing.F, add func(m proto.Message)) {
	f.Helper()
	totals := measure.NewTotals(5, 1)
	totals.AddDue(driver.Get)
	totals.Record(&measure.Sample{Verb: driver.Get, Due: 10, Start: 11, End: 12})
	*totals.Request(0, driver.Get) = measure.Requests{Sent: 1, Answered: 1}
	snap, err := encodeSnapshot(&measure.Snapshot{SeqFirst: 1, SeqLast: 1, From: 5, To: 20, Delta: *totals, Running: totals.Counters()})
	require.NoError(f, err)
	final, err := encodeFinal(&worker.Final{Totals: totals})
	require.NoError(f, err)
	for _, e := range []*pb.Envelope{
		snap, final,
		envelope(f, kindReady, worker.Ready{Servers: map[string]map[string]map[string]string{"t": {"a": {"version": "1"}}}}),
		envelope(f, kindPrepare, worker.Step{Phase: "p", Kind: worker.Load, To: 3}),
		envelope(f, kindAssign, assignment{worker.Assignment{Workers: 1, Nodes: map[string][]string{"t": {"a"}}}, 7}),
		envelope(f, kindStart, int64(-1<<63)),
		{Kind: kindAssigned},
		{Kind: kindReady, Error: "no"},
		{Kind: kindDrain},
		{Kind: kindAbandon},
		{},
	} {
		e.Number = 1
		add(e)
	}
}

// FuzzFromWorker sends anything to a coordinator that expects a snapshot: it may give the worker up, but must not crash.
func FuzzFromWorker(f *testing.F) {
	add := func(m *pb.FromWorker) {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(b)
	}
	seeds(f, func(m proto.Message) {
		add(&pb.FromWorker{Envelope: m.(*pb.Envelope)})
	})
	add(&pb.FromWorker{Heartbeat: &pb.Heartbeat{SentNs: -1 << 63}})
	add(&pb.FromWorker{Received: 1 << 63})
	add(&pb.FromWorker{Part: []byte("\x08\x01"), Last: true})
	add(&pb.FromWorker{Goodbye: &pb.Goodbye{Reason: "\x00"}})
	s := newServer(Config{Timing: DefaultTiming(), Logger: slog.New(slog.DiscardHandler)})
	f.Fuzz(func(t *testing.T, b []byte) {
		var msg pb.FromWorker
		if proto.Unmarshal(b, &msg) != nil {
			return
		}
		for _, state := range []func(*member) error{
			func(m *member) error { return m.Assign(context.Background(), worker.Assignment{Zero: time.Now()}) },
			func(m *member) error { _, err := m.Prepare(context.Background(), worker.Step{}); return err },
			func(m *member) error {
				_, err := m.Run(context.Background(), 5, func(s *measure.Snapshot) (func() error, error) {
					var sum measure.Totals
					if s.Delta.Origin == 5 {
						sum.Merge(&s.Delta)
					}
					return func() error { return nil }, nil
				})
				return err
			},
		} {
			m := newMember(s, &pb.Hello{Name: "w"})
			c := &conn{}
			require.Nil(t, m.attach(0, c))
			if err := m.handle(c, &msg, s.now()); err != nil {
				m.lose(err.Error())
			}
			go m.lose("the end") // so that who waits for more need not
			_ = state(m)         // whatever it says, it has to come back
			m.dismiss("")
		}
	})
}

// idle is a Local that does nothing.
type idle struct{}

func (idle) Assign(context.Context, worker.Assignment) error            { return nil }
func (idle) Prepare(context.Context, worker.Step) (worker.Ready, error) { return worker.Ready{}, nil }
func (idle) Drain()                                                     {}
func (idle) SetLease(time.Duration)                                     {}
func (idle) Close()                                                     {}
func (idle) Run(context.Context, time.Duration, worker.Sink) (worker.Final, error) {
	return worker.Final{}, nil
}

// told is a stream that delivers one message from the coordinator.
type told struct {
	grpc.BidiStreamingClient[pb.FromWorker, pb.FromCoordinator]
	msg *pb.FromCoordinator
}

func (s told) Recv() (*pb.FromCoordinator, error) { return s.msg, nil }

// TestAWorkerEndsItsStream when it has heard a goodbye or nonsense; otherwise what it is sending might never leave.
func TestAWorkerEndsItsStream(t *testing.T) {
	for _, msg := range []*pb.FromCoordinator{{}, {Goodbye: &pb.Goodbye{}}} {
		ended := false
		_, err := echoing(t, new(time.Duration)).receive(&joined{stream: told{msg: msg}, heartbeat: time.Hour, lease: time.Hour}, func() { ended = true })
		require.Equal(t, msg.Goodbye == nil, err != nil)
		require.True(t, ended)
	}
}

// FuzzFromCoordinator sends anything to a worker, before it has a run and during one.
func FuzzFromCoordinator(f *testing.F) {
	add := func(m *pb.FromCoordinator) {
		b, err := proto.Marshal(m)
		require.NoError(f, err)
		f.Add(b)
	}
	seeds(f, func(m proto.Message) {
		add(&pb.FromCoordinator{Envelope: m.(*pb.Envelope)})
	})
	add(&pb.FromCoordinator{Echo: &pb.Echo{SentNs: 1, ReceivedNs: -1 << 63, EchoedNs: 1<<63 - 1}})
	add(&pb.FromCoordinator{Stored: 1 << 63})
	f.Fuzz(func(t *testing.T, b []byte) {
		var msg pb.FromCoordinator
		if proto.Unmarshal(b, &msg) != nil {
			return
		}
		begin := func(assigned bool) *session {
			s := newSession(JoinConfig{Name: "w", New: func() Local { return idle{} }, Logger: slog.New(slog.DiscardHandler), Spool: 1}, nil)
			if assigned {
				require.NoError(t, s.echoed(&pb.Echo{}, s.now(), time.Second))
				require.NoError(t, s.assign(envelope(t, kindAssign, worker.Assignment{Workers: 1})))
			}
			return s
		}
		for _, assigned := range []bool{false, true} {
			s := begin(assigned)
			switch {
			case msg.GetEnvelope() != nil:
				if s.accept(msg.GetEnvelope()) == nil && msg.GetEnvelope().GetKind() != "" && assigned {
					other := begin(true) // s carries it out at any time, or ends before
					_ = other.do(msg.GetEnvelope())
					other.end()
				}
			case msg.GetEcho() != nil:
				_ = s.echoed(msg.GetEcho(), s.now(), time.Second) // refused or not
			case msg.GetStored() > 0:
				require.Error(t, s.link.ack(msg.GetStored()))
			}
			s.end()
		}
	})
}
