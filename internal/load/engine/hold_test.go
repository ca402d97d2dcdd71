package engine

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/load/sockets"
)

// TestHold stops the world while a busy goroutine is held, then while one is about to wait for long, one has been busy for long, and one has called a
// driver that panics.
func TestHold(t *testing.T) {
	const most = 10 * time.Second // for what takes no time
	for name, letGo := range map[string]func(*hold){
		"released":     func(h *hold) { h.release() },
		"before waits": func(h *hold) { h.before(1, int64(sockets.RawWait)+1) },
		"after long":   func(h *hold) { h.before(heldMost+1, 0) },
		"in a panic":   func(h *hold) { h.lend(); h.lost() },
	} {
		t.Run(name, func(t *testing.T) {
			var stopped atomic.Bool
			var early bool
			h := hold{may: true}
			done := make(chan struct{})
			h.before(0, 0)
			require.True(t, h.held)
			h.lend()
			h.resume()
			go func() {
				defer close(done)
				runtime.GC()
				stopped.Store(true)
			}()
			for began := time.Now(); time.Since(began) < 30*time.Millisecond; {
				early = early || stopped.Load()
			}
			letGo(&h)
			for began := time.Now(); !stopped.Load() && time.Since(began) < most; {
				runtime.Gosched()
			}
			<-done
			require.False(t, early)
			require.False(t, h.held)
		})
	}

	var never hold
	never.before(0, 0)
	require.False(t, never.held)
}

// A loop that is always busy is held for a second at a stretch, whenever that begins.
func TestHowLongALoopIsHeld(t *testing.T) {
	const second = int64(time.Second)
	h := hold{may: true}
	var held []bool
	for _, now := range []int64{5, 6, 5 + second, 6 + second, 7 + second, 7 + 2*second, 8 + 2*second} {
		h.before(now, 0)
		held = append(held, h.held)
	}
	h.release()
	require.Equal(t, []bool{true, true, true, false, true, true, false}, held)
}
