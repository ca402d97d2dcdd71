package engine

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// recorded returns a seeded trace: when its ops were requested, by line from 0, and its text.
func recorded(n int) (at []int64, text string) {
	random := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	now := int64(0)
	for i := range n {
		if i > 0 {
			now += int64(random.ExpFloat64() * 500e3)
		}
		at = append(at, now)
		fmt.Fprintf(&b, "%d.%09d,key:%d,8,%d,1,%s,0\n", 70+now/1e9, now%1e9, random.IntN(300), random.IntN(90), []string{"get", "gets", "set", "delete"}[random.IntN(4)])
	}
	return at, b.String()
}

// newReplayBench prepares the replay of a trace.
func newReplayBench(t *testing.T, text, trace string, n int, latency time.Duration) *bench {
	p := redisPlan(t, 2, "", `
		open {
			trace {
				file = "trace.csv"
			}
			`+text+`
		}`)
	o := p.Phases[0].Open
	o.Trace.Lines, o.Duration = int64(n), time.Minute
	b := newBench(t, p, "load", latency)
	b.g.trace = opened(trace)
	return b
}

// opened returns a function that opens a trace with a text.
func opened(text string) func(context.Context) (io.ReadSeekCloser, error) {
	return func(context.Context) (io.ReadSeekCloser, error) {
		return struct {
			io.ReadSeeker
			io.Closer
		}{strings.NewReader(text), io.NopCloser(nil)}, nil
	}
}

// starts notes when the ops of a program begin, by number, and the order of those of each key.
type starts struct {
	op.Program
	net  *virtualNet
	at   map[uint64]int64
	keys map[string][]uint64
}

func (s *starts) Start(dst []driver.Request, o *op.Op) []driver.Request {
	s.at[o.N] = s.net.clock.t
	s.keys[string(o.Key)] = append(s.keys[string(o.Key)], o.N)
	return s.Program.Start(dst, o)
}

// replay carries the step out and returns what began when.
func (b *bench) replay() (s *starts, totals measure.Totals) {
	b.t.Helper()
	parts := b.equip(worker.Load)
	s = &starts{Program: b.l.programs.Program, net: b.net, at: map[uint64]int64{}, keys: map[string][]uint64{}}
	b.l.programs.Program = s
	b.l.run()
	require.NoError(b.t, b.l.feed.(reading).close())
	seq := uint64(0)
	c := collector{g: b.g, begin: b.l.origin, seq: &seq, sink: func(*measure.Snapshot) {}}
	totals = c.collect(parts)
	require.NoError(b.t, totals.CheckValid())
	return s, totals
}

// puts notes the values of a program's ops, by key.
type puts struct {
	op.Program
	values map[string]driver.Value
}

func (s *puts) Start(dst []driver.Request, o *op.Op) []driver.Request {
	s.values[string(o.Key)] = o.Value
	return s.Program.Start(dst, o)
}

// What a put's line does not say about its value comes from the dataset.
func TestReplayOfLinesWithoutSizes(t *testing.T) {
	b := newReplayBench(t, "", `{"time":1,"op":"set","key":"bare"}
{"time":2,"op":"set","key":"sized","size":7}
{"time":3,"op":"set","key":"brief","ttl":0.5}
{"time":4,"op":"set","key":"lasting","size":0,"ttl":0}
`, 4, time.Millisecond)
	b.g.phase.Open.Trace.Form = "json"
	values := &b.g.plan.Datasets[0].Values
	values.Size, values.TTL = 300, 90*time.Second
	b.equip(worker.Load)
	s := &puts{Program: b.l.programs.Program, values: map[string]driver.Value{}}
	b.l.programs.Program = s
	b.l.run()
	require.NoError(t, b.l.feed.(reading).close())
	for key, want := range map[string]driver.Value{
		"bare": {Size: 300, TTL: 90_000}, "sized": {Size: 7, TTL: 90_000}, "brief": {Size: 300, TTL: 500}, "lasting": {},
	} {
		require.Equal(t, want, driver.Value{Size: s.values[key].Size, TTL: s.values[key].TTL}, key)
	}
}

