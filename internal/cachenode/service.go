package cachenode

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// maxVisits bounds the requests that the log of a node's single server holds; it takes 16 bytes for each. Later ones are counted.
const maxVisits = 100_000

// Service is how long the node works on each GET, SET and DEL. It works on one at a time, in the order in which they come, whatever
// connection they come on.
type Service struct {
	Mean   time.Duration // 0 for a node that takes no time; at most 1 h
	Spread string        // of the times: "none", or "exponential"; "" for "none"
	Seed   uint64        // of the times that are drawn
}

// ParseService reads a mean, "200us", or a spread and a mean, "exponential:200us".
func ParseService(text string) (Service, error) {
	spread, mean, found := strings.Cut(text, ":")
	if !found {
		spread, mean = "none", text
	}
	d, err := time.ParseDuration(mean)
	if err != nil {
		return Service{}, fmt.Errorf("service time %q: write a duration with its unit, like 200us, or exponential:200us", text)
	}
	s := Service{Mean: d, Spread: spread}
	return s, s.validate()
}

func (s *Service) validate() error {
	switch {
	case s.Mean < 0 || s.Mean > maxFault:
		return fmt.Errorf("service time %v: write 0 to %v", s.Mean, maxFault)
	case s.Spread != "" && s.Spread != "none" && s.Spread != "exponential":
		return fmt.Errorf("spread %q of service times: write none or exponential", s.Spread)
	}
	return nil
}

// singleServer is a queue with one server, first come first served.
type singleServer struct {
	Service
	epoch time.Time // zero of arrivals

	mu     sync.Mutex
	random *rand.PCG
	free   time.Duration // when all that has come will be done
	visits []visit
	beyond int // visits that were not logged
}

// visit is one request: when it came, since the epoch, and how long the server works on it.
type visit struct{ arrival, service time.Duration }

// newSingleServer returns nil for a service that takes no time.
func newSingleServer(s Service, epoch time.Time) *singleServer {
	if s.Mean == 0 {
		return nil
	}
	return &singleServer{Service: s, epoch: epoch, random: rand.NewPCG(s.Seed, 0)}
}

// admit queues a request that comes now and returns when its reply is to leave.
func (s *singleServer) admit() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := visit{time.Since(s.epoch), s.draw()}
	s.free = max(s.free, v.arrival) + v.service
	if len(s.visits) < maxVisits {
		s.visits = append(s.visits, v)
	} else {
		s.beyond++
	}
	return s.epoch.Add(s.free)
}

func (s *singleServer) draw() time.Duration {
	if s.Spread != "exponential" {
		return s.Mean
	}
	unit := float64(s.random.Uint64()>>11+1) / (1 << 53) // in (0, 1]
	return time.Duration(-math.Log(unit) * float64(s.Mean))
}

// watchful is for how long before a reply is due the clock is looked at instead of sleeping. A server whose times others are measured by
// must not be late by as much as a sleeper commonly is.
func (n *Node) watchful() time.Duration {
	if n.queue == nil {
		return 0
	}
	return 200 * time.Microsecond
}

// appendQueue reports what the single server was given to do, in the order in which it came.
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
