package cachenode

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// defaultConnections is how many connections a node serves at a time unless told otherwise; Redis' default.
	defaultConnections = 10_000
	// writeTimeout is how long a client may leave a reply unread before its connection is closed.
	writeTimeout = 30 * time.Second
	// acceptPause is the wait after a connection could not be accepted, for want of file descriptors as a rule.
	acceptPause = 50 * time.Millisecond
)

// Config says what a node is like.
type Config struct {
	Listen         string        // host:port; port 0 for any free one
	Protocol       string        // "resp" or "memcached"; "" for "resp"
	Memory         int64         // bound on the bytes of keys, values and entryOverhead (96 bytes) for each entry; > 0
	Delay          time.Duration // each reply leaves at least this much after its request arrived; 0 to 1 h
	Stalls         []Stall       // planned from the start
	Service        Service       // how long each request is worked on, one at a time. Of resp only
	Password       string        // asked of every connection; "" for none. Of resp only
	MaxConnections int           // served at a time; 0 for 10,000
	Version        string        // of this program, for INFO and stats
	Logger         *slog.Logger  // nil for silence
}

// Validate reports every field that no node could be made with.
func (c *Config) Validate() error {
	var errs []error
	if _, err := protocolNamed(c.Protocol); err != nil {
		errs = append(errs, err)
	}
	if c.Memory <= 0 {
		errs = append(errs, fmt.Errorf("memory bound of %d bytes: write a size above 0", c.Memory))
	}
	if c.Password != "" && c.Protocol == "memcached" {
		errs = append(errs, errors.New("a password: the protocol memcached has none here, only resp does"))
	}
	if err := validDelay(c.Delay); err != nil {
		errs = append(errs, err)
	}
	for _, s := range c.Stalls {
		if err := s.validate(); err != nil {
			errs = append(errs, fmt.Errorf("stall: %w", err))
		}
	}
	if err := c.Service.validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Service.Mean > 0 && c.Protocol == "memcached" {
		errs = append(errs, errors.New("a service time: only the protocol resp has one here"))
	}
	if c.MaxConnections < 0 {
		errs = append(errs, fmt.Errorf("%d connections: write a number above 0", c.MaxConnections))
	}
	return errors.Join(errs...)
}

func validDelay(d time.Duration) error {
	if d < 0 || d > maxFault {
		return fmt.Errorf("delay %v: write 0 to %v", d, maxFault)
	}
	return nil
}

// Node is one cache node. Its methods may be called from any goroutine.
type Node struct {
	cfg          Config
	protocol     protocol
	log          *slog.Logger
	listener     net.Listener
	store        *store
	peers        peers
	gate         gate
	queue        *singleServer // nil: requests take no time
	delay        atomic.Int64  // nanoseconds
	buffers      atomic.Int64  // bytes of request buffers beyond their first size, over all connections
	accepted     atomic.Uint64
	refused      atomic.Uint64
	writeTimeout time.Duration
	shut         sync.Once
	done         chan struct{} // closed by Close

	mu    sync.Mutex
	conns map[*conn]struct{}
}

// New opens the port, so that Addr is known and clients can connect; they are served once Serve is called.
func New(cfg Config) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("cache node: %w", err)
	}
	spoken, err := protocolNamed(cfg.Protocol)
	if err != nil {
		return nil, fmt.Errorf("cache node: %w", err)
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = defaultConnections
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	listener, err := net.Listen("tcp", cfg.Listen)
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
		done:         make(chan struct{}),
		conns:        make(map[*conn]struct{}),
	}
	n.gate = gate{epoch: time.Now(), planned: cfg.Stalls, done: n.done}
	n.queue = newSingleServer(cfg.Service, n.gate.epoch)
	n.delay.Store(int64(cfg.Delay))
	return n, nil
}

// Addr is where the node listens.
func (n *Node) Addr() net.Addr { return n.listener.Addr() }

// Serve serves connections, each in a goroutine of its own, until ctx ends or Close is called, and returns when all of them have
// ended. Planned stalls count from here. Call it once.
func (n *Node) Serve(ctx context.Context) error {
	n.gate.served = time.Since(n.gate.epoch)
	stop := context.AfterFunc(ctx, n.Close)
	defer stop()
	var serving sync.WaitGroup
	defer serving.Wait()
	for {
		socket, err := n.listener.Accept()
		switch {
		case err == nil:
			n.accept(socket, &serving)
		case n.closed():
			return nil
		default:
			n.log.Warn("accept a connection", "error", err)
			n.pause()
		}
	}
}

// accept starts to serve a connection, or refuses it when there are too many.
func (n *Node) accept(socket net.Conn, serving *sync.WaitGroup) {
	if n.connections() >= n.cfg.MaxConnections {
		n.refused.Add(1)
		_ = socket.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = socket.Write(n.protocol.appendRefusal(nil, "max number of clients reached")) // a courtesy to a client that is sent away
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
		c.abort() // Close may have been too early to see it
	}
}

func (n *Node) connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// pause keeps a failing accept from spinning.
func (n *Node) pause() {
	select {
	case <-time.After(acceptPause):
	case <-n.done:
	}
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
		_ = n.listener.Close() // nothing is to be done about it, and nothing was written to it
		n.mu.Lock()
		defer n.mu.Unlock()
		for c := range n.conns {
			c.abort()
		}
	})
}
