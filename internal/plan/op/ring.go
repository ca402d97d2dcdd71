package op

import (
	"cmp"
	"crypto/md5"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
)

// A ketama ring has 160 points per endpoint: 40 digests of 16 bytes, each cut into 4 points of 4 bytes.
const (
	digestsPerName  = 40
	pointsPerDigest = md5.Size / 4
	pointsPerName   = digestsPerName * pointsPerDigest
)

// Ring places keys on endpoints by consistent hashing: adding or removing an endpoint moves only that endpoint's share of the keys.
//
// The scheme is that of libketama (R. Jones, last.fm, 2007; ketama.c, ketama_create_continuum), which libmemcached's weighted ketama repeats, without
// weights:
//
//   - endpoint e has a point at each little-endian 32-bit quarter of MD5(name(e) + "-" + i), i = 0 … 39;
//   - a key hashes to the first 4 bytes of MD5(key), little-endian;
//   - it belongs to the first point at or after its hash; the first point follows the last;
//   - its replicas are the next distinct endpoints along the ring.
//
// Libketama leaves open what happens when two endpoints have the same point; here the lower index wins. Only names are hashed, so a plan places its
// keys alike on any ports. A Ring does not change and may be shared by goroutines.
type Ring struct {
	endpoints int
	points    []point // ascending
	first     []int32 // indexed by the upper bits of a hash, the bucket: the first point that is not in an earlier bucket
	shift     int     // 32 − the number of those bits
}

type point struct {
	hash     uint32
	endpoint int32
}

// NewRing returns the ring of the named endpoints; index i of names is endpoint i. There is at least one name, and no two are equal.
func NewRing(names []string) *Ring {
	r := &Ring{endpoints: len(names), points: make([]point, 0, len(names)*pointsPerName)}
	for e, name := range names {
		for i := range digestsPerName {
			sum := md5.Sum([]byte(name + "-" + strconv.Itoa(i)))
			for at := range pointsPerDigest {
				r.points = append(r.points, point{binary.LittleEndian.Uint32(sum[4*at:]), int32(e)})
			}
		}
	}
	r.index()
	return r
}

// NewRingOf returns the ring on which endpoint i has the points points[i]. There is at least one endpoint, and each has at least one point.
func NewRingOf(points [][]uint32) *Ring {
	r := &Ring{endpoints: len(points)}
	for e, all := range points {
		for _, hash := range all {
			r.points = append(r.points, point{hash, int32(e)})
		}
	}
	r.index()
	return r
}

// index sorts the points, and divides the circle into buckets: at least as many as there are points, and fewer than twice as many. A look-up then
// passes about one point; a binary search of 640 would take ten unpredictable steps. The buckets take 4 to 8 bytes a point.
func (r *Ring) index() {
	slices.SortFunc(r.points, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.endpoint, b.endpoint))
	})
	width := bits.Len(uint(len(r.points) - 1))
	r.shift = 32 - width
	r.first = make([]int32, 1<<width)
	p := 0
	for b := range r.first {
		for p < len(r.points) && r.points[p].hash < uint32(b)<<r.shift {
			p++
		}
		r.first[b] = int32(p)
	}
}

// Endpoints implements Placement.
func (r *Ring) Endpoints() int { return r.endpoints }

// Place implements Placement, in the order of the ring. With one endpoint it hashes nothing.
func (r *Ring) Place(dst []int, key []byte, n int) []int {
	if r.endpoints == 1 {
		return append(dst, 0)
	}
	from, n := len(dst), min(n, r.endpoints)
	for p := r.lookUp(key); len(dst)-from < n; p++ {
		if p == len(r.points) {
			p = 0
		}
		if e := int(r.points[p].endpoint); !slices.Contains(dst[from:], e) {
			dst = append(dst, e)
		}
	}
	return dst
}

// Home implements Placement.
func (r *Ring) Home(key []byte) int {
	if r.endpoints == 1 {
		return 0
	}
	return r.home(key)
}

func (r *Ring) home(key []byte) int {
	p := r.lookUp(key)
	if p == len(r.points) {
		p = 0
	}
	return int(r.points[p].endpoint)
}

// lookUp returns the first point at or after the key's hash; len(r.points) if the hash is beyond the last point.
func (r *Ring) lookUp(key []byte) int {
	sum := md5.Sum(key)
	hash := binary.LittleEndian.Uint32(sum[:])
	p := int(r.first[hash>>r.shift])
	for p < len(r.points) && r.points[p].hash < hash {
		p++
	}
	return p
}
