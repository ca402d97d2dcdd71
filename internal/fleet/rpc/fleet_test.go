package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/engine"
	"github.com/loadgen/loadgen/internal/load/machine"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// took is how long a mill takes for an answer. No multiple of it is a boundary of intervals.
const took = 50_021 * time.Microsecond

// mill is the driver of a target that counts what it gets.
type mill struct {
	mu    sync.Mutex
	epoch time.Time
	got   int
	last  time.Duration // when the last request came
}

func newMill() *mill { return &mill{epoch: time.Now()} }

func (*mill) Name() string                          { return "mill" }
func (*mill) NewConfig() any                        { return &struct{}{} }
func (*mill) Outcomes(driver.Verb) []driver.Outcome { return []driver.Outcome{driver.OK} }

func (m *mill) Reply(_ any, _ *driver.Request, reply *driver.Reply) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got++
	m.last = time.Since(m.epoch)
	*reply = driver.Reply{}
	return took
}

func (m *mill) seen() (got int, last time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.got, m.last
}

// cable is a worker's connection to the coordinator, for a test to cut.
type cable struct {
	lis *bufconn.Listener

	mu       sync.Mutex
	conns    []net.Conn
	down     bool          // no connection can be made
	deafUp   bool          // what the worker sends is lost
	deafDown bool          // what the coordinator sends is lost
	slow     time.Duration // what each KiB takes, either way
	long     time.Duration // what each write takes on top
}

func (c *cable) dial(ctx context.Context) (net.Conn, error) {
	c.mu.Lock()
	down := c.down
	c.mu.Unlock()
	if down {
		return nil, errors.New("cut")
	}
	conn, err := c.lis.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns = append(c.conns, conn)
	return &cabled{Conn: conn, cable: c, closed: make(chan struct{})}, nil
}

// set changes what the cable does; sever also breaks the connections there are.
func (c *cable) set(change func(*cable)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func sever(c *cable) {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

type cabled struct {
	net.Conn
	cable  *cable
	once   sync.Once
	closed chan struct{}
}

func (c *cabled) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// delay takes as long as told, or until this end of the connection is closed.
func (c *cabled) delay(d time.Duration) {
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.closed:
	}
}

func (c *cabled) Write(b []byte) (int, error) {
	c.cable.mu.Lock()
	deaf, takes := c.cable.deafUp, c.cable.long+c.cable.slow*time.Duration(len(b))/1024
	c.cable.mu.Unlock()
	c.delay(takes)
	if deaf {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cabled) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		c.cable.mu.Lock()
		deaf, takes := c.cable.deafDown, c.cable.slow*time.Duration(n)/1024
		c.cable.mu.Unlock()
		c.delay(takes)
		if !deaf || err != nil {
			return n, err
		}
	}
}

// fleet is a coordinator's end and its workers, connected by cables in memory.
type fleet struct {
	t      testing.TB
	lis    *bufconn.Listener
	server *rpc.Server
	nodes  []*node
	said   *said
	log    *slog.Logger
}

// said is a log that a test looks at.
type said struct {
	began time.Time

	mu    sync.Mutex
	lines []string
}

func (*said) Enabled(context.Context, slog.Level) bool { return true }
func (s *said) WithAttrs([]slog.Attr) slog.Handler     { return s }
func (s *said) WithGroup(string) slog.Handler          { return s }

func (s *said) Handle(_ context.Context, r slog.Record) error {
	line := fmt.Sprint(r.Time.Sub(s.began), " ", r.Message)
	if r.Level < slog.LevelInfo {
		line += " level=DEBUG"
	}
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprint(" ", a)
		return true
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line)
	return nil
}

// with returns the lines that contain words.
func (s *said) with(words string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for _, line := range s.lines {
		if strings.Contains(line, words) {
			found = append(found, line)
		}
	}
	return found
}

// node is a worker.
type node struct {
	mill   *mill
	cable  *cable
	stop   context.CancelFunc
	engine func(*engine.Config) // changes that of its engines; nil: not at all
	done   chan struct{}
	err    error // of Join, once done is closed
}

func newFleet(t testing.TB) *fleet { return newTimedFleet(t, rpc.DefaultTiming()) }

