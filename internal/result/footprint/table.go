package footprint

import "math"

// table is a form of hash tables of keys.
type table struct {
	bytes   func(n float64) float64 // with n items
	settled func(n float64) bool    // whether the table has moved all of its entries since it doubled last, and is not about to double again
	says    string                  // what it takes, in words
}

// slots is Redis' form: a power of two of places of 8 bytes, which doubles once it is full, and then moves its entries until it is about 0.8 full.
func slots() *table {
	full := func(n float64) float64 { return math.Exp2(math.Ceil(math.Log2(max(n, 4)))) }
	return &table{
		bytes:   func(n float64) float64 { return 8 * full(n) },
		settled: func(n float64) bool { return n >= 0.82*full(n) && n <= 0.99*full(n) },
		says:    "8 to 16",
	}
}

// bucketOf is how many entries a bucket holds.
const bucketOf = 7

// buckets is Valkey's form from 8.1 on (its hashtable.c): a power of two of buckets of 64 bytes, which doubles once there are 7 items for each. A
// bucket that gets an eighth entry holds 6 and a pointer to a further bucket, which takes 64 bytes of jemalloc's and 72 of libc's. Hashes spread the
// items by Poisson.
func buckets(size float64) *table {
	first := func(n float64) float64 { return math.Exp2(math.Ceil(math.Log2(max(n, bucketOf) / bucketOf))) }
	return &table{
		bytes: func(n float64) float64 {
			each := n / first(n)
			further, p := 0.0, math.Exp(-each)
			for k := 1.0; k < 64; k++ {
				if p *= each / k; k > bucketOf {
					further += p * (math.Ceil((k-1)/(bucketOf-1)) - 1)
				}
			}
			return first(n) * (64 + size*further)
		},
		settled: func(n float64) bool { return n >= 0.6*bucketOf*first(n) && n <= 0.99*bucketOf*first(n) },
		says:    "12 to 18",
	}
}
