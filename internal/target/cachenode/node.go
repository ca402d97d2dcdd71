package cachenode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadgen/loadgen/internal/base/listen"
)

const (
	// defaultConnections is how many connections a node serves at a time by default; Redis' default.
	defaultConnections = 10_000
	// writeTimeout is how long a client may leave a reply unread before its connection is closed.
	writeTimeout = 30 * time.Second
	// readTimeout is how long a client that has begun a request may pause in it.
	readTimeout = 30 * time.Second
	// acceptPause is the wait after a failed accept, usually for lack of file descriptors.
	acceptPause = 50 * time.Millisecond
)

// Config describes a node.
type Config struct {
	Listen         string       // host:port; port 0 for any free one. Only on the loopback, unless there is a password
	Protocol       string       // "resp", "memcached" or "hydra"; "" for "resp"
	Memory         int64        // bound on the bytes of keys and values, plus entryOverhead (96 bytes) per entry; > 0
	Delay          Times        // each reply leaves at least this much after its request arrived
	DelayLog       io.Writer    // gets a line for each request, as CSV; nil for none. All of it is written when Serve returns
	Stalls         []Stall      // planned from the start
	Service        Times        // how long each GET, SET and DEL is worked on, one at a time. resp only
	Attentive      bool         // polls for requests instead of sleeping, for GOMAXPROCS 1: see watch.go
	Faults         Faults       // shares of requests that get a fault instead of an answer
	Bandwidth      int64        // bytes a second that all connections together may receive, and the same for sending; 0 for no limit
	Seed           uint64       // for all draws: the nth draw of a kind is the same for the same seed
	Password       string       // required of every connection; "" for none. resp only
	Space          Space        // of protocol hydra: the nodes it belongs to
	MaxConnections int          // served at a time; 0 for 10,000
	Version        string       // of this program, for INFO and stats
	Logger         *slog.Logger // nil for silence
}

// Validate reports every field with which no node could be made.
func (c *Config) Validate() error {
	var errs []error
	if _, err := protocolNamed(c.Protocol); err != nil {
		errs = append(errs, err)
	}
	if c.Memory <= 0 {
		errs = append(errs, fmt.Errorf("memory bound of %d bytes: write a size above 0", c.Memory))
	}
	if c.Password != "" && c.plain() {
		errs = append(errs, fmt.Errorf("a password: the protocol %s has none here, only resp does, so a %[1]s node stays on the loopback", c.Protocol))
	}
	if c.Protocol == "hydra" {
		errs = append(errs, c.Space.validate())
	}
	if err := c.Delay.Validate(maxFault); err != nil {
		errs = append(errs, fmt.Errorf("delay %w", err))
	}
	for _, s := range c.Stalls {
		if err := s.validate(); err != nil {
			errs = append(errs, fmt.Errorf("stall: %w", err))
		}
	}
	if err := c.Service.Validate(maxFault); err != nil {
		errs = append(errs, fmt.Errorf("service time %w", err))
	}
	errs = append(errs, c.Faults.validate())
	if c.Bandwidth != 0 && c.Bandwidth < minBandwidth {
		errs = append(errs, fmt.Errorf("bandwidth of %d bytes a second: write 1KiB or more, or 0B for no limit", c.Bandwidth))
	}
	if c.Service != (Times{}) && c.plain() {
		errs = append(errs, errors.New("a service time: only the protocol resp has one here"))
	}
	if c.MaxConnections < 0 {
		errs = append(errs, fmt.Errorf("%d connections: write a number above 0", c.MaxConnections))
	}
	return errors.Join(errs...)
}

// plain reports whether the protocol lacks what only resp has here.
func (c *Config) plain() bool { return c.Protocol != "" && c.Protocol != "resp" }

