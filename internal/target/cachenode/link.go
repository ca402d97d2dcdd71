package cachenode

import (
	"sync"
	"time"
)

const (
	// minBandwidth is the least bandwidth, in bytes a second, at which an ordinary request gets through before its client counts as slow.
	minBandwidth = 1 << 10
	// linkSlack is how far a link may catch up after being idle. Over times that are long in comparison, the bandwidth is exact.
	linkSlack = 10 * time.Millisecond
	// maxLate bounds how far a link may catch up because its senders woke late, as they do if other processes have the processors.
	maxLate = time.Second
	// minPiece is the least to send or receive at a time on a slow link; other connections send in between.
	minPiece = 1500
)

// link is one direction of a line of limited bandwidth, which all connections share.
type link struct {
	bandwidth int64 // bytes a second; 0 for no limit
	done      <-chan struct{}

	mu   sync.Mutex
	free time.Time     // when everything sent so far has gone through
	late time.Duration // how late senders have woken recently
}

// piece returns how many of n bytes to send or receive at a time.
func (l *link) piece(n int) int {
	if l.bandwidth == 0 {
		return n
	}
	return min(n, max(minPiece, int(l.bandwidth/1000)))
}

// pass returns once n bytes have gone through, or the node is closed.
func (l *link) pass(n int) {
	if l.bandwidth == 0 || n == 0 {
		return
	}
	until := l.reserve(n, time.Now())
	wait := time.Until(until)
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		l.woke(time.Since(until))
	case <-l.done:
	}
}

// woke records how late a sender woke.
func (l *link) woke(late time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.late = min(max(late, l.late*7/8), maxLate)
}

// reserve returns when n bytes that are ready now will have gone through.
func (l *link) reserve(n int, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if idle := now.Add(-linkSlack - l.late); l.free.Before(idle) {
		l.free = idle
	}
	l.free = l.free.Add(time.Duration(float64(n) / float64(l.bandwidth) * float64(time.Second)))
	return l.free
}
