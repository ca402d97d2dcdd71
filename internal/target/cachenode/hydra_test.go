package cachenode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hydraWait is how long the nodes of these tests wait for each other. In the recordings it is 1 s.
const hydraWait = 500 * time.Millisecond

// recording replays exchanges with Hydra Cache's servers, byte for byte, against nodes that stand for them. Its lines are
//
//	build 2009-04-03          the servers of the spaces that follow; without it, those of 2011
//	space n=3 w=2 r=1 PORT…   a new space of nodes. A node announces its port, whatever it listens on
//	keep                      one connection for all exchanges from now on
//	each                      one for each
//	PORT > "request"
//	< "reply"                 at once; <~: once the wait for other nodes has run out
//	closed                    the server closes the connection
//	copies "key" PORT…        the nodes that now have a copy
//	end PORT, start PORT      the node is gone; it is there again, empty
//	unrecorded PORT "/key" "value"
type recording struct {
	*testing.T
	cfg   Config
	nodes map[string]*Node
	keeps bool // conn serves all exchanges
	conn  net.Conn
	in    *bufio.Reader
	unmet uint64 // before the last request
	began time.Time
}

func TestHydraRecordings(t *testing.T) {
	files, err := filepath.Glob("testdata/hydra/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			r := &recording{T: t, nodes: map[string]*Node{}}
			for i, line := range strings.Split(string(text), "\n") {
				if line != "" && line[0] != '#' {
					r.line(fmt.Sprintf("%s:%d", file, i+1), line)
				}
			}
		})
	}
}

func (r *recording) line(at, line string) {
	r.Helper()
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "build":
		r.cfg.Space.Build = rest
	case "space":
		r.space(rest)
	case "keep", "each":
		r.keeps = word == "keep"
	case "<", "<~":
		r.reply(at, rest, word == "<~")
	case "closed":
		n, err := io.Copy(io.Discard, r.in)
		require.NoError(r, err, at)
		require.Zero(r, n, "%s: bytes before the end of the connection", at)
	case "copies":
		r.copies(at, rest)
	case "end":
		r.nodes[rest].Close()
		delete(r.nodes, rest)
	case "start":
		r.start(rest)
		r.meet()
	case "unrecorded":
		words := strings.SplitN(rest, " ", 3)
		value := r.unquoted(at, words[2])
		r.request(words[0], fmt.Sprintf("PUT %s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s\x7f\x00\x00\x01%s%s", r.unquoted(at, words[1]), 20+len(value), frameStart, make([]byte, 10), value))
		line, err := r.in.ReadString('\n')
		require.NoError(r, err, at)
		require.Contains(r, line, "201", at)
	default:
		_, request, ok := strings.Cut(line, " > ")
		require.True(r, ok, "%s: %s", at, line)
		r.request(word, r.unquoted(at, request))
	}
}

func (r *recording) unquoted(at, text string) string {
	r.Helper()
	plain, err := strconv.Unquote(text)
	require.NoError(r, err, at)
	return plain
}

// space starts nodes, in place of those of an earlier space, and lets them meet.
func (r *recording) space(rest string) {
	for _, n := range r.nodes {
		n.Close()
	}
	clear(r.nodes)
	words := strings.Fields(rest)
	r.cfg = Config{Listen: "127.0.0.1:0", Protocol: "hydra", Memory: 64880640, Space: Space{Wait: hydraWait, Build: r.cfg.Space.Build}}
	for i, k := range []*int{&r.cfg.Space.N, &r.cfg.Space.W, &r.cfg.Space.R} {
		_, err := fmt.Sscanf(words[i][2:], "%d", k)
		require.NoError(r, err)
	}
	for _, port := range words[3:] {
		r.start(port)
	}
	r.meet()
}

func (r *recording) start(port string) {
	cfg := r.cfg
	cfg.Space.Announce = "127.0.0.1:" + port
	n, err := New(cfg)
	require.NoError(r, err)
	r.nodes[port] = n
	served := make(chan error, 1)
	go func() { served <- n.Serve(context.Background()) }()
	r.Cleanup(func() {
		n.Close()
		require.NoError(r, <-served)
	})
}

