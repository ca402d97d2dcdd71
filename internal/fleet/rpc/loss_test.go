package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/exit"
	"github.com/loadgen/loadgen/internal/fleet/coord"
	"github.com/loadgen/loadgen/internal/fleet/rpc"
	"github.com/loadgen/loadgen/internal/load/worker"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/servertest"
)

// cut makes a cable lose everything.
func cut(c *cable) {
	c.down = true
	sever(c)
}

func mend(c *cable) { c.down, c.deafUp, c.deafDown = false, false, false }

// after changes a worker's cable some time from now.
func (n *node) after(d time.Duration, change func(*cable)) {
	time.AfterFunc(d, func() { n.cable.set(change) })
}

// carryOut runs 20 s of load on a fleet.
func carryOut(t *testing.T, f *fleet) *run.Run {
	t.Helper()
	r := coord.Run(context.Background(), config(t, `duration = "20s"`, f.members()))
	require.NoError(t, r.CheckValid())
	return r
}

// requireAccounted checks that what the targets received is in the figures, or within the bounds that the losses declare. Whether ops in flight when
// a worker stopped were ever sent is unknown.
func requireAccounted(t *testing.T, f *fleet, r *run.Run) {
	t.Helper()
	sent, left, bound := uint64(0), uint64(0), uint64(0)
	for _, q := range r.Phase["load"].Requests {
		sent += q.Sent
		left += uint64(q.InFlight)
	}
	for _, l := range r.Losses {
		bound += l.UnseenOps
	}
	require.LessOrEqual(t, sent-left, uint64(f.got()))
	require.LessOrEqual(t, uint64(f.got()), sent+bound)
}

// requireComplete checks that a run is complete. It does not check that its figures are valid: time is virtual here, but other programs' use of
// processors is real.
func requireComplete(t *testing.T, r *run.Run) {
	t.Helper()
	require.Equal(t, run.Complete, r.Verdict.Completeness, r.Verdict.Reasons)
}

// A worker whose path is down for most of a short lease is back before the lease ends. When pauses grew to 2 s whatever the lease, it was lost.
func TestWorkerIsBackWithinAShortLease(t *testing.T) {
	servertest.Deadline(t)
	servertest.Bubble(t, func(t *testing.T) {
		f := newTimedFleet(t, rpc.TimingOf(time.Second))
		defer f.close()
		n := f.join("w1", func(cfg *rpc.JoinConfig) { cfg.Random = func(below int64) int64 { return below } })
		f.members()
		n.after(5500*time.Millisecond, cut)
		n.after(6260*time.Millisecond, mend)
		require.Empty(t, carryOut(t, f).Losses)
	})
}

// TestSilenceIsFoundInTime cuts workers off in every way that the other end cannot notice. A worker is suspected, and later lost, exactly when its
// newest heartbeat reaches the limit. By then its load has ended. The figures hold everything except what the loss declares, and the other workers
// are not disturbed.
func TestSilenceIsFoundInTime(t *testing.T) {
	cuts := map[string]func(*cable){
		"both ways":             cut,
		"silent":                func(c *cable) { c.deafUp, c.deafDown = true, true },
		"worker is not heard":   func(c *cable) { c.deafUp, c.down = true, true },
		"worker does not hear":  func(c *cable) { c.deafDown, c.down = true, true },
		"worker cannot be told": func(c *cable) { c.deafDown = true },
	}
	for name, how := range cuts {
		t.Run(name, func(t *testing.T) {
			virtual(t, 3, func(t *testing.T, f *fleet) {
				f.members()
				f.nodes[1].after(5500*time.Millisecond, how)
				r := carryOut(t, f)
				require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
				require.Len(t, r.Losses, 1)
				loss := r.Losses[0]
				require.Equal(t, "w2", loss.Worker)
				require.Equal(t, "no heartbeat for 10s", loss.Why)
				require.Contains(t, r.Verdict.Reasons[0], "worker w2 was lost in phase load: no heartbeat for 10s; its last snapshot is number ")
				require.Positive(t, loss.UnseenOps)
				requireAccounted(t, f, r)

				suspected, refused := f.said.with("worker suspected: no heartbeat worker=w2"), f.said.with("the run goes on without this worker")
				require.Len(t, suspected, 1)
				_, last := f.nodes[1].mill.seen()
				require.LessOrEqual(t, last.Seconds(), loss.LoadedSeconds+0.001)
				if name == "both ways" {
					require.Contains(t, suspected[0], "8s worker suspected", "the newest heartbeat came at 5 s")
					require.Empty(t, refused)
					require.InDelta(t, 15, last.Seconds(), took.Seconds(), "the lease of that heartbeat")
				}
				for _, i := range []int{0, 2} {
					got, _ := f.nodes[i].mill.seen()
					require.InDelta(t, 2*20/took.Seconds(), got, 4)
				}
			})
		})
	}
}

