package cachenode

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// silent checks that the node says nothing for a while, and leaves the connection open.
func (s *session) silent() {
	s.t.Helper()
	require.NoError(s.t, s.conn.SetReadDeadline(time.Now().Add(30*time.Millisecond)))
	_, err := s.in.ReadByte()
	require.ErrorContains(s.t, err, "i/o timeout")
	require.NoError(s.t, s.conn.SetReadDeadline(time.Now().Add(10*time.Second)))
}

// line reads one line.
func (s *session) line() string {
	s.t.Helper()
	line, err := s.in.ReadString('\n')
	require.NoError(s.t, err)
	return line
}

// faultCounts returns what INFO faults reports.
func faultCounts(t *testing.T, s *session) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(s.do("INFO", "faults")) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			found[name] = value
		}
	}
	return found
}

func TestFaultsRefuse(t *testing.T) {
	for words, f := range map[string]Faults{
		"-1 % of requests dropped: write 0% to 100%":                  {Drop: -0.01},
		"200 % of requests closed: write 0% to 100%":                  {Close: 2},
		"drop, close and reset are 150 % of requests together: write": {Drop: 0.5, Close: 0.5, Reset: 0.5},
	} {
		_, err := New(Config{Listen: "127.0.0.1:0", Memory: 1, Faults: f})
		require.ErrorContains(t, err, words)
	}
	_, err := New(Config{Listen: "127.0.0.1:0", Memory: 1, Bandwidth: 1})
	require.EqualError(t, err, "cache node: bandwidth of 1 bytes a second: write 1KiB or more, or 0B for no limit")
}

// TestDrop drops every request about keys: each is carried out, and its connection sends nothing more, except for earlier replies.
func TestDrop(t *testing.T) {
	for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run("delay="+delay.String(), func(t *testing.T) {
			n := startNode(t, Config{Faults: Faults{Drop: 1}, Delay: fixed(delay)})
			s := open(t, n)
			s.send(wire("PING") + wire("SET", "k", strings.Repeat("v", 100_000)) + wire("PING") + wire("GET", "k"))
			require.Equal(t, "+PONG\r\n", s.reply())
			s.silent()
			s.send(wire("GET", "k"))
			s.silent()
			require.NoError(t, s.conn.Close())
			other := open(t, n)
			require.Contains(t, other.do("INFO", "commandstats"), "cmdstat_get:calls=2\r\ncmdstat_set:calls=1\r\n")
			require.Contains(t, other.do("INFO", "keyspace"), "db0:keys=1")
			counts := faultCounts(t, other)
			require.Equal(t, "1", counts["requests_dropped"])
			require.Equal(t, "4", counts["requests_unanswered"])
		})
	}
}

// TestCloseAndReset ends connections instead of answering.
func TestCloseAndReset(t *testing.T) {
	for name, f := range map[string]Faults{"connections_closed": {Close: 1}, "connections_reset": {Reset: 1}} {
		for _, delay := range []time.Duration{0, 5 * time.Millisecond} {
			t.Run(fmt.Sprintf("%s/delay=%v", name, delay), func(t *testing.T) {
				n := startNode(t, Config{Faults: f, Delay: fixed(delay)})
				s := open(t, n)
				require.Equal(t, "+PONG\r\n", s.do("PING"))
				s.send(wire("SET", "k", "v") + wire("SET", "k", "not carried out"))
				_, err := s.in.ReadByte()
				if f.Close > 0 {
					require.ErrorIs(t, err, io.EOF)
				} else {
					require.ErrorIs(t, err, syscall.ECONNRESET)
				}
				other := open(t, n)
				require.Contains(t, other.do("INFO", "commandstats"), "cmdstat_set:calls=1\r\n")
				counts := faultCounts(t, other)
				require.Equal(t, "1", counts[name])
				require.Equal(t, "0", counts["requests_unanswered"])
			})
		}
	}
}

// TestFaultsOfMemcached ends a connection, and counts it.
func TestFaultsOfMemcached(t *testing.T) {
	n := startNode(t, Config{Protocol: "memcached", Faults: Faults{Close: 1}})
	s := open(t, n)
	s.send("mn\r\nms k 1\r\nv\r\nmn\r\n")
	require.Equal(t, "MN\r\n", s.line())
	_, err := s.in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
	other := open(t, n)
	other.send("stats faults\r\nmg k v\r\n")
	for range 3 {
		other.line()
	}
	require.Equal(t, "STAT requests_unanswered 0\r\n", other.line())
	require.Equal(t, "STAT connections_closed 1\r\n", other.line())
}

func TestFaultsAreDrawnBySeed(t *testing.T) {
	draws := func(seed uint64) (list []fault) {
		f := newFaults(&Config{Seed: seed, Faults: Faults{Drop: 0.1, Close: 0.2, Reset: 0.3}})
		for range 10_000 {
			list = append(list, f.draw(true))
		}
		require.Equal(t, noFault, f.draw(false))
		return list
	}
	first := draws(1)
	require.Equal(t, first, draws(1))
	require.NotEqual(t, first, draws(2))
	var found [4]int
	for _, f := range first {
		found[f]++
	}
	for i, want := range []float64{4000, 1000, 2000, 3000} {
		require.InDelta(t, want, found[i], 200)
	}
}

