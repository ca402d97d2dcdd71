package hist

// Print returns a 64-bit digest of the values. The print of merged histograms is the sum of their prints, modulo 2^64. Histograms of different values
// have the same print with a probability of about 2^-64; the exact minimum and maximum within their buckets are ignored. Print does not protect
// against values chosen to collide.
func (h *Hist) Print() (p uint64) {
	first := index(h.min)
	for i, n := range h.used() {
		if n != 0 {
			p += n * weight(uint64(first)+uint64(i))
		}
	}
	// Single words of the sums would lose their carries; the lowest word is the sum modulo 2^64, which adds up.
	m := h.moments()
	return p + m.sum[0]*weight(1<<32) + m.squares[0]*weight(2<<32)
}

// weight is odd, so that no count is lost modulo 2^64, and looks random: one step of SplitMix64 (Steele, Lea and Flood, Fast Splittable
// Pseudorandom Number Generators, OOPSLA 2014, figure 16).
func weight(x uint64) uint64 {
	x = (x + 1) * 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return (x ^ x>>31) | 1
}
