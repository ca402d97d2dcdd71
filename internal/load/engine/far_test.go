package engine

import (
	"context"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// farEnd is a scripted server's state of its in-memory connections. Its mutex guards all of the server, which answers them in goroutines.
type farEnd struct {
	sync.Mutex
	conns   []net.Conn
	refusal string        // when set, the reply to the greeting
	deaf    chan struct{} // when set, nothing more is read until it is closed
	pieces  bool          // replies come a byte at a time
	twice   bool          // every reply comes twice
	broken  int           // reads so far that did not end with a request
	most    int           // bytes so far of a read of several requests
}

// dial connects to a scripted server in memory. The server's goroutines end when either end is closed.
func (n *virtualNet) dial(_ context.Context, _, addr string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	s := n.servers[uint16(number)]
	s.far.Lock()
	defer s.far.Unlock()
	if s.down {
		return nil, &net.OpError{Op: "dial", Err: unix.ECONNREFUSED}
	}
	near, far := net.Pipe()
	s.far.conns = append(s.far.conns, far)
	replies := make(chan farReply, 1000)
	go s.hear(far, replies)
	go s.speak(far, replies)
	return near, nil
}

// farReply is a reply that leaves at a time.
type farReply struct {
	at    time.Time
	bytes []byte
}

// hear carries out the requests that come on a connection.
func (s *virtualServer) hear(conn net.Conn, replies chan<- farReply) {
	defer close(replies)
	var pending []byte
	buf := make([]byte, 64<<10) // more than is written at a time
	for {
		s.far.Lock()
		deaf := s.far.deaf
		s.far.Unlock()
		if deaf != nil {
			<-deaf
		}
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		pending = append(pending, buf[:n]...)
		requests := 0
		for ; ; requests++ {
			args, count, used, err := split(pending)
			if err != nil {
				break
			}
			s.far.Lock()
			reply, latency := s.reply(args[:count])
			if s.far.refusal != "" && string(args[0]) == "PING" {
				reply = []byte(s.far.refusal)
			}
			reply = slices.Clone(reply)
			if s.far.twice && string(args[0]) != "PING" {
				reply = slices.Concat(reply, reply)
			}
			s.far.Unlock()
			if latency >= 0 {
				replies <- farReply{time.Now().Add(latency), reply}
			}
			pending = pending[used:]
		}
		s.far.Lock()
		if len(pending) > 0 || n == 0 {
			s.far.broken++
		}
		if requests > 1 {
			s.far.most = max(s.far.most, n)
		}
		s.far.Unlock()
	}
}

// speak sends replies when they are due.
func (s *virtualServer) speak(conn net.Conn, replies <-chan farReply) {
	defer conn.Close()
	for r := range replies {
		time.Sleep(time.Until(r.at))
		for len(r.bytes) > 0 {
			n := len(r.bytes)
			if s.far.pieces {
				n = 1
			}
			if _, err := conn.Write(r.bytes[:n]); err != nil {
				break
			}
			r.bytes = r.bytes[n:]
		}
	}
}

// cut ends every in-memory connection, from the server's side.
func (s *virtualServer) cut() {
	s.far.Lock()
	defer s.far.Unlock()
	for _, c := range s.far.conns {
		_ = c.Close() // the client may have closed it
	}
	s.far.conns = nil
}

// requests counts the requests of a kind.
func (s *virtualServer) requests(name string) int {
	s.far.Lock()
	defer s.far.Unlock()
	return *s.got[name]
}
