package cachenode

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/loadgen/loadgen/internal/plan/pace"
)

// Faults are the shares of GETs, SETs and DELs that get a fault instead of an answer. They are carried out and counted like any others, but their
// clients get no answer. Replies come in request order, so after an unanswered request a connection stays silent.
type Faults struct {
	Drop  float64 // neither it nor anything after it on its connection is answered
	Close float64 // the connection is closed
	Reset float64 // the connection is reset: what its client has not read is lost
}

func (f *Faults) validate() error {
	var errs []error
	for _, s := range []struct {
		name  string
		share float64
	}{{"dropped", f.Drop}, {"closed", f.Close}, {"reset", f.Reset}} {
		if !(s.share >= 0 && s.share <= 1) {
			errs = append(errs, fmt.Errorf("%.6g %% of requests %s: write 0%% to 100%%", s.share*100, s.name))
		}
	}
	if sum := f.Drop + f.Close + f.Reset; sum > 1+1e-9 && errs == nil {
		errs = append(errs, fmt.Errorf("drop, close and reset are %.6g %% of requests together: write shares that add up to 100%% at most", sum*100))
	}
	return errors.Join(errs...)
}

// fault is the fault of one request.
type fault int

const (
	noFault fault = iota
	dropFault
	closeFault
	resetFault
)

// faults draws the faults of requests, and counts them.
type faults struct {
	now        atomic.Pointer[Faults]
	dropped    atomic.Uint64 // requests
	unanswered atomic.Uint64 // requests: those dropped, and those after them on their connections
	closed     atomic.Uint64 // connections
	reset      atomic.Uint64 // connections
	slow       atomic.Uint64 // connections closed because their clients neither finished a request nor read a reply

	mu     sync.Mutex
	random *rand.PCG
}

func newFaults(cfg *Config) *faults {
	f := &faults{random: rand.NewPCG(cfg.Seed, faultSource)}
	f.now.Store(&cfg.Faults)
	return f
}

// draw decides the fault of the next request, and counts it. worked is false for a request that only asks about the node.
func (f *faults) draw(worked bool) fault {
	now := f.now.Load()
	if !worked || *now == (Faults{}) {
		return noFault
	}
	f.mu.Lock()
	u := pace.Unit(f.random)
	f.mu.Unlock()
	switch {
	case u < now.Drop:
		f.dropped.Add(1)
		return dropFault
	case u < now.Drop+now.Close:
		f.closed.Add(1)
		return closeFault
	case u < now.Drop+now.Close+now.Reset:
		f.reset.Add(1)
		return resetFault
	}
	return noFault
}

// count is the number of faults, or of clients disconnected, of one kind.
type count struct {
	name string
	n    uint64
}

func (f *faults) counts() []count {
	return []count{
		{"requests_dropped", f.dropped.Load()},
		{"requests_unanswered", f.unanswered.Load()},
		{"connections_closed", f.closed.Load()},
		{"connections_reset", f.reset.Load()},
		{"connections_too_slow", f.slow.Load()},
	}
}

// appendFaults reports the node's settings and counts of faults.
func (n *Node) appendFaults(dst []byte) []byte {
	dst = fmt.Appendf(dst, "# Faults\r\ndelay:%v\r\nservice:%v\r\nbandwidth:%d\r\n", *n.delays.times.Load(), n.cfg.Service, n.cfg.Bandwidth)
	for _, c := range n.faults.counts() {
		dst = fmt.Appendf(dst, "%s:%d\r\n", c.name, c.n)
	}
	return dst
}

// Summary says in a line or two what the node received and what it did to its clients, for when it ends.
func (n *Node) Summary() string {
	total := n.peers.total()
	text := fmt.Sprintf("%d connections: get %d, set %d, del %d, other %d requests", n.accepted.Load(),
		total[verbGet], total[verbSet], total[verbDel], total[verbOther])
	var done []string
	for _, c := range n.faults.counts() {
		if c.n > 0 {
			done = append(done, fmt.Sprintf("%s %d", strings.ReplaceAll(c.name, "_", " "), c.n))
		}
	}
	if n.space != nil {
		if unmet := n.space.unmet.Load(); unmet > 0 {
			done = append(done, fmt.Sprintf("waits for other nodes unmet %d", unmet))
		}
	}
	if refused := n.refused.Load(); refused > 0 {
		done = append(done, fmt.Sprintf("connections refused %d", refused))
	}
	if len(done) > 0 {
		text += "\n" + strings.Join(done, ", ")
	}
	return text
}