// A rate of its own takes the place of a trace's times, however low it is.
func TestReplayAtARate(t *testing.T) {
	line := &trace.Record{At: 7}
	for rate, want := range map[float64]int64{0: 7, 0.5: 6e9, 1: 3e9, 100: 3e7} {
		require.Equal(t, want, (&tape{t: &plan.Trace{Speed: 1}, rate: rate, n: 3}).dueOf(line), rate)
	}
}

// A worker that is sent a form of traces that it does not know says so.
func TestReplayOfAnUnknownForm(t *testing.T) {
	b := newReplayBench(t, "", "1,key:1,5,1,1,get,0\n", 1, time.Millisecond)
	b.g.phase.Open.Trace.Form = "tape"
	b.equip(worker.Load)
	b.l.run()
	require.ErrorContains(t, b.l.feed.(reading).close(), "tape")
}

// Puts that are alike but for their TTLs are each asked for with its own.
func TestReplayedPutsKeepTheirTTLs(t *testing.T) {
	b := newReplayBench(t, "", `{"time":1,"op":"set","key":"a","size":7,"ttl":1}
{"time":2,"op":"set","key":"b","size":7,"ttl":200}
{"time":3,"op":"set","key":"c","size":7,"ttl":0}
{"time":4,"op":"set","key":"d","size":7,"ttl":1}
`, 4, time.Millisecond)
	b.g.phase.Open.Trace.Form = "json"
	b.equip(worker.Load)
	b.l.run()
	require.NoError(t, b.l.feed.(reading).close())
	want := 0
	for _, ttl := range []string{"EX 1", "EX 200", "", "EX 1"} {
		words := append([]string{"SET", "a", "1234567"}, strings.Fields(ttl)...)
		want += len(fmt.Sprintf("*%d\r\n", len(words)))
		for _, w := range words {
			want += len(fmt.Sprintf("$%d\r\n%s\r\n", len(w), w))
		}
	}
	require.Equal(t, want, b.server(0).told+b.server(1).told, "bytes of requests")
}

// dueIn returns how many ops were due.
func dueIn(t *measure.Totals) (n uint64) {
	for _, o := range t.Ops {
		if o != nil {
			n += o.Due
		}
	}
	return n
}

// Every op of a trace begins when the trace says, within the nanoseconds of a clock reading, at its own speed or at another one.
func TestReplayKeepsTheTimesOfTheTrace(t *testing.T) {
	const n = 20_000 // several chunks
	at, text := recorded(n)
	for _, speed := range []float64{1, 2, 0.5} {
		b := newReplayBench(t, "sessions = 4\n pipeline = 64", text, n, 100*time.Microsecond)
		b.g.phase.Open.Trace.Speed = speed
		began, totals := b.replay()
		require.Len(t, began.at, n)
		for i, due := range at {
			want := b.l.origin + int64(float64(due)/speed)
			require.InDelta(t, want, began.at[uint64(i)], 20_000, "op %d", i)
		}
		for key, order := range began.keys {
			require.IsIncreasing(t, order, key)
		}
		require.Less(t, totals.Ops[driver.Get].Lag.Max(), int64(20*time.Microsecond))
	}
}

// At a rate of the plan's own, ops are due at even intervals whatever the trace says.
func TestReplayAtEvenIntervals(t *testing.T) {
	const n, rate = 20_000, 4000
	_, text := recorded(n)
	b := newReplayBench(t, "sessions = 4\n pipeline = 64", text, n, 100*time.Microsecond)
	b.g.phase.Open.Trace.Even, b.g.phase.Open.Rate = true, rate
	began, totals := b.replay()
	require.Len(t, began.at, n)
	for i := range uint64(n) {
		require.InDelta(t, b.l.origin+int64(i)*1e9/rate, began.at[i], 20_000, "op %d", i)
	}
	require.EqualValues(t, n, dueIn(&totals))
}

// While a target stands still, ops wait for their sessions and count from their due times. None is lost, and each key keeps its order.
func TestReplayOfAStall(t *testing.T) {
	const n = 10_000
	_, text := recorded(n)
	b := newReplayBench(t, "sessions = 4\n pipeline = 2", text, n, 100*time.Microsecond)
	b.net.at(time.Duration(b.net.clock.t)+time.Second, func() {
		until := b.net.clock.t + int64(time.Second/2)
		for i := range 2 {
			b.server(i).latency = func(int) time.Duration { return time.Duration(max(until-b.net.clock.t, int64(100*time.Microsecond))) }
		}
	})
	began, totals := b.replay()
	require.Len(t, began.at, n)
	require.EqualValues(t, n, dueIn(&totals))
	for key, order := range began.keys {
		require.IsIncreasing(t, order, key)
	}
	response := totals.Ops[driver.Get].ResponseAll().Answered
	require.InDelta(t, 500, above(&response, 10*time.Millisecond), 120, "half of the thousand ops of half a second are gets")
}

