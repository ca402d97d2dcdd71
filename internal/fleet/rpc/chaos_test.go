package rpc_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

var oneSeed = flag.Uint64("chaos.seed", 0, "run this seed of TestChaos alone")

// TestChaos lets random faults happen to fleets of three. Whatever happens, the run ends; what the targets received is in the figures or within the
// declared bounds; a complete run is exact and has every worker's final report; and load ends with the lease.
//
// The seed fixes the faults, their times, and every pause before a reconnect. It cannot fix which of two goroutines runs first at the same instant of
// virtual time: messages may be gathered into one write on one day and two writes, 0.1 ms apart, on another. So cable lengths are chosen not to
// divide anything, which keeps the events that matter further apart than that: TestChaosRepeats.
func TestChaos(t *testing.T) {
	seeds := 20
	if servertest.Demanded("chaos") {
		seeds = 200
	}
	verdicts := map[run.Completeness]int{}
	for seed := uint64(1); seed <= max(uint64(seeds), *oneSeed); seed++ {
		if *oneSeed == 0 || *oneSeed == seed {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				servertest.Bubble(t, func(t *testing.T) { verdicts[chaos(t, seed).Verdict.Completeness]++ })
			})
		}
	}
	t.Log(verdicts)
	if *oneSeed == 0 {
		require.Greater(t, verdicts[run.Complete], seeds/10)
		require.Greater(t, verdicts[run.Degraded], seeds/10)
	}
}

func chaos(t *testing.T, seed uint64) *run.Run {
	dice := rand.New(rand.NewPCG(seed, 0))
	f := newTimedFleet(t, rpc.TimingOf(time.Second))
	defer f.close()
	for i := range 3 {
		pauses := rand.New(rand.NewPCG(seed, uint64(i+1))) // of one goroutine
		f.join(fmt.Sprintf("w%d", i+1), func(c *rpc.JoinConfig) { c.Random = pauses.Int64N })
		f.nodes[i].cable.set(func(c *cable) { c.long = time.Duration(103+31*i) * time.Microsecond })
	}
	members := f.members()
	for _, n := range f.nodes {
		for range dice.IntN(4) {
			at := time.Duration(dice.Int64N(int64(4 * time.Second)))
			n.trouble(dice, at)
		}
	}
	load := `duration = "3s"`
	if dice.IntN(2) == 0 {
		load = "iterations = 50"
	}
	cfg := config(t, load, members)
	if dice.IntN(4) == 0 {
		cfg.Store = &memory{slow: time.Duration(dice.Int64N(int64(time.Second)))}
	}
	began := time.Now()
	r := coord.Run(context.Background(), cfg)
	require.Less(t, time.Since(began), 20*time.Second)
	require.NoError(t, r.CheckValid())
	if r.Phase["load"] != nil {
		requireAccounted(t, f, r)
	}
	switch r.Verdict.Completeness {
	case run.Complete:
		require.Empty(t, r.Losses)
		require.EqualValues(t, f.got(), r.Phase["load"].Requests[0].Sent)
	case run.Degraded:
		require.NotEmpty(t, r.Losses)
	default:
		require.Len(t, r.Losses, 3, r.Verdict.Reasons)
	}
	time.Sleep(2 * time.Second)
	for i, n := range f.nodes {
		_, last := n.mill.seen()
		for _, l := range r.Losses {
			if l.Worker == fmt.Sprintf("w%d", i+1) {
				require.LessOrEqual(t, last.Seconds(), l.LoadedSeconds+0.001, "%v", &l)
			}
		}
	}
	return r
}

// TestChaosRepeats runs seeds twice: how the run ended, who was lost, why, and up to which snapshot must be the same.
func TestChaosRepeats(t *testing.T) {
	ending := func(seed uint64) (text string) {
		servertest.Bubble(t, func(t *testing.T) {
			r := chaos(t, seed)
			var losses []string
			for _, l := range r.Losses {
				losses = append(losses, fmt.Sprintf("%s: %s, after %d", l.Worker, l.Why, l.Seq))
			}
			slices.Sort(losses) // two may come at one time
			text = fmt.Sprint(r.Verdict.Completeness, losses)
		})
		return text
	}
	for seed := uint64(1); seed <= 3; seed++ {
		require.Equal(t, ending(seed), ending(seed), "seed %d", seed)
	}
}

// trouble plans a fault of a random kind and length.
func (n *node) trouble(dice *rand.Rand, at time.Duration) {
	lasts := time.Duration(dice.Int64N(int64(1800 * time.Millisecond)))
	faults := []func(*cable){
		sever,
		cut,
		func(c *cable) { c.deafUp = true },
		func(c *cable) { c.deafDown = true },
		func(c *cable) { c.deafUp, c.deafDown = true, true },
		func(c *cable) { c.slow = 100 * time.Millisecond },
	}
	n.after(at, faults[dice.IntN(len(faults))])
	n.after(at+lasts, func(c *cable) { // a stream that has lost bytes is of no more use
		sever(c)
		mend(c)
		c.slow = 0
	})
	if dice.IntN(12) == 0 {
		time.AfterFunc(at, n.stop)
	}
}