// Node is one cache node. Its methods are safe for concurrent use.
type Node struct {
	cfg          Config
	protocol     protocol
	log          *slog.Logger
	listener     net.Listener
	store        *store
	space        *space // nil unless the node is of Hydra Cache
	peers        peers
	gate         gate
	queue        *singleServer // nil if requests take no time
	attention    *attention    // nil unless the node polls for requests
	delays       *delays
	faults       *faults
	in, out      link
	received     atomic.Uint64 // bytes
	sent         atomic.Uint64 // bytes
	buffers      budget        // request buffers beyond their first size
	waiting      budget        // replies waiting for their delay
	accepted     atomic.Uint64
	refused      atomic.Uint64
	writeTimeout time.Duration
	readTimeout  time.Duration
	shut         sync.Once
	done         chan struct{} // closed by Close

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// New opens the port, so that Addr is known and clients can connect. Serve then serves them.
func New(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cache node: %w", err)
	}
	spoken, _ := protocolNamed(cfg.Protocol) // Validate has found it
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = defaultConnections
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	open := listen.Loopback
	if cfg.Password != "" {
		open = func(address string) (net.Listener, error) { return net.Listen("tcp", address) }
	}
	listener, err := spoken.listen(cfg.Listen, open)
	if err != nil {
		return nil, fmt.Errorf("cache node: %w", err)
	}
	n := &Node{
		cfg:          cfg,
		protocol:     spoken,
		log:          cfg.Logger,
		listener:     listener,
		store:        newStore(cfg.Memory),
		peers:        peers{limit: maxPeers, byAddr: make(map[string]*counts)},
		writeTimeout: writeTimeout,
		readTimeout:  readTimeout,
		done:         make(chan struct{}),
		conns:        make(map[*conn]struct{}),
	}
	n.buffers.limit, n.waiting.limit = n.bufferLimit(), waitingBudget
	n.gate = gate{epoch: time.Now(), planned: cfg.Stalls, done: n.done}
	if cfg.Service != (Times{}) {
		n.queue = &singleServer{Times: cfg.Service, epoch: n.gate.epoch, random: rand.NewPCG(cfg.Seed, serviceSource)}
	}
	if cfg.Attentive {
		n.attention = &attention{epoch: n.gate.epoch}
	}
	n.delays, n.faults = newDelays(&n.cfg, n.gate.epoch), newFaults(&n.cfg)
	if spoken.idle > 0 {
		n.readTimeout = spoken.idle
	}
	if n.space, err = newSpace(n); err != nil {
		return nil, errors.Join(fmt.Errorf("cache node: %w", err), listener.Close())
	}
	n.in, n.out = link{bandwidth: cfg.Bandwidth, done: n.done}, link{bandwidth: cfg.Bandwidth, done: n.done}
	return n, nil
}

// Addr returns the address that the node listens on.
func (n *Node) Addr() net.Addr { return n.listener.Addr() }

// Serve serves connections, each in its own goroutine, until ctx ends or Close is called, and returns once all of them have ended. Planned stalls
// count from here. Call it once.
func (n *Node) Serve(ctx context.Context) error {
	n.gate.served = time.Since(n.gate.epoch)
	n.Join(n.cfg.Space.Peers)
	stop := context.AfterFunc(ctx, n.Close)
	defer stop()
	var serving sync.WaitGroup
	n.acceptAll(&serving)
	serving.Wait()
	if n.space != nil {
		n.space.links.Wait()
	}
	if err := n.delays.flush(); err != nil {
		return fmt.Errorf("log delays: %w", err)
	}
	return nil
}

// acceptAll accepts connections until the node is closed.
func (n *Node) acceptAll(serving *sync.WaitGroup) {
	for {
		socket, err := n.listener.Accept()
		switch {
		case err == nil:
			n.accept(socket, serving)
		case n.closed():
			return
		default:
			n.log.Warn("accept a connection", "error", err)
			select {
			case <-time.After(acceptPause): // a failing accept does not spin
			case <-n.done:
			}
		}
	}
}

// accept starts to serve a connection, or refuses it if there are too many.
func (n *Node) accept(socket net.Conn, serving *sync.WaitGroup) {
	if n.connections() >= n.cfg.MaxConnections {
		n.refused.Add(1)
		_ = socket.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = socket.Write(n.protocol.appendRefusal(nil, "max number of clients reached")) // a courtesy to the client
		_ = socket.Close()
		return
	}
	c := newConn(n, socket, n.accepted.Add(1))
	n.mu.Lock()
	n.conns[c] = struct{}{}
	n.mu.Unlock()
	serving.Go(func() {
		c.serve()
		n.mu.Lock()
		delete(n.conns, c)
		n.mu.Unlock()
	})
	if n.closed() {
		c.abort() // Close may have missed it
	}
}

func (n *Node) connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

func (n *Node) closed() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// Close closes the port and all connections without waiting for replies; Serve then returns.
func (n *Node) Close() {
	n.shut.Do(func() {
		close(n.done)
		_ = n.listener.Close() // an error needs no action: nothing was written to it
		n.mu.Lock()
		defer n.mu.Unlock()
		for c := range n.conns {
			c.abort()
		}
		if n.space != nil {
			n.space.leave()
		}
	})
}

// Join makes the Hydra nodes at the addresses part of the node's space. Its own address may be among them. Call it before Serve returns.
func (n *Node) Join(addresses []string) {
	if n.space != nil && !n.closed() {
		n.space.join(addresses)
	}
}
