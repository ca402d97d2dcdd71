package measure

import (
	"encoding/binary"
	"math/bits"

	"github.com/loadgen/loadgen/pkg/driver"
)

// OpDigest returns 64 bits that stand for one op. Their sum modulo 2^64 over a set of ops ([Totals.Mix]) does not depend on the order in which the
// ops were issued, or on the number of loops and workers. Another multiset of ops has the same sum with a probability of about 2^-64. It does not
// protect against ops chosen to collide.
func OpDigest(stream uint32, n uint64, v driver.Verb, key []byte, size int) uint64 {
	h := fold(n^digestKeys[0], uint64(stream)<<32^uint64(size)^digestKeys[1])
	h ^= uint64(len(key))<<8 ^ uint64(v)
	for ; len(key) >= 16; key = key[16:] {
		h = fold(h^binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])^digestKeys[2])
	}
	if len(key) == 0 { // no tail, which differs from a tail of zeros
		return fold(h, digestKeys[3])
	}
	var tail [16]byte
	copy(tail[:], key)
	return fold(h^binary.LittleEndian.Uint64(tail[:]), binary.LittleEndian.Uint64(tail[8:])^digestKeys[3])
}

// Row describes consecutive ops of one stream that differ only in their keys and in the bytes of their values.
type Row struct {
	Stream uint32
	N      uint64 // number of the first op in the stream
	Verb   driver.Verb
	Size   int    // size of the values
	Keys   []byte // starts with the first key; further keys follow every
	Stride int    // this many bytes
	Key    int    // length of a key
}

// Digest returns the sum of the digests of the row's first count ops.
func (r *Row) Digest(count int) (sum uint64) {
	b, n := r.Keys, r.N
	if r.Key != usual {
		for i := range count {
			sum += OpDigest(r.Stream, n+uint64(i), r.Verb, b[i*r.Stride:i*r.Stride+r.Key], r.Size)
		}
		return sum
	}
	own := uint64(r.Stream)<<32 ^ uint64(r.Size) ^ digestKeys[1]
	form := uint64(usual)<<8 ^ uint64(r.Verb)
	stride := r.Stride
	for range count {
		key := b[:usual]
		h := fold(n^digestKeys[0], own) ^ form
		h = fold(h^binary.LittleEndian.Uint64(key), binary.LittleEndian.Uint64(key[8:])^digestKeys[2])
		sum += fold(h, digestKeys[3])
		b = b[min(stride, len(b)):]
		n++
	}
	return sum
}

// usual is the key length in most plans.
const usual = 16

// digestKeys are the first 64 bits of the fractional parts of √2, √3, √5 and √7.
var digestKeys = [...]uint64{0x6A09E667F3BCC908, 0xBB67AE8584CAA73B, 0x3C6EF372FE94F82B, 0xA54FF53A5F1D36F1}

// fold multiplies two words and folds the product into one. Every bit of a word affects every bit of the result, unless a factor is 0, which has a
// probability of 2^-63. It is the mixing step of wyhash (Wang, 2019).
func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Mix adds the digest of an op that became due.
func (t *Totals) Mix(digest uint64) { t.Digest += digest }
