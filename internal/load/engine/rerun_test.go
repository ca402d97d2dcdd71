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

	"github.com/loadgen/loadgen/internal/load/worker"
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