// meet connects all nodes with each other.
func (r *recording) meet() {
	var addresses []string
	for _, n := range r.nodes {
		addresses = append(addresses, n.Addr().String())
	}
	for port, n := range r.nodes {
		for _, address := range addresses {
			if address != n.Addr().String() {
				n.Join([]string{address})
			}
		}
		require.Eventually(r, func() bool {
			there := 0
			for _, l := range n.space.peers {
				l.mu.Lock()
				if l.known && l.conn != nil { // one that is gone stays listed for a while
					there++
				}
				l.mu.Unlock()
			}
			return there >= len(r.nodes)-1
		}, 10*time.Second, time.Millisecond, "nodes that %s knows", port)
	}
}

func (r *recording) allUnmet() (sum uint64) {
	for _, n := range r.nodes {
		sum += n.space.unmet.Load()
	}
	return sum
}

func (r *recording) request(port, request string) {
	r.Helper()
	if r.conn == nil || !r.keeps {
		conn, err := net.Dial("tcp", r.nodes[port].Addr().String())
		require.NoError(r, err)
		require.NoError(r, conn.SetDeadline(time.Now().Add(30*time.Second)))
		r.Cleanup(func() { _ = conn.Close() })
		r.conn, r.in = conn, bufio.NewReader(conn)
	}
	r.unmet, r.began = r.allUnmet(), time.Now()
	_, err := io.WriteString(r.conn, request)
	require.NoError(r, err)
}

// masked are the parts of replies that depend on when and where the server runs.
var masked = regexp.MustCompile(`Date: [^\r]{29}|"freeMemory":("\d+ MB"|\d+)`)

func (r *recording) reply(at, text string, waited bool) {
	r.Helper()
	want := r.unquoted(at, text)
	got := make([]byte, len(want))
	n, err := io.ReadFull(r.in, got)
	require.NoError(r, err, "%s: %q", at, got[:n])
	require.Equal(r, masked.ReplaceAllString(want, "*"), masked.ReplaceAllString(string(got), "*"), at)
	unmet := r.allUnmet() - r.unmet
	require.Equal(r, waited, unmet > 0, "%s: whether the wait for other nodes ran out", at)
	if waited {
		require.GreaterOrEqual(r, time.Since(r.began), hydraWait, at)
	}
}

func (r *recording) copies(at, rest string) {
	r.Helper()
	words := strings.Fields(rest)
	name := fmt.Appendf(nil, `"keyHash":%d,`, ketamaHash([]byte(r.unquoted(at, words[0]))))
	for port := range r.nodes {
		r.request(port, "GET /dump HTTP/1.1\r\nConnection: close\r\n\r\n")
		all, err := io.ReadAll(r.in)
		require.NoError(r, err, at)
		want := strings.Contains(rest, port)
		require.Equal(r, want, bytes.Contains(all, name), "%s: whether %s has a copy", at, port)
	}
}

// open opens a connection to the node of a port.
func (r *recording) open(port string) net.Conn {
	conn, err := net.Dial("tcp", r.nodes[port].Addr().String())
	require.NoError(r, err)
	require.NoError(r, conn.SetDeadline(time.Now().Add(30*time.Second)))
	r.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestHydraSilentConnectionIsClosed leaves a connection alone: for 3 s, it is there.
func TestHydraSilentConnectionIsClosed(t *testing.T) {
	t.Parallel()
	r := &recording{T: t, nodes: map[string]*Node{}}
	r.space("n=3 w=1 r=1 22330")
	began := time.Now()
	n, err := r.open("22330").Read(make([]byte, 1))
	require.Zero(t, n)
	require.ErrorIs(t, err, io.EOF)
	require.GreaterOrEqual(t, time.Since(began), 2900*time.Millisecond) // the node's clock starts a little earlier
}

// TestHydraRepliesInOrder sends requests together: what follows a miss waits for it.
func TestHydraRepliesInOrder(t *testing.T) {
	t.Parallel()
	r := &recording{T: t, nodes: map[string]*Node{}}
	r.space("n=3 w=1 r=1 22330")
	conn := r.open("22330")
	_, err := io.WriteString(conn, "PUT /a HTTP/1.1\r\nContent-Length: 21\r\n\r\n"+frameStart+strings.Repeat("\x00", 14)+"x"+
		"GET /no HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\n\r\n")
	require.NoError(t, err)
	in, began := bufio.NewReader(conn), time.Now()
	for _, want := range []string{"201 Created", "404 Not Found", "200 OK"} {
		line, err := in.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, want)
		if want != "201 Created" {
			require.GreaterOrEqual(t, time.Since(began), hydraWait-50*time.Millisecond, want)
		}
		for length := 0; line != "\r\n"; {
			line, err = in.ReadString('\n')
			require.NoError(t, err)
			if _, after, ok := strings.Cut(line, "Content-Length: "); ok {
				length, err = strconv.Atoi(strings.TrimSpace(after))
				require.NoError(t, err)
			}
			if line == "\r\n" {
				_, err = io.CopyN(io.Discard, in, int64(length))
				require.NoError(t, err)
			}
		}
	}
}

