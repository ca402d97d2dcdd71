package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/loadgen/loadgen/internal/measure"
	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
)

// freedSlots is a feed that starts nothing and notes of how many slots it is told, and whether they are held.
type freedSlots struct {
	feed
	told []freeing
}

type freeing struct {
	n    int
	held bool
}

func (f *freedSlots) freed(_ *session, n int, _ int64, held bool) {
	f.told = append(f.told, freeing{n, held})
}

// quorumBench is a bench of one session, before its first op. It puts values of a size to three servers, of which two have to answer.
type quorumBench struct {
	*bench
	q     *quorum
	w     *wire
	s     *session
	freed *freedSlots
}

// Values of inSheets bytes are put with sheets, those of drawnAlone are not.
const (
	inSheets   = 100
	drawnAlone = mostStamped + 1
)

func newQuorumBench(t *testing.T, size, iterations int) quorumBench {
	t.Helper()
	p := redisPlanOf(t, 3, fmt.Sprintf("size = %d", size), nwr321,
		fmt.Sprintf("ops = { put = 1 }\nmax_bad = 1\nclosed {\n sessions = 1\n pipeline = 200\n iterations = %d\n}", iterations))
	b := newBench(t, p, "load", time.Millisecond)
	b.equip(worker.Load)
	x := quorumBench{b, b.l.way.(*quorum), b.l.tr.(*wire), b.l.sessions[0], new(freedSlots)}
	b.l.feed = x.freed
	return x
}

// start starts ops now, and returns how many.
func (x *quorumBench) start(n int) int {
	now := x.net.clock.t
	return x.q.start(x.s, &x.s.stream, n, now, now)
}

// told is how many bytes of requests the servers have got.
func (x *quorumBench) told() int { return x.server(0).told + x.server(1).told + x.server(2).told }

// leave leaves so much room for requests on each connection until undo is called.
func (x *quorumBench) leave(rooms [3]int) (undo func()) {
	for i, c := range x.w.conns {
		c.queue.owed += x.w.limit - rooms[i]
	}
	return func() {
		for i, c := range x.w.conns {
			c.queue.owed -= x.w.limit - rooms[i]
		}
	}
}

// Quorum ops that are alike fit a sheet if all endpoints hold every key, and what they put is small.
func TestQuorumOpsThatFitASheet(t *testing.T) {
	for _, tt := range []struct {
		ops             string
		size, endpoints int
		fits            bool
	}{
		{"get = 1", 100_000, 3, true},
		{"put = 1", mostStamped, 3, true},
		{"put = 1", mostStamped + 1, 3, false},
		{"get = 1, put = 1", 100, 3, false},
		{"get = 1", 100, 4, false},
	} {
		p := redisPlanOf(t, tt.endpoints, fmt.Sprintf("size = %d", tt.size), nwr321, "ops = { "+tt.ops+" }\nclosed {\n iterations = 1\n}")
		b := newBench(t, p, "load", 0)
		b.equip(worker.Load)
		require.Equal(t, tt.fits, b.l.tr.(*wire).writer.sheet.fits, "%+v", tt)
	}
}

// Requests go whole to the connections that have room, and are refused by the others. Ops that can no longer succeed end at once, and the feed is
// told that their slots are held. What was sent is answered.
func TestQuorumsAskWhoeverHasRoom(t *testing.T) {
	for _, size := range []int{inSheets, drawnAlone} {
		x := newQuorumBench(t, size, 1000)
		require.Equal(t, size == inSheets, x.w.writer.sheet.fits)
		some := []int{0, 1, 4, 5, 9}
		for i := range len(some) * len(some) * len(some) {
			for _, n := range []int{1, 5} {
				rooms := [3]int{some[i%5], some[i/5%5], some[i/25]}
				told := fmt.Sprintf("%d ops of %d bytes, room for %v", n, size, rooms)
				undo := x.leave(rooms)
				x.l.rec, x.freed.told = measure.NewTotals(0, 3), nil
				requests, bytes := x.served(), x.told()
				require.Equal(t, n, x.start(n), told)
				sent := 0
				for i, c := range x.w.conns {
					here := min(n, rooms[i])
					sent += here
					require.Equal(t, measure.Requests{Sent: uint64(here), Refused: uint64(n - here)}, *x.l.rec.Request(i, driver.Put), told)
					require.Equal(t, here > 0, c.dirty, told)
				}
				ordered := slices.Sorted(slices.Values(rooms[:]))
				failed := max(0, n-ordered[1]) // those that two connections refused
				var freed []freeing
				if failed > 0 {
					freed = []freeing{{failed, true}}
				}
				require.Equal(t, freed, x.freed.told, told)
				require.Equal(t, n-failed, x.l.running, told)

				x.w.flush()
				undo()
				require.Equal(t, requests+sent, x.served(), told)
				for x.l.used > 0 {
					require.True(t, x.w.wait(time.Second), told)
				}
				put := x.l.rec.Ops[driver.Put]
				require.EqualValues(t, n, put.Due, told)
				require.Equal(t, [2]uint64{uint64(n - failed), uint64(failed)}, [2]uint64{put.Outcomes[driver.OK], put.Outcomes[driver.QuorumFailed]}, told)
				require.Equal(t, bytes+int(put.Out), x.told(), told)
				require.EqualValues(t, sent*len(stored), put.In, told)
				require.Zero(t, x.l.running, told)
			}
		}
	}
}

