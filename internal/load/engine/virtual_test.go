package engine

import (
	"bytes"
	"cmp"
	"hash/crc32"
	"io"
	"strconv"
	"syscall"
	"time"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"golang.org/x/sys/unix"
)

// virtualClock stands still until somebody waits. Every reading advances it a little, as a real one does.
type virtualClock struct {
	t    int64
	tick int64
}

func (c *virtualClock) now() int64 {
	c.t += c.tick
	return c.t
}

func (c *virtualClock) sleep(d time.Duration) { c.t += int64(d) }

// virtualNet is a poller whose far ends are scripted servers. It works in virtual time: a wait moves the clock to the next event.
type virtualNet struct {
	clock   *virtualClock
	servers map[uint16]*virtualServer
	socks   []*virtualSock // by descriptor
	events  []virtualEvent // a heap
	seq     uint64
	ready   []int               // descriptors that have something to read or to say
	making  int                 // connections that are being made
	most    int                 // at a time, so far
	takes   func(fd, n int) int // when set, how many of n bytes a socket takes; it takes more a millisecond later
	lists   int                 // writes from several places
	resets  int                 // connections that the client reset
	fails   map[string]error    // what fails, and why
}

// virtualServer answers requests of the Redis protocol.
type virtualServer struct {
	net     *virtualNet
	latency func(n int) time.Duration          // of the n-th request that it gets; negative: never
	down    bool                               // refuses connections
	deletes bool                               // a DEL takes effect
	travel  func(command string) time.Duration // when set, how long a request takes to take effect; its reply leaves then
	mute    bool                               // does not answer the greeting
	stays   bool                               // answers QUIT, but does not close the connection
	keys    map[string][]byte
	got     map[string]*int           // requests by command
	words   []byte                    // when set, the reply to every GET and SET
	heard   func(command, key []byte) // when set, is told of every key that is asked for
	idle    time.Duration             // when set, for how long a connection may be silent; that it was closed is known a millisecond later
	copies  func(n int) int           // replicas that have a put by the n-th WAIT
	took    func()                    // when set, is told of every request
	put     func(value []byte)        // when set, is told of every value that is put
	piece   int                       // when set, of how many bytes a piece of a reply is, each of which comes a little later than the one before
	uneven  int                       // when set, what makes its latencies differ from request to request, by key
	scratch []byte
	told    int         // bytes of requests, without greetings
	said    int         // of replies likewise
	far     farEnd      // of in-memory connections
	lists   [256][]byte // replies to MGET, of which no more than that are on their way
}

// mostWords bounds the words of a request: an MSET of four keys.
const mostWords = 9

type virtualSock struct {
	server  *virtualServer
	token   int32
	open    bool
	made    bool // the connection has been made
	writing bool // wants to hear of room
	failed  error
	in      []byte    // for the client to read
	pending []byte    // part of a request
	ended   bool      // by the server
	writes  int       // that it has seen
	last    int64     // when its latest reply leaves: replies do not overtake
	queued  bool      // in ready
	owed    []*[]byte // replies of requests that travel, in order; nil until they take effect
}

type virtualEvent struct {
	at    int64
	seq   uint64
	fd    int
	reply []byte
	hook  func()
}

func earlierEvent(a, b virtualEvent) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

func newVirtualNet(tick int64) *virtualNet {
	return &virtualNet{clock: &virtualClock{tick: tick}, servers: map[uint16]*virtualServer{}}
}

func (n *virtualNet) server(port uint16, latency time.Duration) *virtualServer {
	s := &virtualServer{net: n, keys: map[string][]byte{}, got: map[string]*int{"PING": new(int), "ASKING": new(int), "GET": new(int), "SET": new(int), "DEL": new(int), "MGET": new(int), "MSET": new(int), "WAIT": new(int), "HELLO": new(int), "QUIT": new(int)}, latency: func(int) time.Duration { return latency }}
	n.servers[port] = s
	return s
}

