package cachenode

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseStall(t *testing.T) {
	tests := []struct {
		in   string
		want Stall
		err  string
	}{
		{"1s@5s", Stall{At: 5 * time.Second, For: time.Second}, ""},
		{"250ms@0s", Stall{For: 250 * time.Millisecond}, ""},
		{"1h@1m30s", Stall{At: 90 * time.Second, For: time.Hour}, ""},
		{"1s", Stall{}, `stall "1s": write LENGTH@START, like 1s@5s`},
		{"", Stall{}, `stall "": write LENGTH@START, like 1s@5s`},
		{"1@5s", Stall{}, `length of stall "1@5s": write a duration with its unit, like 1s or 250ms`},
		{"1s@5", Stall{}, `start of stall "1s@5": write a duration with its unit, like 5s`},
		{"1s@5s@6s", Stall{}, `start of stall "1s@5s@6s": write a duration with its unit, like 5s`},
		{"0s@5s", Stall{}, `stall "0s@5s": length 0s: write more than 0, at most 1h0m0s`},
		{"-1s@5s", Stall{}, `stall "-1s@5s": length -1s: write more than 0, at most 1h0m0s`},
		{"61m@5s", Stall{}, `stall "61m@5s": length 1h1m0s: write more than 0, at most 1h0m0s`},
		{"1s@-5s", Stall{}, `stall "1s@-5s": start -5s is before the node serves`},
	}
	for _, test := range tests {
		got, err := ParseStall(test.in)
		if test.err != "" {
			require.EqualError(t, err, test.err)
		} else {
			require.NoError(t, err)
		}
		require.Equal(t, test.want, got)
	}
}

func TestNewRefuses(t *testing.T) {
	_, err := New(Config{Listen: "127.0.0.1:0", Delay: fixed(-1), Stalls: []Stall{{}}, MaxConnections: -1})
	for _, part := range []string{"memory bound of 0 bytes", "delay -1ns", "stall: length 0s", "-1 connections"} {
		require.ErrorContains(t, err, part)
	}
	_, err = New(Config{Listen: "127.0.0.1:0", Memory: 1, Protocol: "http"})
	require.EqualError(t, err, `cache node: protocol "http": write resp, memcached or hydra`)
	_, err = New(Config{Listen: "127.0.0.1:0", Memory: 1, Protocol: "memcached", Password: "s3cret"})
	require.EqualError(t, err, "cache node: a password: the protocol memcached has none here, only resp does, so a memcached node stays on the loopback")
	_, err = New(Config{Listen: startNode(t, Config{}).Addr().String(), Memory: 1})
	require.ErrorContains(t, err, "address already in use")
}

func TestGate(t *testing.T) {
	const s = time.Second
	g := gate{epoch: time.Now(), served: 100 * s, planned: []Stall{{At: 5 * s, For: 2 * s}, {At: 6 * s, For: 3 * s}}}
	for at, want := range map[time.Duration]time.Duration{
		0: 0, 5 * s: 0, 105*s - 1: 0, 105 * s: 107 * s, 106 * s: 107 * s, 107 * s: 109 * s, 109*s - 1: 109 * s, 109 * s: 0,
	} {
		require.Equal(t, want, g.end(at), "at %v", at)
	}
	g.order(time.Hour)
	end := g.end(0)
	require.InDelta(t, time.Hour, end, float64(10*s))
	g.order(time.Minute)
	require.Equal(t, end, g.end(0), "a shorter stall does not end a longer one")
}

// TestDelay sends requests a while apart and one delay long: each waits for its own delay and not for the others'.
func TestDelay(t *testing.T) {
	const delay, apart, requests = 200 * time.Millisecond, 2 * time.Millisecond, 100
	s := open(t, startNode(t, Config{Delay: fixed(delay)}))
	var sent [requests]time.Time
	begin := time.Now()
	for i := range requests {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * apart)))
		sent[i] = time.Now()
		s.send(wire("PING", fmt.Sprint(100+i)))
	}
	for i := range requests {
		require.Equal(t, fmt.Sprintf("$3\r\n%d\r\n", 100+i), s.reply())
		require.GreaterOrEqual(t, time.Since(sent[i]), delay, "reply %d", i)
	}
	require.Less(t, time.Since(begin), requests*delay/2, "delays add up")
}

// TestDelayIsExact pins what the timer is for: an idle process must not round a delay up to the next millisecond.
func TestDelayIsExact(t *testing.T) {
	s := open(t, startNode(t, Config{Delay: fixed(100 * time.Microsecond)}))
	best := time.Hour
	for range 200 {
		start := time.Now()
		s.do("PING")
		took := time.Since(start)
		require.GreaterOrEqual(t, took, 100*time.Microsecond)
		best = min(best, took)
	}
	require.Less(t, best, 900*time.Microsecond)
}

