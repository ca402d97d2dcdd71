package log

import (
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// counted is a region that counts the waits for what its writers have written to be durable.
type counted struct {
	pmlog.Region
	file    *pmem.File
	writers []*countedWriter
	before  uint64 // waits of its making
}

// countedWriter counts for one goroutine. It is alone on its lines of the cache.
type countedWriter struct {
	pmem.Medium
	fences uint64
	_      [104]byte
}

// Writer implements pmlog.Region.
func (r *counted) Writer() pmem.Medium {
	w := &countedWriter{Medium: r.Region.Writer()}
	r.writers = append(r.writers, w)
	return w
}

// Fence implements pmem.Medium.
func (w *countedWriter) Fence() error {
	w.fences++
	return w.Medium.Fence()
}

// fences returns the waits since begin. No writer may be at work.
func (r *counted) fences() uint64 {
	var n uint64
	for _, w := range r.writers {
		n += w.fences
	}
	return n - r.before
}

// begin has fences count from now on.
func (r *counted) begin() { r.before += r.fences() }