// The requests of a sheet are made on the first connection, in the op's order, that has room for all of them. All that have room are written to.
func TestWhereASheetIsMade(t *testing.T) {
	order := []int{2, 0, 1}
	for _, tt := range []struct {
		rooms [3]int
		n     int
		lead  int // its endpoint; -1: none
	}{
		{[3]int{9, 9, 9}, 5, 2},
		{[3]int{5, 5, 5}, 5, 2},
		{[3]int{5, 5, 4}, 5, 0},
		{[3]int{4, 5, 4}, 5, 1},
		{[3]int{4, 4, 4}, 5, -1},
		{[3]int{0, 1, 0}, 1, 1},
		{[3]int{0, 0, 0}, 1, -1},
	} {
		x := newQuorumBench(t, inSheets, 1)
		copy(x.q.of(0), order)
		x.leave(tt.rooms)
		lead := x.q.lead(x.s, tt.n)
		if tt.lead < 0 {
			require.Nil(t, lead, "%+v", tt)
		} else {
			require.Same(t, x.w.conns[tt.lead], lead, "%+v", tt)
		}
		var want, touched []int
		for _, endpoint := range order {
			if tt.rooms[endpoint] > 0 {
				want = append(want, endpoint)
			}
		}
		for _, c := range x.w.dirty {
			touched = append(touched, c.endpoint)
		}
		require.Equal(t, want, touched, "%+v", tt)
	}
}

// As many ops begin as a stream has left, whether they are asked for one sheet, or draw, at a time or over several.
func TestQuorumsOfAStreamThatEnds(t *testing.T) {
	for _, size := range []int{inSheets, drawnAlone} {
		x := newQuorumBench(t, size, 134)
		for _, asks := range [][2]int{{sheetSize, sheetSize}, {100, 70}, {1, 0}, {100, 0}} {
			require.Equal(t, asks[1], x.start(asks[0]), "asked for %d of %d bytes", asks[0], size)
		}
		require.EqualValues(t, 134, x.l.rec.Ops[driver.Put].Due)
	}
}

// TestQuorumsOfAllLengths has sessions start as many ops at once as they have slots: a sheet, or all that are drawn at a time, one fewer, one more,
// and several times as many. Both ways do the same, also if some servers are away for a while. Slots that are held meanwhile are as many starts for
// programs, between which a loop flushes: fewer than flushEach.
func TestQuorumsOfAllLengths(t *testing.T) {
	for _, ops := range []string{"get = 1", "put = 1", "get = 1, put = 3, delete = 1"} {
		for _, endpoints := range []int{3, 5} {
			for _, n := range []int{1, 2, drawn - 1, drawn, drawn + 1, sheetSize, 2*sheetSize + drawn} {
				p := redisPlan(t, endpoints, nwr321,
					fmt.Sprintf("ops = { %s }\nmax_bad = 1\nclosed {\n sessions = 2\n iterations = %d\n pipeline = %d\n}", ops, 7*n+1, n))
				script := func(b *bench) {
					start := time.Duration(b.net.clock.t)
					for i := range endpoints - 1 {
						b.server(i).latency = every(1, time.Duration(i+1)*time.Millisecond)
						if 2*n >= flushEach {
							continue
						}
						b.net.at(start+3*time.Millisecond, func() {
							b.server(i).down = true
							b.server(i).sever()
						})
						b.net.at(start+20*time.Millisecond, func() { b.server(i).down = false })
					}
				}
				t.Run(fmt.Sprintf("%s, %d at once, %d endpoints", ops, n, endpoints), func(t *testing.T) {
					require.Equal(t, playWay(t, p, script, false), playWay(t, p, script, true))
				})
			}
		}
	}
}

