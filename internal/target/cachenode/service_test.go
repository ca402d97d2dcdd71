package cachenode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// visits returns what INFO queue says.
func visits(t *testing.T, s *session) (list []visit) {
	t.Helper()
	for line := range strings.Lines(s.do("INFO", "queue")) {
		var i int
		var v visit
		if _, err := fmt.Sscanf(line, "visit_%d:arrival_ns=%d,service_ns=%d", &i, &v.arrival, &v.service); err == nil {
			require.Equal(t, len(list), i)
			list = append(list, v)
		}
	}
	return list
}

// TestOneServerForAllConnections sends requests together on two connections. They are worked on one after another, each reply leaves when its own
// request is done and not before, and requests that are not work do not wait.
func TestOneServerForAllConnections(t *testing.T) {
	const service, each = 20 * time.Millisecond, 4
	n := startNode(t, Config{Service: fixed(service)})
	a, b := open(t, n), open(t, n)
	begin := time.Now()
	a.send(strings.Repeat(wire("GET", "k"), each))
	b.send(wire("PING") + strings.Repeat(wire("SET", "k", "v"), each))
	require.Equal(t, "+PONG\r\n", b.reply())
	for i := range each {
		require.Contains(t, []string{"$-1\r\n", "$1\r\nv\r\n"}, a.reply())
		require.Equal(t, "+OK\r\n", b.reply())
		require.GreaterOrEqual(t, time.Since(begin), time.Duration(i+1)*service)
	}
	require.GreaterOrEqual(t, time.Since(begin), 2*each*service)
	log := visits(t, a)
	require.Len(t, log, 2*each)
	var free time.Duration
	for i, v := range log {
		require.Equal(t, service, v.service)
		require.True(t, i == 0 || v.arrival >= log[i-1].arrival, "in the order of arrival")
		free = max(free, v.arrival) + v.service
	}
	require.Equal(t, n.queue.free, free)
}

// TestQueueLogIsBounded fills the log.
func TestQueueLogIsBounded(t *testing.T) {
	n := startNode(t, Config{Service: fixed(1)})
	for range maxVisits + 5 {
		n.queue.admit()
	}
	require.Len(t, n.queue.visits, maxVisits)
	require.Contains(t, string(n.appendQueue(nil)), fmt.Sprintf("visits:%d\r\nvisits_not_logged:5\r\n", maxVisits))
	plain := startNode(t, Config{})
	require.Equal(t, "# Queue\r\nvisits:0\r\n", string(plain.appendQueue(nil)))
}
