package cachenode

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// maxVisits bounds the requests in the log of a node's single server, at 16 bytes each. Later ones are only counted.
const maxVisits = 100_000

// singleServer is a queue with one server, first come first served. It works on one GET, SET or DEL at a time, in order of arrival, whichever
// connections they come from.
type singleServer struct {
	Times
	epoch time.Time // zero of arrivals

	mu     sync.Mutex
	random *rand.PCG
	free   time.Duration // when everything that has come will be done
	visits []visit
	beyond int // visits not logged
}

// visit is one request: its arrival, since the epoch, and its service time.
type visit struct{ arrival, service time.Duration }

// admit queues a request that arrives now and returns when its reply must leave.
func (s *singleServer) admit() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := visit{time.Since(s.epoch), s.Draw(s.random)}
	s.free = max(s.free, v.arrival) + v.service
	if len(s.visits) < maxVisits {
		s.visits = append(s.visits, v)
	} else {
		s.beyond++
	}
	return s.epoch.Add(s.free)
}

// appendQueue reports the arrivals and service times of the single server, in order of arrival.
func (n *Node) appendQueue(dst []byte) []byte {
	s := n.queue
	if s == nil {
		return append(dst, "# Queue\r\nvisits:0\r\n"...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	dst = fmt.Appendf(dst, "# Queue\r\nvisits:%d\r\nvisits_not_logged:%d\r\n", len(s.visits), s.beyond)
	for i, v := range s.visits {
		dst = fmt.Appendf(dst, "visit_%d:arrival_ns=%d,service_ns=%d\r\n", i, v.arrival, v.service)
	}
	return dst
}