// TestReconnectLosesNothing breaks streams, or one direction of them, for shorter than the lease. The run is complete, and every request is in its
// figures.
func TestReconnectLosesNothing(t *testing.T) {
	faults := map[string]func(n *node){
		"broken once": func(n *node) { n.after(2300*time.Millisecond, sever) },
		"broken in a row": func(n *node) {
			n.after(2*time.Second, sever)
			n.after(2050*time.Millisecond, sever)
			n.after(2200*time.Millisecond, sever)
		},
		"away for 7 s": func(n *node) { n.after(4500*time.Millisecond, cut); n.after(11*time.Second, mend) },
		"slow link":    func(n *node) { n.after(0, func(c *cable) { c.slow = 300 * time.Millisecond }) },
		"not heard for 4 s": func(n *node) {
			n.after(4500*time.Millisecond, func(c *cable) { c.deafUp = true })
			n.after(8500*time.Millisecond, func(c *cable) { sever(c); mend(c) })
		},
		"not hearing for 4 s": func(n *node) {
			n.after(4500*time.Millisecond, func(c *cable) { c.deafDown = true })
			n.after(8500*time.Millisecond, func(c *cable) { sever(c); mend(c) })
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			virtual(t, 3, func(t *testing.T, f *fleet) {
				f.members()
				fault(f.nodes[0])
				fault(f.nodes[2])
				r := carryOut(t, f)
				requireComplete(t, r)
				require.Empty(t, r.Losses)
				requireAccounted(t, f, r)
				require.Len(t, r.Phase["load"].Series, 21, "what was kept back comes second by second")
			})
		})
	}
}

