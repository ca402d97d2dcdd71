package engine

import (
	"context"
	"sync"
	"time"
)

// refreshEvery is the least time between two refreshes of one thing.
const refreshEvery = 100 * time.Millisecond

// refresher refreshes a fact that loops have reason to doubt, in a goroutine of its own, since that may be slow.
type refresher struct {
	doubt  chan struct{} // buffers one signal
	cancel context.CancelFunc
	keeper sync.WaitGroup
}

func newRefresher() *refresher {
	return &refresher{doubt: make(chan struct{}, 1), cancel: func() {}}
}

// keep calls refresh when there is doubt, until close.
func (r *refresher) keep(refresh func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel = cancel
	r.keeper.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-r.doubt:
			}
			refresh(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(refreshEvery):
			}
		}
	})
}

// suspect notes doubt. It does not wait.
func (r *refresher) suspect() {
	select {
	case r.doubt <- struct{}{}:
	default:
	}
}

func (r *refresher) close() {
	r.cancel()
	r.keeper.Wait()
}
