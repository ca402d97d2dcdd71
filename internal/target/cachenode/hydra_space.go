package cachenode

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// ioThreads is how many threads of a Hydra server read requests and wait for other nodes. Connections are dealt to them in turn.
const ioThreads = 3

const (
	// maxReplicas bounds N, W and R.
	maxReplicas = 16
	// maxHydraWait bounds how long a node waits for others.
	maxHydraWait = time.Minute
	// lingering is how long /registry lists a node that is gone.
	lingering = 20 * time.Second
	// redialPause is the wait between two attempts to reach a node.
	redialPause = 100 * time.Millisecond
	// peerTimeout is how long a node may take to accept a connection, or leave another's messages unread, before it counts as gone.
	peerTimeout = time.Second
)

// Space describes the set of nodes that a node of Hydra Cache belongs to, and how they copy.
type Space struct {
	N        int           // nodes that a put waits for, besides the one that was asked
	W        int           // how many of these must have answered; 1 if the put is not copied at all
	R        int           // copies that a get must find, the node's own included
	Wait     time.Duration // how long to wait for N answers
	Build    string        // which servers it answers as: one of builds; "" for the last
	Peers    []string      // the other nodes' addresses; an order on the pipe may name them later
	Announce string        // the address of the node in versions and lists; "" for the one it listens on
}

// The builds of Hydra Cache's server that answer differently.
const (
	april3     = "2009-04-03" // no DELETE, /storage does not say N, W and R, and a PUT gets no version back
	april8     = "2009-04-08" // a PUT does
	latestHead = "2011"       // DELETE, contexts and queries
)

var builds = [...]string{april3, april8, latestHead}

// early reports whether the node answers as a server of 2009.
func (s *Space) early() bool { return s.Build != "" && s.Build != latestHead }

func (s *Space) validate() error {
	var errs []error
	if s.Build != "" && !slices.Contains(builds[:], s.Build) {
		errs = append(errs, fmt.Errorf("build = %q: write %s", s.Build, strings.Join(builds[:], ", ")))
	}
	if s.N < 1 || s.N > maxReplicas {
		errs = append(errs, fmt.Errorf("n = %d: write a number from 1 to %d", s.N, maxReplicas))
	}
	for _, k := range []struct {
		name string
		k    int
	}{{"w", s.W}, {"r", s.R}} {
		if k.k < 1 || k.k > s.N {
			errs = append(errs, fmt.Errorf("%s = %d with n = %d: write a number from 1 to n", k.name, k.k, s.N))
		}
	}
	if s.Wait <= 0 || s.Wait > maxHydraWait {
		errs = append(errs, fmt.Errorf("a wait of %v: write a time above 0s, at most %v", s.Wait, maxHydraWait))
	}
	return errors.Join(errs...)
}

// space is the set of nodes as one of them sees it.
type space struct {
	Space
	self    version // the node's address; the counter is unused
	store   *store
	done    chan struct{} // closed with the node
	threads [ioThreads]ioThread
	unmet   atomic.Uint64 // how many waits for other nodes ran out
	links   sync.WaitGroup

	copying sync.Mutex // held while a copy is compared and replaced
	mu      sync.Mutex
	peers   []*peerLink
}

// newSpace returns nil if the node is not of Hydra Cache.
func newSpace(n *Node) (*space, error) {
	if n.cfg.Protocol != "hydra" {
		return nil, nil
	}
	announced := n.cfg.Space.Announce
	if announced == "" {
		announced = n.Addr().String()
	}
	self, err := identity(announced)
	if err != nil {
		return nil, err
	}
	s := &space{Space: n.cfg.Space, self: self, store: n.store, done: n.done}
	for i := range s.threads {
		s.threads[i].changed.L = &s.threads[i].mu
	}
	return s, nil
}

// ioThread is an I/O thread of a Hydra server. It works in rounds: on the requests that have come since the last round began, one after the other, in
// no particular order. Then it sends the replies to all of them.
type ioThread struct {
	mu      sync.Mutex
	changed sync.Cond
	round   uint64 // the round under way, or the next if none is
	left    int    // requests of that round that are not carried out; 0 if none is under way
	next    int    // requests of the round after it
	working bool   // on a request
}

// enter waits until the thread takes a request, and returns its round.
func (t *ioThread) enter() (round uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if round = t.round; t.left == 0 {
		t.left = 1
	} else {
		round++
		t.next++
	}
	for t.round != round || t.working {
		t.changed.Wait()
	}
	t.working = true
	return round
}

