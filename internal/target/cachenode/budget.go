package cachenode

import "sync/atomic"

// budget bounds the bytes that all connections together hold for some purpose.
type budget struct {
	limit int64
	used  atomic.Int64
}

// take reports whether there is room for n more bytes, which must then be given back.
func (b *budget) take(n int64) bool {
	if b.used.Add(n) > b.limit {
		b.used.Add(-n)
		return false
	}
	return true
}

func (b *budget) give(n int64) { b.used.Add(-n) }

// waitingBudget bounds the replies of all connections that wait for their delay, beyond the first of each, and long listings not yet sent.
const waitingBudget = 64 << 20

// MemoryLimit is the most memory that the node's process should need, in bytes: 7 times its memory bound, 48 KiB for each connection, and 256 MiB.
// These cover what small entries cost beyond the bound, what connections may hold, and what a program needs by itself. It is meant for the runtime's
// soft limit, which collects garbage earlier when little memory is left.
func (n *Node) MemoryLimit() int64 {
	const (
		smallEntries  = 3        // an entry of a few bytes costs up to this many times what it counts for
		perConnection = 48 << 10 // buffers of requests and replies, and stacks
		program       = 64 << 20
	)
	return smallEntries*n.cfg.Memory + int64(n.cfg.MaxConnections)*perConnection + 2*n.bufferLimit() + waitingBudget + program
}
