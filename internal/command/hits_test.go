package command_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// hitPlan fills a store, or does not, and then expects 90 % hits from it.
const hitPlan = `plan "hits" {}
variable "driver" { type = string }
variable "endpoint" { type = string }
variable "fill" { default = true }
target "store" {
  driver    = var.driver
  endpoints = [var.endpoint]
}
dataset "items" {
  keys {
    pick  = "zipf(0.99)"
    count = 500
  }
  values { size = "uniform(24B, 2KiB)" }
}
phase "fill" {
  target  = target.store
  dataset = dataset.items
  when    = var.fill
  populate {}
}
phase "mixed" {
  target    = target.store
  dataset   = dataset.items
  hit_ratio = "90%"
  ops = {
    get = 95
    put = 5
  }
  closed {
    sessions   = 4
    iterations = 1500
  }
}
`

// TestHitRatio expects 90 % hits from Redis and memcached, and gets them if the keys were put before. If they were not, the result says so.
func TestHitRatio(t *testing.T) {
	t.Parallel()
	for driver, addr := range map[string]string{"redis": servertest.StartRedis(t).Addr, "memcached": servertest.Memcached(t)} {
		for _, fill := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, filled %v", driver, fill), func(t *testing.T) {
				if driver == "redis" {
					ask(t, addr, "FLUSHALL")
				} else if !fill {
					addr = servertest.Memcached(t)
				}
				l := begin(t, hitPlan, "-var", "driver="+driver, "-var", "endpoint="+addr, "-var", fmt.Sprintf("fill=%v", fill))
				r := l.result(60 * time.Second)
				get := r.Phase["mixed"].Op["get"]
				require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
				require.InDelta(t, 0.9, r.Phase["mixed"].Load.HitRatio, 0)
				answered := float64(get.OK + get.Miss)
				within := 5 * math.Sqrt(0.9*0.1/answered)
				suspect := fmt.Sprint(r.Phase["mixed"].Reasons)
				if fill {
					require.InDelta(t, 0.9, *get.HitRatio, within)
					require.NotContains(t, suspect, "but hit_ratio is 90 %")
				} else {
					require.Less(t, *get.HitRatio, 0.9-within, "keys are there only once a put has come by")
					require.Contains(t, suspect, "but hit_ratio is 90 %, and chance does not explain the difference")
				}
				require.Contains(t, l.stdout.String(), "hits of 90 % asked")
			})
		}
	}
}

// A cache with little room that its sessions fill is asked, and given, exactly what the result says: by one worker, and by three.
func TestFilledCaches(t *testing.T) {
	t.Parallel()
	const text = `plan "fills" {}
variable "endpoint" { type = string }
target "cache" {
  driver    = "redis"
  endpoints = [var.endpoint]
}
dataset "items" {
  keys {
    pick  = "zipf(0.9)"
    count = 5000
  }
  values { size = "uniform(24B, 2KiB)" }
}
phase "read" {
  target  = target.cache
  dataset = dataset.items
  ops     = { get = 1 }
  on_miss = "put"
  closed {
    sessions   = 6
    iterations = 5000
  }
}
assert "misses are filled" { that = phase.read.op.put.ok == phase.read.op.get.miss }
`
	for _, workers := range []int{1, 3} {
		server := servertest.StartRedis(t, "--maxmemory", "4mb", "--maxmemory-policy", "allkeys-lru")
		l := beginTeam(t, workers, func(args ...string) *load {
			return begin(t, text, append(args, "-var", "endpoint="+server.Addr)...)
		}).load
		r := l.result(60 * time.Second)
		require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
		get, put := r.Phase["read"].Op["get"], r.Phase["read"].Op["put"]
		require.EqualValues(t, 30_000, get.Due)
		require.Equal(t, run.Pass, r.Verdict.Assertions, r.Asserts)
		require.Equal(t, get.Miss, put.OK)
		stats := ask(t, server.Addr, "INFO", "stats")
		require.Contains(t, stats, fmt.Sprintf("keyspace_misses:%d\r\n", get.Miss))
		require.Contains(t, stats, fmt.Sprintf("keyspace_hits:%d\r\n", get.OK))
		require.NotContains(t, stats, "evicted_keys:0\r\n")
		require.Contains(t, ask(t, server.Addr, "INFO", "commandstats"), fmt.Sprintf("cmdstat_set:calls=%d,", put.OK))
		require.Contains(t, l.stdout.String(), "each miss filled by a put")
		server.Kill()
	}
}
