package sockets

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrAgain is the error of a non-blocking call that could move nothing.
const ErrAgain = unix.EAGAIN

// Epoll is the poller over real sockets. Reads, writes and looks are raw system calls: they return at once, and the loop's thread keeps its
// processor. The first milliseconds of a wait are raw too, and nearly all waits of a busy loop end within them; the signal by which the runtime stops
// the world ends them as well. A wait through the scheduler is expensive: the runtime's monitor may find the thread in it, take its processor away,
// and then look for more such threads every 20 µs for a millisecond. Only the rest of a longer wait goes through the scheduler, which could otherwise
// not run other goroutines on that processor.
type Epoll struct {
	fd     int
	events []unix.EpollEvent
	limit  unix.Timespec // limit of the wait in progress

	vector  []unix.Iovec // arguments of writev
	message unix.Msghdr
}

const (
	edge      = 1 << 31 // EPOLLET, which package unix has as a negative number
	maxEvents = 256
)

// RawWait is the time for which a wait keeps the thread's processor before it continues through the scheduler.
const RawWait = 5 * time.Millisecond

// mostUnsent is the number of unsent bytes that the kernel accepts for a connection beyond those for which the other end has room. The kernel sends
// them when the server has read something. On loopback it does so on the server's processor, which then has less time for the server.
const mostUnsent = 64 << 10

// NewEpoll returns a poller without sockets.
func NewEpoll() (*Epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	return &Epoll{fd: fd, events: make([]unix.EpollEvent, maxEvents)}, nil
}

// Wait implements [Poller].
func (p *Epoll) Wait(ready []Readiness, d time.Duration) (int, error) {
	most := min(len(ready), len(p.events))
	n, errno := p.look(unix.RawSyscall6, most, min(d, RawWait))
	if n == 0 && errno == 0 && d > RawWait {
		n, errno = p.look(unix.Syscall6, most, d-RawWait)
	}
	switch errno {
	case 0:
	case unix.EINTR:
		return 0, nil
	default:
		return 0, os.NewSyscallError("epoll_wait", errno)
	}
	for i, ev := range p.events[:n] {
		broken := ev.Events&(unix.EPOLLERR|unix.EPOLLHUP) != 0
		ended := broken || ev.Events&unix.EPOLLRDHUP != 0
		ready[i] = Readiness{Token: ev.Fd, Read: ended || ev.Events&unix.EPOLLIN != 0, Write: broken || ev.Events&unix.EPOLLOUT != 0, Ended: ended}
	}
	return int(n), nil
}

// look makes a system call that waits up to d.
func (p *Epoll) look(call func(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err unix.Errno), most int, d time.Duration) (int, unix.Errno) {
	events := uintptr(unsafe.Pointer(unsafe.SliceData(p.events)))
	if d <= 0 {
		n, _, errno := call(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), events, uintptr(most), 0, 0, 0)
		return int(n), errno
	}
	p.limit = unix.NsecToTimespec(int64(d))
	n, _, errno := call(unix.SYS_EPOLL_PWAIT2, uintptr(p.fd), events, uintptr(most), uintptr(unsafe.Pointer(&p.limit)), 0, 0)
	if errno == unix.ENOSYS { // before Linux 5.11: whole milliseconds
		n, _, errno = call(unix.SYS_EPOLL_PWAIT, uintptr(p.fd), events, uintptr(most), uintptr((d+time.Millisecond-1)/time.Millisecond), 0, 0)
	}
	return int(n), errno
}

// Connect implements [Poller].
func (p *Epoll) Connect(to *Endpoint, token int32) (int, error) {
	domain, addr := to.sockaddr()
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	if err := p.begin(fd, addr, token); err != nil {
		_ = unix.Close(fd) // the error that counts is begin's
		return -1, err
	}
	return fd, nil
}

