package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// partialWire is a wire of so many connections that each have an incomplete reply, and share their memory with other wires.
func partialWire(p *partials, conns int) *wire {
	w := &wire{l: new(loop), partials: p, codec: newGuarded(driver.Codec(nil), nil)}
	for range conns {
		w.conns = append(w.conns, &wireConn{fd: -1, in: bytes.Repeat([]byte("reply"), leastPartial/10)})
	}
	return w
}

// fill makes room for a connection's reply until there is no more, and returns what it says then.
func (w *wire) fill(t *testing.T, c *wireConn) error {
	for {
		was := cap(c.in)
		if err := w.makeRoom(c); err != nil {
			return err
		}
		require.GreaterOrEqual(t, cap(c.in), 2*was)
		c.in = c.in[:cap(c.in)]
		c.in[len(c.in)-1] = 1 // it is there
	}
}

// Replies have the room that the plan's values need.
func TestRepliesHaveTheRoomThatThePlanNeeds(t *testing.T) {
	p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 7\n iterations = 1\n}")
	e := assigned(t, Config{}, p)
	_, err := e.Prepare(t.Context(), stepOf(p.Phases[0], worker.Load))
	require.NoError(t, err)
	require.Equal(t, p.ReplyBytes(p.Phases[0], 7), e.group.partials.expected)
	require.Positive(t, e.group.partials.expected)
}

// TestPartialRepliesShareTheirMemory fills it from two loops: what one has, the other does not get, and the plan's own values come on top.
func TestPartialRepliesShareTheirMemory(t *testing.T) {
	for _, expected := range []int64{0, 3 * sparePartial} {
		p := &partials{expected: expected}
		a, b := partialWire(p, 2), partialWire(p, 2)
		begins := bytes.Clone(a.conns[0].in)
		require.ErrorContains(t, a.fill(t, a.conns[0]), "all that have not come whole would take more than ")
		require.Equal(t, begins, a.conns[0].in[:len(begins)])
		for _, w := range []*wire{a, b} {
			for _, c := range w.conns {
				require.Error(t, w.fill(t, c))
			}
		}
		held := 0
		for _, c := range append(a.conns, b.conns...) {
			if c.mapped {
				held += cap(c.in)
			}
		}
		require.EqualValues(t, held, p.taken.Load())
		require.LessOrEqual(t, int64(held), expected+sparePartial)
		require.Greater(t, int64(held), (expected+sparePartial)/2)

		a.letGo(a.conns[0])
		require.NoError(t, b.makeRoom(b.conns[1]), "there is room again")
		a.unmapAll()
		b.unmapAll()
		require.Zero(t, p.taken.Load())
	}
}

// TestShortPartialsAreKept for the replies after them: a load of long values does not ask the kernel for memory with each.
func TestShortPartialsAreKept(t *testing.T) {
	w := partialWire(new(partials), 1)
	c := w.conns[0]
	was := c.in
	require.NoError(t, w.makeRoom(c))
	require.NoError(t, w.makeRoom(c))
	require.Same(t, &was[0], &w.buffer()[:1][0], "so is what it was in before")
	first := &c.in[0]
	w.letGo(c)
	require.Zero(t, w.partials.taken.Load(), "what is kept is nobody's")
	for _, had := range []int{leastPartial / 2, leastPartial} { // which ask for less than there is, and for all of it
		require.Equal(t, 2*leastPartial, w.spared)
		c.in = bytes.Repeat([]byte("x"), had)
		begins := bytes.Clone(c.in)
		require.NoError(t, w.makeRoom(c))
		require.Zero(t, w.spared)
		require.Same(t, first, &c.in[0])
		require.Equal(t, begins, c.in)
		require.EqualValues(t, cap(c.in), w.partials.taken.Load())
		require.EqualValues(t, 2*leastPartial, cap(c.in), "all of it is used")
		w.letGo(c)
	}
	c.in = make([]byte, 2*leastPartial) // which asks for more
	require.NoError(t, w.makeRoom(c))
	require.Equal(t, [2]int{4 * leastPartial, 2 * leastPartial}, [2]int{cap(c.in), w.spared})
	w.letGo(c)
	w.unmapAll()
	c.in = make([]byte, leastPartial/2)
	require.NoError(t, w.makeRoom(c))

	for range 10 {
		require.NoError(t, w.makeRoom(c))
		w.letGo(c)
		require.LessOrEqual(t, w.spared, keptBytes)
		c.in = make([]byte, keptBuffer)
	}
	w.letGo(c)
	w.unmapAll()
}

