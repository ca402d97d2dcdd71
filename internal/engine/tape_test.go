package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/op"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/trace"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// traceLine is a line of a trace. All of them are alike.
const traceLine = "70.0,key:1,5,10,1,get,0\n"

// taped is a tape of all lines of a trace, for one session.
func taped(form string, file io.ReadSeekCloser) *tape {
	open := func(context.Context) (io.ReadSeekCloser, error) { return file, nil }
	return &tape{t: &plan.Trace{Form: form}, file: open, here: 1, all: 1, taken: make([]int64, 1)}
}

// halting is a trace of so many chunks of lines, of which only the first can be read for now.
func halting(chunks, first float64) *slowDisk {
	text := strings.Repeat(traceLine, int(chunks*chunkOps))
	return &slowDisk{Reader: strings.NewReader(text), halt: int64(first * chunkOps * float64(len(traceLine))), free: make(chan struct{})}
}

// A step waits until as much of its trace is read as may be, or all of it, but no longer than a second.
func TestAStepWaitsForItsFirstLines(t *testing.T) {
	for _, tt := range []struct {
		chunks, there float64
		waits         time.Duration
	}{
		{0, 1, 0}, {0.5, 1, 0}, {3, 4, 0}, {3, 2.5, time.Second}, {20, 0.5, time.Second}, {20, chunks - 0.5, time.Second}, {20, chunks + 0.5, 0}, {20, 21, 0},
	} {
		servertest.Bubble(t, func(t *testing.T) {
			disk := halting(tt.chunks, tt.there)
			p := taped("cache", disk)
			p.open()
			began := time.Now()
			p.begin()
			require.Equal(t, tt.waits, time.Since(began), "%+v", tt)
			close(disk.free)
			require.NoError(t, p.close())
		})
	}
}

// unreadable is a trace that nothing can be read from. It takes a second to close.
type unreadable struct {
	io.Seeker
	until  <-chan struct{}
	closed bool
}

func (s *unreadable) Read([]byte) (int, error) {
	<-s.until
	return 0, errors.New("given up")
}

func (s *unreadable) Close() error {
	time.Sleep(time.Second)
	s.closed = true
	return nil
}

// The end of a step ends a read of its trace that hangs, and waits until the trace is closed.
func TestClosedTapes(t *testing.T) {
	for _, form := range []string{"cache", "of another kind"} {
		servertest.Bubble(t, func(t *testing.T) {
			file := new(unreadable)
			p := taped(form, file)
			p.file = func(ctx context.Context) (io.ReadSeekCloser, error) {
				file.until = ctx.Done()
				return file, nil
			}
			p.open()
			require.NoError(t, p.close())
			require.True(t, file.closed)
		})
	}
}

// A trace that loops begins again at its first byte, and lines that are no ops do not count.
func TestTraceThatBeginsAgain(t *testing.T) {
	const text = `{"op":"get","key":"a"}
{"op":"flush","key":"a"}
{"op":"set","key":"a","size":3}
`
	for iterations, want := range map[int][2]uint64{1: {1, 0}, 2: {1, 1}, 7: {4, 3}} {
		b := newRerunBench(t, "loop = true", fmt.Sprintf("sessions = 1\n iterations = %d", iterations), text, 100*time.Microsecond)
		b.g.phase.Closed.Trace.Form = "json"
		_, totals := b.replay()
		require.Equal(t, want[0], totals.Ops[driver.Get].Due)
		if want[1] > 0 {
			require.Equal(t, want[1], totals.Ops[driver.Put].Due)
		}
	}
}

// What stands behind a line that cannot be read is not asked for.
func TestTraceThatIsBrokenInTheMiddle(t *testing.T) {
	b := newRerunBench(t, "", "sessions = 1", traceLine+"what\n"+traceLine, 100*time.Microsecond)
	b.equip(worker.Load)
	b.l.run()
	require.ErrorContains(t, b.l.feed.(reading).close(), "trace trace.csv:2:1: ")
	require.Equal(t, 1, *b.server(0).got["GET"]+*b.server(1).got["GET"])
}

// A trace without lines for a loop's sessions ends there at once, also if it loops.
func TestTraceOfOthers(t *testing.T) {
	due := map[uint64]int{}
	for at := range 4 {
		b := newRerunBench(t, "loop = true", "sessions = 4\n iterations = 3", strings.Repeat(traceLine, 2), 100*time.Microsecond)
		b.part(at, 1)
		_, totals := b.replay()
		due[dueIn(&totals)]++
	}
	require.Equal(t, map[uint64]int{0: 3, 3: 1}, due)
}

