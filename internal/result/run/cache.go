package run

import "fmt"

// Cache counts what happened in the caches that a phase's gets read through. gets = hits + misses and, once all gets have ended, misses +
// unavailable = loads + coalesced.
type Cache struct {
	Caches         uint64   `json:"caches"` // caches that loadgen keeps: one for each session, or for each worker
	Gets           uint64   `json:"gets"`
	Hits           uint64   `json:"hits"`
	Misses         uint64   `json:"misses"`
	HitRatio       *float64 `json:"hit_ratio"`
	LRUHitRatio    *float64 `json:"lru_hit_ratio"`   // hit ratio of LRU caches of this size on the same draws, by simulation
	Loads          uint64   `json:"loads"`           // gets that asked the source
	LoadSeconds    float64  `json:"load_seconds"`    // their total time
	MostLoads      uint64   `json:"most_loads"`      // the most loads under way at once in one loop
	Coalesced      uint64   `json:"coalesced"`       // misses that waited for another get's load, and asked nothing themselves
	Blocked        uint64   `json:"blocked"`         // gets that found a load of their key under way
	BlockedSeconds float64  `json:"blocked_seconds"` // their total wait
	Unavailable    uint64   `json:"unavailable"`     // gets that the cache did not answer; gets does not count them
	Uncached       uint64   `json:"uncached"`        // values that the cache refused
	Entries        int64    `json:"entries"`         // entries at the phase's end, in all caches that loadgen keeps
	Bytes          int64    `json:"bytes"`           // size of their keys and values
	Evictions      uint64   `json:"evictions"`       // entries that made room for others
	Cleared        uint64   `json:"cleared"`         // how often a cache was emptied
}

// RowCache counts what happened in one second in the caches that gets read through.
type RowCache struct {
	Gets      uint64 `json:"gets"`
	Hits      uint64 `json:"hits"`
	Loads     uint64 `json:"loads"`
	Evictions uint64 `json:"evictions"`
	Entries   int64  `json:"entries"` // at the end of the second
	Bytes     int64  `json:"bytes"`

	LoadSeconds float64 `json:"load_seconds"` // total time of the loads that ended in it
}

func (c *Cache) check() error {
	switch {
	case c == nil:
	case c.Gets != c.Hits+c.Misses:
		return fmt.Errorf("cache: %d gets, but %d hits and %d misses", c.Gets, c.Hits, c.Misses)
	case c.HitRatio != nil && *c.HitRatio != float64(c.Hits)/float64(c.Gets):
		return fmt.Errorf("cache: hit_ratio %v, but %d hits of %d gets", *c.HitRatio, c.Hits, c.Gets)
	case c.LRUHitRatio != nil && !(*c.LRUHitRatio >= 0 && *c.LRUHitRatio <= 1):
		return fmt.Errorf("cache: lru_hit_ratio %v", *c.LRUHitRatio)
	}
	return nil
}
