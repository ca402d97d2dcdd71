package judge

import (
	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/pkg/hist"
)

// leastBeyond is how many samples must lie beyond a quantile: with fewer, its position among them is mere chance. A p99 takes 1,000 samples, a p99.9
// 10,000.
const leastBeyond = 10

// beyond returns how many of n samples lie beyond the nearest rank of a quantile: n − ⌈n·q⌉.
func beyond(n uint64, q float64) uint64 { return n - hist.Rank(q, n) }

// quantileOf returns a quantile in seconds, or nil if too few samples lie beyond it, or if it falls on a failed op.
func quantileOf(t *measure.Times, q float64) *float64 {
	if beyond(t.Count(), q) < leastBeyond {
		return nil
	}
	if ns, known := t.Quantile(q); known {
		return number(seconds(ns))
	}
	return nil
}
