package hist

import "math/bits"

// wide is an unsigned integer of 256 bits, low word first.
type wide [4]uint64

// product returns a·b, low word first. Together a and b have at most four words.
func product(a, b []uint64) (p wide) {
	for i, x := range a {
		var carry uint64
		for j, y := range b {
			hi, lo := bits.Mul64(x, y)
			var c uint64
			lo, c = bits.Add64(lo, p[i+j], 0)
			hi += c
			p[i+j], c = bits.Add64(lo, carry, 0)
			carry = hi + c
		}
		p[i+len(b)] = carry
	}
	return p
}

// squareTimes returns n·u². It is most of RecordN's cost, so it avoids product's loops.
func squareTimes(u, n uint64) [3]uint64 {
	hi, lo := bits.Mul64(u, u)
	h0, l0 := bits.Mul64(n, lo)
	h1, l1 := bits.Mul64(n, hi)
	m, c := bits.Add64(h0, l1, 0)
	return [3]uint64{l0, m, h1 + c}
}

// addProduct adds n·(hi·2^64 + lo).
func (w *wide) addProduct(n, hi, lo uint64) {
	h0, l0 := bits.Mul64(n, lo)
	h1, l1 := bits.Mul64(n, hi)
	m, c := bits.Add64(h0, l1, 0)
	h1 += c
	w[0], c = bits.Add64(w[0], l0, 0)
	w[1], c = bits.Add64(w[1], m, c)
	w[2], c = bits.Add64(w[2], h1, c)
	w[3] += c
}

// minus returns w − o, and whether that is negative.
func (w *wide) minus(o *wide) (d wide, negative bool) {
	var b uint64
	for i := range w {
		d[i], b = bits.Sub64(w[i], o[i], b)
	}
	return d, b != 0
}

func (w *wide) less(o *wide) bool {
	_, negative := w.minus(o)
	return negative
}

// float returns w with the precision of a float64, within a few units of the last place.
func (w *wide) float() (f float64) {
	for i := len(w) - 1; i >= 0; i-- {
		f = f*(1<<64) + float64(w[i])
	}
	return f
}