func (p *Epoll) begin(fd int, addr unix.Sockaddr, token int32) error {
	if _, local := addr.(*unix.SockaddrUnix); !local {
		if err := tune(fd); err != nil {
			return err
		}
	}
	if err := unix.Connect(fd, addr); err != nil && err != unix.EINPROGRESS {
		return fmt.Errorf("connect: %w", err)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLOUT, Fd: token}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
		return fmt.Errorf("epoll_ctl: %w", err)
	}
	return nil
}

// tune sets the options of a TCP socket. Other sockets need none.
func tune(fd int) error {
	for _, option := range []struct {
		name         string
		which, value int
	}{{"TCP_NODELAY", unix.TCP_NODELAY, 1}, {"TCP_NOTSENT_LOWAT", unix.TCP_NOTSENT_LOWAT, mostUnsent}} {
		err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option.which, option.value)
		if err != nil && err != unix.EOPNOTSUPP {
			return fmt.Errorf("set %s: %w", option.name, err)
		}
	}
	return nil
}

func (e *Endpoint) sockaddr() (domain int, addr unix.Sockaddr) {
	if e.Path != "" {
		return unix.AF_UNIX, &unix.SockaddrUnix{Name: e.Path}
	}
	if ip := e.Addr.Addr().Unmap(); ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(e.Addr.Port()), Addr: ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(e.Addr.Port()), Addr: e.Addr.Addr().As16()}
}

// Connected implements [Poller].
func (p *Epoll) Connected(fd int) error {
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if code != 0 {
		return fmt.Errorf("connect: %w", unix.Errno(code))
	}
	return nil
}

// Watch implements [Poller].
func (p *Epoll) Watch(fd int, token int32, write bool) error {
	// Edge-triggered, so that the kernel need not check the socket again at the next wait.
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | edge, Fd: token}
	if write {
		ev.Events |= unix.EPOLLOUT
	}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, fd, &ev); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

// Reads and writes use recvfrom and sendto rather than read and write: the kernel's path to the socket is shorter.

// Read implements [Poller].
func (p *Epoll) Read(fd int, b []byte) (int, error) {
	return transfer(unix.SYS_RECVFROM, fd, b, unix.MSG_DONTWAIT)
}

// Write implements [Poller].
func (p *Epoll) Write(fd int, b []byte) (int, error) {
	return transfer(unix.SYS_SENDTO, fd, b, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

func transfer(call uintptr, fd int, b []byte, flags uintptr) (int, error) {
	for {
		n, _, errno := unix.RawSyscall6(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), flags, 0, 0)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// Writev implements [Gatherer].
func (p *Epoll) Writev(fd int, parts [][]byte) (int, error) {
	p.vector = p.vector[:0]
	for _, part := range parts {
		v := unix.Iovec{Base: unsafe.SliceData(part)}
		v.SetLen(len(part))
		p.vector = append(p.vector, v)
	}
	p.message.Iov = unsafe.SliceData(p.vector)
	p.message.SetIovlen(len(p.vector))
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_SENDMSG, uintptr(fd), uintptr(unsafe.Pointer(&p.message)), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}

// Traffic returns the kernel's counts for a connection since it was opened; zero if there are none.
func (p *Epoll) Traffic(fd int) Traffic { return trafficOf(fd) }

// trafficOf returns the kernel's counts for a socket; zero if there are none. It allocates nothing, because thousands of connections may be lost
// while the garbage collector is off.
func trafficOf(fd int) Traffic {
	var info unix.TCPInfo
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_TCP, unix.TCP_INFO, uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return Traffic{}
	}
	return Traffic{BytesSent: info.Bytes_sent, BytesRetransmitted: info.Bytes_retrans, Retransmits: uint64(info.Total_retrans)}
}

// Close implements [Poller].
func (p *Epoll) Close(fd int) {
	// The descriptor is gone whatever close returns, and no byte of a result depends on it.
	_ = unix.Close(fd)
}

// Release closes the poller itself.
func (p *Epoll) Release() { p.Close(p.fd) }
