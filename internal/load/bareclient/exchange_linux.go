package bareclient

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	readSize  = 64 << 10
	maxEvents = 256
	look      = 100 * time.Millisecond // the longest time until halt is noticed
	silence   = 10 * time.Second       // the time without any reply after which the server is given up
)

// exchange carries the ops out until all replies have come or halt is set.
func (c *client) exchange(halt *atomic.Bool) error {
	c.awaited = c.left
	for i := range c.sessions {
		if err := c.next(&c.sessions[i]); err != nil {
			return err
		}
	}
	events := make([]unix.EpollEvent, maxEvents)
	buf := make([]byte, readSize)
	quiet := time.Duration(0)
	for c.awaited > 0 && !halt.Load() {
		n, err := c.wait(events)
		switch {
		case err != nil:
			return err
		case n > 0:
			quiet = 0
		case quiet >= silence:
			return fmt.Errorf("no reply for %v", silence)
		default:
			quiet += look
		}
		for _, ev := range events[:n] {
			if err := c.serve(&c.sessions[ev.Fd], ev.Events, buf); err != nil {
				return err
			}
		}
	}
	return nil
}

// serve reads and writes as far as a socket is ready.
func (c *client) serve(s *session, events uint32, buf []byte) error {
	if events&unix.EPOLLOUT != 0 {
		if err := c.write(s); err != nil {
			return err
		}
	}
	if events&^unix.EPOLLOUT == 0 {
		return nil
	}
	c.result.Reads++
	n, err := transfer(unix.SYS_READ, s.fd, buf)
	switch {
	case err == unix.EAGAIN:
		return nil
	case err != nil:
		return fmt.Errorf("read: %w", err)
	case n == 0:
		return errors.New("the server has closed the connection")
	}
	s.due -= n
	switch {
	case s.due > 0:
		return nil
	case s.due < 0:
		return fmt.Errorf("a reply is longer than the first one, of %d bytes", c.reply)
	}
	c.result.Ops += s.ops
	c.awaited -= s.ops
	return c.next(s)
}

// next writes the session's next requests, if there are any.
func (c *client) next(s *session) error {
	s.ops = min(c.left, int64(len(c.batch)/c.request))
	if s.ops == 0 {
		return nil
	}
	c.left -= s.ops
	s.due = int(s.ops) * c.reply
	s.unsent = c.batch[:int(s.ops)*c.request]
	return c.write(s)
}

// write sends as much as the socket takes, and makes epoll report when it takes more.
func (c *client) write(s *session) error {
	c.result.Writes++
	n, err := transfer(unix.SYS_WRITE, s.fd, s.unsent)
	if err != nil && err != unix.EAGAIN {
		return fmt.Errorf("write: %w", err)
	}
	s.unsent = s.unsent[n:]
	if full := len(s.unsent) > 0; full != s.full {
		s.full = full
		return c.watch(s)
	}
	return nil
}

// watch sets the events that epoll reports for a session.
func (c *client) watch(s *session) error {
	ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: s.token}
	if s.full {
		ev.Events |= unix.EPOLLOUT
	}
	c.result.Waits++
	if err := unix.EpollCtl(c.poll, unix.EPOLL_CTL_MOD, s.fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// wait returns how many sockets are ready, 0 after a while. It blocks without telling the scheduler, which would check on it fifty thousand times a
// second. Nothing else in the process has to run but the goroutine that sets halt, for which the runtime has another processor.
func (c *client) wait(events []unix.EpollEvent) (int, error) {
	c.result.Waits++
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(c.poll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(look/time.Millisecond), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("epoll_pwait: %w", errno)
}

// transfer reads or writes.
func transfer(call uintptr, fd int, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