// Once every session has its lines, the rest of a trace is not read.
func TestTraceOfWhichEnoughIsRead(t *testing.T) {
	b := newRerunBench(t, "loop = true", "sessions = 1\n iterations = 3", "", 100*time.Microsecond)
	disk := halting(1, 0)
	disk.halt = int64(3 * len(traceLine))
	b.g.trace = func(context.Context) (io.ReadSeekCloser, error) { return disk, nil }
	_, totals := b.replay()
	require.EqualValues(t, 3, dueIn(&totals))

	_, text := recorded(100)
	b = newRerunBench(t, "loop = true", "sessions = 4\n iterations = 1", text, 100*time.Microsecond)
	_, totals = b.replay()
	require.EqualValues(t, 4, dueIn(&totals), "one for each")
}

// While no line has been read that is due, a loop looks again every 20 µs.
func TestLoopsLookForLines(t *testing.T) {
	for _, b := range []*bench{newReplayBench(t, "", "", 1, 0), newRerunBench(t, "", "sessions = 1", "", 0)} {
		disk := halting(1, 0)
		b.g.trace = func(context.Context) (io.ReadSeekCloser, error) { return disk, nil }
		b.equip(worker.Load)
		switch f := b.l.feed.(type) {
		case *replayFeed:
			f.drainAt = never
		case *rerunFeed:
			f.stopAt, f.idle = never, 1
		}
		b.l.feed.(reading).open()
		b.l.feed.due(5_000)
		require.EqualValues(t, 25_000, b.l.feed.next())
		close(disk.free)
		require.NoError(t, b.l.feed.(reading).close())
	}
}

// A line is due when it was requested, at the speed of the replay. Closed sessions take it as it is.
func TestWhenLinesAreDue(t *testing.T) {
	const long = 1<<53 + 1 // which no float64 is
	for _, tt := range []struct {
		timed    bool
		speed    float64
		at, want int64
	}{{true, 1, 7, 7}, {true, 1, long, long}, {true, 2, 8, 4}, {true, 0.5, 7, 14}, {false, 2, 8, 8}, {false, 0, 8, 8}} {
		require.Equal(t, tt.want, (&tape{t: &plan.Trace{Speed: tt.speed}, timed: tt.timed}).dueOf(&trace.Record{At: tt.at}), "%+v", tt)
	}
}

// The op of a line has the line's key and number, and a value if it stores one: of the line's size and TTL, and otherwise as the dataset says.
func TestOpsOfLines(t *testing.T) {
	const factor = uint64(0x9E3779B97F4A7C15)
	n, fill := uint64(4), driver.Fill{Mixed: true, Zeros: 500}
	for _, tt := range []struct {
		verb    driver.Verb
		checked bool
		size    int32
		want    driver.Value
	}{
		{driver.Get, false, 30, driver.Value{}},
		{driver.Put, false, 3, driver.Value{Size: 3, TTL: 11, Seed: n * factor, Fill: fill}},
		{driver.Put, true, 3, driver.Value{Size: driver.HeaderSize, TTL: 11, Seed: n * factor, Checked: true, Fill: fill}},
		{driver.Put, true, 30, driver.Value{Size: 30, TTL: 11, Seed: n * factor, Checked: true, Fill: fill}},
	} {
		p := &tape{from: 5, value: driver.Value{Size: 100, TTL: 7, Checked: tt.checked, Fill: fill}, at: &chunk{keys: []byte("a key of many")}}
		o := op.Op{Key: []byte("old"), Value: driver.Value{Size: 9, Seed: 9}}
		p.fill(&o, &traced{n: n, session: 2, key: 2, length: 3, size: tt.size, ttl: 11, verb: tt.verb})
		require.Equal(t, op.Op{Stream: 7, N: n, Index: n, Verb: tt.verb, Key: []byte("key"), Value: tt.want}, o)
	}
}

// Ops that wait are given out to each session in order, and their room is used again.
func TestWaiters(t *testing.T) {
	sessions := []*session{{index: 0}, {index: 1}}
	b := newWaiters(len(sessions))
	for range 3 {
		for _, s := range sessions {
			require.True(t, b.none(s))
		}
		for i, at := range []int{0, 1, 0, 0} {
			b.hold(sessions[at], int64(10*i)).N = uint64(i)
			require.False(t, b.none(sessions[at]))
		}
		require.Equal(t, 4, b.n)
		first := b.release(sessions[0])
		require.Equal(t, [2]int64{0, 0}, [2]int64{int64(first.op.N), first.due})
		b.hold(sessions[1], 40).N = 4
		for at, order := range [][]int64{{2, 3}, {1, 4}} {
			for _, n := range order {
				next := b.release(sessions[at])
				require.Equal(t, [2]int64{n, 10 * n}, [2]int64{int64(next.op.N), next.due})
			}
		}
		require.Zero(t, b.n)
		require.Len(t, b.waiting, 4)
	}
}
