package main_test

import (
	"encoding/json"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/footprint"
	"github.com/loadgen/loadgen/internal/servertest"
)

// sizing runs loadgen size on a server, and returns what it says.
func sizing(t *testing.T, args ...string) string {
	t.Helper()
	p := start(t, command(t, append([]string{"size", "--progress", "none", "--sample", "16k"}, args...)...))
	require.Zero(t, p.wait(time.Minute), "%s", &p.stderr)
	require.Contains(t, p.stderr.String(), "If this process is killed, loadgen clean ")
	return p.stdout.String()
}

// amountIn reads the number before a unit in the first match of a pattern.
func amountIn(t *testing.T, text, pattern string) float64 {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, found, "%s: %s", pattern, text)
	n, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return n
}

// What ten times as many items take in Redis is what was said beforehand, and nothing is left of the items that told it.
func TestSizeForetellsRedis(t *testing.T) {
	t.Parallel()
	redis := servertest.Redis(t)
	said := sizing(t, "redis://"+redis, "--items", "160k", "--maxmemory", "1GiB")
	require.Zero(t, number(t, redis, "DBSIZE"))
	require.Regexp(t, `(?m)^in 1\.00 GiB +[34],\d{3},\d{3} items, `, said)
	foretold := amountIn(t, said, `(?m)^160,000 items +([0-9.]+) MiB ± `) * (1 << 20)

	begin(t, `plan "real" {}
variable "redis" {}
target "cache" {
  driver    = "redis"
  endpoints = [var.redis]
}
dataset "items" {
  keys {
    count  = 160000
    format = "another-prefix:a%08d"
  }
  values { size = 200 }
}
phase "fill" {
  target  = target.cache
  dataset = dataset.items
  populate {}
}
`, "-var", "redis="+redis).whole()
	took := amountIn(t, ask(t, redis, "INFO", "memory"), `used_memory:(\d+)`)
	require.InEpsilon(t, took, foretold, 0.05)
}

// An item takes about its bytes and what a server needs beside, in memcached and in PostgreSQL, too.
func TestSizeOfServers(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"memcached": "memcached://" + servertest.Memcached(t), "postgres": servertest.Postgres(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := sizing(t, address, "--items", "1M", "--value", "1000B", "--format", "json")
			var f footprint.Figures
			require.NoError(t, json.Unmarshal([]byte(said), &f))
			require.InDelta(t, 1250, f.ItemBytes, 220, said)
			require.Len(t, f.Points, 6)
			require.InEpsilon(t, f.FixedBytes+1e6*f.ItemBytes, *f.Takes, 1e-6)
		})
	}
}
