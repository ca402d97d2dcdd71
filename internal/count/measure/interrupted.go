package measure

import "time"

// LongGap is the length from which a gap in a closed load counts in full: whatever kept the loop, the gap is in the latencies of the ops in flight.
const LongGap = 20 * time.Millisecond

// Interrupted says how often and for how long loops' threads were kept from their processors, for at least 200 µs at a stretch. Preemption by other
// threads is always seen; an interrupt or a hypervisor only while a loop has nothing to do but poll the clock. In a closed load, gaps of [LongGap] or
// longer count in full.
type Interrupted struct {
	Times         uint64  `json:"times"`
	Seconds       float64 `json:"seconds"`
	MaxSeconds    float64 `json:"max_seconds"`
	OthersSeconds float64 `json:"others_seconds"` // of Seconds, due to other threads
}

// Add adds the gaps of other loops.
func (i *Interrupted) Add(o *Interrupted) {
	i.Times += o.Times
	i.Seconds += o.Seconds
	i.MaxSeconds = max(i.MaxSeconds, o.MaxSeconds)
	i.OthersSeconds += o.OthersSeconds
}
