package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// narrow is a poller whose sockets take a few bytes at a time.
type narrow struct {
	poller
	most  int
	taken []byte
}

func (n *narrow) watch(int, int32, bool) error { return nil }

func (n *narrow) write(_ int, p []byte) (int, error) {
	took := min(n.most, len(p))
	n.taken = append(n.taken, p[:took]...)
	return took, nil
}

// Large requests leave bit by bit, in order, while others are gathered behind them: what waits is not moved with every bit, and its
// buffer serves the next ones.
func TestRequestsLeaveBitByBit(t *testing.T) {
	sock := &narrow{most: 1000}
	w := &wire{poll: sock}
	c := &wireConn{state: isUp}
	var want []byte
	gather := func(size int) {
		w.touch(c)
		for range size {
			c.out = append(c.out, byte(len(want)*7))
			want = append(want, byte(len(want)*7))
		}
		c.dirty, w.dirty = false, nil
	}
	gather(300_000)
	moves := 0
	for left := 0; c.out != nil; left++ {
		before := c.gone
		w.write(c)
		if c.out != nil && c.gone < before {
			moves++
		}
		if left == 100 {
			gather(50_000)
		}
	}
	require.Equal(t, want, sock.taken)
	require.Less(t, moves, 30, "of 350 writes")
	require.Zero(t, c.gone)
	require.False(t, c.blocked)
	require.GreaterOrEqual(t, cap(w.buffer()), 300_000)
	require.Zero(t, w.kept)
}