// TestWhoIsLateInAReplay stops the target or loadgen for 0.8 s: ops wait for room, or loadgen is late, whichever stood still.
func TestWhoIsLateInAReplay(t *testing.T) {
	const n, stopped = 10_000, int64(800 * time.Millisecond)
	_, text := recorded(n)
	for _, sessions := range []int{16, 64} {
		for at := 500 * time.Millisecond; at < 3*time.Second; at += time.Second / 2 {
			for _, who := range []string{"target", "loadgen"} {
				b := newReplayBench(t, fmt.Sprintf("sessions = %d\n pipeline = 1", sessions), text, n, 100*time.Microsecond)
				b.net.at(time.Duration(b.net.clock.t)+at, func() {
					if who == "loadgen" {
						b.net.clock.t += stopped
						return
					}
					until := b.net.clock.t + stopped
					for i := range 2 {
						b.server(i).latency = func(int) time.Duration { return time.Duration(max(until-b.net.clock.t, int64(100*time.Microsecond))) }
					}
				})
				_, totals := b.replay()
				b.g.close()
				late, waited := 0, above(&totals.Waited, 10*time.Millisecond)
				for _, o := range totals.Ops {
					if o != nil {
						late += above(&o.Lag, 10*time.Millisecond)
					}
				}
				require.Greater(t, late, 1200)
				if who == "target" {
					require.InDelta(t, late, waited, float64(late)/100, "%d sessions, stopped after %s", sessions, at)
				} else {
					require.Less(t, waited, late/20, "%d sessions, stopped after %s", sessions, at)
				}
			}
		}
	}
}

// The loops of any number of workers divide a trace between them.
func TestReplayIsDivided(t *testing.T) {
	const n = 3000
	_, text := recorded(n)
	one := newReplayBench(t, "sessions = 6\n pipeline = 64", text, n, 100*time.Microsecond)
	_, whole := one.replay()
	var digest uint64
	seen := 0
	for part := range 3 {
		b := newReplayBench(t, "sessions = 6\n pipeline = 64", text, n, 100*time.Microsecond)
		b.l.sessions = b.l.sessions[2*part : 2*part+2]
		for i, s := range b.l.sessions {
			s.index, s.id = i, 2*part+i
		}
		began, totals := b.replay()
		seen += len(began.at)
		digest += totals.Digest
	}
	require.Equal(t, n, seen)
	require.Equal(t, whole.Digest, digest)
}

// What finds no room is shed if the plan says so, and at the end of the drain.
func TestReplaySheds(t *testing.T) {
	const n = 4000
	_, text := recorded(n)
	for _, c := range []string{`on_full = "shed"`, `drain = "0s"`} {
		b := newReplayBench(t, "sessions = 1\n pipeline = 1\n"+c, text, n, 5*time.Millisecond)
		b.g.phase.Open.Duration = 2 * time.Second
		began, totals := b.replay()
		require.EqualValues(t, n, dueIn(&totals))
		var shed uint64
		for _, o := range totals.Ops {
			if o != nil {
				shed += o.Outcomes[driver.Shed]
			}
		}
		require.EqualValues(t, n-len(began.at), shed)
		require.Greater(t, shed, uint64(n/2))
	}
}

