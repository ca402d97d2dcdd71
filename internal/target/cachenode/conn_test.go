package cachenode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestProtocolErrorIsReadable(t *testing.T) {
	n := startNode(t, Config{})
	for _, in := range []string{"POST / HTTP/1.1\r\nHost: x\r\n\r\nFLUSHALL\r\n", "*1\r\n:1\r\n" + strings.Repeat("x", 100_000)} {
		s := open(t, n)
		s.send(wire("PING") + in)
		require.Equal(t, "+PONG\r\n", s.reply(), "what came before is answered")
		require.Contains(t, s.reply(), "-ERR Protocol error: ")
		require.NoError(t, s.conn.(*net.TCPConn).CloseWrite())
		s.closed()
	}
	require.Equal(t, "+PONG\r\n", open(t, n).do("PING"))
}

func TestConnectionsAreBounded(t *testing.T) {
	n := startNode(t, Config{MaxConnections: 2})
	a, b := open(t, n), open(t, n)
	a.do("PING")
	b.do("PING")
	c := open(t, n)
	require.Equal(t, "-ERR max number of clients reached\r\n", c.reply())
	c.closed()
	require.Contains(t, a.do("INFO"), "rejected_connections:1\r\n")
	require.NoError(t, b.conn.Close())
	require.Eventually(t, func() bool {
		d := open(t, n)
		_, err := io.WriteString(d.conn, wire("PING"))
		line, readErr := d.in.ReadString('\n')
		return errors.Join(err, readErr) == nil && line == "+PONG\r\n"
	}, 5*time.Second, 5*time.Millisecond, "the place of a client that left")
}

// TestUnreadRepliesEndAConnection has a client request much and read nothing.
func TestUnreadRepliesEndAConnection(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond} {
		t.Run("delay="+delay.String(), func(t *testing.T) {
			n := startNode(t, Config{Delay: fixed(delay)}, func(n *Node) { n.writeTimeout = 100 * time.Millisecond })
			s := open(t, n)
			s.send(wire("SET", "large", strings.Repeat("v", 8<<20)))
			require.Equal(t, "+OK\r\n", s.reply())
			s.send(strings.Repeat(wire("GET", "large"), 10))
			require.Eventually(t, func() bool { return n.connections() == 0 }, 5*time.Second, 5*time.Millisecond)
			require.Equal(t, "+PONG\r\n", open(t, n).do("PING"))
		})
	}
}

// TestUnfinishedRequestsAreBounded opens connections that announce large values and send most of them.
func TestUnfinishedRequestsAreBounded(t *testing.T) {
	n := startNode(t, Config{Memory: 1 << 20})
	most := strings.Repeat("v", 1<<20)
	const announced = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n"
	for range int(n.bufferLimit()>>20) + 20 {
		s := open(t, n)
		_, err := io.WriteString(s.conn, announced+most)
		if err != nil { // refused while it was writing
			require.Error(t, err)
		}
	}
	require.Eventually(t, func() bool { return n.connections() < int(n.bufferLimit()>>20) }, 5*time.Second, 5*time.Millisecond)
	require.LessOrEqual(t, n.buffers.used.Load(), n.bufferLimit())
	s := open(t, n)
	require.Equal(t, "+OK\r\n", s.do("SET", "k", "small ones go on"))
}

// TestBuffersAreGivenBack checks that a large request leaves nothing behind.
func TestBuffersAreGivenBack(t *testing.T) {
	n := startNode(t, Config{})
	s := open(t, n)
	require.Equal(t, "+OK\r\n", s.do("SET", "k", strings.Repeat("v", 3<<20)))
	require.Equal(t, "+PONG\r\n", s.do("PING"))
	require.Eventually(t, func() bool { return n.buffers.used.Load() == 0 }, 5*time.Second, time.Millisecond)
	s.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2000000\r\n" + strings.Repeat("v", 1<<20))
	require.Eventually(t, func() bool { return n.buffers.used.Load() > 1<<20 }, 5*time.Second, time.Millisecond)
	require.NoError(t, s.conn.Close())
	require.Eventually(t, func() bool { return n.buffers.used.Load() == 0 && n.connections() == 0 }, 5*time.Second, time.Millisecond)
}

func TestServeEndsWithContext(t *testing.T) {
	n, err := New(Config{Listen: "127.0.0.1:0", Memory: 1 << 20})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- n.Serve(ctx) }()
	s := open(t, n)
	require.Equal(t, "+PONG\r\n", s.do("PING"))
	cancel()
	require.NoError(t, <-served)
	s.closed()
	_, err = net.Dial("tcp", n.Addr().String())
	require.Error(t, err)
}

// feed is a connection that delivers in, cut into pieces, and keeps what is written.
type feed struct {
	net.Conn
	in    []byte
	piece int
	out   bytes.Buffer
}

func (f *feed) Read(b []byte) (int, error) {
	if len(f.in) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), f.piece)], f.in)
	f.in = f.in[n:]
	return n, nil
}