// Buffers are kept for reuse: each up to a size, and all together up to another. Memory from the kernel goes back to it.
func TestWhichBuffersAreKept(t *testing.T) {
	w := partialWire(new(partials), 0)
	w.recycle(make([]byte, 10, keptBuffer+1))
	require.Empty(t, w.bufs)
	first := make([]byte, 10, keptBuffer)
	w.recycle(first)
	require.Equal(t, keptBuffer, w.kept)
	got := w.buffer()
	require.Empty(t, got)
	require.Same(t, &first[0], &got[:1][0])
	require.Zero(t, w.kept)
	require.Equal(t, firstBuffer, cap(w.buffer()), "there is none left")

	const most = keptBytes / keptBuffer
	for n := range most + 1 {
		w.recycle(make([]byte, 0, keptBuffer))
		require.Len(t, w.bufs, min(n+1, most))
	}
	w.recycle(nil)
	require.Equal(t, keptBytes, w.kept)

	for _, tt := range []struct {
		in    int // bytes of a reply's beginning
		spare int // of so many that are kept already
		keeps bool
	}{
		{keptBuffer / 2, 0, true}, {keptBuffer/2 + 1, 0, false}, {keptBuffer / 2, keptBytes - keptBuffer, true}, {keptBuffer / 2, keptBytes - keptBuffer + 1, false},
	} {
		w := partialWire(new(partials), 1)
		w.spared = tt.spare
		c := w.conns[0]
		c.in = make([]byte, tt.in)
		require.NoError(t, w.makeRoom(c))
		size := cap(c.in)
		w.letGo(c)
		require.Zero(t, w.partials.taken.Load(), "%+v", tt)
		require.Nil(t, c.in)
		require.False(t, c.mapped)
		if !tt.keeps {
			require.Empty(t, w.spares, "%+v", tt)
			require.Equal(t, tt.spare, w.spared)
			continue
		}
		require.Len(t, w.spares, 1, "%+v", tt)
		require.Equal(t, tt.spare+size, w.spared)
		w.unmapAll()
	}
}

// Memory from the kernel goes back to it once: what is too large to be kept at once, all other with the connections.
func TestMemoryIsGivenBackOnce(t *testing.T) {
	w := partialWire(new(partials), 3)
	var rooms [][]byte
	for _, c := range w.conns {
		require.NoError(t, w.makeRoom(c))
		rooms = append(rooms, c.in[:cap(c.in)])
	}
	w.spared = keptBytes
	w.letGo(w.conns[0])
	w.spared = 0
	w.letGo(w.conns[1])
	require.ErrorIs(t, unix.Munmap(rooms[0]), unix.EINVAL, "it is not this process's any more")
	for range 2 {
		w.unmapAll()
		require.Nil(t, w.conns[2].in)
		require.Zero(t, w.spared)
		require.Zero(t, w.partials.taken.Load())
	}
	for _, room := range rooms[1:] {
		require.ErrorIs(t, unix.Munmap(room), unix.EINVAL)
	}
	require.PanicsWithValue(t, "engine: give back memory of a reply: invalid argument", func() { unmap(rooms[0]) })

	c := &wireConn{in: append(make([]byte, 0, 100), "abc"...)}
	w.letGo(c)
	require.Nil(t, c.in)
	require.Equal(t, 100, cap(w.buffer()), "what is not the kernel's is for other replies")
}

// Memory that the kernel refuses is not counted as taken.
func TestMemoryThatIsNotGiven(t *testing.T) {
	w := partialWire(new(partials), 1)
	c := w.conns[0]
	c.mapped = true // which its bytes are not
	require.ErrorContains(t, w.makeRoom(c), "memory for a reply of more than 131070 bytes: invalid argument")
	require.Zero(t, w.partials.taken.Load())
	c.mapped = false
	require.ErrorIs(t, w.move(c, 0), unix.EINVAL, "there is no memory of no bytes")
	require.False(t, c.mapped)
	require.Len(t, c.in, 131070)
}

// A server whose reply takes more memory than there is for it loses its connection, and the load goes on.
func TestReplyWithoutEnd(t *testing.T) {
	b := newBench(t, redisPlanOf(t, 1, "size = 100\n checked = true", "", "ops = { get = 1 }\nmax_bad = 1\nclosed {\n sessions = 1\n iterations = 3\n}"), "load", time.Millisecond)
	b.g.partials.expected = 1<<20 - sparePartial // so that 1 MiB is left for all
	b.server(0).words = fmt.Appendf(nil, "$%d\r\n%s\r\n", 4<<20, bytes.Repeat([]byte("x"), 4<<20))
	b.server(0).piece = 100_000
	got := b.run(worker.Load)
	require.EqualValues(t, 3, got.Ops[driver.Get].Outcomes[driver.Error])
	require.Positive(t, got.Reconnects)
	for text := range got.Errors.All() {
		require.Contains(t, text, "all that have not come whole would take more than 1 MiB")
	}
	require.Zero(t, b.g.partials.taken.Load())
}
