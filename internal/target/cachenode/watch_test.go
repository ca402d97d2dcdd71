package cachenode

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAttentionKeepsPatience rouses a sleeping attentive node through another connection while a request is unfinished. The request is answered once
// it is complete.
func TestAttentionKeepsPatience(t *testing.T) {
	n := startNode(t, Config{Service: fixed(1), Attentive: true})
	a, b := open(t, n), open(t, n)
	request := wire("GET", "k")
	for range 3 {
		b.send(request[:9])
		untilAsleep(t, n)
		require.Equal(t, "$-1\r\n", a.do("GET", "k"))
		b.send(request[9:])
		require.Equal(t, "$-1\r\n", b.reply())
	}
}

// TestAttentionEndsPatience makes the node poll all the time for the rest of a request that does not end.
func TestAttentionEndsPatience(t *testing.T) {
	n := startNode(t, Config{Service: fixed(1), Attentive: true}, func(n *Node) { n.readTimeout = time.Second })
	a, b := open(t, n), open(t, n)
	b.send(wire("GET", "k")[:9])
	untilAsleep(t, n)
	for begun := time.Now(); time.Since(begun) < n.readTimeout; {
		require.Equal(t, "$-1\r\n", a.do("GET", "k"))
	}
	require.Contains(t, b.reply(), "-ERR a request was begun, and 1s later")
	b.closed()
	require.Eventually(t, func() bool { return n.connections() == 1 }, 5*time.Second, time.Millisecond)
}

func untilAsleep(t *testing.T, n *Node) {
	t.Helper()
	require.Eventually(t, func() bool { return !n.attention.attending() }, 10*time.Second, time.Millisecond)
}

// TestLookerSeesTheEnd has clients go away while the node looks.
func TestLookerSeesTheEnd(t *testing.T) {
	n := startNode(t, Config{Service: fixed(1), Attentive: true})
	a := open(t, n)
	for range 10 {
		gone := open(t, n)
		require.Equal(t, "$-1\r\n", gone.do("GET", "k"))
		require.NoError(t, gone.conn.Close())
		require.Equal(t, "$-1\r\n", a.do("GET", "k"))
	}
	require.Eventually(t, func() bool { return n.connections() == 1 }, 5*time.Second, time.Millisecond)
}
