package cachenode

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseService(t *testing.T) {
	for text, want := range map[string]Service{
		"0s":                {Spread: "none"},
		"200us":             {Mean: 200 * time.Microsecond, Spread: "none"},
		"exponential:1ms":   {Mean: time.Millisecond, Spread: "exponential"},
		"none:2ms":          {Mean: 2 * time.Millisecond, Spread: "none"},
		"exponential:300ns": {Mean: 300, Spread: "exponential"},
	} {
		got, err := ParseService(text)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for text, words := range map[string]string{
		"200":         `service time "200": write a duration with its unit, like 200us, or exponential:200us`,
		"gamma:200us": `spread "gamma" of service times: write none or exponential`,
		"-1s":         `service time -1s: write 0 to 1h0m0s`,
		"61m":         `service time 1h1m0s: write 0 to 1h0m0s`,
	} {
		_, err := ParseService(text)
		require.EqualError(t, err, words)
	}
	_, err := New(Config{Listen: "127.0.0.1:0", Memory: 1, Protocol: "memcached", Service: Service{Mean: 1}})
	require.EqualError(t, err, "cache node: a service time: only the protocol resp has one here")
}

// TestDraws compares the first draws of a seed with those of the same seed, and many with their mean and shape.
func TestDraws(t *testing.T) {
	draws := func(seed uint64, n int) (list []time.Duration) {
		s := newSingleServer(Service{Mean: time.Millisecond, Spread: "exponential", Seed: seed}, time.Now())
		for range n {
			list = append(list, s.draw())
		}
		return list
	}
	require.Equal(t, draws(1, 10), draws(1, 10))
	require.NotEqual(t, draws(1, 10), draws(2, 10))
	const n = 100_000
	var sum time.Duration
	var beyond int
	for _, d := range draws(3, n) {
		sum += d
		if d > 2*time.Millisecond {
			beyond++
		}
	}
	require.InDelta(t, 1e6, float64(sum)/n, 2e4)
	require.InDelta(t, n*0.1353, beyond, 0.02*n) // exp(−2)
}

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

// TestOneServerForAllConnections sends requests together on two connections: they are worked on one after another, each reply leaves when its
// own request is done and not before, and what does not count as work does not wait for it.
func TestOneServerForAllConnections(t *testing.T) {
	const service, each = 20 * time.Millisecond, 4
	n := startNode(t, Config{Service: Service{Mean: service}})
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
	n := startNode(t, Config{Service: Service{Mean: 1}})
	for range maxVisits + 5 {
		n.queue.admit()
	}
	require.Len(t, n.queue.visits, maxVisits)
	require.Contains(t, string(n.appendQueue(nil)), fmt.Sprintf("visits:%d\r\nvisits_not_logged:5\r\n", maxVisits))
	plain := startNode(t, Config{})
	require.Equal(t, "# Queue\r\nvisits:0\r\n", string(plain.appendQueue(nil)))
}