// leave is called once a request is carried out. It waits until the round is over.
func (t *ioThread) leave(round uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.working = false
	if t.left--; t.left == 0 {
		t.round++
		t.left, t.next = t.next, 0
	}
	t.changed.Broadcast()
	for t.round == round {
		t.changed.Wait()
	}
}

// identity reads an address as versions hold it.
func identity(address string) (version, error) {
	tcp, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return version{}, fmt.Errorf("address of a Hydra node: %w", err)
	}
	v := version{port: uint16(tcp.Port)}
	copy(v.address[:], tcp.IP.To4())
	return v, nil
}

// ketamaHash returns the place of a key, or of a node by its address, on Hydra's ring.
func ketamaHash(b []byte) uint32 {
	sum := md5.Sum(b)
	return binary.LittleEndian.Uint32(sum[:])
}

// join makes the nodes at the addresses part of the space. The node's own address may be among them.
func (s *space) join(addresses []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, address := range addresses {
		known := slices.ContainsFunc(s.peers, func(l *peerLink) bool { return l.address == address })
		if known || address == s.self.node() || address == "" {
			continue
		}
		l := &peerLink{address: address, done: s.done}
		s.peers = append(s.peers, l)
		s.links.Go(l.run)
	}
}

// members returns the nodes that are there or were a moment ago, this one included, in the order of the ring from this one on.
func (s *space) members() []member {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []member{{version: s.self}}
	for _, l := range s.peers {
		if id, listed := l.identity(); listed {
			all = append(all, member{id, l})
		}
	}
	from := ketamaHash([]byte(s.self.node()))
	slices.SortFunc(all, func(a, b member) int {
		return cmp.Compare(ketamaHash([]byte(a.node()))-from, ketamaHash([]byte(b.node()))-from)
	})
	return all
}

// member is a node of the space; link is nil for this one.
type member struct {
	version
	link *peerLink
}

// neighbours returns the nodes that keep copies for this one: on the ring, those within N − 1 steps of it, on either side.
func (s *space) neighbours() []*peerLink {
	ring := s.members()
	var near []*peerLink
	for i, m := range ring[1:] {
		if forth, back := i+1, len(ring)-1-i; min(forth, back) < s.N {
			near = append(near, m.link)
		}
	}
	return near
}

// registry lists the members by address.
func (s *space) registry() []byte {
	all := s.members()
	slices.SortFunc(all, func(a, b member) int {
		return cmp.Or(bytes.Compare(a.address[:], b.address[:]), cmp.Compare(a.port, b.port))
	})
	list := []byte("[")
	for i, m := range all {
		if i > 0 {
			list = append(list, ',')
		}
		host, _, _ := strings.Cut(m.node(), ":")
		list = fmt.Appendf(list, `{"port":%d,"ip":%q}`, m.port, host)
	}
	return append(list, ']')
}

// conflictError says which newer version a put met.
type conflictError string

func (e conflictError) Error() string { return string(e) }

// hydraError is the answer to a client if an operation fails.
type hydraError string

func (e hydraError) Error() string { return string(e) }

func quorumError(op string, expected, received int) error {
	return hydraError(fmt.Sprintf("Not enough members participated this reliable %s operation - expected[%d] : received[%d]", op, expected, received))
}

// local returns this node's copy, nil if it has none.
func (s *space) local(name []byte) *versioned {
	value, done, ok := s.store.get(0, name)
	if done != nil {
		defer done() // values are never modified
	}
	if !ok {
		return nil
	}
	return parseVersioned(value)
}

// keep makes v this node's copy, unless it has one that is not older; that is returned then.
func (s *space) keep(name []byte, v *versioned) (newer *versioned, kept bool) {
	s.copying.Lock()
	defer s.copying.Unlock()
	if mine := s.local(name); mine != nil && mine.counter >= v.counter {
		return mine, false
	}
	return nil, s.store.set(0, name, v.appendTo(nil), 0)
}

