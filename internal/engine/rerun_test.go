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

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/worker"
	"github.com/loadgen/loadgen/pkg/plan"
)

// newRerunBench prepares sessions that replay a trace as fast as they can.
func newRerunBench(t *testing.T, inTrace, text, trace string, latency time.Duration) *bench {
	p := redisPlan(t, 2, "", `
		closed {
			trace {
				file = "trace.csv"
				`+inTrace+`
			}
			`+text+`
		}`)
	b := newBench(t, p, "load", latency)
	b.g.trace = opened(trace)
	return b
}

// part leaves the loop the sessions from one on, of so many.
func (b *bench) part(from, n int) {
	b.l.sessions = b.l.sessions[from : from+n]
	for i, s := range b.l.sessions {
		s.index, s.id = i, from+i
	}
}

// Every line is requested once, and those of a key in order, whatever the depth, the think time, and the division into loops.
func TestRerunAsksForEachLineOnce(t *testing.T) {
	const n = 20_000
	_, text := recorded(n)
	digests := map[string]bool{}
	for _, load := range []string{"", "pipeline = 16", "pipeline = 3\n think = \"2ms\"\n ramp = \"20ms\""} {
		for _, parts := range []int{1, 3} {
			keys, digest := 0, uint64(0)
			for at := range parts {
				b := newRerunBench(t, "", "sessions = 6\n"+load, text, 100*time.Microsecond)
				b.part(6/parts*at, 6/parts)
				began, totals := b.replay()
				require.EqualValues(t, len(began.at), dueIn(&totals))
				keys += len(began.keys)
				digest += totals.Digest
				for key, order := range began.keys {
					require.IsIncreasing(t, order, key)
				}
			}
			require.Equal(t, 300, keys, "no key is asked for by two loops")
			digests[fmt.Sprintf("%x", digest)] = true
		}
	}
	require.Len(t, digests, 1)
}

// A trace that loops is bounded by iterations, for each session that has lines in it, or by time; nothing is shed then.
func TestRerunBeginsAgain(t *testing.T) {
	const n = 30
	_, text := recorded(n)
	due, digests := map[int]uint64{}, map[int]uint64{}
	for _, parts := range []int{1, 4} {
		for at := range parts {
			b := newRerunBench(t, "loop = true", "sessions = 40\n iterations = 500", text, 100*time.Microsecond)
			b.part(40/parts*at, 40/parts)
			began, totals := b.replay()
			require.EqualValues(t, len(began.at), dueIn(&totals), "lines of every lap have numbers of their own")
			require.Zero(t, dueIn(&totals)%500)
			due[parts] += dueIn(&totals)
			digests[parts] += totals.Digest
			for key, order := range began.keys {
				require.IsIncreasing(t, order, key)
			}
		}
	}
	require.Equal(t, due[1], due[4])
	require.Equal(t, digests[1], digests[4])
	require.Greater(t, due[1], uint64(10*500))
	require.Less(t, due[1], uint64(40*500), "some sessions have no line")

	b := newRerunBench(t, "loop = true", "sessions = 4\n duration = \"1s\"", text, time.Millisecond)
	began, totals := b.replay()
	require.EqualValues(t, len(began.at), dueIn(&totals))
	require.Less(t, b.net.clock.t-b.l.origin, int64(1100*time.Millisecond))
}

// One key with more lines than may be held keeps the others waiting, and no line is lost.
func TestRerunOfOneBusyKey(t *testing.T) {
	const n = mostHeld + 5000
	text := "x,other,0,0,0,get,0\n" + strings.Repeat("x,busy,0,0,0,get,0\n", n) + "x,other,0,0,0,get,0\n"
	b := newRerunBench(t, "", "sessions = 4\n pipeline = 8", text, 100*time.Microsecond)
	began, totals := b.replay()
	require.EqualValues(t, n+2, dueIn(&totals))
	require.IsIncreasing(t, began.keys["busy"])
	f := b.l.feed.(*rerunFeed)
	require.Zero(t, f.held.n)
	require.LessOrEqual(t, len(f.held.waiting), mostHeld)
}

