package reuse

import (
	"math"
	"sort"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/hist"
)

const (
	newestKeys = 8192
	classKeys  = 4096
	classes    = 8
	allHashes  = 1 << 61 // without their classes
	studentsT  = 2.365   // 97.5 %, with classes−1 degrees of freedom
	bucket     = 1.0 / 128
)

// Curve estimates which share of a sequence's gets an LRU store of each size answers, in one pass and a few MiB. The distance of a get is the size of all
// keys used since its key was, with that key: a store hits if it is as large (Mattson et al.). The distances of the newest 8,192 keys are exact. Older
// keys go on in eight classes by their hash, each of which keeps those whose hash is below a bound, and lowers that to keep no more than 4,096
// (fixed-size SHARDS: Waldspurger et al., FAST 2015). Beyond the newest keys, distances are those in a class, divided by its share of the keys:
//
//	hits(C) = near(C) + (1 − near) · far(C)
//
// near(C) is the share of gets with an exact distance of at most C, near that of all gets of the newest keys, and far(C) the share of gets with a distance
// of at most C among the other gets of sampled keys. The 95 % interval is a jackknife's over the classes, wider by a bucket of the histograms. The
// same sequence always has the same estimates. A Curve belongs to one goroutine.
type Curve struct {
	Gets  float64
	Refs  float64 // gets and puts
	Bytes float64 // sum of their sizes

	newest  *order
	near    hist.Hist
	classes [classes]class
}

// class follows a sample of the keys that are older than the newest.
type class struct {
	*order
	below uint64
	far   hist.Hist // weights by distance
	all   float64   // with those of keys that were not there
}

// Estimate is a figure with its 95 % interval.
type Estimate struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// NewCurve returns a Curve of no references.
func NewCurve() *Curve {
	c := &Curve{newest: newOrder()}
	for i := range c.classes {
		c.classes[i].order, c.classes[i].below = newOrder(), allHashes
	}
	return c
}

// Use counts a get, which stores its key if it was not there, a put, or a delete, of a key of a size in bytes. It returns false for any other verb.
func (c *Curve) Use(verb driver.Verb, key []byte, size int64) bool {
	if verb != driver.Get && verb != driver.Delete && !verb.Stores() {
		return false
	}
	hash := hashOf(key)
	of := &c.classes[hash%classes]
	own, distance, near := c.newest.take(hash)
	sampled, far := hash/classes < of.below, false
	if sampled && !near {
		own, distance, far = of.take(hash)
	}
	if verb == driver.Delete {
		return true
	}
	if verb == driver.Get {
		c.Gets++
		weight := float64(allHashes) / float64(of.below)
		switch {
		case near:
			c.near.Record(distance)
		case far:
			older := float64(distance-own) * weight * classes
			of.far.RecordN(int64(min(float64(c.newest.bytes+own)+older, 1<<62)), uint64(256*weight))
			fallthrough
		case sampled:
			of.all += weight
		}
	}
	c.Refs, c.Bytes = c.Refs+1, c.Bytes+float64(size)
	c.newest.push(hash, size)
	if len(c.newest.at) > newestKeys {
		hash, size := c.newest.pop()
		c.classes[hash%classes].admit(hash, size)
	}
	return true
}

// admit makes a key the newest, if it is in the sample.
func (s *class) admit(hash uint64, size int64) {
	if hash/classes >= s.below {
		return
	}
	s.push(hash, size)
	for len(s.at) > classKeys {
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
	near, older := within(&c.near), c.Gets-float64(c.near.Count())
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
	half := studentsT * math.Sqrt(squares*(classes-1)/classes)
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
