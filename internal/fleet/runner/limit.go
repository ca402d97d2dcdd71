package runner

import (
	"context"
	"sync"
	"time"
)

// interrupted says whether the user has asked for an end.
func interrupted(ctx context.Context, drain <-chan struct{}) bool {
	select {
	case <-drain:
		return true
	default:
		return ctx.Err() != nil
	}
}

// endWith calls end when drain is closed, unless ctx ends first.
func endWith(ctx context.Context, drain <-chan struct{}, end func()) {
	select {
	case <-drain:
		end()
	case <-ctx.Done():
	}
}

// limited returns a channel that is closed when drain is or, unless limit is 0, when rest is over, which is what is left of limit. Call reached once
// nothing listens on the channel any more; it says whether the limit closed it.
func limited(drain <-chan struct{}, limit, rest time.Duration) (ended <-chan struct{}, reached func() bool) {
	if limit == 0 {
		return drain, func() bool { return false }
	}
	both, done, was := make(chan struct{}), make(chan struct{}), make(chan bool, 1)
	go func() { // ends when reached is called
		timer := time.NewTimer(rest)
		defer timer.Stop()
		byLimit := false
		select {
		case <-drain:
			close(both)
		case <-timer.C:
			byLimit = true
			close(both)
		case <-done:
		}
		was <- byLimit
	}()
	return both, sync.OnceValue(func() bool { close(done); return <-was })
}
