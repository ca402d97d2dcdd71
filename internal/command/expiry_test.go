package command_test

import (
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

const mortal = `plan "mortal" {}
variable "driver" {}` + anyEndpoints + `
variable "ttl" {}
target "t" {
	driver    = var.driver
	endpoints = var.endpoints
	builtin { nodes = 1 }
}
dataset "d" {
	keys { count = 200 }
	values {
		size = 50
		ttl  = var.ttl
	}
}` + fillD + `
phase "read" {
	target  = target.t
	dataset = dataset.d
	ops     = { get = 1 }
	closed {
		sessions = 4
		duration = "13s"
		think    = "20ms"
	}
}
`

// TestKeysExpire: values with a TTL exist, later they do not, and the servers report that they have expired.
func TestKeysExpire(t *testing.T) {
	t.Parallel()
	// Long enough that some are still alive when the second phase begins, however slow the processor and the disk have been until then.
	redis, precise, memcached := servertest.Redis(t), servertest.Redis(t), servertest.Memcached(t)
	tests := []struct {
		name, driver, ttl string
		nodes             []string
		expired           func() int // by the server's own count
	}{
		{"redis, seconds", "redis", "10s", []string{redis}, func() int { return 200 - number(t, redis, "DBSIZE") }},
		{"redis, milliseconds", "redis", "10200ms", []string{precise}, func() int { return 200 - number(t, precise, "DBSIZE") }},
		{"memcached", "memcached", "10s", []string{memcached}, func() int { return 200 - crawled(t, memcached) }},
		{"built-in, redis", "redis", "10200ms", nil, nil},
		{"built-in, memcached", "memcached", "10s", nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := begin(t, mortal, "-var", "driver="+test.driver, "-var", "ttl="+test.ttl, "-var", nodes(test.nodes...)).result(60 * time.Second)
			get := r.Phase["read"].Op["get"]
			require.NotZero(t, get.OK, "while they lived")
			require.NotZero(t, get.Miss, "afterwards")
			if test.expired != nil {
				require.Eventually(t, func() bool { return test.expired() == 200 }, time.Minute, 100*time.Millisecond,
					"keys that no get met must go as well")
			}
		})
	}
}

// crawled returns how many items a memcached has after it was told to look for expired ones. On its own it drops one only when a command meets it, or
// when its crawler comes by.
func crawled(t testing.TB, addr string) int {
	t.Helper()
	l := dial(t, addr)
	defer l.conn.Close()
	_, err := io.WriteString(l.conn, "lru_crawler crawl all\r\n")
	require.NoError(t, err)
	require.Contains(t, []string{"OK", "BUSY currently processing crawler request"}, l.line())
	n, err := strconv.Atoi(l.stats()["curr_items"])
	require.NoError(t, err)
	return n
}
