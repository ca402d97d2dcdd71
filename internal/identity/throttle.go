package identity

import (
	"hash/maphash"
	"net"
	"net/netip"
	"sync"
	"time"
)

const (
	throttleCells = 4096
	mayFail       = 10              // wrong tokens from a network, one after the other
	forgives      = 6 * time.Second // and another one after each of these
)

// throttle counts who fails to enrol: by address for IPv4, by /64 for IPv6, since whoever has one address there has them all. The table has one size;
// networks that share a cell, which nobody can arrange without the seed, share what they may.
type throttle struct {
	seed  maphash.Seed
	epoch time.Time

	mu    sync.Mutex
	cells [throttleCells]time.Duration // when all failures are forgiven, after epoch
}

func newThrottle() *throttle { return &throttle{seed: maphash.MakeSeed(), epoch: time.Now()} }

// wait returns how long somebody has to wait before they may try again; at most 0: they may.
func (t *throttle) wait(from net.Addr) time.Duration {
	cell := t.cell(from)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cells[cell] - time.Since(t.epoch) - (mayFail-1)*forgives
}

// failed counts a failure.
func (t *throttle) failed(from net.Addr) {
	cell := t.cell(from)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cells[cell] = max(t.cells[cell], time.Since(t.epoch)) + forgives
}

func (t *throttle) cell(from net.Addr) int {
	return int(maphash.Comparable(t.seed, networkOf(from)) % throttleCells)
}

// networkOf is what somebody with an address probably has.
func networkOf(from net.Addr) netip.Prefix {
	tcp, ok := from.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if addr.Is4() {
		bits = 32
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}
