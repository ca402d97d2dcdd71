package cachenode

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxWaiting bounds the bytes of a connection's replies that wait for their delay. ownWaiting of them are always allowed; the rest needs room in
	// the node's budget. Beyond the bound, the connection is not read any further, as with a client that does not read its replies.
	maxWaiting = 4 << 20
	ownWaiting = 16 << 10
	// maxSpare bounds the buffers kept for reuse.
	maxSpare = 2
)

// delayLine sends a connection's replies a while after they were made, in order. Replies wait in parallel: a delay adds to the latency of each and
// does not limit the rate.
type delayLine struct {
	send  func([]byte) error // called when a reply is due
	timer *timer
	room  *budget       // for replies that wait beyond ownWaiting; shared with other lines
	ended chan struct{} // closed when the sender has returned

	mu      sync.Mutex
	changed sync.Cond
	queue   []batch
	waiting int // bytes in queue, and those the sender is sending
	taken   int // part of waiting that is taken from room
	spare   [][]byte
	closed  bool // nothing more will be pushed
	failed  bool // nothing more can be sent
}

// batch holds the replies to requests that arrived together.
type batch struct {
	due     time.Time
	replies []byte
	done    func() // called once they were sent, or never will be; may be nil
}

// newDelayLine starts the goroutine that sends; close waits for it. For the last part of each wait, of length watch, that goroutine polls the clock.
func newDelayLine(send func([]byte) error, watch time.Duration, room *budget) (*delayLine, error) {
	timer, err := newTimer(watch)
	if err != nil {
		return nil, err
	}
	l := &delayLine{send: send, timer: timer, room: room, ended: make(chan struct{})}
	l.changed.L = &l.mu
	go l.run()
	return l, nil
}

// idle reports that no reply is waiting, so that another may bypass the line.
func (l *delayLine) idle() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting == 0
}

// push hands over replies and returns an empty buffer for the next ones. It blocks while too much is waiting, and reports false if nothing can be
// sent any more.
func (l *delayLine) push(b batch) (next []byte, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for !l.failed && l.waiting > 0 && !l.admit(len(b.replies)) {
		l.changed.Wait()
	}
	if l.failed {
		b.end()
		return b.replies[:0], false
	}
	l.queue = append(l.queue, b)
	l.waiting += len(b.replies)
	l.changed.Broadcast()
	if n := len(l.spare); n > 0 {
		next, l.spare = l.spare[n-1], l.spare[:n-1]
	}
	return next, true
}

// admit reports whether n more bytes may wait behind others.
func (l *delayLine) admit(n int) bool {
	switch all := l.waiting + n; {
	case all <= ownWaiting:
		return true
	case all > maxWaiting:
		return false
	}
	if !l.room.take(int64(n)) {
		return false
	}
	l.taken += n
	return true
}

// end says that the replies will not be used any more.
func (b *batch) end() {
	if b.done != nil {
		b.done()
	}
}

// close returns once everything was sent, or sending failed; at once if there is no line.
func (l *delayLine) close() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.closed = true
	l.changed.Broadcast()
	l.mu.Unlock()
	<-l.ended
	l.timer.close()
	for i := range l.queue {
		l.queue[i].end()
	}
	l.queue = nil
	l.settle(0)
}

// settle gives back the room that this many waiting bytes do not need.
func (l *delayLine) settle(waiting int) {
	if over := l.taken - waiting; over > 0 {
		l.room.give(int64(over))
		l.taken -= over
	}
}

// abort makes the sender stop at its next step.
func (l *delayLine) abort() {
	l.fail()
	l.timer.close()
}

func (l *delayLine) fail() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = true
	l.changed.Broadcast()
}

func (l *delayLine) run() {
	defer close(l.ended)
	for {
		b, ok := l.next()
		if !ok {
			return
		}
		err := l.timer.sleepUntil(b.due)
		if err == nil {
			err = l.send(b.replies)
		}
		b.end()
		if err != nil {
			l.fail()
			return
		}
		l.sent(b)
	}
}

// next waits for the earliest batch.
func (l *delayLine) next() (batch, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue) == 0 && !l.closed && !l.failed {
		l.changed.Wait()
	}
	if len(l.queue) == 0 || l.failed {
		return batch{}, false
	}
	b := l.queue[0]
	l.queue[0] = batch{}
	l.queue = l.queue[1:]
	return b, true
}

func (l *delayLine) sent(b batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting -= len(b.replies)
	l.settle(l.waiting)
	if len(l.spare) < maxSpare && b.done == nil && cap(b.replies) <= maxKept {
		l.spare = append(l.spare, b.replies[:0])
	}
	l.changed.Broadcast()
}

// timer sleeps with the kernel's timer resolution. The runtime's own timers are up to a millisecond late in an otherwise idle process, since it waits
// for them in epoll_wait, which counts in milliseconds. A timerfd wakes that wait.
type timer struct {
	file  *os.File
	raw   syscall.RawConn // of file
	watch time.Duration   // the last part of a wait, spent polling the clock
}

func newTimer(watch time.Duration) (*timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd_create: %w", err)
	}
	file := os.NewFile(uintptr(fd), "timerfd")
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("use timerfd: %w", err), file.Close())
	}
	return &timer{file, raw, watch}, nil
}

// sleepUntil returns an error once the timer is closed.
func (t *timer) sleepUntil(due time.Time) error {
	left := time.Until(due) - t.watch
	if left <= 0 {
		t.watchUntil(due)
		return nil
	}
	var set error
	err := t.raw.Control(func(fd uintptr) {
		set = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(left))}, nil)
	})
	if err != nil {
		return err
	}
	if set != nil {
		return fmt.Errorf("timerfd_settime: %w", set)
	}
	var expirations [8]byte
	_, err = t.file.Read(expirations[:])
	t.watchUntil(due)
	return err
}

// watchUntil polls the clock until it is time, and yields between two looks.
func (t *timer) watchUntil(due time.Time) {
	for t.watch > 0 && time.Until(due) > 0 {
		runtime.Gosched()
	}
}

// close wakes a sleeper.
func (t *timer) close() { _ = t.file.Close() } // closing an event source has nothing to lose
