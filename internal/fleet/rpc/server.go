package rpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/identity"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// Config configures a coordinator's end.
type Config struct {
	Place   identity.Place    // where workers connect
	Run     string            // the run's ID, which workers show
	Version string            // of this program
	Drivers map[string]string // of its own, those that the run uses: where each comes from, by name
	Timing  Timing
	Logger  *slog.Logger

	// Spares lets workers join during the run, for Spare to hand out.
	Spares bool

	// Waiting is called on each change while waiting for workers, with those that have come, how many are wanted, and why the last one that was refused
	// for good was; "" for none. It may be nil.
	Waiting func(come []string, of int, refused string)
}

// Server is what the workers of one run connect to.
type Server struct {
	pb.UnimplementedControlServer
	cfg     Config
	gate    *gate
	grpc    *grpc.Server
	epoch   time.Time              // zero of the coordinator's clock
	awake   awake                  // the part of it in which this process was awake
	routine sync.WaitGroup         // serving, the awake clock, and a receiver per stream
	done    chan struct{}          // closed by Close
	changed chan struct{}          // holds one value: members have changed
	scratch chan *measure.Snapshot // snapshots to decode into, one for each concurrent decode

	mu      sync.Mutex
	members map[string]*member // by name
	begun   bool               // only spares may join now
	wanted  int                // workers of the run
	refused string             // the last worker that was refused for good, and why
	closed  bool
}

// Listen opens the coordinator's listener to workers that prove they belong to the user.
func Listen(cfg Config) (*Server, error) {
	proof, err := cfg.Place.Prove(identity.Coordinator)
	if err != nil {
		return nil, fmt.Errorf("listen for workers: %w", err)
	}
	lis, err := cfg.Place.Listen()
	if err != nil {
		return nil, fmt.Errorf("listen for workers: %w", err)
	}
	s := newServer(cfg)
	s.gate = newGate(lis, proof, cfg.Logger)
	reads := bufferBytes
	if proof.Info().SecurityProtocol == "tls" {
		reads = 0 // TLS holds the record it has read
	}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage+maxHeaders), grpc.MaxSendMsgSize(maxMessage+maxHeaders),
		grpc.MaxConcurrentStreams(maxStreams), grpc.MaxHeaderListSize(maxHeaders), grpc.ConnectionTimeout(identity.Within), grpc.Creds(s.gate),
		grpc.StaticStreamWindowSize(windowBytes), grpc.StaticConnWindowSize(windowBytes),
		grpc.ReadBufferSize(reads), grpc.WriteBufferSize(bufferBytes),
		// Heartbeats detect who is alive; keepalives only clean up dead connections.
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: time.Minute}),
	)
	pb.RegisterControlServer(s.grpc, s)
	s.routine.Go(func() {
		if err := s.grpc.Serve(s.gate); err != nil {
			cfg.Logger.Error("listen for workers", "err", err)
		}
	})
	s.routine.Go(func() { s.awake.keep(s.done) })
	return s, nil
}

func newServer(cfg Config) *Server {
	s := &Server{
		cfg: cfg, epoch: time.Now(), done: make(chan struct{}), changed: make(chan struct{}, 1), members: map[string]*member{}, scratch: newScratch(),
	}
	s.awake = awake{now: s.now, beat: cfg.Timing.Heartbeat / 2}
	return s
}

// newScratch returns snapshots to decode into, one per processor.
func newScratch() chan *measure.Snapshot {
	scratch := make(chan *measure.Snapshot, runtime.GOMAXPROCS(0))
	for range cap(scratch) {
		scratch <- new(measure.Snapshot)
	}
	return scratch
}

// Frugal makes this process collect garbage at half the usual heap growth, unless its user has set GOGC, and returns a function that undoes it. It is
// for a coordinator whose workers are elsewhere. With many workers, most of its memory is recent garbage, and nothing waits for a collection.
func Frugal() (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(50)
	return func() { debug.SetGCPercent(before) }
}

// decode calls f with a snapshot to decode into, and returns f's error. Sharing a few such snapshots saves memory when many goroutines wait for
// the disk. f runs in its own goroutine for the same reason: a goroutine that has decoded would keep its deep stack while it waits.
func (s *Server) decode(f func(scratch *measure.Snapshot) error) (err error) {
	scratch := <-s.scratch
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = f(scratch)
	}()
	<-done
	s.scratch <- scratch
	return err
}