// A trace that cannot be read to its end is an error and not a shorter load; an end of the load before the trace's also stops the reader.
func TestRerunOfABrokenTrace(t *testing.T) {
	_, text := recorded(5000)
	b := newRerunBench(t, "", "sessions = 4\n pipeline = 64", text+"what\n", 100*time.Microsecond)
	b.equip(worker.Load)
	b.l.run()
	require.ErrorContains(t, b.l.feed.(reading).close(), "trace trace.csv:5001:1: ")

	b = newRerunBench(t, "loop = true", "sessions = 4\n duration = \"1h\"", text, 100*time.Microsecond)
	b.net.at(time.Duration(b.net.clock.t)+time.Second, func() { b.l.halt.Store(drain) })
	began, totals := b.replay()
	require.EqualValues(t, len(began.at), dueIn(&totals))
	require.Less(t, b.net.clock.t-b.l.origin, int64(2*time.Second))
}

// onlyForward is a trace that cannot be gone back in.
type onlyForward struct{ *strings.Reader }

func (onlyForward) Seek(int64, int) (int64, error) { return 0, errors.New("only forward") }
func (onlyForward) Close() error                   { return nil }

// A trace is gone back in only to be read again; if that fails, the load has failed.
func TestTraceThatIsReadOnce(t *testing.T) {
	_, text := recorded(500)
	for more, want := range map[string]string{"": "", "loop = true": "only forward"} {
		b := newRerunBench(t, more, "sessions = 4\n iterations = 1000", text, 100*time.Microsecond)
		b.g.trace = func(context.Context) (io.ReadSeekCloser, error) { return onlyForward{strings.NewReader(text)}, nil }
		b.equip(worker.Load)
		b.l.run()
		err := b.l.feed.(reading).close()
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, want)
		}
	}
}

// A trace that cannot be opened, or whose form is another, fails the load.
func TestTraceThatCannotBeOpened(t *testing.T) {
	for want, open := range map[string]func(context.Context) (io.ReadSeekCloser, error){
		"no more files": func(context.Context) (io.ReadSeekCloser, error) { return nil, errors.New("no more files") },
		"trace trace.csv:1:1: ": func(context.Context) (io.ReadSeekCloser, error) {
			return onlyForward{strings.NewReader("{}\n")}, nil
		},
	} {
		b := newRerunBench(t, "", "sessions = 4", "", 100*time.Microsecond)
		b.g.trace = open
		b.equip(worker.Load)
		b.l.run()
		require.ErrorContains(t, b.l.feed.(reading).close(), want)
	}
}

// endless is a trace that says the same over and over.
type endless struct {
	line []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = e.line[e.at]
		e.at = (e.at + 1) % len(e.line)
	}
	return len(p), nil
}

func (e *endless) Seek(int64, int) (int64, error) { return 0, nil }
func (e *endless) Close() error                   { return nil }

// Reading ahead ends with the step, also in the midst of lines that are all for other loops.
func TestReadingAheadEnds(t *testing.T) {
	for key := range 20 {
		b := newRerunBench(t, "", "sessions = 4", "", 100*time.Microsecond)
		b.part(0, 1)
		b.g.trace = func(context.Context) (io.ReadSeekCloser, error) {
			return &endless{line: fmt.Appendf(nil, "70.0,key:%d,5,10,1,get,0\n", key)}, nil
		}
		b.equip(worker.Load)
		feed := b.l.feed.(reading)
		feed.open()
		ended := make(chan error, 1)
		go func() { ended <- feed.close() }()
		select {
		case err := <-ended:
			require.NoError(t, err)
		case <-time.After(time.Minute):
			require.FailNow(t, "it reads on")
		}
	}
}

// Giving out lines allocates nothing once there is room.
func TestRerunAllocatesNothing(t *testing.T) {
	_, text := recorded(5000)
	b := newRerunBench(t, "loop = true", "sessions = 4\n duration = \"1h\"", text, 100*time.Microsecond)
	b.equip(worker.Load)
	f := b.l.feed.(*rerunFeed)
	f.t = &plan.Trace{File: "trace.csv", Form: "cache", Loop: true}
	f.open()
	f.tape.begin()
	deal := func() {
		for !f.ready() {
			time.Sleep(time.Microsecond)
		}
		f.fill(f.held.hold(b.l.sessions[f.head().session], 0), f.head())
		f.held.release(b.l.sessions[f.head().session])
		f.pos++
	}
	for range 100_000 {
		deal()
	}
	require.Zero(t, testing.AllocsPerRun(100_000, deal))
	require.NoError(t, f.tape.close())
}

