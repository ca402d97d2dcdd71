package rpc

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	mrand "math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/loadgen/loadgen/internal/fleet/identity"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// Local carries out the coordinator's orders.
type Local interface {
	worker.Worker
	// SetLease sets the time until which Local may load its targets: on the run clock, plus JoinConfig.Suspended as of then.
	SetLease(until time.Duration)
	// Close closes what is open. No other method is called after it.
	Close()
}

// JoinConfig configures a worker's end.
type JoinConfig struct {
	Place   identity.Place // where the coordinator is
	Name    string
	Version string            // of this program
	Drivers map[string]string // of its own: where each comes from, by name
	Host    string            // this machine's name
	New     func() Local
	Once    bool   // return after one run
	Metrics string // host:port of its metrics page, on the loopback; "" for none
	Spool   int    // the most bytes kept that the coordinator has not acknowledged; 0 for 64 MiB
	Logger  *slog.Logger

	// MaxLease bounds the lease that a coordinator may grant; 0 for DefaultMaxLease.
	MaxLease time.Duration

	// Suspended returns how long this machine has been suspended since it started; if nil, it never is.
	Suspended func() time.Duration

	// CPU returns this process's processor time, for the coordinator to show; if nil, it is not reported.
	CPU func() time.Duration

	// Random returns a random number 0 ≤ n < below, to vary the pauses between connection attempts; nil for math/rand's.
	Random func(below int64) int64
}

const (
	firstRetry = 50 * time.Millisecond // pause before the second attempt to reach the coordinator
	lastRetry  = 2 * time.Second       // the longest pause; within a run, at most the time between heartbeats
	remembers  = 15 * time.Second      // how long after its lease a worker keeps what the coordinator has not acknowledged
)

// DefaultMaxLease is the longest that a worker loads without hearing from its coordinator, whatever lease the coordinator grants.
const DefaultMaxLease = 30 * time.Second

// RefusedError says that the coordinator rejects this worker for good.
type RefusedError struct{ Reason string }

func (e *RefusedError) Error() string { return "refused by the coordinator: " + e.Reason }

// Join works for the coordinator at a place. It tries until a coordinator is there, takes part in its run, and starts over. It returns nil when ctx
// ends, or after one run with Once. It returns a *RefusedError, or an error of package identity, when trying again is pointless. Everything it started
// has ended when it returns.
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
		retry.longest = lastRetry
		s := newSession(cfg, proof)
		reason, err := s.live(ctx, &retry)
		ran := s.end()
		switch {
		case ctx.Err() != nil:
			return nil
		case isRefused(err):
			return err
		case ran && cfg.Once:
			return cmp.Or(err, s.refused)
		case err != nil:
			cfg.Logger.Warn("run cut off", "err", err)
		case s.refused != nil:
			cfg.Logger.Warn("run not taken on", "err", s.refused)
		case ran:
			cfg.Logger.Info("run over", "why", reason)
		case reason != said:
			cfg.Logger.Warn("not admitted; waiting", "why", reason)
		}
		said = reason
		retry.wait(ctx)
	}
}

// backoff spaces attempts. Each pause is twice the last, minus a random part so that many workers do not come at once.
type backoff struct {
	random  func(below int64) int64
	longest time.Duration
	pause   time.Duration
}

func (b *backoff) reset() { b.pause = 0 }

func (b *backoff) wait(ctx context.Context) {
	b.pause = min(max(2*b.pause, firstRetry), b.longest)
	select {
	case <-time.After(b.pause/2 + time.Duration(b.random(int64(b.pause/2)))):
	case <-ctx.Done():
	}
}

// session is a worker's part in one run, from the first attempt to reach a coordinator to the end of the run. It may use several streams.
type session struct {
	cfg         JoinConfig
	proof       credentials.TransportCredentials
	incarnation string
	epoch       time.Time // zero of the worker's clock
	orders      chan *pb.Envelope
	synced      chan struct{} // closed once the clocks have been compared
	compared    sync.Once
	met         atomic.Bool     // the last attempt reached a listener
	work        context.Context // context of the orders
	abandon     context.CancelFunc
	routine     sync.WaitGroup // the goroutine that carries out orders
	refused     error          // why this worker did not take on the run; set by that goroutine
	idle        chan struct{}  // closed when that goroutine has ended

	mu      sync.Mutex
	link    link
	wake    chan struct{} // holds one value: there is something to send
	offsets offsets
	lease   time.Duration // end of the lease: on the worker's clock plus the machine's total sleep
	slept   time.Duration // the machine's total sleep, as last read
	woke    time.Duration // worker's clock when new sleep was last noticed
	moved   bool          // the clocks have not been compared since then
	local   Local         // nil before the assignment; set by the goroutine that carries out orders
	clocks  exchange      // the comparison of the clocks that the run uses
	zero    time.Duration // worker's clock at the run clock's zero
	turn    time.Duration // delay from an interval's end until its snapshot is sent
	stream  streamState
}