// Addr returns the address for workers to use.
func (s *Server) Addr() string {
	return s.cfg.Place.Reach(s.gate.Addr())
}

// now is the coordinator's clock.
func (s *Server) now() time.Duration { return time.Since(s.epoch) }

// alarm returns an alarm for a worker's silence. Time that this process sleeps does not count against the worker, but only until a healthy worker would
// have forgotten the run.
func (s *Server) alarm(after time.Duration, call func()) *alarm {
	return &alarm{clock: &s.awake, after: after, spare: remembers + s.cfg.Timing.Attach, call: call}
}

// Wait returns n workers, ordered by name, once they have joined. After that no other may join, except spares. If ctx ends first, the error says
// who has joined.
func (s *Server) Wait(ctx context.Context, n int) ([]worker.Member, error) {
	for {
		members := s.gather(n)
		if s.cfg.Waiting != nil {
			s.cfg.Waiting(namesOf(members), n, s.refusal())
		}
		if len(members) == n {
			return listed(members), nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil, s.missing(members, n)
		}
	}
}

// gather returns the workers that have joined, at most n. If there are n, the run begins.
func (s *Server) gather(n int) []*member {
	s.mu.Lock()
	defer s.mu.Unlock()
	var there []*member
	for _, m := range s.members {
		if m.attached() {
			there = append(there, m)
		}
	}
	slices.SortFunc(there, func(a, b *member) int { return cmp.Compare(a.name, b.name) })
	if len(there) < n {
		return there
	}
	s.begun, s.wanted = true, n
	for _, m := range there[:n] {
		m.part = true
	}
	for _, m := range there[n:] {
		if s.cfg.Spares {
			break
		}
		delete(s.members, m.name)
		m.dismiss("the run has the workers it needs; the next one may need more")
	}
	return there[:n]
}

func listed(members []*member) []worker.Member {
	var list []worker.Member
	for _, m := range members {
		list = append(list, worker.Member{Name: m.name, Host: m.host, Version: m.version, Worker: m, Attend: m.attend})
	}
	return list
}

// missing says who has joined and how many have not.
func (s *Server) missing(members []*member, n int) error {
	refused := s.refusal()
	if refused != "" {
		refused = "; " + refused
	}
	if len(members) == 0 {
		return fmt.Errorf("no worker has come to %s, of %d wanted%s", s.Addr(), n, refused)
	}
	return fmt.Errorf("only %d of %d workers have come to %s: %s%s", len(members), n, s.Addr(), strings.Join(namesOf(members), ", "), refused)
}

func namesOf(members []*member) (names []string) {
	for _, m := range members {
		names = append(names, m.name)
	}
	return names
}

// refusal says which worker was the last to be refused for good, and why, or why a connection was; "" for none.
func (s *Server) refusal() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.refused, s.gate.refusal())
}

// Join serves one stream of a worker.
func (s *Server) Join(stream grpc.BidiStreamingServer[pb.FromWorker, pb.FromCoordinator]) error {
	c := &conn{stream: stream, ended: make(chan struct{}), said: make(chan struct{}), first: make(chan *pb.Hello), owner: make(chan *member, 1)}
	s.routine.Go(func() { c.receive(s) })
	var hello *pb.Hello
	select {
	case hello = <-c.first:
	case <-c.ended:
		return nil
	case <-time.After(s.cfg.Timing.Attach):
		return errors.New("no hello came")
	}
	m, bye := s.admit(hello, c)
	if bye != nil {
		s.cfg.Logger.Info("refused a worker", "worker", hello.GetName(), "why", bye.GetReason())
		if bye.GetForGood() {
			s.mu.Lock()
			s.refused = fmt.Sprintf("worker %s was refused: %s", line(hello.GetName()[:min(len(hello.GetName()), maxLine)]), bye.GetReason())
			s.mu.Unlock()
			poke(s.changed)
		}
		return stream.Send(&pb.FromCoordinator{Goodbye: bye})
	}
	c.owner <- m
	poke(s.changed)
	err := c.carry(m)
	m.detach(c)
	poke(s.changed)
	return err
}

