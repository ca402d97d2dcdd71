package command_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

const batched = `plan "batched" {}
variable "driver" {}
variable "executor" { default = "event loop" }
variable "endpoints" { type = list(string) }
target "t" {
	driver    = var.driver
	endpoints = var.endpoints
	executor  = var.executor
}
dataset "d" {
	keys { count = 1000 }
	values {
		size    = 100
		checked = true
	}
}
dataset "half" {
	keys { count = 2000 }
	values {
		size    = 100
		checked = true
	}
}` + fillD + `
phase "mixed" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1, put = 1 }
	batch   = 16
	closed {
		sessions   = 4
		pipeline   = 3
		iterations = 500
	}
}
phase "misses" {
	target  = target.t
	dataset = dataset.half
	ops     = { get = 1 }
	batch   = 16
	closed {
		sessions   = 4
		iterations = 500
	}
}
`

// TestServersCountKeysOfBatches: loadgen's counts of ops and keys match the servers'.
func TestServersCountKeysOfBatches(t *testing.T) {
	t.Parallel()
	for _, executor := range []string{"event loop", "blocking"} {
		for driver, addrs := range map[string][]string{
			"redis":     {servertest.Redis(t), servertest.Redis(t)},
			"memcached": {servertest.Memcached(t), servertest.Memcached(t)},
		} {
			t.Run(driver+", "+executor, func(t *testing.T) {
				r := begin(t, batched, "-var", "driver="+driver, "-var", "executor="+executor, "-var", nodes(addrs...)).result(60 * time.Second)
				mixed, misses := r.Phase["mixed"], r.Phase["misses"]
				get, put, half := mixed.Op["get"], mixed.Op["put"], misses.Op["get"]
				require.EqualValues(t, 2000, get.OK+put.OK)
				require.Equal(t, 16*get.OK, get.Keys.OK)
				require.Equal(t, 16*put.OK, put.Keys.OK)
				require.EqualValues(t, 2000, half.OK+half.Miss)
				require.EqualValues(t, 16*2000, half.Keys.OK+half.Keys.Miss)
				require.InDelta(t, 0.5, *half.HitRatio, 0.03)
				require.Zero(t, mixed.Foreign+misses.Foreign)
				require.Equal(t, get.Keys.OK+put.Keys.OK, keysOf(mixed.Series))
				require.Equal(t, half.Keys.OK, keysOf(misses.Series))
				require.Positive(t, *get.Keys.RateWall)

				hits, missed, sets := uint64(0), uint64(0), uint64(0)
				var mgets uint64
				for _, addr := range addrs {
					if driver == "redis" {
						stats := redisStats(t, addr)
						hits, missed = hits+stats["keyspace_hits"], missed+stats["keyspace_misses"]
						missed -= 2 * 2                  // keys that are not there, asked for before each of the two loads
						mgets += stats["mget_calls"] - 2 // one for each
						continue
					}
					stats := memcachedStats(t, addr)
					hits, missed, sets = hits+numberIn(t, stats["get_hits"]), missed+numberIn(t, stats["get_misses"]), sets+numberIn(t, stats["cmd_set"])
				}
				require.Equal(t, get.Keys.OK+half.Keys.OK, hits)
				require.Equal(t, half.Keys.Miss, missed)
				if driver == "memcached" {
					require.Equal(t, 1000+put.Keys.OK, sets)
					return
				}
				sent := uint64(0)
				for _, row := range append(mixed.Requests, misses.Requests...) {
					if row.Verb == "get" {
						sent += row.Answered
					}
				}
				require.Equal(t, sent, mgets, "a request is an MGET")
			})
		}
	}
}

// keysOf sums the keys that ended ok.
func keysOf(rows []run.Row) (keys uint64) {
	for _, row := range rows {
		keys += row.KeysOK
	}
	return keys
}

// TestForeignValuesInBatches: every value of an MGET is checked.
func TestForeignValuesInBatches(t *testing.T) {
	t.Parallel()
	addr := servertest.Redis(t)
	for i := range 1000 {
		ask(t, addr, "SET", fmt.Sprintf("key:%012d", i), "not loadgen's")
	}
	plan := strings.Replace(batched, "populate {}", "closed {\n\t\titerations = 1\n\t}\n\tops = { get = 1 }", 1)
	plan = strings.Replace(plan, "{ get = 1, put = 1 }", "{ get = 1 }", 1)
	r := begin(t, plan, "-var", "driver=redis", "-var", nodes(addr)).result(60 * time.Second)
	require.EqualValues(t, 1, r.Phase["fill"].Foreign)
	require.Equal(t, "suspect", string(r.Phase["mixed"].Validity))
	require.EqualValues(t, 16*2000, r.Phase["mixed"].Foreign)
}

// redisStats asks for counters of a Redis.
func redisStats(t *testing.T, addr string) map[string]uint64 {
	t.Helper()
	stats := map[string]uint64{}
	for line := range strings.Lines(ask(t, addr, "INFO", "stats") + "\n" + ask(t, addr, "INFO", "commandstats")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if rest, ok := strings.CutPrefix(name, "cmdstat_"); ok {
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			name, value = rest+"_calls", calls
		}
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			stats[name] = n
		}
	}
	return stats
}

func numberIn(t *testing.T, text string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err)
	return n
}
