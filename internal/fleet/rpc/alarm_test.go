package rpc

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/count/measure"
	pb "github.com/loadgen/loadgen/internal/fleet/rpc/loadgenpb"
	"github.com/loadgen/loadgen/internal/servertest"
)

// host is a coordinator's process with one worker, in virtual time. It is awake, or stands still, when a test says so.
type host struct {
	*Server
	w *member
}

func inHost(t *testing.T, test func(t *testing.T, h host)) {
	servertest.Bubble(t, func(t *testing.T) {
		s := newServer(Config{Timing: DefaultTiming(), Logger: slog.New(slog.DiscardHandler)})
		h := host{s, newMember(s, &pb.Hello{Name: "w"})}
		defer h.w.dismiss("the test is over")
		test(t, h)
	})
}

// wake lets time pass while the process is awake.
func (h host) wake(d time.Duration) {
	for ; d > 0; d -= h.awake.beat {
		time.Sleep(min(d, h.awake.beat))
		h.awake.read()
	}
}

// stand lets time pass while the process stands still: the clock jumps, and any timer due meanwhile fires before anything else happens.
func (h host) stand(d time.Duration) {
	synctest.Wait()
	h.epoch = h.epoch.Add(-d)
	h.w.suspected.ring()
	h.w.givenUp.ring()
}

// heard is awake for so many seconds, of which each brings a heartbeat.
func (h host) heard(seconds int) {
	for range seconds {
		h.wake(time.Second)
		h.w.beat(health{}, h.now())
	}
}

func (h host) lost() bool {
	synctest.Wait()
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.w.lost != nil
}

// TestCoordinatorThatStoodStillWaits lets the coordinator's process stand still for longer than a worker may be silent. Only silence after it wakes
// counts.
func TestCoordinatorThatStoodStillWaits(t *testing.T) {
	for _, stood := range []time.Duration{9 * time.Second, 11 * time.Second, 15 * time.Second, 19 * time.Second} {
		t.Run(stood.String(), func(t *testing.T) {
			inHost(t, func(t *testing.T, h host) {
				h.heard(5)
				h.stand(stood)
				h.wake(7500 * time.Millisecond) // an attempt to reach the coordinator takes 5 s at most, and the next comes 2 s later
				require.False(t, h.lost(), "it is on its way back")
				h.heard(1)
				h.wake(9900 * time.Millisecond)
				require.False(t, h.lost())
				h.wake(200 * time.Millisecond)
				require.True(t, h.lost(), "10 s after its newest heartbeat")
			})
		})
	}
}

// Time that the coordinator takes to keep a snapshot is not held against the worker: the wait for the next one begins after it.
func TestAWorkerIsNotIdleWhileItsSnapshotIsKept(t *testing.T) {
	inHost(t, func(t *testing.T, h host) {
		c := &conn{}
		require.Nil(t, h.w.attach(0, c))
		ended, kept := make(chan error, 1), make(chan struct{})
		go func() {
			_, err := h.w.Run(context.Background(), 5, func(*measure.Snapshot) (func() error, error) {
				time.Sleep(h.cfg.Timing.Idle + 10*time.Second)
				close(kept)
				return func() error { return nil }, nil
			})
			ended <- err
		}()
		totals := measure.NewTotals(5, 1)
		e, err := encodeSnapshot(&measure.Snapshot{SeqFirst: 1, SeqLast: 1, From: 5, To: 20, Delta: *totals, Running: totals.Counters()})
		require.NoError(t, err)
		e.Number = 1
		require.NoError(t, h.w.handle(c, &pb.FromWorker{Envelope: e}, h.now()))
		idle := int(h.cfg.Timing.Idle / time.Second)
		h.heard(idle + 11)
		<-kept
		require.False(t, h.lost(), "it was kept for longer than a worker may be idle")
		h.heard(idle - 2)
		require.False(t, h.lost())
		h.heard(2)
		require.True(t, h.lost(), "alive, but nothing has come since")
		require.ErrorContains(t, <-ended, "has counted nothing")
	})
}

// TestCoordinatorThatStoodStillFindsALoss: a worker dies while the coordinator's process stands still. The loss is found at most 10 s after it wakes,
// and at once if a healthy worker would have forgotten the run by then.
func TestCoordinatorThatStoodStillFindsALoss(t *testing.T) {
	for stood, within := range map[time.Duration]time.Duration{
		0: 10 * time.Second, 5 * time.Second: 9 * time.Second, 20 * time.Second: 9 * time.Second, 24 * time.Second: 6 * time.Second, 40 * time.Second: 0,
	} {
		t.Run(stood.String(), func(t *testing.T) {
			inHost(t, func(t *testing.T, h host) {
				h.heard(5)
				h.stand(stood)
				if within > 0 {
					h.wake(within - time.Millisecond)
					require.False(t, h.lost())
					h.wake(time.Millisecond)
				}
				require.True(t, h.lost())
			})
		})
	}
}

// TestHalfAsleepCoordinatorFindsALoss has a process that stands still again and again.
func TestHalfAsleepCoordinatorFindsALoss(t *testing.T) {
	inHost(t, func(t *testing.T, h host) {
		h.heard(5)
		for began := h.now(); !h.lost(); h.stand(4 * time.Second) {
			require.Less(t, h.now()-began, 30*time.Second)
		}
	})
}

// TestTimerThatFiredBeforeAHeartbeatWasRead: a process wakes, its timer fires first, and only then a heartbeat that lay in a socket is read. The
// worker is not lost for the time before it.
func TestTimerThatFiredBeforeAHeartbeatWasRead(t *testing.T) {
	inHost(t, func(t *testing.T, h host) {
		h.heard(5)
		h.epoch = h.epoch.Add(-15 * time.Second)
		h.w.beat(health{}, h.now())
		h.w.givenUp.ring()
		require.False(t, h.lost())
		h.w.dismiss("the run is over")
		h.w.givenUp.ring()
		require.False(t, h.lost(), "nobody waits for it")
	})
}
