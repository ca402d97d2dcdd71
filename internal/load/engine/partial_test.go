package engine

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Replies have the room that the plan's values need.
func TestRepliesHaveTheRoomThatThePlanNeeds(t *testing.T) {
	p := nullPlan(t, 1, "", "ops = { get = 1 }\nclosed {\n sessions = 7\n iterations = 1\n}")
	e := assigned(t, Config{}, p)
	loaded(t, e)
	require.Equal(t, p.ReplyBytes(p.Phases[0], 7), e.group.partials.expected)
	require.Positive(t, e.group.partials.expected)
}

// TestMemoryOfIncompleteReplies has replies on the connections of two loops grow and end. The memory that they have from the kernel is counted, within what
// the loops share, and is given back once; what is kept for the next replies is bounded and nobody's; no reply loses its bytes.
func TestMemoryOfIncompleteReplies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &partials{expected: rapid.SampledFrom([]int64{0, 3 * sparePartial}).Draw(t, "expected")}
		spared := rapid.SampledFrom([]int{0, keptBytes - keptBuffer}).Draw(t, "kept already")
		var wires [2]*wire
		for i := range wires {
			wires[i] = &wire{l: new(loop), partials: p, spared: spared, conns: []*wireConn{{fd: -1}, {fd: -1}, {fd: -1}}}
		}
		defer func() {
			for _, w := range append(wires[:], wires[:]...) {
				w.unmapAll()
			}
			require.Zero(t, p.taken.Load())
		}()
		t.Repeat(map[string]func(*rapid.T){
			"more comes": func(t *rapid.T) {
				w := rapid.SampledFrom(wires[:]).Draw(t, "loop")
				c := rapid.SampledFrom(w.conns).Draw(t, "connection")
				if c.in == nil {
					c.in = append(w.buffer(), fmt.Sprintf("reply %p", c)...)
					c.in = append(c.in, make([]byte, rapid.SampledFrom([]int{0, 0, leastPartial}).Draw(t, "bytes"))...)
				}
				was, had, spares, heap := cap(c.in), p.taken.Load(), len(w.spares), !c.mapped
				if err := w.makeRoom(c); err != nil {
					require.ErrorContains(t, err, "all incomplete replies would take more than ")
					require.Greater(t, had+int64(max(2*was, keptBuffer)), p.expected+sparePartial)
					return
				}
				require.GreaterOrEqual(t, cap(c.in), max(2*was, leastPartial))
				require.True(t, c.mapped)
				require.LessOrEqual(t, len(w.spares), spares)
				if heap {
					require.GreaterOrEqual(t, w.kept, was, "what it was in is for others")
				}
			},
			"it is whole": func(t *rapid.T) {
				w := rapid.SampledFrom(wires[:]).Draw(t, "loop")
				c := rapid.SampledFrom(w.conns).Draw(t, "connection")
				if c.in == nil {
					return
				}
				room, mapped, kept := c.in[:cap(c.in)], c.mapped, len(w.spares)
				w.letGo(c)
				if mapped && len(w.spares) == kept {
					require.ErrorIs(t, unix.Munmap(room), unix.EINVAL, "it is not this process's any more")
				}
				require.Nil(t, c.in)
				require.False(t, c.mapped)
			},
			"": func(*rapid.T) {
				taken := 0
				for _, w := range wires {
					spared, kept := spared, 0
					for _, c := range w.conns {
						if c.in != nil {
							require.True(t, bytes.HasPrefix(c.in, fmt.Appendf(nil, "reply %p", c)))
						}
						if c.mapped {
							taken += cap(c.in)
						}
					}
					for _, b := range w.spares {
						spared += cap(b)
						require.LessOrEqual(t, cap(b), keptBuffer)
					}
					for _, b := range w.bufs {
						kept += cap(b)
						require.LessOrEqual(t, cap(b), keptBuffer)
					}
					require.Equal(t, [2]int{spared, kept}, [2]int{w.spared, w.kept})
					require.LessOrEqual(t, max(spared, kept), p.kept())
				}
				require.EqualValues(t, taken, p.taken.Load())
				require.LessOrEqual(t, int64(taken), p.expected+sparePartial)
			},
		})
	})
}

// A long reply has the memory of the one before it.
func TestMemoryOfTheNextReply(t *testing.T) {
	w := &wire{l: new(loop), partials: new(partials)}
	defer w.unmapAll()
	c := &wireConn{in: make([]byte, 1)}
	require.NoError(t, w.makeRoom(c))
	require.NoError(t, w.makeRoom(c))
	first := &c.in[0]
	for _, had := range []int{leastPartial / 2, 1, leastPartial / 4} {
		w.letGo(c)
		c.in = make([]byte, had)
		require.NoError(t, w.makeRoom(c))
		require.Same(t, first, &c.in[0])
	}
	odd, had := &wireConn{in: make([]byte, 1), mapped: true}, w.partials.taken.Load() // which is not the kernel's
	require.ErrorContains(t, w.makeRoom(odd), "memory for a reply of more than 1 bytes: invalid argument")
	require.Equal(t, had, w.partials.taken.Load())
}

// Buffers are kept for reuse: each up to a size, and all together up to another.
func TestWhichBuffersAreKept(t *testing.T) {
	w, b := &wire{partials: new(partials)}, make([]byte, keptBuffer+1)
	w.recycle(b)
	require.Empty(t, w.bufs)
	for n := range keptBytes/keptBuffer + 1 {
		w.recycle(b[:0:keptBuffer])
		require.Len(t, w.bufs, min(n+1, keptBytes/keptBuffer))
	}
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
		require.Contains(t, text, "all incomplete replies would take more than 1 MiB")
	}
	require.Zero(t, b.g.partials.taken.Load())
}