// newRerunFeed is the feed of two sessions, the third and the fourth of four, with two slots each. All of them may start ops unless there is a ramp.
func newRerunFeed(t *testing.T, text string) (*rerunFeed, *starter) {
	b := newRerunBench(t, "", "sessions = 4\n pipeline = 2\n"+text, "", 0)
	b.part(2, 2)
	w := b.onlyStart()
	f := b.l.feed.(*rerunFeed)
	f.byHand()
	f.begin()
	for f.ramp == 0 && b.l.timers.next() == startsAt {
		f.fire(b.l.timers.pop(), startsAt)
	}
	return f, w
}

// Sessions begin one after another over the ramp, each with all its slots.
func TestRerunSessionsBeginOverTheRamp(t *testing.T) {
	f, w := newRerunFeed(t, "ramp = \"8s\"")
	f.hand(traced{}, traced{session: 1}, traced{session: 1})
	for session, due := range []int64{startsAt + 4e9, startsAt + 6e9} {
		require.Equal(t, due, w.l.timers.next())
		f.fire(w.l.timers.pop(), due+7)
		require.Equal(t, due+7, f.next(), "there may be lines for it")
		f.due(due + 8)
		require.Equal(t, []begun{{0, 0, due + 8, due + 8}, {1, 1, due, due + 7}}[session], w.took()[0])
	}
	require.Equal(t, 4, w.l.running+f.idle)
}

// A line goes to its session if that has a free slot, or is held for it while others have; lines of a session keep their order.
func TestRerunDealsLines(t *testing.T) {
	f, w := newRerunFeed(t, "")
	const now = startsAt + 5
	f.hand(traced{}, traced{}, traced{}, traced{session: 1}, traced{}, traced{})
	f.due(now)
	require.Equal(t, []begun{{0, 0, now, now}, {0, 1, now, now}, {1, 3, now, now}}, w.took())
	require.Equal(t, now+20_000, f.next(), "the reader is not ahead: look again soon")
	f.hand(traced{session: 1}, traced{session: 1})
	f.due(now + 1)
	require.Equal(t, []begun{{1, 6, now + 1, now + 1}}, w.took())
	require.EqualValues(t, never, f.next(), "no slot is free")
	f.hand(traced{})
	f.due(now + 2)
	require.Len(t, f.full, 1, "nor is the trace read on")
	w.end(0, 1, now+3, false)
	w.end(0, 2, now+4, false)
	require.Equal(t, []begun{{0, 2, now + 3, now + 3}, {0, 4, now + 4, now + 4}, {0, 5, now + 4, now + 4}}, w.took())
	w.end(0, 1, now+5, false)
	require.Equal(t, now+5, f.next())
	close(f.full)
	f.due(now + 6)
	require.Equal(t, []begun{{0, 8, now + 6, now + 6}}, w.took(), "though the other session's next line came before")
	f.due(now + 7)
	w.end(1, 1, now+8, false)
	w.end(0, 1, now+8, false)
	require.Equal(t, []begun{{1, 7, now + 8, now + 8}}, w.took())
	f.due(now + 9)
	require.True(t, f.done())
	require.EqualValues(t, never, f.next())
}

// A free slot starts its session's next line after the think time, but not before 10 ms if nothing of its op could be sent.
func TestWhenAFreeSlotStartsItsNextLine(t *testing.T) {
	for _, tt := range []struct {
		think int64
		held  bool
		after int64
	}{
		{0, false, 0}, {0, true, 10e6}, {1, false, 1}, {4e6, false, 4e6}, {4e6, true, 10e6}, {20e6, true, 20e6},
	} {
		f, w := newRerunFeed(t, "")
		f.think = tt.think
		f.hand(traced{}, traced{}, traced{})
		f.due(startsAt)
		require.Len(t, w.took(), 2)
		w.end(0, 1, startsAt+5, tt.held)
		due := startsAt + 5 + tt.after
		if tt.after > 0 {
			require.Empty(t, w.took(), "%+v", tt)
			require.Equal(t, due, w.l.timers.next(), "%+v", tt)
			f.fire(w.l.timers.pop(), due)
		}
		require.Equal(t, []begun{{0, 2, due, due}}, w.took(), "%+v", tt)
		require.EqualValues(t, never, w.l.timers.next(), "%+v", tt)
	}
}

