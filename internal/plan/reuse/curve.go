package reuse

import (
	"math"
	"math/bits"
	"sort"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

const (
	newestKeys = 8192
	classKeys  = 4096
	classes    = 8
	allHashes  = 1 << 61 // without their classes
	seenBits   = 1 << 26 // 8 MiB
	studentsT  = 2.365   // 97.5 %, with classes−1 degrees of freedom
	bucket     = 1.0 / 128
)

// Curve estimates which share of a sequence's gets an LRU store of each size answers, in one pass and a dozen MiB. The distance of a get is the size of
// all keys used since its key was, with that key: a store hits if it is as large (Mattson et al.). The distances of the newest 8,192 keys are exact.
// Older keys go on in eight classes by their hash, each of which keeps those whose hash is below a bound, and lowers that to keep no more than 4,096
// (fixed-size SHARDS: Waldspurger et al., FAST 2015). Beyond the newest keys, distances are those in a class, divided by its share of the keys:
//
//	hits(C) = near(C) + (1 − first − near) · far(C)
//
// near(C) is the share of gets with an exact distance of at most C, far(C) the same among the gets that classes saw. A bitmap by hashes tells which keys
// come for the first time: a new bit stands for 1/z of them if a share z of the bits was unset (Ting, KDD 2014). The interval is a jackknife's over the
// classes, wider by the bitmap's error and by histograms' buckets. The same sequence always has the same estimates. A Curve belongs to one goroutine.
type Curve struct {
	Refs float64 // number of gets and puts
	Gets float64

	newest  *order
	near    hist.Hist
	classes [classes]class
	first   float64
	seen    []uint64
	set     int // number of bits
}

// class follows a sample of the keys that are older than the newest.
type class struct {
	*order
	below uint64
	far   hist.Hist // weights by distance
	all   float64   // with those of deleted keys
}

// Estimate is a figure with its 95 % interval.
type Estimate struct{ Value, Low, High float64 }

// NewCurve returns a Curve of no references.
func NewCurve() *Curve {
	c := &Curve{newest: newOrder(newestKeys), seen: make([]uint64, seenBits/64)}
	for i := range c.classes {
		c.classes[i].order, c.classes[i].below = newOrder(classKeys), allHashes
	}
	return c
}

// Use counts a get, which stores its key if it was not there, a put, or a delete, of a key of a size in bytes. It returns false for any other verb.
func (c *Curve) Use(verb driver.Verb, key []byte, size int64) bool {
	switch {
	case verb == driver.Get:
		c.Gets++
	case verb == driver.Delete:
		size = 0
	case !verb.Stores():
		return false
	}
	hi, lo := bits.Mul64(driver.KeyHash(key)^0xD6E8FEB86659FD93, 0xA0761D6478BD642F) // KeyHash spreads keys that count up too evenly for a sample
	hash := hi ^ lo
	of := &c.classes[hash%classes]
	had, distance, known := c.newest.take(hash)
	switch {
	case had > 0 && verb == driver.Get:
		c.near.Record(distance)
	case had == 0 && hash/classes < of.below:
		known = of.use(hash, known, verb == driver.Get, c.newest.bytes) || known
	}
	if size > 0 {
		c.Refs++
	}
	if bit := hash / classes % seenBits; !known && c.seen[bit/64]>>(bit%64)&1 == 0 {
		if verb == driver.Get {
			c.first += seenBits / float64(seenBits-c.set)
		}
		c.seen[bit/64] |= 1 << (bit % 64)
		c.set++
	}
	c.newest.push(hash, size)
	if c.newest.keys() > newestKeys {
		hash, size := c.newest.pop()
		c.classes[hash%classes].admit(hash, size)
	}
	return true
}

// use takes a key, unless it was among the newest, where it was deleted. It counts a get of it; newer is the size of the newest keys.
func (s *class) use(hash uint64, newest, get bool, newer int64) (known bool) {
	had, distance, known := s.take(hash)
	if !get || !known && !newest {
		return known
	}
	weight := float64(allHashes) / float64(s.below)
	s.all += weight
	if had > 0 {
		s.far.RecordN(int64(min(float64(newer+had)+float64(distance-had)*weight*classes, 1<<62)), uint64(256*weight))
	}
	return known
}

// admit makes a key the newest, if it is in the sample.
func (s *class) admit(hash uint64, size int64) {
	if hash/classes >= s.below {
		return
	}
	s.push(hash, size)
	for s.keys() > classKeys {
		s.below -= (s.below + 7) / 8
		s.keep(func(hash uint64) bool { return hash/classes < s.below })
	}
}

// at estimates the share of gets with a distance of at most room, and that without each class in turn.
func (c *Curve) at(room float64) (share float64, without [classes]float64) {
	within := func(h *hist.Hist) float64 { return float64(h.Count() - h.Above(int64(min(room, 1<<62)))) }
	var far [classes]float64
	hits, all := 0.0, 0.0
	for i := range c.classes {
		far[i] = within(&c.classes[i].far) / 256
		hits, all = hits+far[i], all+c.classes[i].all
	}
	near, older := within(&c.near), max(0, c.Gets-c.first-float64(c.near.Count()))
	for i := range far {
		without[i] = (near + older*(hits-far[i])/max(1, all-c.classes[i].all)) / max(1, c.Gets)
	}
	return (near + older*hits/max(1, all)) / max(1, c.Gets), without
}

// HitRatio estimates the share of gets that a store with room for so many bytes answers. The others of an infinite one are the first ones of their keys,
// or the first ones after a delete.
func (c *Curve) HitRatio(room float64) Estimate {
	low, _ := c.at(room) // a bucket counts once all of it is within the room
	high, _ := c.at(room * (1 + bucket))
	share, without := c.at(room * (1 + bucket/2))
	mean, squares := 0.0, 0.0
	for _, v := range without {
		mean += v / classes
	}
	for _, v := range without {
		squares += (v - mean) * (v - mean)
	}
	half := studentsT*math.Sqrt(squares*(classes-1)/classes) + 2*c.first/math.Sqrt(2*seenBits)/max(1, c.Gets)
	return Estimate{share, max(0, low-half), min(1, high+half)}
}

// Room estimates how many bytes hold a hit ratio; infinite ones if no size does.
func (c *Curve) Room(ratio float64) (room Estimate) {
	least := func(of func(Estimate) float64) float64 {
		const steps = 256 // to a factor of e
		i := sort.Search(43*steps, func(i int) bool { return of(c.HitRatio(math.Exp(float64(i)/steps))) >= ratio })
		if i == 43*steps {
			return math.Inf(1)
		}
		return math.Exp(float64(i) / steps)
	}
	room.Value = least(func(e Estimate) float64 { return e.Value })
	room.Low = least(func(e Estimate) float64 { return e.High })
	room.High = least(func(e Estimate) float64 { return e.Low })
	return room
}
