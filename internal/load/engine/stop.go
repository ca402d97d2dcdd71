package engine

import (
	"sync/atomic"

	"github.com/loadgen/loadgen/pkg/driver"
)

// errorStop ends a step on this worker once a number of its ops have failed. The coordinator counts the failures of all workers, but learns of them
// only with the next snapshots.
type errorStop struct {
	left atomic.Int64
	halt *atomic.Int32
}

// newErrorStop returns an errorStop for a number of failures; nil for 0.
func newErrorStop(errors int64, halt *atomic.Int32) *errorStop {
	if errors == 0 {
		return nil
	}
	b := &errorStop{halt: halt}
	b.left.Store(errors)
	return b
}

// ended counts n ops that ended in an outcome. Call it only for outcomes beyond driver.Miss.
func (b *errorStop) ended(outcome driver.Outcome, n uint64) {
	if b != nil && outcome.Failed() && b.left.Add(-int64(n)) <= 0 {
		b.halt.CompareAndSwap(goOn, drain)
	}
}