// put stores a value with the version that its writer knew. created says that there was no copy here.
func (s *space) put(c *hydra, name []byte, v *versioned) (stored *versioned, created bool, err error) {
	mine := s.local(name)
	next := &versioned{s.self, v.blob}
	next.counter = v.counter + 1
	if mine != nil && mine.counter >= next.counter {
		local := "local "
		if s.Build == april3 {
			local = ""
		}
		return nil, false, conflictError(fmt.Sprintf("Version conflict detected between %sexisting[%v] and new[%v]", local, mine.version, next.version))
	}
	if s.W > 1 {
		answers := s.multicast(c, putCopy, name, next.appendTo(nil))
		for _, a := range answers {
			switch {
			case a.status == refused && s.Build == april3:
				return nil, false, conflictError("Version conflict detected")
			case a.status == refused:
				return nil, false, conflictError(fmt.Sprintf("Distributed version conflict detected from [%s]", a.from))
			}
		}
		if len(answers) < s.W {
			return nil, false, quorumError("PUT", s.W, len(answers))
		}
	}
	if _, kept := s.keep(name, next); !kept {
		return nil, false, hydraError(unknown) // there is no room, or another put was faster
	}
	return next, mine == nil, nil
}

// get returns the newest copy, nil if there is none, and keeps it here.
func (s *space) get(c *hydra, name []byte) (*versioned, error) {
	newest := s.local(name)
	expected := s.R
	if newest != nil {
		expected--
	}
	if expected == 0 {
		return newest, nil
	}
	answers := s.multicast(c, getCopy, name, nil)
	if len(answers) == 0 && newest == nil {
		return nil, nil
	}
	if len(answers) < expected {
		return nil, quorumError("GET", expected, len(answers))
	}
	for _, a := range answers {
		if v := parseVersioned(a.body); v != nil && (newest == nil || v.counter > newest.counter) {
			newest = v
		}
	}
	if newest != nil {
		s.keep(name, newest)
	}
	return newest, nil
}

// del removes a value here and from the neighbours; if too few of them answer, not here.
func (s *space) del(c *hydra, name []byte) error {
	if s.W > 1 {
		if answers := s.multicast(c, delCopy, name, nil); len(answers) < s.W {
			return quorumError("DELETE", s.W, len(answers))
		}
	}
	s.store.del(0, name)
	return nil
}

// The protocol between nodes, on connections to the port that clients also use. A request is
//
//	+------+-------+-----------+-------------+--------+-------
//	| 0 1B | op 1B | length 4B | name len 4B | name   | copy
//	+------+-------+-----------+-------------+--------+-------
//
// and its answer, in the order of requests,
//
//	+-----------+-----------+-------
//	| status 1B | length 4B | copy
//	+-----------+-----------+-------
//
// where length is what follows it, in bytes.
const (
	peerRequest = 0

	introduce = 'i' // what is your address?
	putCopy   = 'p'
	getCopy   = 'g'
	delCopy   = 'd'

	silent  = 's' // no answer: a node without the value lets the other one wait
	agreed  = 'y'
	refused = 'n' // there is a copy that is not older

	peerHead   = 10
	answerHead = 5
)

func appendPeerRequest(dst []byte, op byte, name, body []byte) []byte {
	dst = append(dst, peerRequest, op)
	dst = binary.BigEndian.AppendUint32(dst, uint32(4+len(name)+len(body)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(name)))
	return append(append(dst, name...), body...)
}

// answerPeer answers another node's request. These are not counted as requests, and get no faults. Nodes may be silent for any time.
func (h *hydra) answerPeer(b []byte) (taken int, goOn bool) {
	if h.idle > 0 {
		h.idle, h.awaited = 0, 1 // the next read lifts the deadline
	}
	if len(b) < peerHead {
		return 0, true
	}
	size, named := int(binary.BigEndian.Uint32(b[2:])), int(binary.BigEndian.Uint32(b[6:]))
	if size < 4 || size > h.node.requestLimit() || named > size-4 {
		return 0, false
	}
	taken = 6 + size
	if len(b) < taken {
		return 0, true
	}
	status, body := h.space.copy(b[1], b[peerHead:peerHead+named], b[peerHead+named:taken])
	h.out = append(h.out, status)
	h.out = binary.BigEndian.AppendUint32(h.out, uint32(len(body)))
	h.out = append(h.out, body...)
	return taken, true
}

// copy carries out another node's request.
func (s *space) copy(op byte, name, body []byte) (status byte, answer []byte) {
	switch op {
	case introduce:
		return agreed, []byte(s.self.node())
	case putCopy:
		v := parseVersioned(body)
		if v == nil {
			break
		}
		if newer, kept := s.keep(name, v); newer != nil {
			return refused, nil
		} else if kept {
			return agreed, nil
		}
	case getCopy:
		if v := s.local(name); v != nil {
			return agreed, v.appendTo(nil)
		}
	case delCopy:
		s.store.del(0, name)
		return agreed, nil
	}
	return silent, nil
}