func (f *feed) Write(b []byte) (int, error)      { return f.out.Write(b) }
func (f *feed) Close() error                     { return nil }
func (f *feed) SetWriteDeadline(time.Time) error { return nil }
func (f *feed) SetReadDeadline(time.Time) error  { return nil }
func (f *feed) RemoteAddr() net.Addr             { return &net.TCPAddr{} }

// idleNode returns a node that serves nobody.
func idleNode(t testing.TB, memory int64) *Node {
	n, err := New(Config{Listen: "127.0.0.1:0", Memory: memory})
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n
}

// FuzzConn checks that no bytes, however they are split, crash a node or exceed its bound, and that the splits do not change the replies.
func FuzzConn(f *testing.F) {
	f.Add([]byte(wire("SET", "k", "v")+wire("GET", "k")+wire("DEL", "k", "k")), uint8(7))
	f.Add([]byte(wire("SELECT", "3")+wire("INFO", "keyspace")+wire("FLUSHALL")), uint8(1))
	f.Add([]byte(wire("AUTH", "x")+"*1\r\n$-1\r\n"), uint8(3))
	fuzzConn(f, "resp", "info") // which counts requests and tells the time
}

func FuzzMemcachedConn(f *testing.F) {
	f.Add([]byte("ms k 1\r\nv\r\nmg k v k O1 s t f\r\nmd k\r\nmd k k\r\n"), uint8(7))
	f.Add([]byte("mn\r\nversion\nflush_all 0\r\nquit\r\nmn\r\n"), uint8(1))
	f.Add([]byte("ms k 2000\r\n"), uint8(3))
	fuzzConn(f, "memcached", "stats")
}

// fuzzConn does not compare the replies to requests that contain the word open.
func fuzzConn(f *testing.F, protocol, open string) {
	n := idleNode(f, 1000)
	n.protocol, _ = protocolNamed(protocol)
	f.Fuzz(func(t *testing.T, in []byte, piece uint8) {
		var replies [2]string
		for i, size := range []int{len(in) + 1, int(piece) + 1} {
			n.store.flush()
			socket := &feed{in: in, piece: size}
			newConn(n, socket, 1).serve()
			replies[i] = socket.out.String()
			require.LessOrEqual(t, n.store.stats().used, int64(1000))
		}
		require.Zero(t, n.buffers.used.Load())
		if !bytes.Contains(bytes.ToLower(in), []byte(open)) {
			require.Equal(t, replies[0], replies[1])
		}
	})
}

func TestAllocations(t *testing.T) {
	v := strings.Repeat("v", 200)
	tests := []struct {
		protocol string
		request  string
		most     float64
	}{
		{"resp", wire("GET", "k"), 0},
		{"resp", wire("GET", "nothing"), 0},
		{"resp", wire("DEL", "nothing"), 0},
		{"resp", wire("SET", "k", v), 1}, // the value
		{"resp", wire("GET", "k"), 0},
		{"memcached", "mg k v\r\n", 0},
		{"memcached", "md nothing\r\n", 0},
		{"memcached", "ms k 200\r\n" + v + "\r\n", 1},
		{"memcached", "mg k v k s O1\r\n", 0},
	}
	n := idleNode(t, 1<<20)
	for _, test := range tests {
		var err error
		n.protocol, err = protocolNamed(test.protocol)
		require.NoError(t, err)
		c := newConn(n, &feed{}, 1)
		in := []byte(strings.Repeat(test.request, 10))
		perRun := testing.AllocsPerRun(100, func() {
			c.in, c.taken, c.out = in, 0, c.out[:0]
			if !c.answerAll() || c.taken != len(in) {
				t.Error(c.taken)
			}
		})
		require.LessOrEqual(t, perRun/10, test.most, "%q", test.request)
	}
}

// BenchmarkDelay shows by how much a delay is exceeded: ns/op less 100,000 is the round trip and the timer's lateness.
func BenchmarkDelay(b *testing.B) {
	s := open(b, startNode(b, Config{Delay: fixed(100 * time.Microsecond)}))
	require.NoError(b, s.conn.SetDeadline(time.Time{}))
	b.ReportAllocs()
	for b.Loop() {
		s.do("PING")
	}
}

// BenchmarkNode is a closed loop on one connection with many requests outstanding.
func BenchmarkNode(b *testing.B) {
	for _, pipeline := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("pipeline=%d", pipeline), func(b *testing.B) {
			s := open(b, startNode(b, Config{}))
			require.NoError(b, s.conn.SetDeadline(time.Time{}))
			require.Equal(b, "+OK\r\n", s.do("SET", "key:000000000001", strings.Repeat("v", 200)))
			batch := []byte(strings.Repeat(wire("GET", "key:000000000001"), pipeline))
			replies := make([]byte, pipeline*(6+202))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.conn.Write(batch); err != nil {
					b.Fatal(err)
				}
				if _, err := io.ReadFull(s.conn, replies); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*pipeline)/b.Elapsed().Seconds(), "requests/s")
		})
	}
}