// Ops of a batch that have come equally far are counted together, and each as it would be alone.
func TestOpsOfABatchAreCountedAsIfAlone(t *testing.T) {
	place := op.NewRing([]string{"n0", "n1", "n2", "n3"})
	rapid.Check(t, func(t *rapid.T) {
		copies, n := rapid.IntRange(1, 4).Draw(t, "copies"), rapid.IntRange(1, 10).Draw(t, "ops")
		prog := op.NewNWR(op.NWR{N: copies, W: rapid.IntRange(1, copies).Draw(t, "w"), R: rapid.IntRange(1, copies).Draw(t, "r")}, place)
		verb := rapid.SampledFrom([]driver.Verb{driver.Get, driver.Put, driver.Delete}).Draw(t, "verb")
		q, b := &quorum{prog: prog}, &batch{open: n * copies, verb: verb, spans: []span{{prog.Tally(), int16(n)}}}
		alone, owed := slices.Repeat([]op.Tally{prog.Tally()}, n), slices.Repeat([]int{copies}, n)
		for b.open > 0 {
			from := rapid.IntRange(0, n-1).Draw(t, "from")
			to := from
			for to < n && owed[to] > 0 {
				to++
			}
			if from == to {
				continue
			}
			to = rapid.IntRange(from+1, to).Draw(t, "to")
			answer := rapid.SampledFrom([]driver.Outcome{driver.OK, driver.Miss, driver.Error, driver.Conflict}).Draw(t, "answer")
			var want tallied
			for i := from; i < to; i++ {
				owed[i]--
				k, done, outcome := prog.Count(&alone[i], verb, answer)
				want.acks[k]++
				if done {
					want.done++
					want.outcomes[outcome]++
				}
			}
			q.ended = tallied{}
			q.count(b, from, to-from, answer)
			require.Equal(t, want, q.ended)
			var each []op.Tally
			for i, x := range b.spans {
				require.Positive(t, x.n)
				if at := len(each); i > 0 && (at == from || at == to) {
					require.NotEqual(t, b.spans[i-1].Tally, x.Tally, "those that have come equally far are one span: %v", b.spans)
				}
				each = append(each, slices.Repeat([]op.Tally{x.Tally}, int(x.n))...)
			}
			require.Equal(t, alone, each)
			left := 0
			for _, n := range owed {
				left += n
			}
			require.Equal(t, left, b.open)
		}
	})
}

// Requests that continue those of their batch are one entry of a connection's queue with them, until they are written.
func TestRequestsOfABatchAreOneEntry(t *testing.T) {
	a, b := &batch{verb: driver.Put}, new(batch)
	c := new(wireConn)
	owed := 0
	for i, tt := range []struct {
		of      *batch
		from, n int
		written bool // those before are
		entries int
		at, all int // of the newest entry
		fresh   int
	}{
		{a, 0, 3, false, 1, 0, 3, 1},
		{a, 3, 1, false, 1, 0, 4, 1},
		{a, 4, 2, false, 1, 0, 6, 1},
		{a, 7, 1, false, 2, 7, 1, 2}, // one between was refused
		{b, 8, 1, false, 3, 8, 1, 3},
		{b, 9, 1, true, 4, 9, 1, 1},
		{b, 10, 5, false, 4, 9, 6, 1},
	} {
		if tt.written {
			c.stamp(1)
		}
		c.joinBatch(tt.of, tt.from, tt.n)
		owed += tt.n
		p := c.queue.at(c.queue.len() - 1)
		got := []int{c.queue.len(), int(p.at), int(p.n), c.fresh, c.queue.owed}
		require.Equal(t, []int{tt.entries, tt.at, tt.all, tt.fresh, owed}, got, "%d: %+v", i, tt)
		require.Same(t, tt.of, p.batch)
		require.Equal(t, tt.of.verb, p.verb)
	}
}

