package rpc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/loadgen/loadgen/internal/identity"
	"github.com/loadgen/loadgen/internal/machine"
	pb "github.com/loadgen/loadgen/internal/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/worker"
)

// Local carries out what the coordinator orders.
type Local interface {
	worker.Worker
	// SetLease says until when it may load its targets: on the run clock, and with what JoinConfig.Suspended has said by then.
	SetLease(until time.Duration)
	// Close closes what is open. Nothing else is called after it.
	Close()
}

// JoinConfig is what a worker's end needs.
type JoinConfig struct {
	Place   identity.Place // where the coordinator is
	Name    string
	Version string // of this program
	Host    string // this machine's name
	New     func() Local
	Once    bool   // return after one run
	Metrics string // host:port of its metrics page, on the loopback; "": it serves none
	Spool   int    // bytes kept of what the coordinator has not taken; 0: 64 MiB
	Logger  *slog.Logger

	// MaxLease bounds the lease that a coordinator may grant; 0: DefaultMaxLease.
	MaxLease time.Duration

	// Suspended returns for how long this machine has been suspended since it started; nil: machine.Suspended.
	Suspended func() time.Duration

	// CPU returns the processor time of this process, for the coordinator to show; nil: it is not told.
	CPU func() time.Duration

	// Random returns a number of 0 ≤ n < below, by which pauses between attempts to reach the coordinator differ. Nil: math/rand's.
	Random func(below int64) int64
}

const (
	firstRetry = 50 * time.Millisecond // before the second attempt to reach the coordinator
	lastRetry  = 2 * time.Second       // and the longest
	remembers  = 15 * time.Second      // for how long after its lease a worker keeps what the coordinator has not taken
)

// DefaultMaxLease is for how long a worker loads at most without a word from its coordinator, whatever that grants.
const DefaultMaxLease = 30 * time.Second

// RefusedError says that the coordinator wants nothing to do with this worker, now or later.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "refused by the coordinator: " + e.Reason }

// Join works for the coordinator at a place: it tries until one is there, takes part in its run, and begins again. It returns nil when
// ctx ends, or after a run if that is to be the only one, and a *RefusedError, or one of identity's, when it need not try again. What it has started has
// ended when it returns.
func Join(ctx context.Context, cfg JoinConfig) error {
	proof, err := cfg.Place.Prove(identity.Worker)
	if err != nil {
		return err
	}
	if cfg.Random == nil {
		cfg.Random = mrand.Int64N
	}
	defer keepEnrolled(ctx, cfg)()
	said := ""
	retry := backoff{random: cfg.Random}
	for {
		s := newSession(cfg, proof)
		reason, err := s.live(ctx, &retry)
		ran := s.end()
		switch {
		case ctx.Err() != nil:
			return nil
		case isRefused(err):
			return err
		case ran && cfg.Once:
			return err
		case err != nil:
			cfg.Logger.Warn("run cut off", "err", err)
		case ran:
			cfg.Logger.Info("run over", "why", reason)
		case reason != said:
			cfg.Logger.Warn("not admitted; waiting", "why", reason)
		}
		said = reason
		retry.wait(ctx)
	}
}

// backoff spaces attempts: each pause is twice the last, and a random part of it is left out so that many workers do not come together.
type backoff struct {
	random func(below int64) int64
	pause  time.Duration
}

func (b *backoff) reset() { b.pause = 0 }

func (b *backoff) wait(ctx context.Context) {
	b.pause = min(max(2*b.pause, firstRetry), lastRetry)
	select {
	case <-time.After(b.pause/2 + time.Duration(b.random(int64(b.pause/2)))):
	case <-ctx.Done():
	}
}

// session is a worker's part in one run, from the first attempt to reach a coordinator to the end of the run. Streams come and go in
// it.
type session struct {
	cfg         JoinConfig
	proof       credentials.TransportCredentials
	incarnation string
	epoch       time.Time // zero of the worker's clock
	orders      chan *pb.Envelope
	synced      chan struct{} // closed when the clocks have been compared
	compared    sync.Once
	work        context.Context // of what is being carried out
	abandon     context.CancelFunc
	routine     sync.WaitGroup // the one that carries orders out
	idle        chan struct{}  // closed when it has ended

	mu      sync.Mutex
	link    link
	wake    chan struct{} // holds one: there is something to send
	offsets offsets
	lease   time.Duration // worker's clock, and what the machine had slept by then
	slept   time.Duration // the machine, as it was seen last
	woke    time.Duration // worker's clock, when it was seen to have slept again
	moved   bool          // the clocks have not been compared since
	local   Local         // nil before the assignment; set by the one that carries orders out
	clocks  exchange      // as they were compared for the run
	zero    time.Duration // worker's clock at the run clock's zero
	turn    time.Duration // from an interval's end until its snapshot is sent
	stream  streamState
}

// streamState is what the sender of the stream at hand has to send beside envelopes.
type streamState struct {
	beat   bool   // a heartbeat, without waiting for its time
	taken  uint64 // an acknowledgement, unless that was told already
	told   uint64
	flight flight // of envelopes
}

