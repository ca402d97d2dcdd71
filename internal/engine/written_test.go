package engine

import (
	"bytes"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/drivers/redis"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/pkg/driver"
)

// narrow is a poller whose sockets take a few bytes at a time.
type narrow struct {
	sockets.Poller
	most  int
	taken []byte
}

func (n *narrow) Watch(int, int32, bool) error { return nil }

func (n *narrow) Write(_ int, p []byte) (int, error) {
	took := min(n.most, len(p))
	n.taken = append(n.taken, p[:took]...)
	return took, nil
}

func (n *narrow) Writev(_ int, parts [][]byte) (int, error) {
	taken := len(n.taken)
	for _, part := range parts {
		n.taken = append(n.taken, part[:min(n.most-(len(n.taken)-taken), len(part))]...)
	}
	return len(n.taken) - taken, nil
}

// Lent values leave between the bytes of their requests, whatever part of them the socket takes at a time.
func TestLentValuesLeaveInTheirPlaces(t *testing.T) {
	codec, err := redis.Driver{}.NewCodec(driver.Link{Config: redis.Driver{}.NewConfig()})
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		sock := &narrow{most: rapid.SampledFrom([]int{700, 9000, 50_000, 10_000_000}).Draw(t, "most")}
		w := &wire{poll: sock, codec: newGuarded(codec, new(hold))}
		c := &wireConn{state: isUp, codec: w.codec}
		w.out, w.writer = newOutlet(w, sock), newWriter(w.codec, true)
		var want []byte
		for range rapid.IntRange(1, 25).Draw(t, "requests") {
			o := op.Op{Verb: driver.Put, Key: fmt.Appendf(nil, "key:%012d", len(want))}
			o.Value = driver.Value{
				Size: rapid.SampledFrom([]int{10, leastLent, leastLent, leastLent, 70_000}).Draw(t, "size"), Seed: rapid.Uint64().Draw(t, "seed"),
			}
			before := len(want)
			want = codec.AppendRequest(want, &driver.Request{Verb: o.Verb, Key: o.Key, Value: &o.Value})
			w.touch(c)
			require.Equal(t, len(want)-before, w.put(c, &o))
			if rapid.Bool().Draw(t, "write") {
				w.write(c)
			}
		}
		for c.out != nil {
			w.write(c)
		}
		require.True(t, bytes.Equal(want, sock.taken))
		require.Empty(t, c.lent)
	})
}

// Large requests leave piece by piece, in order, while others are gathered behind them: waiting bytes are not moved with every piece, and the buffer
// is reused.
func TestRequestsLeaveBitByBit(t *testing.T) {
	sock := &narrow{most: 1000}
	w := &wire{poll: sock}
	w.out = newOutlet(w, sock)
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

// A write has a bounded number of parts, whatever is still to be written; what it leaves comes with the next.
func TestPartsOfAWrite(t *testing.T) {
	for _, values := range []int{0, 1, mostParts/2 - 1, mostParts / 2, mostParts, 3 * mostParts} {
		c := &wireConn{}
		var want []byte
		for i := range values {
			c.out = fmt.Appendf(c.out, "put %d ", i)
			text := fmt.Appendf(nil, "value %d ", i)
			want = append(append(want, c.out[len(c.out)-len(fmt.Sprintf("put %d ", i)):]...), text...)
			c.lent = append(c.lent, lent{at: len(c.out), text: text})
		}
		c.out, want = append(c.out, "end"...), append(want, "end"...)
		parts, size := c.parts(nil)
		require.Equal(t, min(2*values+1, mostParts), len(parts))
		got := bytes.Join(parts, nil)
		require.Len(t, got, size)
		require.True(t, bytes.HasPrefix(want, got))
	}
}

// Where a connection may go: to an address that is known, or to a socket in the file system.
func TestConnectionsGoWhereTheyCan(t *testing.T) {
	o := &immediate{w: &wire{lane: &lane{side: new(side)}}}
	for text, want := range map[string]error{"unix:///run/cache.sock": nil, "cache.example.org:6379": errUnknownAddress} {
		end := sockets.NewEndpoint("n0", text)
		require.Equal(t, want, o.admits(&end), text)
	}
	end := sockets.NewEndpoint("n0", "10.0.0.1:6379")
	end.Addr = netip.MustParseAddrPort(end.Text)
	require.NoError(t, o.admits(&end))
}
