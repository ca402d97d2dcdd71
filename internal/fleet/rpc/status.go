package rpc

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/load/worker"
)

// Status returns what is known of the run's workers, or of those that have joined so far, ordered by name. Safe for concurrent use.
func (s *Server) Status() []worker.Status {
	s.mu.Lock()
	var list []worker.Status
	now := s.now()
	for _, m := range s.members {
		list = append(list, m.status(now))
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b worker.Status) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// status describes the worker at a time on the coordinator's clock.
func (m *member) status(now time.Duration) worker.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return worker.Status{
		Name: m.name, Metrics: m.metrics, Up: m.lost == nil && !m.dismissed, Silent: max(now-m.heard, 0),
		Offset: m.health.offset, Uncertainty: m.health.uncertainty, CPU: m.health.cpu,
	}
}

// health is a worker's state as reported by a heartbeat.
type health struct {
	offset, uncertainty, cpu time.Duration
	progress                 int64 // bytes of files read and written so far to make steps ready
}

func decodeHealth(m *pb.Heartbeat) (health, error) {
	h := health{time.Duration(m.GetOffsetNs()), time.Duration(m.GetUncertaintyNs()), time.Duration(m.GetCpuNs()), m.GetProgress()}
	if h.uncertainty < 0 || h.uncertainty > maxRunTime || h.offset.Abs() > maxRunTime || h.cpu < 0 || h.progress < 0 {
		return health{}, fmt.Errorf("a heartbeat with an uncertainty of %v, a processor time of %v and a progress of %d", h.uncertainty, h.cpu, h.progress)
	}
	return h, nil
}

// heartbeat returns the next heartbeat to send. The caller holds the lock.
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

// checkMetrics rejects a metrics address that is not on the machine the worker connects from. A Prometheus that asks the coordinator for workers shows
// its token at that address, so it must not be sent elsewhere.
func checkMetrics(address string, from net.Addr) error {
	if address == "" {
		return nil
	}
	at, err := netip.ParseAddrPort(address)
	if host := hostOf(from); err == nil && at.Port() != 0 && at.Addr().Zone() == "" && (at.Addr() == host || at.Addr().IsLoopback() && host.IsLoopback()) {
		return nil
	}
	return fmt.Errorf("this worker's metrics are at %.100q: that has to be the address that it comes from, %v here, and a port", address, hostOf(from))
}

// hostOf is the address of a connection's other end, without its port; the loopback for Unix sockets.
func hostOf(from net.Addr) netip.Addr {
	if tcp, ok := from.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.AddrFrom4([4]byte{127, 0, 0, 1})
}
