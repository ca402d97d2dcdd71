package sockets

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// mostHanding is how many connections are made at a time that are handed over.
const mostHanding = 64

// Handed is an Epoll whose sockets begin with an exchange that blocks: each connection is made on a goroutine of its own, which hands its socket over
// when it is done. A descriptor is an event counter until then: where the connection fails, it becomes ready without having been replaced.
type Handed struct {
	*Epoll
	dial  func(ctx context.Context, token int32) (net.Conn, error)
	turns chan struct{} // one for each that is being made
	group sync.WaitGroup

	mu     sync.Mutex
	making map[int]*handing // by descriptor
}

// handing is a connection that is being made, or could not be. The mutex of Handed guards it.
type handing struct {
	cancel context.CancelFunc
	failed error
}

// NewHanded returns a poller whose connections are made by dial, until its context ends.
func NewHanded(dial func(ctx context.Context, token int32) (net.Conn, error)) (*Handed, error) {
	p, err := NewEpoll()
	if err != nil {
		return nil, err
	}
	return &Handed{Epoll: p, dial: dial, turns: make(chan struct{}, mostHanding), making: make(map[int]*handing)}, nil
}

// Connect implements [Poller].
func (p *Handed) Connect(_ *Endpoint, token int32) (int, error) {
	fd, err := unix.Eventfd(1, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return -1, fmt.Errorf("eventfd: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	x := &handing{cancel: cancel}
	p.mu.Lock()
	p.making[fd] = x
	p.mu.Unlock()
	p.group.Go(func() {
		defer cancel()
		conn, err := p.take(ctx, token)
		p.hand(fd, token, x, conn, err)
	})
	return fd, nil
}

// take makes a connection when it has its turn.
func (p *Handed) take(ctx context.Context, token int32) (net.Conn, error) {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.turns }()
	return p.dial(ctx, token)
}

// hand puts the connection's socket in the place of a descriptor, which becomes ready either way.
func (p *Handed) hand(fd int, token int32, x *handing, conn net.Conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn != nil {
		defer conn.Close() // the socket has another descriptor then
	}
	if p.making[fd] != x { // it was closed
		return
	}
	if err == nil {
		err = replace(fd, conn)
	}
	if x.failed = err; err == nil {
		delete(p.making, fd)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLOUT, Fd: token}
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev) // where that fails, the loop gives the connection up after a time
}

var errWrapped = errors.New("the driver's handshake made something else of the connection than a socket, which the event loop cannot take over")

// replace has a descriptor be another one of a connection's socket.
func replace(fd int, conn net.Conn) error {
	at, ok := conn.(syscall.Conn)
	if !ok {
		return errWrapped
	}
	raw, err := at.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(own uintptr) {
		if failed = unix.Dup3(int(own), fd, unix.O_CLOEXEC); failed == nil {
			failed = tune(fd)
		}
	})
	return errors.Join(err, failed)
}

// Connected implements [Poller].
func (p *Handed) Connected(fd int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.making[fd]; x != nil {
		return x.failed
	}
	return nil
}

// Close implements [Poller].
func (p *Handed) Close(fd int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.making[fd]; x != nil {
		x.cancel()
		delete(p.making, fd)
	}
	p.Epoll.Close(fd)
}

// Release closes the poller itself, and waits for what is being made, which is given up.
func (p *Handed) Release() {
	p.group.Wait()
	p.Epoll.Release()
}
