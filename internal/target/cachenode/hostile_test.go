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

// TestHalfARequestForEver begins requests and abandons them, or continues them a byte at a time.
func TestHalfARequestForEver(t *testing.T) {
	for _, c := range []struct{ name, protocol, half string }{
		{"array", "resp", "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nvvv"},
		{"inline", "resp", "SET k 'vvv"},
		{"memcached", "memcached", "ms k 100000\r\nvvv"},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := startNode(t, Config{Protocol: c.protocol}, func(n *Node) { n.readTimeout = 100 * time.Millisecond })
			silent, slow := open(t, n), open(t, n)
			silent.send(c.half)
			slow.send(c.half)
			go func() {
				for err := error(nil); err == nil; time.Sleep(10 * time.Millisecond) {
					_, err = io.WriteString(slow.conn, "v")
				}
			}()
			for _, s := range []*session{silent, slow} {
				require.Contains(t, s.line(), "a request was begun, and 100ms later no more than ")
				_, err := io.Copy(io.Discard, s.in)
				if err != nil { // it was still writing
					require.ErrorContains(t, err, "reset")
				}
			}
			require.EqualValues(t, 2, n.faults.slow.Load())
		})
	}
}

// TestSlowIsNotHostile sends a large request slowly, and leaves its connection idle for longer than a request may take.
func TestSlowIsNotHostile(t *testing.T) {
	n := startNode(t, Config{}, func(n *Node) { n.readTimeout = 600 * time.Millisecond })
	s := open(t, n)
	value := strings.Repeat("v", 200_000)
	rest := wire("SET", "k", value)
	for len(rest) > 0 {
		piece := min(len(rest), 10_000)
		s.send(rest[:piece])
		rest = rest[piece:]
		time.Sleep(50 * time.Millisecond)
	}
	require.Equal(t, "+OK\r\n", s.reply())
	time.Sleep(700 * time.Millisecond)
	s.send("*1\r\n$4\r\nPI")
	time.Sleep(50 * time.Millisecond)
	s.send("NG\r\n")
	require.Equal(t, "+PONG\r\n", s.reply())
	require.Zero(t, n.faults.slow.Load())
}

