package words

import (
	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Cache describes what happened in the caches that a phase's gets read through; nil if there are none.
func Cache(ph *run.Phase) []string {
	c := ph.Cache
	if c == nil {
		return nil
	}
	parts := []string{quantity.Thousands(c.Gets) + " gets = " + quantity.Thousands(c.Hits) + " hits + " + quantity.Thousands(c.Misses) + " misses"}
	if c.HitRatio != nil {
		parts = append(parts, quantity.Percent(*c.HitRatio)+" hits")
	}
	if c.Unavailable > 0 {
		parts = append(parts, quantity.Thousands(c.Unavailable)+" found it unavailable")
	}
	if c.Loads > 0 {
		parts = append(parts, quantity.Count(c.Loads, "load")+" of "+quantity.Duration(c.LoadSeconds/float64(c.Loads))+" on average, at most "+quantity.Thousands(c.MostLoads)+" at once")
	}
	if c.Blocked > 0 {
		parts = append(parts, quantity.Thousands(c.Blocked)+" waited for a load under way, "+quantity.Duration(c.BlockedSeconds)+" in all")
	}
	if c.Caches > 0 {
		held := quantity.Thousands(c.Entries) + " entries, " + quantity.Bytes(uint64(c.Bytes)) + " in "
		if c.Caches == 1 {
			held += "one cache"
		} else {
			held += quantity.Thousands(c.Caches) + " caches"
		}
		parts = append(parts, held, quantity.Thousands(c.Evictions)+" evicted")
	}
	if c.Cleared > 0 {
		parts = append(parts, "emptied "+quantity.Count(c.Cleared, "time"))
	}
	if c.Uncached > 0 {
		parts = append(parts, quantity.Thousands(c.Uncached)+" values that the cache refused: write more memory, or smaller values")
	}
	return parts
}