// peerAnswer is a neighbour's answer.
type peerAnswer struct {
	place  int // of the neighbour, on the ring
	from   string
	status byte
	body   []byte
}

// multicast asks the neighbours and returns the answers that came, in the order of the ring: N of them, or fewer if the wait ran out. The client's
// replies so far do not wait for it.
func (s *space) multicast(c *hydra, op byte, name, body []byte) []peerAnswer {
	c.flush()
	near := s.neighbours()
	came := make(chan peerAnswer, len(near))
	request := appendPeerRequest(nil, op, name, body)
	for i, l := range near {
		l.ask(request, i, came)
	}
	wait := time.NewTimer(s.Wait)
	defer wait.Stop()
	var answers []peerAnswer
	for len(answers) < s.N {
		select {
		case a := <-came:
			if a.status != silent {
				answers = append(answers, a)
			}
			continue
		case <-wait.C:
			s.unmet.Add(1)
		case <-s.done:
		}
		break
	}
	slices.SortFunc(answers, func(a, b peerAnswer) int { return a.place - b.place })
	return answers
}

// peerLink is the connection to another node, which is made again whenever it is lost.
type peerLink struct {
	address string
	done    chan struct{} // closed with this side's node

	mu      sync.Mutex
	conn    net.Conn // nil if the node is not there
	id      version  // the node's address, as it introduced itself
	known   bool     // it has introduced itself
	lost    time.Time
	waiting []asked // in the order of requests
}

// asked is a request that is not answered yet.
type asked struct {
	place   int
	answers chan<- peerAnswer
}

// identity returns the node's address, and whether the node is there or was a moment ago.
func (l *peerLink) identity() (version, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id, l.known && (l.conn != nil || time.Since(l.lost) < lingering)
}

// ask sends a request, if the node is there. The answer, if it comes, is put into came, which has room for it.
func (l *peerLink) ask(request []byte, place int, came chan<- peerAnswer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.send(request, asked{place, came})
	}
}

// send sends a request; the caller holds the lock.
func (l *peerLink) send(request []byte, by asked) {
	l.waiting = append(l.waiting, by)
	err := l.conn.SetWriteDeadline(time.Now().Add(peerTimeout))
	if err == nil {
		_, err = l.conn.Write(request)
	}
	if err != nil {
		_ = l.conn.Close() // the reader notices
	}
}

// run keeps the connection until this side's node is closed.
func (l *peerLink) run() {
	for {
		if conn, err := net.DialTimeout("tcp", l.address, peerTimeout); err == nil {
			l.begin(conn)
			l.read(conn)
			l.end(conn)
		}
		select {
		case <-l.done:
			return
		case <-time.After(redialPause):
		}
	}
}

// begin asks the node for its address. From then on it gets requests.
func (l *peerLink) begin(conn net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = conn
	l.send(appendPeerRequest(nil, introduce, nil, nil), asked{answers: make(chan peerAnswer, 1)})
	select {
	case <-l.done:
		_ = conn.Close() // the node's Close may have missed it
	default:
	}
}

// read passes answers on until the connection ends. The first is the node's address.
func (l *peerLink) read(conn net.Conn) {
	in := bufio.NewReader(conn)
	for first := true; ; first = false {
		var head [answerHead]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(head[1:])
		if size > maxBulk {
			return
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		if first {
			id, err := identity(string(body))
			if err != nil {
				return
			}
			l.mu.Lock()
			l.id, l.known = id, true
			l.mu.Unlock()
		}
		if !l.pass(peerAnswer{status: head[0], body: body}) {
			return
		}
	}
}

// pass gives an answer to whoever has waited longest. It reports false if nobody does.
func (l *peerLink) pass(a peerAnswer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return false
	}
	to := l.waiting[0]
	l.waiting = l.waiting[1:]
	a.place, a.from = to.place, l.id.node()
	to.answers <- a // has room
	return true
}

// end notes that the node is gone. Requests to it are never answered.
func (l *peerLink) end(conn net.Conn) {
	_ = conn.Close() // the other end may have closed it already
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn, l.waiting, l.lost = nil, nil, time.Now()
}

// close ends the connection from another goroutine.
func (l *peerLink) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		_ = l.conn.Close() // wakes the reader
	}
}

// leave ends the connections to the other nodes.
func (s *space) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.peers {
		l.close()
	}
}
