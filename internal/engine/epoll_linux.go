package engine

import (
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/run"
)

// errAgain is what a non-blocking call says that has nothing to move.
const errAgain = unix.EAGAIN

// epoll is the poller of the real world. Reads, writes and looks are raw system calls: they return at once, and the loop's
// thread keeps its processor. So do the first milliseconds of a wait, in which nearly all waits of a busy loop end; the signal by which the
// runtime stops the world ends it, too. A wait through the scheduler is dear: the runtime's monitor may find the thread in it and take its
// processor away, and then looks for more of that every 20 µs for a millisecond. Only the rest of a longer wait goes through the
// scheduler, which would else have nothing to run other goroutines with.
type epoll struct {
	fd     int
	events []unix.EpollEvent
	limit  unix.Timespec // of the wait under way

	vector  []unix.Iovec // of writev
	message unix.Msghdr
}

const (
	edge      = 1 << 31 // EPOLLET, which package unix has as a negative number
	maxEvents = 256
	rawWait   = 5 * time.Millisecond
)

// mostUnsent is how many bytes the kernel takes for a connection beyond what the other end has room for. What waits in the kernel is sent when the
// server has read something, and on loopback by the server's processor, which has less for the server then.
const mostUnsent = 64 << 10

func newEpoll() (*epoll, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("epoll_create1: %w", err)
	}
	return &epoll{fd: fd, events: make([]unix.EpollEvent, maxEvents)}, nil
}

func (p *epoll) wait(ready []readiness, d time.Duration) (int, error) {
	most := min(len(ready), len(p.events))
	n, errno := p.look(unix.RawSyscall6, most, min(d, rawWait))
	if n == 0 && errno == 0 && d > rawWait {
		n, errno = p.look(unix.Syscall6, most, d-rawWait)
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
		ready[i] = readiness{token: ev.Fd, read: ended || ev.Events&unix.EPOLLIN != 0, write: broken || ev.Events&unix.EPOLLOUT != 0, ended: ended}
	}
	return int(n), nil
}

// look makes a system call that waits up to d.
func (p *epoll) look(call func(trap, a1, a2, a3, a4, a5, a6 uintptr) (r1, r2 uintptr, err unix.Errno), most int, d time.Duration) (int, unix.Errno) {
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

func (p *epoll) connect(to *endpoint, token int32) (int, error) {
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

func (p *epoll) begin(fd int, addr unix.Sockaddr, token int32) error {
	if _, local := addr.(*unix.SockaddrUnix); !local {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1); err != nil {
			return fmt.Errorf("set TCP_NODELAY: %w", err)
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, mostUnsent); err != nil {
			return fmt.Errorf("set TCP_NOTSENT_LOWAT: %w", err)
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

func (e *endpoint) sockaddr() (domain int, addr unix.Sockaddr) {
	if e.path != "" {
		return unix.AF_UNIX, &unix.SockaddrUnix{Name: e.path}
	}
	if ip := e.addr.Addr().Unmap(); ip.Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(e.addr.Port()), Addr: ip.As4()}
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(e.addr.Port()), Addr: e.addr.Addr().As16()}
}

func (p *epoll) connected(fd int) error {
	code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if code != 0 {
		return fmt.Errorf("connect: %w", unix.Errno(code))
	}
	return nil
}

func (p *epoll) watch(fd int, token int32, write bool) error {
	// Edge-triggered: the kernel need not ask the socket again at the next wait whether there is more.
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | edge, Fd: token}
	if write {
		ev.Events |= unix.EPOLLOUT
	}
	if err := unix.EpollCtl(p.fd, unix.EPOLL_CTL_MOD, fd, &ev); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	return nil
}

// Sockets are spoken to by recvfrom and sendto rather than read and write: the kernel's way to the socket is shorter.

func (p *epoll) read(fd int, b []byte) (int, error) {
	return transfer(unix.SYS_RECVFROM, fd, b, unix.MSG_DONTWAIT)
}

func (p *epoll) write(fd int, b []byte) (int, error) {
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

func (p *epoll) writev(fd int, parts [][]byte) (int, error) {
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

// tcpInfo returns what the kernel has counted on a connection in its life; nothing, when it does not say.
func (p *epoll) tcpInfo(fd int) run.TCP {
	info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return run.TCP{}
	}
	return run.TCP{BytesSent: info.Bytes_sent, BytesRetransmitted: info.Bytes_retrans, Retransmits: uint64(info.Total_retrans)}
}

func (p *epoll) close(fd int) {
	// The descriptor is gone whatever close says, and no byte of a result hangs on it.
	_ = unix.Close(fd)
}

// ownThread ties the goroutine to its thread until the function that it returns is called, and has the kernel wake the
// thread when a wait is over instead of up to 50 µs later, to save power. A cpu that is not below 0 is where the thread then runs, also when
// it is not one of the process's: the runtime does not start threads from one that is locked, so the others stay where they are.
func ownThread(cpu int) (release func(), err error) {
	const least, standard = 1, 0 // nanoseconds; 0 is what the thread began with
	runtime.LockOSThread()
	unpin := func() bool { return true }
	if cpu >= 0 {
		if unpin, err = pin(cpu); err != nil {
			runtime.UnlockOSThread()
			return nil, fmt.Errorf("run a thread on CPU %d: %w: write CPUs in --pin that are in /sys/devices/system/cpu/online and that this control group may use", cpu, err)
		}
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, least, 0, 0, 0) // without it, waits are longer and lag says so
	return func() {
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, standard, 0, 0, 0)
		if unpin() {
			runtime.UnlockOSThread() // else the thread ends with its goroutine
		}
	}, nil
}

// pinnedNice is the nice value of a pinned thread: nine times the weight of other threads, so that those bound to the same CPU still run
// every 30 ms or so.
const pinnedNice = -10

// pin lets this thread run on one CPU only, and there, if the process may say so, before what else turns up: a thread that looks at the clock
// whenever it has nothing to do has no credit with a fair scheduler, which would let daemons of the system run for milliseconds. The function
// that it returns takes that back, and says whether it could.
func pin(cpu int) (undo func() bool, err error) {
	var before, only unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	only.Set(cpu)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		return nil, err
	}
	const least = 20 // getpriority returns this minus the nice value
	priority, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	preferred := err == nil && unix.Setpriority(unix.PRIO_PROCESS, 0, pinnedNice) == nil
	return func() bool {
		return (!preferred || unix.Setpriority(unix.PRIO_PROCESS, 0, least-priority) == nil) && unix.SchedSetaffinity(0, &before) == nil
	}, nil
}

// release closes the poller itself.
func (p *epoll) release() { p.close(p.fd) }
