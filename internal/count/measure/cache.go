package measure

// Cache counts what happened in the caches that a step's gets read through. Counts add up; Entries and Bytes are those at the end, and in a part of a
// step the change.
type Cache struct {
	Gets, Hits, Misses   uint64
	Loads                uint64 // gets that asked the source
	LoadTime             uint64 // ns, the sum of all loads
	MostLoads            uint64 // the most loads under way at once in one loop
	Coalesced            uint64 // misses that were answered by another get's load, or waited for one in vain
	Blocked, BlockedTime uint64 // gets that found a load under way; ns until it had ended
	Uncached             uint64 // values that the cache refused
	Evictions            uint64 // entries that made room for others
	Cleared              uint64 // how often a cache was emptied
	Unavailable          uint64 // gets that the cache did not answer; Gets does not count them
	Entries, Bytes       int64
	Caches               uint64 // number of caches
}

// counts lists the counts that add up.
func (c *Cache) counts() [13]*uint64 {
	return [...]*uint64{
		&c.Gets, &c.Hits, &c.Misses, &c.Loads, &c.LoadTime, &c.Coalesced, &c.Blocked, &c.BlockedTime, &c.Uncached, &c.Evictions, &c.Cleared, &c.Caches,
		&c.Unavailable, // the last: without it, the counts are those of builds before it
	}
}

// Add adds what o counted.
func (c *Cache) Add(o *Cache) {
	from := o.counts()
	for i, n := range c.counts() {
		*n += *from[i]
	}
	c.MostLoads = max(c.MostLoads, o.MostLoads)
	c.Entries += o.Entries
	c.Bytes += o.Bytes
}

// Less returns what was counted since before.
func (c *Cache) Less(before *Cache) Cache {
	change := *c
	had := before.counts()
	for i, n := range change.counts() {
		*n -= *had[i]
	}
	change.Entries -= before.Entries
	change.Bytes -= before.Bytes
	return change
}
