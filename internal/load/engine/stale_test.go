package engine

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/plan/op"
	"github.com/loadgen/loadgen/pkg/driver"
)

// stalePlan is a load of Poisson arrivals that measures staleness on three servers. Each of eight sessions has a key of its own, put 100 times a second.
func stalePlan(r, w int, keys string, seconds int) string {
	return fmt.Sprintf(`
		target "t" {
			driver    = "redis"
			endpoints = ["127.0.0.1:%d", "127.0.0.1:%d", "127.0.0.1:%d"]
			replication {
				coordinate  = "client"
				n           = 3
				w           = %d
				r           = %d
				read_fanout = "r"
				read_from   = "random"
			}
		}
		dataset "d" {
			keys {
				%s
			}
			values { size = 40 }
		}
		phase "load" {
			target  = target.t
			dataset = dataset.d
			ops     = { get = 1, put = 1 }
			staleness {}
			expect_hits = 0
			open {
				sessions  = 8
				pipeline  = 256
				in_flight = 2048
				rate      = "1600/s"
				arrivals  = "poisson"
				duration  = "%ds"
			}
		}`, firstPort, firstPort+1, firstPort+2, w, r, keys, seconds)
}

const ofOneWriter = "count = 8\nwriters = \"one\""

// seenGet is a get, as the test saw it.
type seenGet struct {
	key     uint64
	began   int64
	version uint64
}

// witnessed is a program whose ops the test watches: what was acknowledged when, and what gets returned.
type witnessed struct {
	op.Program
	l     *loop
	acked map[uint64][]acknowledged
	gets  []seenGet
}

func (p *witnessed) On(dst []driver.Request, ev op.Event) ([]driver.Request, op.Step) {
	dst, step := p.Program.On(dst, ev)
	switch {
	case !step.Done || step.Outcome > driver.Miss:
	case ev.Op.Verb == driver.Put:
		p.acked[ev.Op.Index] = append(p.acked[ev.Op.Index], acknowledged{ev.Op.Value.Version, p.l.answers})
	default:
		p.gets = append(p.gets, seenGet{key: ev.Op.Index, began: p.l.slab[ev.Op.Slot].begun, version: step.Version})
	}
	return dst, step
}

// counted counts the witnessed gets by the definition: of keys with an acknowledged write before they began, and stale.
func (p *witnessed) counted() (gets, stale uint64, behind [measure.Behind]uint64) {
	for _, g := range p.gets {
		before, newer := 0, 0
		for _, w := range p.acked[g.key] {
			if w.at <= g.began {
				before++
				if w.version > g.version {
					newer++
				}
			}
		}
		if before > 0 {
			gets++
		}
		if newer > 0 {
			stale++
			behind[min(newer, measure.Behind)-1]++
		}
	}
	return gets, stale, behind
}

// Puts take effect at the three servers after 1, 3 and 5 ms, which acknowledge them then. Gets are there after 1 ms, so a get that began between the
// W-th acknowledgement and one that it does not wait for may miss the put. A get misses a put at a server for some ms after the put was acknowledged:
//
//	        server 1   server 2   server 3
//	W = 1   0          1          3
//	W = 2   0          0          1
//
// Puts of a key are Poisson, λ = 100/s, so a get that asks one server is stale with probability 1 − exp(−λ·ms), and one that asks two if both miss it.
func TestStalenessIsThatOfKnownDelays(t *testing.T) {
	missed := func(ms ...float64) (share float64) {
		for _, m := range ms {
			share += (1 - math.Exp(-0.1*m)) / 3
		}
		return share
	}
	for _, c := range []struct {
		keys string
		r, w int
		want float64
	}{
		{ofOneWriter, 1, 1, missed(0, 1, 3)},
		{"count = 1\nscope = \"session\"", 1, 1, missed(0, 1, 3)},
		{ofOneWriter, 1, 2, missed(0, 0, 1)},
		{ofOneWriter, 2, 1, missed(0, 0, 1)}, // servers 2 and 3
		{ofOneWriter, 2, 2, 0},
		{ofOneWriter, 1, 3, 0},
	} {
		t.Run(fmt.Sprintf("%s R=%d W=%d", c.keys, c.r, c.w), func(t *testing.T) {
			b := newBench(t, parsePlan(t, stalePlan(c.r, c.w, c.keys, 21)), "load", 0)
			for i := range 3 {
				b.server(i).travel = func(command string) time.Duration {
					if command == "SET" {
						return time.Duration(1+2*i) * time.Millisecond
					}
					return time.Millisecond
				}
			}
			got := b.run(worker.Load)
			s := got.Versions.Staleness
			require.Greater(t, got.Ops[driver.Get].Due+got.Ops[driver.Put].Due, uint64(33_000))
			share := float64(s.Stale) / float64(s.Gets)
			t.Logf("%d of %d gets, %.2f %%, by theory %.2f %%", s.Stale, s.Gets, 100*share, 100*c.want)
			require.InDelta(t, c.want, share, 0.01)
			if c.want == 0 {
				require.Zero(t, s.Stale)
				return
			}
			require.Equal(t, s.Stale, s.Age.Count())
			require.LessOrEqual(t, s.Age.Max(), int64(3*time.Millisecond), "the longest that a get can miss a put")
			require.Positive(t, s.Backwards)
		})
	}
}

// Whatever the delays, what is counted is what the definition says of every get and every write: with random ones, and so many puts of a key on their
// way that several are missed at once.
func TestStalenessByDefinition(t *testing.T) {
	b := newBench(t, parsePlan(t, stalePlan(1, 1, ofOneWriter, 5)), "load", 0)
	x := uint64(7)
	for i := range 3 {
		b.server(i).travel = func(string) time.Duration {
			x = x*6364136223846793005 + 1442695040888963407
			return time.Duration(x>>33) % (20 * time.Millisecond)
		}
	}
	w := &witnessed{l: b.l, acked: map[uint64][]acknowledged{}}
	b.wrap = func(p op.Program) op.Program {
		w.Program = p
		return w
	}
	got := b.run(worker.Load)
	s := got.Versions.Staleness
	gets, stale, behind := w.counted()
	require.Positive(t, stale)
	require.Equal(t, []uint64{gets, stale}, []uint64{s.Gets, s.Stale})
	require.Equal(t, behind, s.Behind)
	require.NotContains(t, behind, uint64(0))
}
