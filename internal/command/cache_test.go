package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// cachePlan reads rows of PostgreSQL through a cache of any scope.
const cachePlan = `plan "caches" {}
variable "server" {}
variable "redis" {}
variable "scope" {}
variable "coalesce" { default = false }
target "db" {
  driver    = "postgres"
  endpoints = [var.server]
  user      = "loadgen"
  database  = "postgres"
  password  = secret("PG")
}
target "near" {
  driver    = "redis"
  endpoints = [var.redis]
}
target "rows" {
  source = target.db
  cache {
    scope    = var.scope
    target   = target.near
    memory   = "40KiB"
    coalesce = var.coalesce
  }
}
dataset "items" {
  keys {
    count = 1000
    pick  = "zipf(1)"
  }
  values { size = 100 }
}
phase "empty" {
  target  = target.near
  dataset = dataset.items
  clear {}
}` + fillDB + `
phase "read" {
  target  = target.rows
  dataset = dataset.items
  ops     = { get = 99, put = 1 }
  closed {
    sessions   = 6
    iterations = 500
  }
}
assert "cold" { that = phase.read.cache.loads > 0 && phase.read.cache.hits + phase.read.cache.misses == phase.read.cache.gets }
`

// TestCachesBeforePostgres: of what the caches count, the database and the cache count the same, one for one, with one worker and with three.
func TestCachesBeforePostgres(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	redis := servertest.Redis(t)
	for _, c := range []struct {
		scope    string
		coalesce bool
		workers  int
		caches   uint64
	}{{"none", false, 1, 0}, {"shared", true, 3, 3}, {"session", false, 3, 6}, {"remote", false, 3, 0}, {"remote", true, 1, 0}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			d.ask("SELECT pg_stat_statements_reset()")
			ask(t, redis, "FLUSHALL")
			ask(t, redis, "CONFIG", "RESETSTAT")
			team := invite(t, c.workers, func(args ...string) *load { return begin(t, cachePlan, args...) },
				"-var", "server="+d.place, "-var", "redis="+redis, "-var", "scope="+c.scope, "-var", fmt.Sprint("coalesce=", c.coalesce))
			for range c.workers {
				team.join(team.addr, "--secret", "PG="+d.place)
			}
			r := team.result(60 * time.Second)
			require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
			require.Equal(t, run.Pass, r.Verdict.Assertions, r.Asserts)
			ph := r.Phase["read"]
			got, get := ph.Cache, ph.Op["get"]
			require.Equal(t, get.OK, get.Due)
			require.Equal(t, get.Due, got.Gets)
			require.Equal(t, got.Misses, got.Loads+got.Coalesced)
			require.Equal(t, c.caches, got.Caches)
			var loads uint64
			var seconds float64
			for _, row := range ph.Series {
				loads += row.Cache.Loads
				seconds += row.Cache.LoadSeconds
			}
			require.Equal(t, got.Loads, loads)
			require.InDelta(t, got.LoadSeconds, seconds, 1e-6)
			require.Equal(t, got.Bytes, ph.Series[len(ph.Series)-1].Cache.Bytes)
			require.Zero(t, got.Uncached)
			calls := d.ask("SELECT coalesce(sum(calls), 0) FROM pg_stat_statements WHERE starts_with(query, '/* loadgen get */')")
			require.Equal(t, fmt.Sprint(got.Loads), calls[0])
			switch c.scope {
			case "none":
				require.Equal(t, got.Gets, got.Loads)
				require.Equal(t, "there is no cache", ph.Nulls["cache.lru_hit_ratio"])
			case "session": // each sees its own draws, in their order
				require.Equal(t, *got.HitRatio, *got.LRUHitRatio)
			case "shared":
				require.NotNil(t, got.LRUHitRatio, ph.Nulls)
			case "remote":
				require.Contains(t, ask(t, redis, "INFO", "stats"), fmt.Sprintf("keyspace_hits:%d\r\n", got.Hits))
				require.Contains(t, ask(t, redis, "INFO", "commandstats"), fmt.Sprintf("cmdstat_set:calls=%d,", got.Loads))
				require.Equal(t, "how many entries a remote cache has room for is not known", ph.Nulls["cache.lru_hit_ratio"])
			}
			if c.caches > 0 {
				require.Positive(t, got.Evictions)
				require.LessOrEqual(t, got.Bytes, int64(40<<10))
			}
			if c.scope != "none" {
				require.Positive(t, got.Hits)
				require.Equal(t, got.Hits, get.Kind["hit"].Service.Count)
				require.Equal(t, got.Loads, get.Kind["filled"].Service.Count)
			}
			require.Contains(t, team.stdout.String(), "hits + ")
		})
	}
}