// TestAnnouncementsCostNothing announces data that is never sent.
func TestAnnouncementsCostNothing(t *testing.T) {
	n := startNode(t, Config{Memory: 1 << 20})
	for _, in := range []string{
		"*1000000000\r\n", "*1\r\n$1073741824\r\n", "*1\r\n$99999999999999999999\r\n", "*-1\r\n", "*3\r\n$3\r\nSET\r\n$-5\r\n",
		strings.Repeat("*1\r\n", 10_000), "*2\r\n*2\r\n*2\r\n", "*1\r\n$4\r\nPINGxx", "\x00\xff\x00", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
		strings.Repeat("x", maxInline+1), strings.Repeat(" ", maxInline+1) + "\r\n", strings.Repeat("\"", 999) + "\n", "PING " + strings.Repeat("x ", maxArgs) + "\n",
		"POST / HTTP/1.1\r\nHost: there\r\n\r\nFLUSHALL\r\n", "Host: there\r\n\r\nFLUSHALL\r\n",
	} {
		s := open(t, n)
		_, err := io.WriteString(s.conn, in)
		require.NoError(t, err)
		require.Contains(t, s.line(), "-ERR Protocol error: ", "%.40q", in)
		_, _ = io.Copy(io.Discard, s.in) // ended, with or without a reset
		require.NoError(t, s.conn.Close())
	}
	for range 100 { // of the largest size accepted, hardly any of which is sent
		open(t, n).send(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\nv", n.requestLimit()-4))
	}
	require.Equal(t, "+PONG\r\n", open(t, n).do("PING"))
	require.Eventually(t, func() bool { return n.buffers.used.Load() == 0 }, 5*time.Second, time.Millisecond)
}

// TestValuesBeingSentCount has clients request large values and not read them, while others replace, delete and flush those values. What is being
// sent stays within the bound, and its room is given back.
func TestValuesBeingSentCount(t *testing.T) {
	const size, bound = 1 << 18, 2 << 20
	for _, delay := range []time.Duration{0, time.Millisecond} {
		t.Run("delay="+delay.String(), func(t *testing.T) {
			n := startNode(t, Config{Memory: bound, Delay: fixed(delay)})
			writer := open(t, n)
			var readers []*session
			stored := 0
			for i := range 20 {
				if writer.do("SET", "k", strings.Repeat("v", size+i)) == "+OK\r\n" {
					stored++
				}
				r := open(t, n)
				require.NoError(t, r.conn.(*net.TCPConn).SetReadBuffer(4096))
				r.send(strings.Repeat(wire("GET", "k"), 20))
				readers = append(readers, r)
				require.LessOrEqual(t, n.store.stats().used, int64(bound))
				switch i {
				case 10:
					writer.do("DEL", "k")
				case 15:
					writer.do("FLUSHALL")
				}
			}
			require.Positive(t, stored)
			require.Equal(t, "+OK\r\n", writer.do("SET", "small", "ones go on"))
			for _, r := range readers {
				require.NoError(t, r.conn.Close())
			}
			require.Eventually(t, func() bool { return n.connections() == 1 }, 5*time.Second, time.Millisecond)
			writer.do("FLUSHALL")
			require.Zero(t, n.store.stats().used)
			require.Zero(t, n.waiting.used.Load())
			require.Equal(t, "+OK\r\n", writer.do("SET", "k", strings.Repeat("v", bound-1000)))
		})
	}
}

// TestReplacingWhatIsSent stores into a full node a value whose predecessor is being sent.
func TestReplacingWhatIsSent(t *testing.T) {
	const size = 100_000
	s := newStore(2*cost(1, size) + size/2)
	value := make([]byte, size)
	require.True(t, s.set(0, []byte("a"), value, 0))
	_, done, ok := s.get(0, []byte("a"))
	require.True(t, ok)
	require.True(t, s.set(0, []byte("b"), value, 0))
	require.True(t, s.set(0, []byte("a"), value, 0), "b makes room")
	require.Equal(t, cost(1, size)+size, s.used)
	require.False(t, s.set(0, []byte("a"), make([]byte, 2*size), 0), "nothing is left to make room")
	require.Equal(t, cost(1, size)+size, s.used)
	done()
	require.Equal(t, cost(1, size), s.used)
	require.True(t, s.set(0, []byte("a"), make([]byte, 2*size), 0))
}

// TestLongRepliesAreBounded sends requests with long replies, and reads none.
func TestLongRepliesAreBounded(t *testing.T) {
	n := startNode(t, Config{Memory: 32 << 20}, func(n *Node) { n.waiting.limit = 100_000 })
	for i := range 2000 {
		n.peers.of(fmt.Sprintf("127.0.0.1:%d", i))
	}
	s := open(t, n)
	require.Contains(t, s.do("INFO", "peers"), "peer_127.0.0.1:1999:")
	for i := range 2000 {
		n.peers.of(fmt.Sprintf("192.0.2.1:%d", i))
	}
	require.Equal(t, "-ERR this node has too many replies that nobody reads\r\n", s.do("INFO", "peers"))
	require.Zero(t, n.waiting.used.Load())
	key := strings.Repeat("k", maxKey-4)
	for i := range 10 {
		require.Equal(t, "+OK\r\n", s.do("SET", fmt.Sprint(key, i), "v"))
	}
	require.Less(t, len(s.do("SCAN", "0", "COUNT", "1000")), maxScanBytes+maxKey+1000)
	require.Equal(t, "-ERR a key has at most 65536 bytes here\r\n", s.do("SET", key+"12345", "v"))
	require.Equal(t, "-ERR a key has at most 65536 bytes here\r\n", s.do("MSET", key+"12345", "v"))
	require.Equal(t, "-ERR a pattern has at most 1024 bytes here\r\n", s.do("SCAN", "0", "MATCH", strings.Repeat("*a", 600)))
	require.Equal(t, "-ERR PING takes at most 16384 bytes here\r\n", s.do("PING", strings.Repeat("x", 20_000)))
}
