// Package faultproxy is a TCP proxy that misbehaves on request, for tests of what two processes do when the network between them fails.
//
// A [Proxy] listens on the loopback and forwards connections to one address. Its [Fault] says what it does to bytes. It can be changed at any time,
// for existing and new connections. Bytes that a cut direction swallows are lost for good: the stream is of no further use, like one whose packets
// are lost for longer than the ends will wait.
package faultproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// Fault says what a proxy does to bytes. The zero Fault does nothing.
type Fault struct {
	Down     bool          // the address is unreachable: new connections are reset
	DropUp   bool          // what the client sends is swallowed
	DropDown bool          // what the server sends is swallowed
	Delay    time.Duration // each way: half of a round trip
	Rate     int           // bytes per second, each way of each connection; 0 for no limit
}

// Proxy forwards connections to one address. Its methods are safe for concurrent use.
type Proxy struct {
	to       string
	listener net.Listener
	routine  sync.WaitGroup // the accepting goroutine, and two for each connection

	mu     sync.Mutex
	fault  Fault
	closed bool
	pairs  map[*pair]bool
}

// pair is a client's connection and the one to the server.
type pair struct{ client, server *net.TCPConn }

// Start returns a proxy to an address. It runs until Close.
func Start(to string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{to: to, listener: listener, pairs: map[*pair]bool{}}
	p.routine.Go(p.accept)
	return p, nil
}

// Addr returns the address for clients.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Set replaces the fault.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
}

// Reset breaks the existing connections: both ends see a connection reset by peer.
func (p *Proxy) Reset() {
	p.each(func(c *pair) { c.end(0) })
}

// Finish ends the existing connections as if either end had closed them.
func (p *Proxy) Finish() {
	p.each(func(c *pair) { c.end(-1) })
}

// Close ends everything and waits until it has ended.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	err := p.listener.Close()
	p.Reset()
	p.routine.Wait()
	return err
}

func (p *Proxy) each(f func(*pair)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		f(c)
	}
}

func (p *Proxy) present() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault
}

// end closes both connections: with a reset if linger is 0, in good order if it is below 0.
func (c *pair) end(linger int) {
	both := []*net.TCPConn{c.client, c.server}
	for _, conn := range both {
		_ = conn.SetLinger(linger) // it may be closed already
	}
	for _, conn := range both { // only now: the goroutine that reads from one may close the other
		_ = conn.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.connect(client.(*net.TCPConn))
	}
}

// connect forwards a client's connection.
func (p *Proxy) connect(client *net.TCPConn) {
	server, err := net.Dial("tcp", p.to)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.Down || p.closed || err != nil {
		_ = client.SetLinger(0)
		_ = client.Close()
		if err == nil {
			_ = server.Close()
		}
		return
	}
	c := &pair{client, server.(*net.TCPConn)}
	p.pairs[c] = true
	var carriers sync.WaitGroup
	carriers.Go(func() { p.carry(c.server, c.client, func(f Fault) bool { return f.DropUp }) })
	carriers.Go(func() { p.carry(c.client, c.server, func(f Fault) bool { return f.DropDown }) })
	p.routine.Go(func() {
		carriers.Wait()
		p.mu.Lock()
		delete(p.pairs, c)
		p.mu.Unlock()
		c.end(-1)
	})
}

// chunkBytes is the size of a read, small enough that a limit on the rate takes effect evenly.
const chunkBytes = 1 << 10

// chunk is a number of bytes on the way.
type chunk struct {
	bytes []byte
	due   time.Time // when they arrive, given the delay
}

// carry moves bytes one way until either end is closed. A reader and a writer share the work, so that a delay does not limit the rate.
func (p *Proxy) carry(to, from *net.TCPConn, drops func(Fault) bool) {
	const onTheWay = 64 // chunks; a sender with that many on the way has to wait, as for a window
	chunks := make(chan chunk, onTheWay)
	var writer sync.WaitGroup
	writer.Go(func() { p.deliver(to, chunks, drops) })
	for {
		b := make([]byte, chunkBytes)
		n, err := from.Read(b)
		if n > 0 {
			chunks <- chunk{b[:n], time.Now().Add(p.present().Delay)}
		}
		if err != nil {
			switch {
			case errors.Is(err, net.ErrClosed):
				_ = to.Close() // in the way that end has set
			case !errors.Is(err, io.EOF):
				_ = to.SetLinger(0) // the other end must see a reset, too
				_ = to.Close()
			}
			close(chunks)
			writer.Wait()
			return
		}
	}
}

// deliver writes each chunk, not before its time and not faster than the rate.
func (p *Proxy) deliver(to *net.TCPConn, chunks <-chan chunk, drops func(Fault) bool) {
	broken := false // nobody waits for the rest
	for c := range chunks {
		if broken {
			continue
		}
		time.Sleep(time.Until(c.due))
		f := p.present()
		if drops(f) {
			continue
		}
		if f.Rate > 0 {
			time.Sleep(time.Duration(len(c.bytes)) * time.Second / time.Duration(f.Rate))
		}
		_, err := to.Write(c.bytes)
		broken = err != nil // the reader of that connection sees its end
	}
	if !drops(p.present()) {
		_ = to.CloseWrite() // it may be closed already
	}
}
