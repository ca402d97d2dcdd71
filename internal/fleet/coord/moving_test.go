package coord

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/fleet/worker"
	"github.com/loadgen/loadgen/internal/servertest"
)

// moving is a worker whose progress a test makes.
type moving struct {
	worker.Worker // of which it has nothing
	done          atomic.Int64
}

func (m *moving) Progress() int64 { return m.done.Load() }

// TestSlowIsNotStuck has a worker make ready for an hour: it may, as long as it gets on, and is given up when it does not.
func TestSlowIsNotStuck(t *testing.T) {
	servertest.Bubble(t, func(t *testing.T) {
		w := new(moving)
		ctx, cancel := whileMoving(t.Context(), w, answerWithin)
		defer cancel()
		for range 180 {
			time.Sleep(20 * time.Second)
			require.NoError(t, ctx.Err())
			w.done.Add(1)
		}
		stuck := time.Now()
		<-ctx.Done()
		require.EqualError(t, context.Cause(ctx), "not ready, and no progress for 30s")
		require.InDelta(t, answerWithin.Seconds(), time.Since(stuck).Seconds(), 2)
	})
	servertest.Bubble(t, func(t *testing.T) {
		parent, end := context.WithCancel(t.Context())
		ctx, cancel := whileMoving(parent, nil, answerWithin)
		end()
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), context.Canceled)
		cancel()
		ctx, cancel = whileMoving(t.Context(), nil, answerWithin)
		defer cancel()
		<-ctx.Done()
		require.ErrorContains(t, context.Cause(ctx), "no progress for 30s", "one that does not say how far it is has as long as ever")
	})
}
