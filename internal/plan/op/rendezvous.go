package op

// Rendezvous places keys on endpoints by highest random weight (D. Thaler, C. Ravishankar: Using name-based mappings to increase hit rates, IEEE/ACM
// Transactions on Networking 6(1), 1998): every endpoint has a weight for the key, and the n heaviest hold it. Shares are as even as chance makes
// them, without points on a circle. Adding or removing an endpoint moves that endpoint's keys and no others. A look-up takes time in proportion to
// the number of endpoints.
//
// The weight of endpoint e for a key is
//
//	mix(mix(fnv(name(e))) xor mix(fnv(key)))
//
// with the 64-bit FNV-1a hash (Fowler, Noll, Vo; www.isthe.com/chongo/tech/comp/fnv) and a step of splitmix64 for mix. Ties go to the lower index. As
// on the ring, names count and addresses do not. A Rendezvous does not change and may be shared by goroutines.
type Rendezvous struct {
	seeds []uint64 // by endpoint: its part of the weight
}

// NewRendezvous returns the placement on the named endpoints; index i of names is endpoint i. There is at least one name, and no two are
// equal.
func NewRendezvous(names []string) *Rendezvous {
	r := &Rendezvous{seeds: make([]uint64, len(names))}
	for e, name := range names {
		r.seeds[e] = mix(fnv([]byte(name)))
	}
	return r
}

// Endpoints implements Placement.
func (r *Rendezvous) Endpoints() int { return len(r.seeds) }

// Home implements Placement.
func (r *Rendezvous) Home(key []byte) int {
	hash := mix(fnv(key))
	best, most := 0, mix(r.seeds[0]^hash)
	for e, seed := range r.seeds[1:] {
		if w := mix(seed ^ hash); w > most {
			best, most = e+1, w
		}
	}
	return best
}

// Place implements Placement, the heaviest first.
func (r *Rendezvous) Place(dst []int, key []byte, n int) []int {
	if n < 1 {
		return dst
	}
	hash := mix(fnv(key))
	from, n := len(dst), min(n, len(r.seeds))
	var least uint64 // the weight of the last endpoint in dst
	for e, seed := range r.seeds {
		w := mix(seed ^ hash)
		full := len(dst)-from == n
		switch {
		case !full:
			dst = append(dst, e)
		case w > least:
			dst[len(dst)-1] = e
		default:
			continue
		}
		for i := len(dst) - 1; i > from && w > mix(r.seeds[dst[i-1]]^hash); i-- {
			dst[i-1], dst[i] = dst[i], dst[i-1]
		}
		least = mix(r.seeds[dst[len(dst)-1]] ^ hash)
	}
	return dst
}

// fnv is the 64-bit FNV-1a hash. The standard library's needs an object.
func fnv(b []byte) uint64 {
	h := uint64(0xcbf29ce484222325)
	for _, c := range b {
		h = (h ^ uint64(c)) * 0x100000001b3
	}
	return h
}