// Nothing starts from the end on, or once the step is stopped.
func TestTheEndOfARerun(t *testing.T) {
	for name, tt := range map[string]struct {
		text    string
		stopped bool
		now     int64
		starts  int
	}{
		"in time":     {"duration = \"10s\"", false, startsAt + 10e9 - 1, 2},
		"at the end":  {"duration = \"10s\"", false, startsAt + 10e9, 0},
		"without one": {"", false, startsAt + 10e9, 2},
		"stopped":     {"", true, startsAt + 1, 0},
	} {
		f, w := newRerunFeed(t, tt.text)
		f.hand(traced{}, traced{}, traced{}) // of which one is held
		f.due(startsAt)
		require.Len(t, w.took(), 2)
		f.hand(traced{session: 1})
		if tt.stopped {
			f.stop(startsAt)
		}
		w.end(0, 1, tt.now, false)
		f.due(tt.now)
		require.Len(t, w.took(), tt.starts, name)
		require.Equal(t, tt.starts == 0, f.done(), name)
	}
	f, w := newRerunFeed(t, "duration = \"10s\"")
	f.hand(traced{}, traced{}, traced{})
	f.due(startsAt)
	w.end(0, 1, startsAt+10e9, false)
	f.hand(traced{})
	f.due(startsAt + 10e9 - 1)
	require.Len(t, w.took(), 2, "a line is held behind one that is held, though there is a free slot")
}

// While as many lines are held as may be, and once there are no more, the trace is not read on.
func TestWhenARerunReadsOn(t *testing.T) {
	const end = startsAt + 10e9
	for held, reads := range map[int]bool{mostHeld - 1: true, mostHeld: false, mostHeld + 1: false} {
		f, w := newRerunFeed(t, "duration = \"10s\"")
		f.hand(traced{session: 1})
		f.held.n = held
		require.Equal(t, reads, f.next() == startsAt, "%d", held)
		require.Equal(t, !reads, f.next() == end, "%d", held)
		f.due(startsAt + 1)
		require.Equal(t, reads, len(w.took()) == 1, "%d", held)
	}
	f, w := newRerunFeed(t, "duration = \"10s\"")
	f.hand(traced{}, traced{}, traced{})
	f.due(startsAt)
	close(f.full)
	f.due(startsAt + 1)
	require.Equal(t, end, f.next(), "the other session is free, but there is no line for it")
	require.False(t, f.done(), "a line is held")
	w.end(0, 1, startsAt+2, false)
	require.Equal(t, startsAt+2, w.took()[2].now)
	require.True(t, f.done())
}

// A turn deals a part of the lines that may be dealt: the loop has replies to read.
func TestRerunDealsLinesInParts(t *testing.T) {
	f, w := newRerunFeed(t, "")
	f.hand(make([]traced, dealEach+10)...)
	f.due(startsAt)
	require.Len(t, w.took(), 2)
	require.Equal(t, dealEach-2, f.held.n)
	f.due(startsAt)
	require.Equal(t, dealEach+10-2, f.held.n)
}

// Sessions that think when the step ends are not those of the next step.
func TestRerunForgetsThoseWhoThink(t *testing.T) {
	f, w := newRerunFeed(t, "")
	f.open()
	w.l.timers.set(startsAt, startSlots, 0, 1)
	require.NoError(t, f.close())
	require.EqualValues(t, never, w.l.timers.next())
}

// A step begins once the reader of its trace is ahead, or a second later.
func TestStepsAwaitTheReaderOfTheirTrace(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		replay, _ := newReplayFeed(t, "")
		rerun, _ := newRerunFeed(t, "")
		for f, of := range map[feed]*tape{replay: &replay.tape, rerun: &rerun.tape} {
			for late, waits := range map[bool]time.Duration{false: 0, true: time.Second} {
				of.byHand()
				if late {
					of.ahead = make(chan struct{})
				}
				began := time.Now()
				f.begin()
				require.Equal(t, waits, time.Since(began), "%T", f)
			}
		}
	})
}