// TestCoordinatorGone takes the coordinator away from all workers: their load ends with the lease of the newest heartbeat that it echoed.
func TestCoordinatorGone(t *testing.T) {
	virtual(t, 3, func(t *testing.T, f *fleet) {
		f.members()
		for _, n := range f.nodes {
			n.after(7700*time.Millisecond, cut)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
		defer cancel()
		r := coord.Run(ctx, config(t, `duration = "60s"`, f.members()))
		require.Equal(t, exit.Aborted, r.ExitCode)
		for _, n := range f.nodes {
			<-n.done
			require.ErrorContains(t, n.err, "not reached for longer than the lease")
			_, last := n.mill.seen()
			require.InDelta(t, 17, last.Seconds(), took.Seconds(), "the newest heartbeat was at 7 s")
		}
	})
}

// TestWorkerLeaves stops a worker on its own machine: it tells what it has done, and nothing is missing of that.
func TestWorkerLeaves(t *testing.T) {
	virtual(t, 3, func(t *testing.T, f *fleet) {
		f.members()
		time.AfterFunc(5500*time.Millisecond, f.nodes[2].stop)
		r := carryOut(t, f)
		require.Equal(t, exit.Degraded, r.ExitCode)
		require.Len(t, r.Losses, 1)
		require.Equal(t, "w3", r.Losses[0].Worker)
		require.Zero(t, r.Losses[0].UnseenOps)
		require.Contains(t, r.Verdict.Reasons[0], "and no op after it is missing")
		requireAccounted(t, f, r)
	})
}

// TestWorkerWithNothingToDoLeaves: a worker without sessions leaves while the others load. Its loss is reported, and the figures are as good as ever.
func TestWorkerWithNothingToDoLeaves(t *testing.T) {
	const twoOfThree = "sessions = 2\nduration = \"20s\""
	leave := map[string]struct {
		how func(*node)
		why string
	}{
		"stopped": {func(n *node) { n.stop() }, "it has left: it was stopped on its own machine"},
		"silent":  {func(n *node) { n.cable.set(cut) }, "no heartbeat for 10s"},
	}
	for name, l := range leave {
		t.Run(name, func(t *testing.T) {
			virtual(t, 3, func(t *testing.T, f *fleet) {
				members := f.members()
				time.AfterFunc(5500*time.Millisecond, func() { l.how(f.nodes[0]) })
				r := coord.Run(context.Background(), config(t, twoOfThree, members))
				require.NoError(t, r.CheckValid())
				require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
				require.Len(t, r.Losses, 1)
				require.Equal(t, "w1", r.Losses[0].Worker)
				require.Equal(t, "load", r.Losses[0].Phase)
				require.Equal(t, l.why, r.Losses[0].Why)
				require.Zero(t, r.Losses[0].UnseenOps)
				for _, reason := range r.Phase["load"].Reasons {
					require.NotContains(t, reason.Text, "w1")
				}
				got := uint64(f.got())
				require.Equal(t, got, r.Phase["load"].Op["put"].OK)
				require.InDelta(t, 2*20/took.Seconds(), got, 4, "nobody else was disturbed")
			})
		})
	}
	virtual(t, 3, func(t *testing.T, f *fleet) {
		cfg := config(t, twoOfThree, f.members())
		cfg.AbortOnLoss = true
		time.AfterFunc(5500*time.Millisecond, f.nodes[0].stop)
		began := time.Now()
		r := coord.Run(context.Background(), cfg)
		require.Equal(t, exit.Aborted, r.ExitCode, r.Verdict.Reasons)
		require.Less(t, time.Since(began), 7*time.Second, "the others stop at once")
	})
}

// TestClocksThatAreBadlyKnown: heartbeats of some workers take 200 ms to the coordinator and no time back, so their clocks seem to be off by 100 ms.
func TestClocksThatAreBadlyKnown(t *testing.T) {
	doubts := func(slow ...int) (found []string) {
		virtual(t, 0, func(t *testing.T, f *fleet) {
			for i := range 3 {
				n := f.join(fmt.Sprintf("w%d", i+1))
				if slices.Contains(slow, i) {
					n.cable.set(func(c *cable) { c.long = 200 * time.Millisecond })
				}
			}
			members := f.members()
			time.Sleep(20 * time.Second) // the quickest of the latest heartbeats counts, and some of the first may have gone before the cable was slow
			r := coord.Run(context.Background(), config(t, `duration = "10s"`, members))
			require.NoError(t, r.CheckValid())
			for i, w := range r.Fleet {
				if slices.Contains(slow, i) {
					require.InDelta(t, 0.1, w.ClockUncertaintySeconds, 0.03)
				} else {
					require.Less(t, w.ClockUncertaintySeconds, 0.001)
				}
			}
			for _, reason := range r.Phase["load"].Reasons {
				if strings.Contains(reason.Text, "clocks") {
					found = append(found, reason.Text)
				}
			}
		})
		return found
	}
	require.Empty(t, doubts())
	require.Empty(t, doubts(1), "1 %, or a little less")
	require.Len(t, doubts(0, 2), 1)
}

// TestOneSyncForAll counts how often a fleet of three is synced to disk: once for each second, not for each worker.
func TestOneSyncForAll(t *testing.T) {
	virtual(t, 3, func(t *testing.T, f *fleet) {
		cfg := config(t, `duration = "20s"`, f.members())
		r := coord.Run(context.Background(), cfg)
		requireComplete(t, r)
		store := cfg.Store.(*memory)
		require.Equal(t, 63, store.records)
		require.InDelta(t, 5, store.own, 2, "a few for each step, however long it lasts")
		require.InDelta(t, 21+3, store.syncs, 2, "and before workers get an order, which is on disk then")
	})
}

func TestAbortOnLoss(t *testing.T) {
	virtual(t, 2, func(t *testing.T, f *fleet) {
		members := f.members()
		f.nodes[0].after(2*time.Second, cut)
		cfg := config(t, `duration = "60s"`, members)
		cfg.AbortOnLoss = true
		began := time.Now()
		r := coord.Run(context.Background(), cfg)
		require.Equal(t, exit.Aborted, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons, "a worker was lost, and on_worker_loss is abort")
		require.Less(t, time.Since(began), 13*time.Second)
		requireAccounted(t, f, r)
	})
}

// TestLostWhileThePlanIsAssigned cuts a worker off after it has joined and before it hears of the plan: it has loaded nothing, and the others do their
// parts.
func TestLostWhileThePlanIsAssigned(t *testing.T) {
	carryOut := func(f *fleet, change func(*coord.Config)) *run.Run {
		cfg := config(t, `duration = "20s"`, f.members())
		change(&cfg)
		f.nodes[1].cable.set(cut)
		return coord.Run(context.Background(), cfg)
	}
	virtual(t, 3, func(t *testing.T, f *fleet) {
		r := carryOut(f, func(*coord.Config) {})
		require.NoError(t, r.CheckValid())
		require.Equal(t, exit.Degraded, r.ExitCode, r.Verdict.Reasons)
		require.Equal(t, []worker.Loss{{Worker: "w2", Why: "no heartbeat for 10s, before it had taken the plan"}}, r.Losses)
		require.Contains(t, r.Verdict.Reasons, "worker w2 was lost: no heartbeat for 10s, before it had taken the plan")
		require.Zero(t, r.Fleet[1].Sessions)
		for i, want := range []float64{2 * 20 / took.Seconds(), 0, 2 * 20 / took.Seconds()} {
			got, _ := f.nodes[i].mill.seen()
			require.InDelta(t, want, got, 4)
		}
		requireAccounted(t, f, r)
	})
	virtual(t, 3, func(t *testing.T, f *fleet) {
		r := carryOut(f, func(c *coord.Config) { c.AbortOnLoss = true })
		require.Equal(t, exit.Aborted, r.ExitCode)
		require.Zero(t, f.got())
	})
	virtual(t, 2, func(t *testing.T, f *fleet) {
		r := carryOut(f, func(*coord.Config) { f.nodes[0].cable.set(cut) })
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], "no worker is left")
	})
}