func newTimedFleet(t testing.TB, timing rpc.Timing, drivers ...string) *fleet {
	f := &fleet{t: t, lis: bufconn.Listen(1 << 20), said: &said{began: time.Now()}}
	f.log = slog.New(f.said)
	cfg := rpc.Config{Place: rpc.Trusting("bufconn", f.lis, nil), Run: "r", Version: "v1", Timing: timing, Logger: f.log, Drivers: map[string]string{}}
	for _, name := range drivers {
		cfg.Drivers[name] = name + ".example/driver@v1 h1:one"
	}
	server, err := rpc.Listen(cfg)
	require.NoError(t, err)
	f.server = server
	return f
}

// join starts a worker.
func (f *fleet) join(name string, change ...func(*rpc.JoinConfig)) *node {
	ctx, stop := context.WithCancel(context.Background())
	n := &node{mill: newMill(), cable: &cable{lis: f.lis}, stop: stop, done: make(chan struct{})}
	cfg := rpc.JoinConfig{
		Place: rpc.Trusting("coordinator", nil, n.cable.dial), Name: name, Version: "v1", Host: "here", Once: true, Logger: f.log.With("worker", name),
		New: func() rpc.Local { return newEngine(n.mill, n.engine) },
	}
	for _, c := range change {
		c(&cfg)
	}
	go func() {
		defer close(n.done)
		n.err = rpc.Join(ctx, cfg)
	}()
	f.nodes = append(f.nodes, n)
	return n
}

func newEngine(m *mill, change func(*engine.Config)) *engine.Engine {
	cfg := engine.Config{Drivers: []driver.Driver{m}, Loops: 1, Logger: slog.New(slog.DiscardHandler), Sleep: time.Sleep}
	if change != nil {
		change(&cfg)
	}
	return engine.New(cfg)
}

// members waits for as many workers as were started.
func (f *fleet) members() []worker.Member {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	members, err := f.server.Wait(ctx, len(f.nodes))
	require.NoError(f.t, err)
	return members
}

// close ends everything.
func (f *fleet) close() {
	f.server.Close()
	for _, n := range f.nodes {
		n.stop()
		<-n.done
	}
	time.Sleep(time.Second) // gRPC's goroutines end behind it, when cables let them
	debug.SetGCPercent(100) // several engines in one process leave each other's setting behind
}

// virtual runs a test of a fleet of n workers, named w1, w2 and so on, in virtual time.
func virtual(t *testing.T, n int, test func(t *testing.T, f *fleet)) {
	servertest.Deadline(t)
	servertest.Bubble(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.close()
		for i := range n {
			f.join(fmt.Sprintf("w%d", i+1))
		}
		test(t, f)
	})
}

// got adds up what the targets of all workers got.
func (f *fleet) got() (sum int) {
	for _, n := range f.nodes {
		got, _ := n.mill.seen()
		sum += got
	}
	return sum
}

// config is of a run whose only phase is a closed load, of 6 sessions unless it says otherwise.
func config(t testing.TB, load string, members []worker.Member) coord.Config {
	if !strings.Contains(load, "sessions") {
		load += "\nsessions = 6"
	}
	text := fmt.Sprintf(`
plan "test" {}
target "t" {
	driver    = "mill"
	endpoints = ["a"]
	executor  = "blocking"
}
dataset "d" {
	keys { count = 10 }
	values { size = 10 }
}
phase "load" {
	target  = target.t
	dataset = dataset.d
	ops     = { put = 1 }
	closed {
		%s
	}
}`, load)
	file, diags := plan.Parse([]byte(text), "test.hcl", []driver.Driver{newMill()})
	require.Empty(t, diags)
	p, diags := file.Resolve(plan.Vars{})
	require.Empty(t, diags)
	canonical, err := p.Canonical()
	require.NoError(t, err)
	return coord.Config{
		Header: run.Header{ID: "r", PlanDigest: plan.Digest(canonical)}, Environment: machine.Environment{Servers: map[string]map[string]map[string]string{}},
		Plan: p, Canonical: canonical, Workers: members, Store: &memory{}, Logger: slog.New(slog.DiscardHandler), Drain: make(chan struct{}),
	}
}

// memory is a coord.Store.
type memory struct {
	mu       sync.Mutex
	records  int // snapshots of workers, and
	own      int // what the coordinator keeps of its own orders
	syncs    int
	slow     time.Duration // of a sync
	failWith error
}

func (m *memory) Append(worker string, _ []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if worker == "" {
		m.own++
	} else {
		m.records++
	}
	return m.failWith
}

func (m *memory) Observe([]byte) error { return m.failWith }

func (m *memory) Sync() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.syncs++
	time.Sleep(m.slow)
	return nil
}
