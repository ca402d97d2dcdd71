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
	mayFail       = 10              // how many wrong tokens in a row a network may show
	forgives      = 6 * time.Second // the time after which a network may show one more
)

// throttle counts failed enrolments: by address for IPv4 and by /64 for IPv6, since anyone with one address there has them all. The table has a fixed
// size. Networks that share a cell share its allowance; without the seed, nobody can provoke that.
type throttle struct {
	seed  maphash.Seed
	epoch time.Time

	mu    sync.Mutex
	cells [throttleCells]time.Duration // when all failures are forgiven, since epoch
}

func newThrottle() *throttle { return &throttle{seed: maphash.MakeSeed(), epoch: time.Now()} }

// wait returns how long a client must wait before it may try again; 0 or less if it may now.
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

// networkOf is the network that a client with an address probably controls.
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