// TestDelayChanges checks that replies keep their order when the delay grows, shrinks and ends while some are waiting.
func TestDelayChanges(t *testing.T) {
	n := startNode(t, Config{})
	s := open(t, n)
	large := strings.Repeat("v", 200_000)
	require.Equal(t, "+OK\r\n", s.do("SET", "large", large))
	for i, delay := range []time.Duration{0, 20, 5, 0, 10, 0, 0} {
		n.delays.times.Store(&Times{First: delay * time.Millisecond})
		s.send(wire("PING", fmt.Sprint(i)) + wire("GET", "large"))
		time.Sleep(2 * time.Millisecond)
	}
	for i := range 7 {
		require.Equal(t, fmt.Sprintf("$1\r\n%d\r\n", i), s.reply())
		require.Equal(t, "$200000\r\n"+large+"\r\n", s.reply())
	}
}

// TestDelayIsBounded requests more than may wait: the node stops reading and loses nothing.
func TestDelayIsBounded(t *testing.T) {
	s := open(t, startNode(t, Config{Delay: fixed(5 * time.Millisecond)}))
	large := strings.Repeat("v", 1<<20)
	require.Equal(t, "+OK\r\n", s.do("SET", "large", large))
	s.send(strings.Repeat(wire("GET", "large"), 20))
	for range 20 {
		require.Len(t, s.reply(), len("$1048576\r\n")+1<<20+2)
	}
}

// TestDelayedRepliesOutliveTheirRequests closes the client's sending side at once, as a shell pipe does.
func TestDelayedRepliesOutliveTheirRequests(t *testing.T) {
	s := open(t, startNode(t, Config{Delay: fixed(20 * time.Millisecond)}))
	s.send(wire("PING") + wire("PING", "x"))
	require.NoError(t, s.conn.(*net.TCPConn).CloseWrite())
	rest, err := io.ReadAll(s.in)
	require.NoError(t, err)
	require.Equal(t, "+PONG\r\n$1\r\nx\r\n", string(rest))
}

func TestStall(t *testing.T) {
	const at, length = 50 * time.Millisecond, 600 * time.Millisecond
	for _, delay := range []time.Duration{0, time.Millisecond} {
		t.Run("delay="+delay.String(), func(t *testing.T) {
			var n *Node
			var s *session
			var end time.Duration // of the stall, on the gate's clock
			for end == 0 {
				if n == nil || time.Since(n.gate.epoch) > at+length { // a busy machine slept through the stall
					n = startNode(t, Config{Stalls: []Stall{{At: at, For: length}}, Delay: fixed(delay)})
					s = open(t, n)
					require.Equal(t, "+OK\r\n", s.do("SET", "k", "before"))
				}
				time.Sleep(time.Millisecond)
				end = n.gate.end(time.Since(n.gate.epoch))
			}
			other := open(t, n)
			for range 100 {
				s.send(wire("GET", "k"))
			}
			other.send(wire("PING"))
			time.Sleep(length / 2)
			if hits := n.store.stats().hits; time.Since(n.gate.epoch) < end {
				require.Zero(t, hits, "requests taken in while the node stands still")
			}
			for range 100 {
				require.Equal(t, "$6\r\nbefore\r\n", s.reply())
				require.GreaterOrEqual(t, time.Since(n.gate.epoch), end)
			}
			require.Equal(t, "+PONG\r\n", other.reply())
		})
	}
}

// TestCloseDuringFaults pins that nothing keeps a node from ending at once.
func TestCloseDuringFaults(t *testing.T) {
	tests := []struct {
		name string
		cfg  Config
	}{
		{"stall", Config{Stalls: []Stall{{For: time.Hour}}}},
		{"delay", Config{Delay: fixed(time.Hour)}},
		{"delay and stall", Config{Delay: fixed(time.Millisecond), Stalls: []Stall{{At: 50 * time.Millisecond, For: time.Hour}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			n := startNode(t, test.cfg)
			s := open(t, n)
			s.send(wire("SET", "large", strings.Repeat("v", 1<<20)))
			s.send(strings.Repeat(wire("GET", "large"), 20)) // more than may wait
			time.Sleep(60 * time.Millisecond)
			n.Close()
			if _, err := io.Copy(io.Discard, s.in); err != nil {
				require.ErrorContains(t, err, "connection reset")
			}
		})
	}
}