// A replay that a stalled target ends sheds all that was due, a few thousand ops in each turn.
func TestReplayShedsALongQueue(t *testing.T) {
	const n = 4 * shedEach
	_, text := recorded(n)
	b := newReplayBench(t, "sessions = 4\n pipeline = 1", text, n, time.Millisecond)
	b.g.phase.Open.Duration = time.Minute
	b.net.at(time.Duration(b.net.clock.t)+100*time.Millisecond, func() { b.server(0).latency = func(int) time.Duration { return -1 } })
	b.net.at(time.Duration(b.net.clock.t)+100*time.Millisecond, func() { b.server(1).latency = func(int) time.Duration { return -1 } })
	b.net.at(time.Duration(b.net.clock.t)+7*time.Second, func() { b.e.Drain() })
	began, totals := b.replay()
	due, shed, ended := uint64(0), uint64(0), uint64(0)
	for _, o := range totals.Ops {
		if o == nil {
			continue
		}
		due, shed = due+o.Due, shed+o.Outcomes[driver.Shed]
		ended += uint64(o.InFlight)
		for outcome, times := range o.Outcomes {
			if driver.Outcome(outcome) != driver.Shed {
				ended += times
			}
		}
	}
	require.Equal(t, due, shed+ended)
	require.EqualValues(t, len(began.at), ended)
	require.Greater(t, shed, uint64(2*shedEach))
	require.Less(t, due, uint64(n), "what was not due yet is nobody's")
}

// A trace that is cut off while it is read, or that changed, is an error and not a shorter load.
func TestReplayOfABrokenTrace(t *testing.T) {
	_, text := recorded(5000)
	b := newReplayBench(t, "sessions = 4\n pipeline = 64", text+"what\n", 5000, 100*time.Microsecond)
	parts := b.equip(worker.Load)
	b.l.run()
	require.ErrorContains(t, b.l.feed.(reading).close(), "trace trace.csv:5001:1: ")
	require.NotEmpty(t, parts)

	dir := t.TempDir()
	e := New(Config{Open: in(dir)})
	_, err := e.openTrace(t.Context(), &plan.Trace{File: "none.csv"})
	require.ErrorContains(t, err, `trace "none.csv": open`)
	_, err = e.openTrace(t.Context(), &plan.Trace{File: "/dev/null", SHA256: "00"})
	require.ErrorContains(t, err, "it is not below the directory")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trace.csv"), nil, 0o600))
	_, err = e.openTrace(t.Context(), &plan.Trace{File: "trace.csv", SHA256: "00"})
	require.EqualError(t, err, `trace "trace.csv" is not the file that the plan was checked with: copy that to where the load runs`)
	open, err := e.openTrace(t.Context(), &plan.Trace{File: "trace.csv", SHA256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"})
	require.NoError(t, err)
	require.NoError(t, os.Rename(filepath.Join(dir, "trace.csv"), filepath.Join(dir, "moved.csv")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trace.csv"), nil, 0o600))
	_, err = open(t.Context())
	require.ErrorContains(t, err, "is not the file that the plan was checked with", "nor is one that took its place")
}

// slowDisk reads a trace that halts at a byte until it is released.
type slowDisk struct {
	*strings.Reader
	halt int64
	free chan struct{}
}

func (d *slowDisk) Read(b []byte) (int, error) {
	at := d.Size() - int64(d.Len())
	if at >= d.halt {
		<-d.free
		return d.Reader.Read(b)
	}
	return d.Reader.Read(b[:min(int64(len(b)), d.halt-at)])
}

func (d *slowDisk) Close() error { return nil }

// A loop that is ahead of its trace's reader goes on with its other work: a loop that parks while it is held ends the process.
func TestReplayOfATraceThatIsReadTooSlowly(t *testing.T) {
	const n = 10_000
	_, text := recorded(n)
	b := newReplayBench(t, "sessions = 4\n pipeline = 64", text, n, 100*time.Microsecond)
	disk := &slowDisk{Reader: strings.NewReader(text), halt: int64(len(text) / 2), free: make(chan struct{})}
	b.g.trace = func(context.Context) (io.ReadSeekCloser, error) { return disk, nil }
	late := false
	b.net.at(time.Duration(b.net.clock.t)+4*time.Second, func() {
		late = true
		close(disk.free)
	})
	var wake int64
	b.net.at(time.Duration(b.net.clock.t)+3*time.Second, func() { wake = b.l.feed.next() - b.net.clock.t })
	began, totals := b.replay()
	require.True(t, late)
	require.Greater(t, wake, -int64(time.Millisecond), "the loop sleeps while it waits for the trace")
	require.Len(t, began.at, n)
	require.Greater(t, totals.Ops[driver.Get].Lag.Max(), int64(time.Second), "what was late counts from when it was due")
}