// at calls hook at a time on the clock.
func (n *virtualNet) at(d time.Duration, hook func()) { n.push(virtualEvent{at: int64(d), hook: hook}) }

func (n *virtualNet) push(e virtualEvent) {
	n.seq++
	e.seq = n.seq
	n.events = push(n.events, e, earlierEvent)
}

func (n *virtualNet) Wait(ready []sockets.Readiness, d time.Duration) (int, error) {
	until := n.clock.t + int64(d)
	n.happen(n.clock.t)
	for len(n.ready) == 0 && len(n.events) > 0 && n.events[0].at <= until {
		n.clock.t = max(n.clock.t, n.events[0].at)
		n.happen(n.clock.t)
	}
	if len(n.ready) == 0 {
		n.clock.t = max(n.clock.t, until)
		return 0, nil
	}
	count := 0
	for _, fd := range n.ready[:min(len(n.ready), len(ready))] {
		s := n.socks[fd]
		s.queued = false
		if s.open {
			ready[count] = sockets.Readiness{Token: s.token, Read: s.made, Write: !s.made || s.writing}
			count++
		}
	}
	n.ready = n.ready[:copy(n.ready, n.ready[min(len(n.ready), len(ready)):])]
	return count, nil
}

// happen delivers what has arrived by a time.
func (n *virtualNet) happen(by int64) {
	for len(n.events) > 0 && n.events[0].at <= by {
		e := n.events[0]
		n.events = pop(n.events, earlierEvent)
		if e.hook != nil {
			e.hook()
			continue
		}
		if s := n.socks[e.fd]; s.open && !s.ended {
			s.in = append(s.in, e.reply...)
			n.wake(e.fd)
		}
	}
}

func (n *virtualNet) wake(fd int) {
	if s := n.socks[fd]; s.open && !s.queued {
		s.queued = true
		n.ready = append(n.ready, fd)
	}
}

func (n *virtualNet) Connect(to *sockets.Endpoint, token int32) (int, error) {
	server := n.servers[to.Addr.Port()]
	if err := n.fails["connect"]; err != nil {
		return -1, err
	}
	s := &virtualSock{server: server, token: token, open: true}
	if server.down {
		s.failed = unix.ECONNREFUSED
	}
	n.socks = append(n.socks, s)
	n.making++
	n.most = max(n.most, n.making)
	fd := len(n.socks) - 1
	n.wake(fd)
	return fd, nil
}

func (n *virtualNet) Connected(fd int) error { return cmp.Or(n.fails["connected"], n.socks[fd].failed) }

func (n *virtualNet) Watch(fd int, _ int32, write bool) error {
	if err := n.fails["watch"]; err != nil {
		return err
	}
	if !n.socks[fd].made {
		n.making--
	}
	n.socks[fd].made, n.socks[fd].writing = true, write
	return nil
}

func (n *virtualNet) Read(fd int, p []byte) (int, error) {
	s := n.socks[fd]
	if err := n.fails["read"]; err != nil {
		return 0, err
	}
	if len(s.in) == 0 {
		if s.ended {
			return 0, nil
		}
		return 0, unix.EAGAIN
	}
	count := copy(p, s.in)
	s.in = s.in[:copy(s.in, s.in[count:])]
	if len(s.in) > 0 || s.ended {
		n.wake(fd)
	}
	return count, nil
}

func (n *virtualNet) Write(fd int, p []byte) (int, error) {
	s := n.socks[fd]
	if s.ended {
		return 0, syscall.EPIPE
	}
	if err := n.fails["write"]; err != nil {
		return 0, err
	}
	if n.takes != nil {
		if took := n.takes(fd, len(p)); took < len(p) {
			p = p[:took]
			n.at(time.Duration(n.clock.t)+time.Millisecond, func() { n.wake(fd) })
		}
	}
	if idle := s.server.idle; idle > 0 {
		s.writes++
		written := s.writes
		n.at(time.Duration(n.clock.t)+idle, func() {
			if s.ended = s.ended || s.writes == written; s.ended {
				n.at(time.Duration(n.clock.t)+time.Millisecond, func() { n.wake(fd) })
			}
		})
	}
	s.pending = append(s.pending, p...)
	rest := s.pending
	for {
		used, err := s.server.serve(fd, s, rest)
		if err != nil {
			break
		}
		rest = rest[used:]
	}
	s.pending = s.pending[:copy(s.pending, rest)]
	return len(p), nil
}

