package cachenode

import "sync/atomic"

// budget bounds the bytes that all connections together hold of something.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reports whether there is room for n more bytes, which are then to be given back.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// waitingBudget bounds the replies of all connections that wait for their delay, beyond the first of each, and long listings on their way.
const waitingBudget = 64 << 20

// MemoryLimit is what the node's process should not need more than, in bytes: its memory bound with what small entries cost beside it, what
// its connections may hold, and what a program needs by itself: 7 times the bound, 48 KiB for each connection, and 256 MiB. It is meant for the runtime's soft limit, by which garbage is collected earlier
// when there is little left.
func (n *Node) MemoryLimit() int64 {
	const (
		smallEntries  = 3        // an entry of a few bytes costs up to so many times what it counts for
		perConnection = 48 << 10 // buffers of requests and replies, and stacks
		program       = 64 << 20
	)
	return smallEntries*n.cfg.Memory + int64(n.cfg.MaxConnections)*perConnection + 2*n.bufferLimit() + waitingBudget + program
}