// admit finds or creates the member that sent a hello and gives it the stream, or says why not.
func (s *Server) admit(h *pb.Hello, c *conn) (*member, *pb.Goodbye) {
	name := h.GetName()
	switch {
	case h.GetProtocol() != protocol:
		return nil, &pb.Goodbye{ForGood: true, Reason: fmt.Sprintf(
			"the coordinator speaks protocol %d (loadgen %s), this worker protocol %d (loadgen %s): run the same version on both sides",
			protocol, s.cfg.Version, h.GetProtocol(), line(h.GetVersion()))}
	case !isLine(h.GetHost()) || !isLine(h.GetVersion()):
		return nil, &pb.Goodbye{ForGood: true, Reason: fmt.Sprintf(
			"a worker's host and version are a line of up to %d bytes each, without control or direction characters: set the machine's host name", maxLine)}
	}
	from, known := peer.FromContext(c.stream.Context())
	if !known {
		from = new(peer.Peer)
	}
	if other := s.otherDriver(h); other != "" {
		return nil, &pb.Goodbye{ForGood: true, Reason: other}
	}
	for _, err := range []error{identity.CheckName(name), identity.CheckBound(from.AuthInfo, name), checkMetrics(h.GetMetrics(), from.Addr)} {
		if err != nil {
			return nil, &pb.Goodbye{ForGood: true, Reason: err.Error()}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[name]
	switch {
	case s.closed:
		return nil, &pb.Goodbye{Reason: "the run has ended"}
	case m != nil && m.incarnation == h.GetIncarnation():
		return m, m.attach(h.GetReceived(), c)
	case m != nil && (s.begun && !s.spare(m) || m.attached()):
		return nil, &pb.Goodbye{Reason: fmt.Sprintf("another worker is called %q; it may be the one that ran here before", name)}
	case s.begun && !s.room():
		return nil, &pb.Goodbye{Reason: "a run is under way, and it has the workers it needs: wait for the next"}
	}
	m = newMember(s, h)
	bye := m.attach(h.GetReceived(), c)
	if bye == nil {
		s.members[name] = m
	}
	return m, bye
}

// otherDriver says which of the run's own drivers a worker lacks, or has from elsewhere; "" for none.
func (s *Server) otherDriver(h *pb.Hello) string {
	for _, name := range slices.Sorted(maps.Keys(s.cfg.Drivers)) {
		is := "does not have it"
		if word := h.GetDrivers()[name]; word == s.cfg.Drivers[name] {
			continue
		} else if word != "" {
			is = "has it from " + line(word[:min(len(word), 2*maxLine)])
		}
		return fmt.Sprintf("the plan uses driver %q, which the coordinator has from %s, and this worker %s: run the same program on both sides (docs/drivers.md)",
			name, s.cfg.Drivers[name], is)
	}
	return ""
}

// spare says whether another worker may take a member's name: spares may join, and the member was lost or never had a part. The caller holds the lock.
func (s *Server) spare(m *member) bool { return s.cfg.Spares && (!m.part || m.isLost()) }

// room says whether one more worker may join during the run, to stand by in case one is lost. The caller holds the lock.
func (s *Server) room() bool {
	n := 0
	for _, m := range s.members {
		if !m.part && !m.isLost() {
			n++
		}
	}
	return s.cfg.Spares && n < s.wanted
}

// Spare returns a worker that has joined during the run, and waits for one until ctx ends.
func (s *Server) Spare(ctx context.Context) (worker.Member, error) {
	for {
		if m := s.takeSpare(); m != nil {
			return listed([]*member{m})[0], nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return worker.Member{}, fmt.Errorf("no worker has come to %s to take a place: %w", s.Addr(), context.Cause(ctx))
		}
	}
}

// takeSpare gives the first spare by name a part in the run; nil if there is none.
func (s *Server) takeSpare() *member {
	s.mu.Lock()
	defer s.mu.Unlock()
	var first *member
	for _, m := range s.members {
		if !m.part && m.attached() && (first == nil || m.name < first.name) {
			first = m
		}
	}
	if first != nil {
		first.part = true
	}
	return first
}

// forget removes a lost worker that had no part in the run. If it had one, its name stays taken.
func (s *Server) forget(m *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !m.part && s.members[m.name] == m {
		delete(s.members, m.name)
	}
	poke(s.changed)
}

// Close tells the workers that the run has ended, and closes the listener. It waits no longer than Farewell for workers that do not listen.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
	members := s.members
	s.members = map[string]*member{}
	s.mu.Unlock()
	for _, m := range members {
		m.dismiss("the run has ended")
	}
	s.gate.Shut()
	late := time.AfterFunc(s.cfg.Timing.Farewell, s.grpc.Stop)
	s.grpc.GracefulStop()
	late.Stop()
	s.routine.Wait()
}