func newSession(cfg JoinConfig, proof credentials.TransportCredentials) *session {
	if cfg.Spool <= 0 {
		cfg.Spool = defaultSpool
	}
	if cfg.MaxLease <= 0 {
		cfg.MaxLease = DefaultMaxLease
	}
	if cfg.Suspended == nil {
		cfg.Suspended = machine.Suspended
	}
	s := &session{
		cfg: cfg, proof: identity.Handshake(proof), incarnation: rand.Text(), epoch: time.Now(),
		orders: make(chan *pb.Envelope, 16), synced: make(chan struct{}), idle: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	s.slept = cfg.Suspended()
	s.work, s.abandon = context.WithCancel(context.Background())
	s.routine.Go(s.carryOut)
	return s
}

// now is the worker's clock. It stands still while the machine is suspended.
func (s *session) now() time.Duration { return time.Since(s.epoch) }

// live keeps a stream up until the coordinator says goodbye, whose reason it returns, or is given up.
func (s *session) live(ctx context.Context, retry *backoff) (reason string, err error) {
	for first := true; ; first = false {
		bye, err := s.connect(ctx, retry)
		switch {
		case isRefused(err):
			return "", err
		case bye.GetForGood():
			return "", &RefusedError{line(bye.GetReason())}
		case bye != nil:
			return line(bye.GetReason()), nil
		case ctx.Err() != nil:
			return "", nil
		case s.overdue():
			return "", fmt.Errorf("coordinator at %s: not reached for longer than the lease, the run is given up: %w", s.cfg.Place.Name, err)
		}
		level := slog.LevelDebug
		if first {
			level = slog.LevelInfo
		}
		s.cfg.Logger.Log(ctx, level, "no coordinator there; trying until there is one", "coordinator", s.cfg.Place.Name, "err", status.Convert(err).Message())
		retry.wait(ctx)
	}
}

// overdue says whether the run has ended for this worker: its lease was over long ago. Until then a coordinator that stood still may
// come back, and wants to know what was done.
func (s *session) overdue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local != nil && s.now()+s.cfg.Suspended() > s.lease+remembers
}

// end stops what is being carried out and reports whether there was a run.
func (s *session) end() (ran bool) {
	s.abandon()
	s.routine.Wait() // it alone sets local
	if s.local != nil {
		s.local.Close()
	}
	return s.local != nil
}

// client makes a connection to the coordinator.
func (s *session) client() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+string(identity.Coordinator),
		grpc.WithTransportCredentials(s.proof),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.cfg.Place.Dial(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage+maxHeaders), grpc.MaxCallSendMsgSize(maxMessage+maxHeaders)),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithStaticStreamWindowSize(windowBytes), grpc.WithStaticConnWindowSize(windowBytes),
		grpc.WithReadBufferSize(bufferBytes), grpc.WithWriteBufferSize(bufferBytes),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
	)
}

// joined is a stream on which the two ends have greeted each other.
type joined struct {
	stream    grpc.BidiStreamingClient[pb.FromWorker, pb.FromCoordinator]
	heartbeat time.Duration
	lease     time.Duration
}

// connect opens a stream and serves it until it ends: with a goodbye from the coordinator, or an error.
func (s *session) connect(parent context.Context, retry *backoff) (*pb.Goodbye, error) {
	if err := enrol(parent, s.cfg); err != nil {
		return nil, err
	}
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // what it could still say is of no interest
	ctx, cancel := context.WithCancel(context.WithoutCancel(parent))
	defer cancel()
	early := context.AfterFunc(parent, cancel)
	late := time.AfterFunc(DefaultTiming().Attach, cancel)
	stream, err := pb.NewControlClient(client).Join(ctx)
	if err != nil {
		return nil, err
	}
	j := joined{stream: stream}
	bye, err := s.greet(&j)
	late.Stop()
	early()
	if err != nil || bye != nil {
		return bye, err
	}
	retry.reset()
	return s.serve(parent, &j, cancel)
}

// greet says hello and takes the welcome, or the goodbye.
func (s *session) greet(j *joined) (*pb.Goodbye, error) {
	s.mu.Lock()
	hello := &pb.Hello{
		Protocol: protocol, Name: s.cfg.Name, Incarnation: s.incarnation, Version: s.cfg.Version, Host: s.cfg.Host, Received: s.link.taken,
		Metrics: s.cfg.Metrics,
	}
	s.mu.Unlock()
	if err := j.stream.Send(&pb.FromWorker{Message: &pb.FromWorker_Hello{Hello: hello}}); err != nil {
		_, err = j.stream.Recv() // which says why
		return nil, err
	}
	msg, err := j.stream.Recv()
	if err != nil {
		return nil, err
	}
	if bye := msg.GetGoodbye(); bye != nil {
		return bye, nil
	}
	w := msg.GetWelcome()
	switch {
	case w == nil:
		return nil, errors.New("the coordinator's first word is no welcome")
	case w.GetProtocol() != protocol:
		return nil, &RefusedError{fmt.Sprintf("it speaks protocol %d, this worker protocol %d", w.GetProtocol(), protocol)}
	}
	j.heartbeat, j.lease = time.Duration(w.GetHeartbeatNs()), time.Duration(w.GetLeaseNs())
	if j.heartbeat < time.Millisecond || j.heartbeat > time.Minute || j.lease < j.heartbeat || j.lease > time.Hour {
		return nil, fmt.Errorf("the coordinator wants heartbeats every %v and grants leases of %v", j.heartbeat, j.lease)
	}
	j.lease = min(j.lease, s.cfg.MaxLease) // this machine's owner has the last word
	j.heartbeat = min(j.heartbeat, j.lease/10)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = streamState{beat: true}
	return nil, s.link.attach(w.GetStored())
}
