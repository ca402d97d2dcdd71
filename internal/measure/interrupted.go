package measure

import "time"

// LongGap is what makes a gap of a closed load long: whatever kept the loop, it is in the latencies of what was in flight.
const LongGap = 20 * time.Millisecond

// Interrupted is how often and for how long threads of loops were kept from their processors, for 200 µs at a stretch or more: by other
// threads, which is always seen, or by an interrupt or a hypervisor, which is seen only where a loop had nothing to do but look at the clock.
// Of a closed load, gaps that last [LongGap] or longer count whole.
type Interrupted struct {
	Times         uint64  `json:"times"`
	Seconds       float64 `json:"seconds"`
	MaxSeconds    float64 `json:"max_seconds"`
	OthersSeconds float64 `json:"others_seconds"` // of Seconds, those of other threads
}

// Add joins what befell other loops.
func (i *Interrupted) Add(o *Interrupted) {
	i.Times += o.Times
	i.Seconds += o.Seconds
	i.MaxSeconds = max(i.MaxSeconds, o.MaxSeconds)
	i.OthersSeconds += o.OthersSeconds
}