func TestNobodyLeft(t *testing.T) {
	virtual(t, 2, func(t *testing.T, f *fleet) {
		members := f.members()
		for _, n := range f.nodes {
			n.after(2*time.Second, cut)
		}
		r := coord.Run(context.Background(), config(t, `duration = "60s"`, members))
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], "no worker is left")
		requireAccounted(t, f, r)
	})
}

// TestSlowDisk makes every sync take longer than the lease: load goes on, and all of it is kept.
func TestSlowDisk(t *testing.T) {
	virtual(t, 3, func(t *testing.T, f *fleet) {
		cfg := config(t, `duration = "20s"`, f.members())
		cfg.Store = &memory{slow: 12 * time.Second}
		r := coord.Run(context.Background(), cfg)
		requireComplete(t, r)
		requireAccounted(t, f, r)
	})
}

// TestFullDisk fails the store: nothing that is not kept is acknowledged, the run fails and the load ends.
func TestFullDisk(t *testing.T) {
	virtual(t, 3, func(t *testing.T, f *fleet) {
		cfg := config(t, `duration = "20s"`, f.members())
		cfg.Store = &memory{failWith: errors.New("no space left on device")}
		began := time.Now()
		r := coord.Run(context.Background(), cfg)
		require.Equal(t, exit.Failed, r.ExitCode)
		require.Contains(t, r.Verdict.Reasons[0], "no space left on device")
		require.Less(t, time.Since(began), 3*time.Second)
		f.server.Close()
		for _, n := range f.nodes {
			<-n.done
			_, last := n.mill.seen()
			require.Less(t, last, 3*time.Second)
		}
	})
}

