package command_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
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

// filledPlan fills a store that is observed meanwhile. It takes the target, the figures, and how many keys of which sizes.
const filledPlan = `plan "filled" {}
target "store" {
  %s
}
dataset "items" {
  keys {
    count  = %d
    format = "another-prefix:a%%08d"
  }
  values { size = %d }
}
observe "store" {
  every = "20ms"
  server {
    target = target.store
    fields = [%s]
  }
}
phase "fill" {
  target  = target.store
  dataset = dataset.items
  populate {
    sessions = 1
    %s
  }
}
`

// What ten times as many items take in Redis is what was said beforehand, and nothing is left of the items that told it.
func TestSizeForetellsRedis(t *testing.T) {
	t.Parallel()
	redis := servertest.Redis(t)
	said := sizing(t, "redis://"+redis, "--items", "160k", "--maxmemory", "1GiB")
	require.Zero(t, number(t, redis, "DBSIZE"))
	require.Regexp(t, `(?m)^in 1\.00 GiB +[34],\d{3},\d{3} items, `, said)
	foretold := amountIn(t, said, `(?m)^160,000 items +([0-9.]+) MiB ± `) * (1 << 20)

	seen := begin(t, fmt.Sprintf(filledPlan, fmt.Sprintf("driver = \"redis\"\nendpoints = [%q]", redis), 160_000, 200, `"used_memory", "used_memory_rss", "db0_keys"`, "")).
		whole().Phase["fill"].Observe["store"]
	took := amountIn(t, ask(t, redis, "INFO", "memory"), `used_memory:(\d+)`)
	require.InEpsilon(t, took, foretold, 0.05)
	each, used := amountIn(t, said, `(?m)^an item +([0-9.]+) bytes`), seen["used_memory"]
	require.NotNil(t, used.PerItem, "what is null has a reason in the result: %+v", seen)
	require.InEpsilon(t, each, *used.PerItem, 0.02)
	require.InEpsilon(t, *used.After, *used.Fixed+160_000**used.PerItem+*used.KeyTable, 0.02)
	require.Greater(t, *seen["used_memory_rss"].PerItem+*seen["used_memory_rss"].PerItemCI95, *used.PerItem)
}

// An item takes about its bytes and what a server needs beside, in memcached, PostgreSQL and Ignite, too, whether a store is looked at between fills or while it
// is filled.
func TestSizeOfServers(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(servertest.Postgres(t))
	require.NoError(t, err)
	memcached := servertest.Memcached(t)
	ignite := servertest.StartIgnite(t)
	ignite.Indexed = true
	t.Cleanup(func() { require.NotContains(t, strings.Join(ignite.Caches(), " "), "loadgen") })
	for name, c := range map[string]struct {
		address, target, fields string
		items                   int
	}{
		"bytes":         {"memcached://" + memcached, fmt.Sprintf("driver = \"memcached\"\nendpoints = [%q]", memcached), `"bytes", "curr_items"`, 20_000},
		"table_size":    {u.String(), fmt.Sprintf("driver = \"postgres\"\nendpoints = [%q]\nuser = \"loadgen\"\ndatabase = \"postgres\"\npassword = secret(\"PG\")", u.Host), `"table_size", "table_rows"`, 5000},
		"TotalUsedSize": {"ignite://" + ignite.Addr, fmt.Sprintf("driver = \"ignite\"\nendpoints = [%q]\ncache_name = \"items\"", ignite.Addr), `"TotalUsedSize", "OffHeapPrimaryEntriesCount"`, 20_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := sizing(t, c.address, "--items", "1M", "--value", "1000B", "--format", "json")
			var f footprint.Figures
			require.NoError(t, json.Unmarshal([]byte(said), &f))
			require.InDelta(t, 1250, f.ItemBytes, 220, said)
			require.Len(t, f.Points, 6)
			require.InEpsilon(t, f.FixedBytes+1e6*f.ItemBytes, *f.Takes, 1e-6)

			seen := begin(t, fmt.Sprintf(filledPlan, c.target, c.items, 1000, c.fields, "pipeline = 1")).whole().Phase["fill"].Observe["store"][name]
			require.InEpsilon(t, *seen.Delta/float64(c.items), *seen.PerItem, 0.05)
			require.InEpsilon(t, f.ItemBytes, *seen.PerItem, 0.1)
		})
	}
}

// TestSizeOfValuesThatAreRefused: why there are no figures is said, and what to write.
func TestSizeOfValuesThatAreRefused(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]string{
		"2MiB": "If values of 2097152 bytes are beyond its limit, write a smaller --value",
		"200B": "Let its user write and delete keys that begin with loadgen-",
	} {
		redis := servertest.Redis(t, "--proto-max-bulk-len", "1mb")
		if size == "200B" {
			require.Equal(t, "OK", ask(t, redis, "ACL", "SETUSER", "default", "resetkeys", "~app:*"))
		}
		p := start(t, command(t, "size", "--progress", "none", "--sample", "200", "--value", size, "redis://"+redis))
		require.Equal(t, 6, p.wait(time.Minute))
		require.Regexp(t, `redis at \S+ was not filled: .*`+want, p.stderr.String())
	}
}
