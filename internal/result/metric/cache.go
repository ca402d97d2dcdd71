package metric

import "github.com/loadgen/loadgen/internal/result/run"

// cacheFigures lists the figures of caches that gets read through.
func cacheFigures() []Of[run.Phase] {
	of := within(func(p *run.Phase) *run.Cache { return p.Cache })
	return []Of[run.Phase]{
		{
			Name: "cache.caches", Unit: "caches", Float: of(func(c *run.Cache) *float64 { return number(c.Caches) }),
			Says: "caches that loadgen keeps: one for each session, or for each worker; 0 for a remote cache, or none",
		},
		{
			Name: "cache.gets", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Gets) }),
			Says: "hits + misses",
		},
		{
			Name: "cache.hits", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Hits) }),
			Says: "gets whose value the cache had",
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
			Says: "that of simulated LRU caches (docs/caches.md) of this size on the same draws",
		},
		{
			Name: "cache.loads", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Loads) }),
			Says: "gets that asked the source",
		},
		{
			Name: "cache.load_seconds", Unit: "s", Kind: Time, Float: of(func(c *run.Cache) *float64 { return &c.LoadSeconds }),
			Says: "time that all loads took together",
		},
		{
			Name: "cache.most_loads", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.MostLoads) }),
			Says: "the most loads under way at once in one loop",
		},
		{
			Name: "cache.coalesced", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Coalesced) }),
			Says: "gets that missed, waited for another get's load, and did not ask the source",
		},
		{
			Name: "cache.blocked", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Blocked) }),
			Says: "gets that found a load of their key under way, with `coalesce`",
		},
		{
			Name: "cache.blocked_seconds", Unit: "s", Kind: Time, Float: of(func(c *run.Cache) *float64 { return &c.BlockedSeconds }),
			Says: "time from finding that load until it had ended or the get gave up, summed over these gets",
		},
		{
			Name: "cache.unavailable", Unit: "gets", Float: of(func(c *run.Cache) *float64 { return number(c.Unavailable) }),
			Says: "gets that the cache did not answer; the source did. `cache.gets` does not count them",
		},
		{
			Name: "cache.uncached", Unit: "values", Float: of(func(c *run.Cache) *float64 { return number(c.Uncached) }),
			Says: "values that the cache refused",
		},
		{
			Name: "cache.entries", Unit: "entries", Float: of(func(c *run.Cache) *float64 { return number(c.Entries) }),
			Says: "entries at the phase's end, in all caches that loadgen keeps",
		},
		{
			Name: "cache.bytes", Unit: "bytes", Float: of(func(c *run.Cache) *float64 { return number(c.Bytes) }),
			Says: "size of the keys and values of these entries",
		},
		{
			Name: "cache.evictions", Unit: "entries", Float: of(func(c *run.Cache) *float64 { return number(c.Evictions) }),
			Says: "entries that made room for others",
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
		{Name: "cache.gets", Unit: "gets", Float: of(func(c *run.RowCache) *float64 { return number(c.Gets) }), Says: "gets that read through a cache"},
		{Name: "cache.hits", Unit: "gets", Float: of(func(c *run.RowCache) *float64 { return number(c.Hits) }), Says: "gets whose value the cache had"},
		{Name: "cache.loads", Unit: "gets", Float: of(func(c *run.RowCache) *float64 { return number(c.Loads) }), Says: "gets that asked the source"},
		{
			Name: "cache.load_seconds", Unit: "s", Kind: Time, Float: of(func(c *run.RowCache) *float64 { return &c.LoadSeconds }),
			Says: "time taken by loads that ended in that time; divided by its length, it is how many were under way on average",
		},
		{Name: "cache.evictions", Unit: "entries", Float: of(func(c *run.RowCache) *float64 { return number(c.Evictions) }), Says: "entries that made room for others"},
		{Name: "cache.entries", Unit: "entries", Float: of(func(c *run.RowCache) *float64 { return number(c.Entries) }), Says: "entries at its end, in all caches that loadgen keeps"},
		{Name: "cache.bytes", Unit: "bytes", Float: of(func(c *run.RowCache) *float64 { return number(c.Bytes) }), Says: "size of the keys and values of these entries"},
	}
}