// hung does nothing, and never returns from the call that it is told to hang in.
type hung struct {
	rpc.Local
	assign, prepare bool
}

func (h hung) Assign(ctx context.Context, a worker.Assignment) error {
	if h.assign {
		<-ctx.Done()
	}
	return h.Local.Assign(ctx, a)
}

func (h hung) Prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	if h.prepare {
		<-ctx.Done()
	}
	return h.Local.Prepare(ctx, step)
}

func (h hung) Run(ctx context.Context, _ time.Duration, _ worker.Sink) (worker.Final, error) {
	<-ctx.Done()
	return worker.Final{}, ctx.Err()
}

// laborious takes two minutes to make a step ready, and says how far it is.
type laborious struct {
	rpc.Local
	done *atomic.Int64
}

func (l laborious) Progress() int64 { return l.done.Load() }

func (l laborious) Prepare(ctx context.Context, step worker.Step) (worker.Ready, error) {
	for range 12 {
		select {
		case <-ctx.Done():
			return worker.Ready{}, ctx.Err()
		case <-time.After(10 * time.Second):
			l.done.Add(1 << 30)
		}
	}
	return l.Local.Prepare(ctx, step)
}

// TestSlowWorkerIsAwaited: a worker writes large files for longer than the coordinator would wait for an idle one, and the user is told its progress.
func TestSlowWorkerIsAwaited(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		f := newFleet(t)
		defer f.close()
		f.join("w1")
		f.join("w2", func(c *rpc.JoinConfig) {
			fresh := c.New
			c.New = func() rpc.Local { return laborious{fresh(), new(atomic.Int64)} }
		})
		var told []string
		c := config(t, `duration = "2s"`, f.members())
		c.Progress = func(u run.Update) { told = append(told, u.Doing) }
		began := time.Now()
		r := coord.Run(context.Background(), c)
		requireComplete(t, r)
		require.Greater(t, time.Since(began), 2*time.Minute)
		require.Contains(t, told, "getting ready: 11264 MiB so far")
	})
}

// TestAliveButStuck: workers send heartbeats and nothing else, and waiting for them ends, too.
func TestAliveButStuck(t *testing.T) {
	for name, want := range map[string]string{
		"assign":  "worker w2: no answer to the plan within 30s",
		"prepare": `phase "load": worker w2: not ready, and no progress for 30s`,
		"run":     "it is alive, but has counted nothing for 30s",
	} {
		t.Run(name, func(t *testing.T) {
			servertest.Bubble(t, func(t *testing.T) {
				f := newFleet(t)
				defer f.close()
				f.join("w1")
				f.join("w2", func(c *rpc.JoinConfig) {
					fresh := c.New
					c.New = func() rpc.Local { return hung{fresh(), name == "assign", name == "prepare"} }
				})
				began := time.Now()
				r := coord.Run(context.Background(), config(t, `duration = "5s"`, f.members()))
				require.Less(t, time.Since(began), 32*time.Second)
				require.Contains(t, r.Verdict.Reasons[0], want)
				if name != "run" {
					require.Equal(t, exit.Failed, r.ExitCode)
					return
				}
				require.Equal(t, exit.Degraded, r.ExitCode)
				requireAccounted(t, f, r)
			})
		})
	}
}
