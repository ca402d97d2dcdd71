package metric

import "github.com/loadgen/loadgen/internal/result/run"

// cacheFigures lists the figures of caches that gets read through.
func cacheFigures() []Of[run.Phase] {
	of := within(func(p *run.Phase) *run.Cache { return p.Cache })
	return []Of[run.Phase]{
		{
			Name: "cache.caches", Unit: "caches", Float: of(func(c *run.Cache) *float64 { return number(c.Caches) }),
			Says: "that loadgen keeps: one for each session, or for each worker; 0 for a remote cache, or none",
		},
		{
			Name: "cache.gets", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Gets) }),
			Says: "hits + misses",
		},
		{
			Name: "cache.hits", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Hits) }),
			Says: "whose value the cache had",
		},
		{
			Name: "cache.misses", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Misses) }),
			Says: "loads + coalesced, once all have ended",
		},
		{
			Name: "cache.hit_ratio", Unit: "share", Kind: Share, Float: of(func(c *run.Cache) *float64 { return c.HitRatio }),
			Says: "hits / gets",
		},
		{
			Name: "cache.lru_hit_ratio", Unit: "share", Kind: Share, Float: of(func(c *run.Cache) *float64 { return c.LRUHitRatio }),
			Says: "that of [simulated LRU caches](caches.md#how-large) of this size on the same draws",
		},
		{
			Name: "cache.loads", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Loads) }),
			Says: "that asked the source",
		},
		{
			Name: "cache.load_seconds", Unit: "s", Kind: Time, Float: of(func(c *run.Cache) *float64 { return &c.LoadSeconds }),
			Says: "that all loads took together",
		},
		{
			Name: "cache.most_loads", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.MostLoads) }),
			Says: "the most loads under way at once in one loop",
		},
		{
			Name: "cache.coalesced", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Coalesced) }),
			Says: "that missed, waited for another get's load, and did not ask the source",
		},
		{
			Name: "cache.blocked", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Blocked) }),
			Says: "that found a load of their key under way, with `coalesce`",
		},
		{
			Name: "cache.blocked_seconds", Unit: "s", Kind: Time, Float: of(func(c *run.Cache) *float64 { return &c.BlockedSeconds }),
			Says: "from finding that load until it had ended, or until the get gave up; of all of them",
		},
		{
			Name: "cache.uncached", Unit: "values", Float: of(func(c *run.Cache) *float64 { return number(c.Uncached) }),
			Says: "that the cache refused",
		},
		{
			Name: "cache.entries", Unit: "entries", Float: of(func(c *run.Cache) *float64 { return number(c.Entries) }),
			Says: "at the phase's end, in all caches that loadgen keeps",
		},
		{
			Name: "cache.bytes", Unit: "bytes", Float: of(func(c *run.Cache) *float64 { return number(c.Bytes) }),
			Says: "of their keys and values",
		},
		{
			Name: "cache.evictions", Unit: "entries", Float: of(func(c *run.Cache) *float64 { return number(c.Evictions) }),
			Says: "that made room for others",
		},
		{
			Name: "cache.cleared", Unit: "times", Float: of(func(c *run.Cache) *float64 { return number(c.Cleared) }),
			Says: "times that a cache was emptied, by a rollback, or because it was full",
		},
	}
}

// rowCacheFigures lists the figures of those caches in one second.
func rowCacheFigures() []Of[run.Row] {
	of := within(func(r *run.Row) *run.RowCache { return r.Cache })
	return []Of[run.Row]{
		{Name: "cache.gets", Unit: "gets", Float: of(func(c *run.RowCache) *float64 { return number(c.Gets) }), Says: "that read through a cache"},
		{Name: "cache.hits", Unit: "gets", Float: of(func(c *run.RowCache) *float64 { return number(c.Hits) }), Says: "whose value the cache had"},
		{Name: "cache.loads", Unit: "gets", Float: of(func(c *run.RowCache) *float64 { return number(c.Loads) }), Says: "that asked the source"},
		{
			Name: "cache.load_seconds", Unit: "s", Kind: Time, Float: of(func(c *run.RowCache) *float64 { return &c.LoadSeconds }),
			Says: "that loads took which ended in it: divided by its length, how many were under way on average",
		},
		{Name: "cache.evictions", Unit: "entries", Float: of(func(c *run.RowCache) *float64 { return number(c.Evictions) }), Says: "that made room for others"},
		{Name: "cache.entries", Unit: "entries", Float: of(func(c *run.RowCache) *float64 { return number(c.Entries) }), Says: "at its end, in all caches that loadgen keeps"},
		{Name: "cache.bytes", Unit: "bytes", Float: of(func(c *run.RowCache) *float64 { return number(c.Bytes) }), Says: "of their keys and values"},
	}
}
