package engine

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// readAll carries out gets of 100 keys whose replies are drawn from a seed and come in pieces. It returns what was counted, and separately the number
// of errors, without their texts. Incomplete replies are skipped if skip is set, else read once they are complete.
func readAll(t *testing.T, seed uint64, piece int, skip bool) (counted []byte, errors uint64) {
	p := redisPlan(t, 1, "", "ops = { get = 1 }\nexpect_hits = 0\nmax_bad = 1\nclosed {\n sessions = 2\n iterations = 100\n pipeline = 16\n}")
	b := newBench(t, p, "load", time.Millisecond)
	defer b.g.close()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range 100 {
		b.server(0).keys[fmt.Sprintf("key:%012d", i)] = drawReply(rnd, min(30_000, 100*piece+1))
	}
	b.server(0).piece = piece
	parts := b.equip(worker.Load)
	if !skip {
		b.l.tr.(*wire).codec.skimmer = nil
	}
	b.l.run()
	seq := uint64(0)
	c := collector{g: b.g, begin: b.l.origin, seq: &seq, sink: func(*measure.Snapshot) {}}
	totals := c.collect(parts)
	require.NoError(t, totals.CheckValid())
	errors = totals.Errors.Total()
	totals.Errors = measure.Errors{}
	return bytesOf(t, &totals), errors
}

// drawReply returns a reply to a get, of any kind; large values have up to most bytes.
func drawReply(rnd *rand.Rand, most int) []byte {
	switch kind := rnd.IntN(20); {
	case kind == 0:
		return absent
	case kind == 1:
		return []byte("-ERR of the server's\r\n")
	case kind == 2:
		return []byte("$4\r\nlonger\r\n") // no reply at all: the connection is lost
	case kind < 12:
		return bulkOf(rnd.IntN(200))
	default:
		return bulkOf(rnd.IntN(most))
	}
}

// bulkOf returns a reply with a value of size bytes, which look like replies themselves.
func bulkOf(size int) []byte {
	b := append([]byte{'$'}, strconv.Itoa(size)...)
	b = append(b, "\r\n"...)
	b = append(b, bytes.Repeat([]byte("\r\n$-1"), size/5+1)[:size]...)
	return append(b, "\r\n"...)
}

// FuzzSkip reads replies of all kinds and sizes, cut anywhere.
func FuzzSkip(f *testing.F) {
	for piece := range uint16(64) {
		f.Add(uint64(piece), 1+piece)
	}
	for _, piece := range []uint16{500, 4_096, 16_384, 65_535} {
		f.Add(uint64(piece), piece)
	}
	f.Fuzz(func(t *testing.T, seed uint64, piece uint16) {
		whole, errors := readAll(t, seed, int(piece), false)
		skipped, again := readAll(t, seed, int(piece), true)
		require.Equal(t, errors, again)
		require.Equal(t, whole, skipped)
	})
}

// What has come of a skipped reply is done with, except for its end.
func TestWhatAnOutlineTakes(t *testing.T) {
	for _, tt := range []struct{ size, there, took, left int }{
		{0, 0, 0, 0}, {0, 5, 0, 0}, {20, 0, 0, 18}, {20, 5, 5, 13}, {20, 18, 18, 0}, {20, 19, 18, 0}, {20, 25, 18, 0}, {2, 1, 0, 0},
	} {
		c := new(wireConn)
		require.Equal(t, tt.took, c.outline(tt.size, tt.there), "%+v", tt)
		require.Equal(t, skipped{tt.size, tt.left}, c.skipped, "%+v", tt)
	}
}

// A skipped reply is settled when its end is there, and only if it is the end. One to a request that has timed out is late.
func TestTheEndOfASkippedReply(t *testing.T) {
	b, w, _ := newWireBench(t, 1)
	ends := &endings{l: b.l}
	w.use(ends)
	c := w.conns[0]
	skip := func(bytes string, took int, whole bool) {
		t.Helper()
		n, all, err := w.skip(c, []byte(bytes), 7)
		require.NoError(t, err)
		require.Equal(t, []any{took, whole}, []any{n, all}, bytes)
	}
	for dead, late := range map[bool]uint64{false: 0, true: 2} {
		b.l.rec.LateReplies, ends.told = 0, nil
		for range 2 {
			c.queue.push(pending{n: 1, verb: driver.Get, dead: dead})
		}
		if dead {
			c.queue.dead = 2
		}
		require.Equal(t, 2, c.outline(8, 2))
		skip("cd", 2, false)
		skip("ef\r", 2, false)
		skip("\r\n+more", 2, true)
		require.Zero(t, c.skipped.size)
		require.Equal(t, 1, c.queue.len())
		require.Equal(t, 5, c.outline(8, 5))
		skip("f\r\n", 3, true)
		require.Zero(t, c.queue.len())
		require.Zero(t, c.queue.owed)
		require.Equal(t, late, b.l.rec.LateReplies)
		require.Len(t, ends.told, 2-int(late))
		for _, told := range ends.told {
			require.Equal(t, "1 of 1 ok, 8 bytes", told)
		}
	}

	c.queue.push(pending{n: 1, verb: driver.Get})
	c.outline(8, 0)
	n, whole, err := w.skip(c, []byte("abcdefgh\r\n"), 7)
	require.EqualError(t, err, `reply of 8 bytes goes on after its end: got "gh"`)
	require.False(t, whole)
	require.Equal(t, 6, n)
	require.Equal(t, 1, c.queue.len())
}