// A request that will not be answered counts against its op. The feed is told, once, of the ops that this decides.
func TestQuorumsThatLoseRequests(t *testing.T) {
	for n := 1; n <= 2; n++ {
		x := newQuorumBench(t, inSheets, n)
		require.Equal(t, n, x.start(n))
		for i, c := range x.w.conns {
			p := c.queue.pop()
			x.q.failed(c, &p, op.Lost, x.net.clock.t)
			var freed []freeing
			if i > 0 { // one of three may be lost
				freed = []freeing{{n, false}}
			}
			require.Equal(t, freed, x.freed.told, "%d ops, endpoint %d", n, i)
			require.EqualValues(t, n, x.l.rec.Request(i, driver.Put).Error)
		}
		require.Zero(t, x.l.used)
		require.Zero(t, x.l.running)
	}
}

// Ops that are undecided when their own deadline comes have failed, to the nanosecond. The next look is due when the next deadline is; batches whose
// ops are all decided have none, though their requests are still awaited.
func TestDeadlinesOfQuorums(t *testing.T) {
	const timeout = int64(300 * time.Millisecond)
	x := newQuorumBench(t, inSheets, 10)
	begun := x.net.clock.t
	require.Equal(t, begun+timeout, x.q.sweep(begun), "nothing is under way")
	require.Equal(t, 2, x.q.start(x.s, &x.s.stream, 2, begun, begun))
	require.Equal(t, 1, x.q.start(x.s, &x.s.stream, 1, begun+50, begun+50))
	later := x.w.conns[0].queue.at(1).batch
	x.q.count(later, 0, 1, driver.OK)
	x.q.count(later, 0, 1, driver.Error) // one request is left to decide it
	for _, tt := range []struct {
		at, next int64
		freed    []freeing
		running  int64
	}{
		{begun + timeout - 1, begun + timeout, nil, 3},
		{begun + timeout, begun + 50 + timeout, []freeing{{2, false}}, 1},
		{begun + 49 + timeout, begun + 50 + timeout, []freeing{{2, false}}, 1},
		{begun + 50 + timeout, begun + 50 + 2*timeout, []freeing{{2, false}, {1, false}}, 0},
		{begun + 60 + timeout, begun + 60 + 2*timeout, []freeing{{2, false}, {1, false}}, 0},
	} {
		require.Equal(t, tt.next, x.q.sweep(tt.at), "at %d", tt.at-begun)
		require.Equal(t, tt.freed, x.freed.told, "at %d", tt.at-begun)
		var ops, keys [driver.NumVerbs]int64
		x.q.census(&ops, &keys)
		require.Equal(t, [driver.NumVerbs]int64{driver.Put: tt.running}, ops, "at %d", tt.at-begun)
		require.EqualValues(t, tt.running, x.l.running)
	}
	put := x.l.rec.Ops[driver.Put]
	require.EqualValues(t, 3, put.Outcomes[driver.QuorumFailed])
	require.EqualValues(t, 3, put.Causes[op.OpTimeout])
	require.Empty(t, put.Acks, "a deadline acknowledges nothing")
	require.Equal(t, 2, x.l.used, "their requests are still awaited")
}

// A request is made once for all copies, also if it is the first connection that lacks room for some.
func TestRequestsOfQuorumsAreMadeOnce(t *testing.T) {
	for _, rooms := range [][3]int{{9, 9, 9}, {2, 9, 9}, {9, 2, 9}, {9, 9, 2}} {
		x := newQuorumBench(t, drawnAlone, 10)
		made := 0
		*x.w.codec = *newGuarded(unlike{x.w.codec.codec, &made}, x.w.codec.hold)
		x.start(1) // which finds that requests are unlike
		made = 0
		x.leave(rooms)
		x.start(4)
		require.Equal(t, 4, made, "room for %v", rooms)
	}
}

// A codec that panics while it makes a request costs the connections that had room for it, whatever is sent there after it, and no others.
func TestPanicOfACodecBreaksWhereItsRequestWent(t *testing.T) {
	x := newQuorumBench(t, drawnAlone, 10)
	x.breakCodec("request", 1)
	x.leave([3]int{0, 5, 5})
	for range 2 {
		require.Equal(t, 1, x.start(1))
		require.NoError(t, x.w.codec.fault)
		for i, c := range x.w.conns {
			require.Equal(t, i > 0, c.broken != nil, "endpoint %d", i)
		}
	}
}