// streamState holds what the current stream has to send besides envelopes.
type streamState struct {
	beat   bool   // send a heartbeat now, ahead of time
	taken  uint64 // number to acknowledge, unless told says it was
	told   uint64
	flight flight // the envelopes in flight
}

func newSession(cfg JoinConfig, proof credentials.TransportCredentials) *session {
	if cfg.Spool <= 0 {
		cfg.Spool = defaultSpool
	}
	if cfg.MaxLease <= 0 {
		cfg.MaxLease = DefaultMaxLease
	}
	if cfg.Suspended == nil {
		cfg.Suspended = func() time.Duration { return 0 }
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

// now is the worker's clock, which stops while the machine is suspended.
func (s *session) now() time.Duration { return time.Since(s.epoch) }

// live keeps a stream open until the coordinator says goodbye, whose reason it returns, or until the worker gives the coordinator up.
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
		what := "no coordinator there; trying until there is one"
		if s.met.Load() && !s.assigned() {
			what = "something listens there, but does not take this worker; trying until it does"
		}
		s.cfg.Logger.Log(ctx, level, what, "coordinator", s.cfg.Place.Name, "err", status.Convert(err).Message())
		retry.wait(ctx)
	}
}

// assigned says whether this worker has a part in a run.
func (s *session) assigned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local != nil
}

// overdue says whether the run is over for this worker because its lease ended long ago. Until then, a coordinator that stood still may come back and
// ask what was done.
func (s *session) overdue() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.local != nil && s.now()+s.cfg.Suspended() > s.lease+remembers
}

// end stops the work and says whether there was a run.
func (s *session) end() (ran bool) {
	s.abandon()
	s.routine.Wait() // only this goroutine sets local
	if s.local != nil {
		s.local.Close()
	}
	return s.local != nil
}

// client creates a connection to the coordinator.
func (s *session) client() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///"+string(identity.Coordinator),
		grpc.WithTransportCredentials(s.proof),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			conn, err := s.cfg.Place.Dial(ctx)
			s.met.Store(err == nil)
			return conn, err
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage+maxHeaders), grpc.MaxCallSendMsgSize(maxMessage+maxHeaders)),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithStaticStreamWindowSize(windowBytes), grpc.WithStaticConnWindowSize(windowBytes),
		grpc.WithReadBufferSize(bufferBytes), grpc.WithWriteBufferSize(bufferBytes),
		grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
	)
}

// joined is a stream whose two ends have greeted each other.
type joined struct {
	stream    grpc.BidiStreamingClient[pb.FromWorker, pb.FromCoordinator]
	heartbeat time.Duration
	lease     time.Duration
}

// connect opens a stream and serves it until it ends, with a goodbye from the coordinator or with an error.
func (s *session) connect(parent context.Context, retry *backoff) (*pb.Goodbye, error) {
	if err := enrol(parent, s.cfg); err != nil {
		return nil, err
	}
	client, err := s.client()
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }() // its error no longer matters
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
	retry.longest = min(lastRetry, j.heartbeat) // a worker that comes back after its lease has ended is lost
	return s.serve(parent, &j, cancel)
}

// greet sends a hello and receives the welcome, or a goodbye.
func (s *session) greet(j *joined) (*pb.Goodbye, error) {
	s.mu.Lock()
	hello := &pb.Hello{
		Protocol: protocol, Name: s.cfg.Name, Incarnation: s.incarnation, Version: s.cfg.Version, Host: s.cfg.Host, Received: s.link.taken,
		Metrics: s.cfg.Metrics, Drivers: s.cfg.Drivers,
	}
	s.mu.Unlock()
	if err := j.stream.Send(&pb.FromWorker{Hello: hello}); err != nil {
		_, err = j.stream.Recv() // Recv returns the reason
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
		return nil, errors.New("the coordinator's first message is not a welcome")
	case w.GetProtocol() != protocol:
		return nil, &RefusedError{fmt.Sprintf("it speaks protocol %d, this worker protocol %d", w.GetProtocol(), protocol)}
	}
	j.heartbeat, j.lease = time.Duration(w.GetHeartbeatNs()), time.Duration(w.GetLeaseNs())
	if j.heartbeat < time.Millisecond || j.heartbeat > time.Minute || j.lease < j.heartbeat || j.lease > time.Hour {
		return nil, fmt.Errorf("the coordinator wants heartbeats every %v and grants leases of %v", j.heartbeat, j.lease)
	}
	j.lease = min(j.lease, s.cfg.MaxLease) // the owner of this machine decides
	j.heartbeat = min(j.heartbeat, j.lease/10)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = streamState{beat: true}
	return nil, s.link.attach(w.GetStored())
}