func (n *virtualNet) Writev(fd int, parts [][]byte) (int, error) {
	n.lists++
	size := 0
	for _, part := range parts {
		took, err := n.Write(fd, part)
		if err != nil {
			return 0, err
		}
		if size += took; took < len(part) {
			break
		}
	}
	return size, nil
}

func (n *virtualNet) Close(fd int) { n.socks[fd].open = false }

func (n *virtualNet) Reset(int) { n.resets++ }

// sever ends every connection to the server, from its side.
func (s *virtualServer) sever() {
	for fd, sock := range s.net.socks {
		if sock.server == s && sock.open {
			sock.ended = true
			s.net.wake(fd)
		}
	}
}

// serve takes one request from the front of b. It returns io.ErrUnexpectedEOF when there is none.
func (s *virtualServer) serve(fd int, sock *virtualSock, b []byte) (int, error) {
	args, n, used, err := split(b)
	if err == nil {
		if string(args[0]) != "PING" {
			s.told += used
		}
		s.answer(fd, sock, args[:n])
	}
	return used, err
}

// split takes the words of one request from the front of b. It returns io.ErrUnexpectedEOF when they are not all there.
func split(b []byte) (args [mostWords][]byte, n, used int, err error) {
	line := func() (int, bool) {
		end := bytes.IndexByte(b[used:], '\n')
		if end < 0 {
			return 0, false
		}
		v := 0
		for _, c := range b[used+1 : used+end-1] {
			v = v*10 + int(c-'0')
		}
		used += end + 1
		return v, true
	}
	count, ok := line()
	for ; ok && n < count; n++ {
		var size int
		if size, ok = line(); !ok || len(b) < used+size+2 {
			return args, 0, 0, io.ErrUnexpectedEOF
		}
		args[n] = b[used : used+size]
		used += size + 2
	}
	if !ok {
		return args, 0, 0, io.ErrUnexpectedEOF
	}
	return args, n, used, nil
}

var (
	pong   = []byte("+PONG\r\n")
	stored = []byte("+OK\r\n")
	absent = []byte("$-1\r\n")
	gone   = []byte(":1\r\n")
)

func (s *virtualServer) answer(fd int, sock *virtualSock, args [][]byte) {
	if s.travel != nil && string(args[0]) != "PING" {
		own, mine := make([][]byte, len(args)), new([]byte)
		sock.owed = append(sock.owed, mine)
		for i, a := range args {
			own[i] = bytes.Clone(a)
		}
		s.net.at(time.Duration(s.net.clock.t)+s.travel(string(args[0])), func() {
			reply, _ := s.reply(own)
			*mine = bytes.Clone(reply)
			for len(sock.owed) > 0 && *sock.owed[0] != nil {
				s.net.push(virtualEvent{at: s.net.clock.t, fd: fd, reply: *sock.owed[0]})
				sock.owed = sock.owed[1:]
			}
		})
		return
	}
	reply, latency := s.reply(args)
	if latency < 0 {
		return
	}
	if string(args[0]) != "PING" {
		s.said += len(reply)
	}
	sock.last = max(sock.last, s.net.clock.t+int64(latency))
	if s.piece > 0 {
		reply = bytes.Clone(reply) // which another request may change meanwhile
		for len(reply) > s.piece {
			s.net.push(virtualEvent{at: sock.last, fd: fd, reply: reply[:s.piece]})
			reply = reply[s.piece:]
			sock.last += int64(time.Microsecond)
		}
	}
	s.net.push(virtualEvent{at: sock.last, fd: fd, reply: reply})
	if string(args[0]) == "QUIT" && !s.stays {
		s.net.at(time.Duration(sock.last), func() { sock.ended = true })
	}
}

