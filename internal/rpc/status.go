package rpc

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"time"

	pb "github.com/loadgen/loadgen/internal/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/worker"
)

// Status is what the coordinator knows of a worker at a moment.
type Status struct {
	Worker  string
	Metrics string        // host:port of its metrics page; "": it has none
	Up      bool          // it takes part: not lost, and not gone
	Silent  time.Duration // since its newest heartbeat came, or its first hello

	// As the worker said with that heartbeat; 0 before the first.
	Offset      time.Duration // its clock minus the coordinator's; they count from different moments
	Uncertainty time.Duration // by how much the offset may be off
	CPU         time.Duration // processor time of its process
}

// Status returns what is known of the workers of the run, or of those that have come so far, ordered by name. It may be called from any
// goroutine.
func (s *Server) Status() []Status {
	s.mu.Lock()
	var list []Status
	now := s.now()
	for _, m := range s.members {
		list = append(list, m.status(now))
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b Status) int { return cmp.Compare(a.Worker, b.Worker) })
	return list
}

// status describes the worker at a time on the coordinator's clock.
func (m *member) status(now time.Duration) Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return Status{
		Worker: m.name, Metrics: m.metrics, Up: m.lost == nil && !m.dismissed, Silent: max(now-m.heard, 0),
		Offset: m.health.offset, Uncertainty: m.health.uncertainty, CPU: m.health.cpu,
	}
}

// health is how a worker is, as a heartbeat says.
type health struct {
	offset, uncertainty, cpu time.Duration
	progress                 int64 // bytes of files that it has read and written to make steps ready
}

func decodeHealth(m *pb.Heartbeat) (health, error) {
	h := health{time.Duration(m.GetOffsetNs()), time.Duration(m.GetUncertaintyNs()), time.Duration(m.GetCpuNs()), m.GetProgress()}
	if h.uncertainty < 0 || h.uncertainty > maxRunTime || h.offset.Abs() > maxRunTime || h.cpu < 0 || h.progress < 0 {
		return health{}, fmt.Errorf("a heartbeat with an uncertainty of %v, a processor time of %v and a progress of %d", h.uncertainty, h.cpu, h.progress)
	}
	return h, nil
}

// heartbeat is the next one to send. The caller holds the lock.
func (s *session) heartbeat() *pb.Heartbeat {
	h := &pb.Heartbeat{SentNs: int64(s.now())}
	if s.offsets.n > 0 {
		best := s.offsets.best()
		h.OffsetNs, h.UncertaintyNs = int64(best.offset), int64(best.rtt/2)
	}
	if s.cfg.CPU != nil {
		h.CpuNs = int64(s.cfg.CPU())
	}
	if s.local != nil {
		h.Progress = worker.Progress(s.local)
	}
	return h
}

// checkMetrics refuses addresses that a Prometheus which asks the coordinator for workers has no business with.
func checkMetrics(address string) error {
	if address == "" {
		return nil
	}
	if at, err := netip.ParseAddrPort(address); err != nil || !at.Addr().IsLoopback() || at.Addr().Zone() != "" || at.Port() == 0 {
		return fmt.Errorf("this worker's metrics are at %.100q: that has to be an address and a port of the loopback, such as 127.0.0.1:9465", address)
	}
	return nil
}
