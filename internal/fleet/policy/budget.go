package policy

import (
	"math"
	"sync/atomic"
	"time"
)

// Budget is what a policy's rate and bytes_per_second still allow. A process has one, for all loops of all its runs. A nil Budget limits nothing.
type Budget struct {
	Requests *Bucket // nil: not limited
	Bytes    *Bucket // likewise

	zero atomic.Pointer[time.Time] // of the buckets' clock
}

// Budget returns a full budget; nil if the policy limits neither.
func (p *Policy) Budget() *Budget {
	if p == nil || p.Rate <= 0 && p.Bytes <= 0 {
		return nil
	}
	return &Budget{Requests: newBucket(p.Rate), Bytes: newBucket(float64(p.Bytes))}
}

// Since returns where on the buckets' clock another clock has its zero. The first call starts the buckets' clock.
func (b *Budget) Since(zero time.Time) time.Duration {
	b.zero.CompareAndSwap(nil, &zero)
	return zero.Sub(*b.zero.Load())
}

// Bucket is a token bucket. It begins with the tokens of a second and never holds more, so whatever was taken by a time t is at most rate × (t + 1 s).
// Times are nanoseconds on its own clock. Any goroutine may use it; it never waits.
//
// It is kept as one number, as in the generic cell rate algorithm (ITU-T I.371, annex A): the time by which the tokens taken so far have been earned.
type Bucket struct {
	each  float64 // nanoseconds in which a token is earned
	spent atomic.Int64
}

const second = int64(time.Second)

// newBucket returns a bucket that earns so many tokens a second; nil for 0.
func newBucket(rate float64) *Bucket {
	if rate <= 0 {
		return nil
	}
	b := &Bucket{each: 1e9 / rate}
	b.spent.Store(-second)
	return b
}

// cost is the time in which n tokens are earned.
func (b *Bucket) cost(n int64) int64 {
	return int64(min(math.Ceil(float64(n)*b.each), math.MaxInt64/4))
}

// Share is how many tokens to take at a time: those of 10 ms, at least one.
func (b *Bucket) Share() int64 { return max(1, int64(1e7/b.each)) }

// Take takes n tokens if they are there by now. Otherwise it returns when they will be, unless others take them. Tokens of more than a second come to
// be there if nobody takes any before.
func (b *Bucket) Take(n, now int64) (at int64, ok bool) {
	cost := b.cost(n)
	for {
		before := b.spent.Load()
		after := max(before, now-max(second, cost)) + cost
		if after > now {
			return after, false
		}
		if b.spent.CompareAndSwap(before, after) {
			return now, true
		}
	}
}

// Return gives n tokens back. If n is negative, so many more were used, which the bucket then owes.
func (b *Bucket) Return(n int64) {
	if n < 0 {
		b.spent.Add(b.cost(-n))
		return
	}
	b.spent.Add(-b.cost(n))
}