// TestFlushEvents empties, while they are read, a built-in node, which loses everything, and then a Redis, which loses the keys that the phase uses and no
// others.
func TestFlushEvents(t *testing.T) {
	t.Parallel()
	redis := servertest.Redis(t)
	ask(t, redis, "SET", "of-another", "1")
	r := begin(t, `plan "flushes" {}
variable "redis" {}
target "db" {
  driver = "redis"
  builtin {}
}
target "near" {
  driver    = "redis"
  endpoints = [var.redis]
}
target "rows" {
  source = target.db
  cache {
    scope  = "remote"
    target = target.near
  }
}
dataset "items" {
  keys { count = 50 }
  values { size = 100 }
}`+fillDB+`
phase "read" {
  target  = target.rows
  dataset = dataset.items
  scenario "page" {
    step "get" { times = 2 }
  }
  closed {
    sessions = 4
    duration = "2s"
    think    = "1ms"
  }
  event "source" {
    at     = "500ms"
    do     = "flush"
    target = target.db
  }
  event "cache" {
    at = "1s"
    do = "flush"
  }
}
`, "-var", "redis="+redis).whole()
	ph := r.Phase["read"]
	require.GreaterOrEqual(t, *ph.Event["source"].HappenedSeconds, 0.5)
	require.GreaterOrEqual(t, *ph.Event["cache"].HappenedSeconds, 1.0)
	require.Positive(t, ph.Op["get"].Miss, "neither has the keys in the end")
	require.Equal(t, ph.Op["get"].Due, ph.Op["get"].OK+ph.Op["get"].Miss)
	require.NoError(t, ph.CheckRequests())
	require.Equal(t, "1", ask(t, redis, "GET", "of-another"))
	require.Equal(t, 1, number(t, redis, "DBSIZE"))
	require.NotContains(t, ask(t, redis, "INFO", "commandstats"), "flush")
}

// TestNodeEvents kills one of two built-in nodes for a while, and then stops it: ops fail, and it comes back empty. A hook is told what it is about.
func TestNodeEvents(t *testing.T) {
	told := filepath.Join(t.TempDir(), "told")
	r := begin(t, `plan "outages" {}
target "cache" {
  driver = "redis"
  builtin { nodes = 2 }
  timeout = "500ms"
}
dataset "items" {
  keys {
    count   = 20000
    writers = "one"
  }
  values { size = 100 }
}`+fillCache+`
phase "read" {
  target  = target.cache
  dataset = dataset.items
  ops     = { get = 1, put = 1 }
  max_bad = 1
  closed {
    sessions = 4
    duration = "3500ms"
    think    = "1ms"
  }
  event "gone" {
    at   = "500ms"
    do   = "kill"
    node = 1
    for  = "500ms"
  }
  event "still" {
    at   = "1500ms"
    do   = "stop"
    node = 1
    for  = "1200ms"
  }
  event "told" {
    at   = "2900ms"
    do   = "hook"
    hook = hook.note
    node = 1
  }
}
phase "check" {
  target  = target.cache
  dataset = dataset.items
  verify {}
}
`, "--allow-exec", `note=sh -c 'echo $LOADGEN_EVENT $LOADGEN_TARGET $LOADGEN_NODE > `+told+`'`).whole()
	ph := r.Phase["read"]
	for name, e := range ph.Event {
		require.Empty(t, e.Failed, name)
	}
	require.GreaterOrEqual(t, *ph.Event["gone"].UndoneSeconds, *ph.Event["gone"].HappenedSeconds+0.5)
	get, put := ph.Op["get"], ph.Op["put"]
	require.Positive(t, get.Causes.Lost+get.Causes.Refused+put.Causes.Lost+put.Causes.Refused, "of the node that was killed")
	require.Positive(t, get.Timeout+put.Timeout, "of the one that stood still: a session meets it once or twice")
	require.Positive(t, get.Miss, "it is empty")
	require.Positive(t, get.OK)
	lost := r.Phase["check"].Verify
	require.Equal(t, []uint64{20000, r.Phase["check"].Op["get"].Miss}, []uint64{lost.Keys, lost.Missing})
	require.InDelta(t, 10000, lost.Missing, 5000, "of the node that is empty, but for what was put again")
	require.Zero(t, lost.Older+lost.Unread)
	b, err := os.ReadFile(told)
	require.NoError(t, err)
	require.Equal(t, "told cache 1\n", string(b))
}
