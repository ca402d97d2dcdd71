package policy

import (
	"math"
	"sync/atomic"
	"time"
)

// Budget is what a policy's rate and bytes_per_second still allow. A process has one, for all loops of all its runs. A nil Budget limits nothing.
type Budget struct {
	Requests *Bucket // nil if not limited
	Bytes    *Bucket // nil if not limited

	zero atomic.Pointer[time.Time] // zero of the buckets' clock
}

// Budget returns a full budget; nil if the policy limits neither.
func (p *Policy) Budget() *Budget {
	if p == nil || p.Rate <= 0 && p.Bytes <= 0 {
		return nil
	}
	return &Budget{Requests: newBucket(p.Rate), Bytes: newBucket(float64(p.Bytes))}
}

// Since returns the time on the buckets' clock at another clock's zero. The first call starts the buckets' clock.
func (b *Budget) Since(zero time.Time) time.Duration {
	b.zero.CompareAndSwap(nil, &zero)
	return zero.Sub(*b.zero.Load())
}

// Bucket is a token bucket. It begins with the tokens of a second and never holds more, so whatever was taken by a time t is at most rate × (t + 1 s).
// Times are nanoseconds on its own clock. Any goroutine may use it; it never waits.
//
// It is kept as one number, as in the generic cell rate algorithm (ITU-T I.371, annex A): the time by which the tokens taken so far have been earned.
type Bucket struct {
	each  float64 // nanoseconds to earn a token
	spent atomic.Int64
}

const second = int64(time.Second)

// newBucket returns a bucket that earns rate tokens per second; nil for 0.
func newBucket(rate float64) *Bucket {
	if rate <= 0 {
		return nil
	}
	b := &Bucket{each: 1e9 / rate}
	b.spent.Store(-second)
	return b
}

// cost returns the time to earn n tokens.
func (b *Bucket) cost(n int64) int64 {
	return int64(min(math.Ceil(float64(n)*b.each), math.MaxInt64/4))
}

// Share returns how many tokens to take at a time: those of 10 ms, at least one.
func (b *Bucket) Share() int64 { return max(1, int64(1e7/b.each)) }

// Take takes n tokens if the bucket has them now. Otherwise it returns when it will have them, unless others take some. It may be asked for more than
// a second's tokens, and has them if nobody takes any meanwhile.
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

// Return gives n tokens back. A negative n takes −n more, and the bucket may then owe tokens.
func (b *Bucket) Return(n int64) {
	if n < 0 {
		b.spent.Add(b.cost(-n))
		return
	}
	b.spent.Add(-b.cost(n))
}
