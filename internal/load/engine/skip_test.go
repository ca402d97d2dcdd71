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
	"github.com/loadgen/loadgen/internal/load/worker"
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
