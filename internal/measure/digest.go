package measure

import (
	"encoding/binary"

	"github.com/loadgen/loadgen/pkg/driver"
)

// OpDigest returns 64 bits that stand for one op. Their sum modulo 2^64 over a set of ops ([Totals.Mix]) is the same in whatever
// order and by whatever number of loops and workers the ops were issued, and differs from that of another multiset of ops but for
// a chance of about 2^-64; it is no defence against ops chosen to collide.
func OpDigest(stream uint32, n uint64, v driver.Verb, key []byte, size int) uint64 {
	h := mix(uint64(stream)<<32 ^ uint64(size))
	h = mix(h ^ n)
	h = mix(h ^ uint64(len(key))<<8 ^ uint64(v))
	for ; len(key) >= 8; key = key[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(key))
	}
	if len(key) == 0 {
		return h
	}
	var tail uint64
	for i, c := range key {
		tail |= uint64(c) << (8 * i)
	}
	return mix(h ^ tail)
}

// mix is a bijection in which every bit of x sways every bit of the result: one step of SplitMix64 (Steele, Lea and Flood, Fast
// Splittable Pseudorandom Number Generators, OOPSLA 2014, figure 16).
func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// Mix adds the digest of an op that became due.
func (t *Totals) Mix(digest uint64) { t.Digest += digest }