// reply carries a request out. A negative latency means that it is never answered.
func (s *virtualServer) reply(args [][]byte) (reply []byte, latency time.Duration) {
	*s.got[string(args[0])]++
	if command := string(args[0]); s.took != nil && command != "PING" && command != "ASKING" {
		s.took()
	}
	for i := 1; s.heard != nil && i < len(args); i++ {
		s.heard(args[0], args[i])
		if string(args[0]) == "MSET" {
			i++ // whose values stand between
		} else if string(args[0]) != "MGET" {
			break
		}
	}
	switch string(args[0]) {
	case "PING":
		if reply = pong; s.mute {
			latency = -1
		}
	case "HELLO": // of a connection that speaks RESP3
		reply = []byte("%1\r\n+proto\r\n:3\r\n")
	case "GET":
		latency = s.latency(*s.got["GET"] + *s.got["SET"])
		if reply = s.keys[string(args[1])]; reply == nil {
			reply = absent
		}
	case "SET":
		latency = s.latency(*s.got["GET"] + *s.got["SET"])
		s.store(args[1], args[2])
		reply = stored
	case "MGET":
		latency = s.latency(*s.got["MGET"] + *s.got["MSET"])
		reply = s.list(args[1:])
	case "MSET":
		latency = s.latency(*s.got["MGET"] + *s.got["MSET"])
		for i := 1; i+1 < len(args); i += 2 {
			s.store(args[i], args[i+1])
		}
		reply = stored
	case "DEL":
		if s.deletes {
			delete(s.keys, string(args[1]))
		}
		reply = gone
	case "WAIT": // its replicas take a while longer than the put
		reply, latency = strconv.AppendInt([]byte{':'}, int64(s.copies(*s.got["WAIT"])), 10), 2*s.latency(0)
		reply = append(reply, "\r\n"...)
	case "ASKING", "QUIT":
		reply = stored
	}
	if command := string(args[0]); command == "PING" || command == "HELLO" || command == "ASKING" || command == "WAIT" {
		return reply, latency
	}
	if s.words != nil {
		reply = s.words
	}
	if s.uneven > 0 && latency >= 0 {
		h := crc32.ChecksumIEEE(args[1]) ^ crc32.ChecksumIEEE(args[0]) ^ uint32(s.uneven)
		latency += time.Duration(h * 2654435769 >> 12) // up to 1 ms
	}
	return reply, latency
}

// list returns the reply to an MGET. It stays as it is for as many of them as there are lists.
func (s *virtualServer) list(keys [][]byte) []byte {
	at := &s.lists[*s.got["MGET"]%len(s.lists)]
	b := strconv.AppendInt(append((*at)[:0], '*'), int64(len(keys)), 10)
	b = append(b, "\r\n"...)
	for _, key := range keys {
		if value := s.keys[string(key)]; value != nil {
			b = append(b, value...)
		} else {
			b = append(b, absent...)
		}
	}
	*at = b
	return b
}

// store keeps the reply to a later GET. It allocates for a new key, or one whose value was of another size: the old reply may be on its way.
func (s *virtualServer) store(key, value []byte) {
	if s.put != nil {
		s.put(value)
	}
	reply := append(s.scratch[:0], '$')
	reply = strconv.AppendInt(reply, int64(len(value)), 10)
	reply = append(reply, "\r\n"...)
	reply = append(reply, value...)
	reply = append(reply, "\r\n"...)
	s.scratch = reply
	if old := s.keys[string(key)]; len(old) == len(reply) {
		copy(old, reply)
		return
	}
	s.keys[string(key)] = bytes.Clone(reply)
}