// TestHydraThreadsWait has a miss on the first connection: it delays the fourth, of the same I/O thread.
func TestHydraThreadsWait(t *testing.T) {
	t.Parallel()
	r := &recording{T: t, nodes: map[string]*Node{}}
	r.space("n=3 w=1 r=1 22330")
	node := r.nodes["22330"]
	var conns []net.Conn
	for i := range 4 {
		conns = append(conns, r.open("22330"))
		require.Eventually(t, func() bool { return node.accepted.Load() == uint64(i+1) }, 10*time.Second, time.Millisecond)
	}
	for i, conn := range conns {
		target := "/storage"
		if i == 0 {
			target = "/no"
		}
		_, err := io.WriteString(conn, "GET "+target+" HTTP/1.1\r\n\r\n")
		require.NoError(t, err)
		require.Eventually(t, func() bool { return node.peers.total()[verbGet] == uint64(i+1) }, 10*time.Second, time.Millisecond)
	}
	for _, i := range []int{1, 2, 3} {
		_, err := conns[i].Read(make([]byte, 1))
		require.NoError(t, err)
		if i == 3 {
			require.EqualValues(t, 1, r.allUnmet(), "waits that had run out")
		}
	}
}

// TestHydraClosesWhatItComesBackToLate carries out a put in a round of the thread that then goes on for 3 s: it is stored, and never answered.
func TestHydraClosesWhatItComesBackToLate(t *testing.T) {
	t.Parallel()
	r := &recording{T: t, nodes: map[string]*Node{}}
	r.space("n=3 w=1 r=1 22330")
	space := r.nodes["22330"].space
	thread := &space.threads[1] // of the first connection
	round := thread.enter()
	r.request("22330", "PUT /a HTTP/1.1\r\nContent-Length: 21\r\n\r\n"+frameStart+strings.Repeat("\x00", 14)+"x")
	require.Eventually(t, func() bool {
		thread.mu.Lock()
		defer thread.mu.Unlock()
		if thread.next == 0 {
			return false
		}
		thread.next++ // another request of that round
		return true
	}, 10*time.Second, time.Millisecond)
	thread.leave(round)
	require.Eventually(t, func() bool {
		return space.local(binary.LittleEndian.AppendUint32(nil, ketamaHash([]byte("a")))) != nil
	}, 10*time.Second, time.Millisecond)
	time.Sleep(hydraIdle)
	thread.leave(round + 1)
	_, err := r.in.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

func FuzzHydraRequest(f *testing.F) {
	f.Add([]byte("PUT /ctx/k?x=1 HTTP/1.1\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"))
	f.Add([]byte("PUT /k HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"))
	f.Add([]byte("garbage\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var whole, grown hydraRequest
		state := whole.parse(b, 1<<20)
		require.True(t, state != wholeRequest || 0 < whole.size && whole.size <= len(b))
		for n := 1; n <= len(b); n++ { // byte by byte, it is the same request
			if grown.parse(b[:n:n], 1<<20) == wholeRequest {
				require.Equal(t, wholeRequest, state)
				require.Equal(t, whole.method, grown.method)
				require.Equal(t, whole.body, grown.body)
				break
			}
		}
		if v, err := parseFrame(b); err == nil {
			again, err := parseFrame(v.frame())
			require.NoError(t, err)
			require.Equal(t, v.counter, again.counter)
			require.True(t, bytes.Equal(v.blob, again.blob))
		}
	})
}