// TestDelayLog sends requests with pipelining and without, and compares the log with the seed's draws and what was sent.
func TestDelayLog(t *testing.T) {
	var log bytes.Buffer
	times, err := ParseTimes("uniform(1ms, 5ms)")
	require.NoError(t, err)
	cfg := Config{Delay: times, DelayLog: &log, Seed: 7, Listen: "127.0.0.1:0", Memory: 1 << 20}
	n, err := New(cfg)
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- n.Serve(t.Context()) }()
	s := open(t, n)
	var took []time.Duration
	s.do("PING")
	for _, verb := range []string{"get", "del"} {
		from := time.Now()
		s.do(verb, "k")
		took = append(took, time.Since(from))
	}
	s.send(wire("SET", "k", "v") + wire("GET", "k"))
	require.Equal(t, "+OK\r\n", s.reply())
	require.Equal(t, "$1\r\nv\r\n", s.reply())
	n.Close()
	require.NoError(t, <-served)

	again := newDelays(&cfg, time.Time{})
	lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
	require.Equal(t, strings.TrimSuffix(delayLogHeader, "\n"), lines[0])
	require.Len(t, lines, 6)
	last := int64(0)
	for i, verb := range []string{"other", "get", "del", "set", "get"} {
		fields := strings.Split(lines[1+i], ",")
		require.Equal(t, []string{"1", verb}, fields[:2])
		var arrival, delay int64
		_, err := fmt.Sscan(fields[2], &arrival)
		require.NoError(t, err)
		_, err = fmt.Sscan(fields[3], &delay)
		require.NoError(t, err)
		require.GreaterOrEqual(t, arrival, last)
		last = arrival
		require.EqualValues(t, again.times.Load().Draw(again.random), delay)
		if i == 1 || i == 2 {
			require.GreaterOrEqual(t, took[i-1], time.Duration(delay))
		}
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestDelayLogOnAFullDisk(t *testing.T) {
	n, err := New(Config{DelayLog: full{}, Listen: "127.0.0.1:0", Memory: 1 << 20})
	require.NoError(t, err)
	served := make(chan error, 1)
	go func() { served <- n.Serve(t.Context()) }()
	require.Equal(t, "+PONG\r\n", open(t, n).do("PING"), "clients have no part in it")
	n.Close()
	err = <-served
	require.True(t, errors.Is(err, syscall.ENOSPC), err)
	require.ErrorContains(t, err, "log delays: ")
}

// TestBandwidth sends a megabyte each way at 4 MiB a second, on one connection and on three: it takes a quarter of a second, less what the link may
// catch up.
func TestBandwidth(t *testing.T) {
	const bandwidth, size = 4 << 20, 1 << 20
	for _, connections := range []int{1, 3} {
		n := startNode(t, Config{Bandwidth: bandwidth})
		var all []*session
		for range connections {
			all = append(all, open(t, n))
		}
		pass := func(l *link, requests ...string) {
			l.mu.Lock()
			credit := linkSlack + l.late
			l.mu.Unlock()
			from := time.Now()
			for _, s := range all {
				s.send(wire(requests...))
			}
			for _, s := range all {
				s.reply()
			}
			require.GreaterOrEqual(t, time.Since(from), time.Second/4-credit, "%s on %d connections", requests[0], connections)
		}
		pass(&n.in, "SET", "k", strings.Repeat("v", size/connections))
		pass(&n.out, "GET", "k")
	}
}

// TestTransmissionsShareALink has three of them begin at once: they take as long as one of all their bytes, and none is through long before the others.
func TestTransmissionsShareALink(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		const size = 1 << 20
		l := link{bandwidth: 4 << 20, done: t.Context().Done()}
		from := time.Now()
		var took [3]time.Duration
		var wait sync.WaitGroup
		for i := range took {
			wait.Go(func() {
				for left := size; left > 0; left -= l.piece(left) {
					l.pass(l.piece(left))
				}
				took[i] = time.Since(from)
			})
		}
		wait.Wait()
		require.InDelta(t, 0.75, slices.Max(took[:]).Seconds(), linkSlack.Seconds()+1e-6)
		require.Greater(t, slices.Min(took[:]), time.Second/2)
	})
}

// TestBandwidthIsKept adds up many transmissions whose senders wake late.
func TestBandwidthIsKept(t *testing.T) {
	l := link{bandwidth: 1 << 20}
	begin := time.Now()
	now := begin
	for range 1000 {
		now = l.reserve(1<<10, now).Add(linkSlack / 2) // each is ready once the previous one is known to be through
	}
	require.InDelta(t, 1000.0/1024, now.Sub(begin).Seconds(), 2*linkSlack.Seconds())
	now = now.Add(time.Hour)
	require.Equal(t, now.Add(time.Second/1024-linkSlack).UnixMicro(), l.reserve(1<<10, now).UnixMicro(), "what was not sent in an hour is lost but for the slack")
}
