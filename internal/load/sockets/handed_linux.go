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

// mostHanding is the number of connections that are made at the same time.
const mostHanding = 64

// Handed is an Epoll whose sockets begin with an exchange that blocks: each connection is made on its own goroutine, which hands the socket over when
// the exchange is done. Until then the descriptor is an event counter; if the connection fails, the counter is not replaced, and becomes ready.
type Handed struct {
	*Epoll
	dial  func(ctx context.Context, token int32) (net.Conn, error)
	turns chan struct{} // one for each connection being made
	group sync.WaitGroup

	mu     sync.Mutex
	making map[int]*handing // connections being made, by descriptor
}

// handing is a connection that is being made or has failed. The mutex of Handed guards it.
type handing struct {
	cancel context.CancelFunc
	failed error
}

// NewHanded returns a poller whose connections are made by dial. dial's context ends if the connection is closed first.
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

// take waits for its turn and makes a connection.
func (p *Handed) take(ctx context.Context, token int32) (net.Conn, error) {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.turns }()
	return p.dial(ctx, token)
}

// hand replaces a descriptor by the connection's socket. The descriptor becomes ready either way.
func (p *Handed) hand(fd int, token int32, x *handing, conn net.Conn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if conn != nil {
		defer conn.Close() // fd has become a descriptor of the same socket
	}
	if p.making[fd] != x { // Close was called
		return
	}
	if err == nil {
		err = replace(fd, conn)
	}
	if x.failed = err; err == nil {
		delete(p.making, fd)
	}
	ev := unix.EpollEvent{Events: unix.EPOLLOUT, Fd: token}
	_ = unix.EpollCtl(p.fd, unix.EPOLL_CTL_ADD, fd, &ev) // if that fails, the loop times the connection out
}

var errWrapped = errors.New("the driver's handshake made something else of the connection than a socket, which the event loop cannot take over")

// replace makes fd another descriptor of the connection's socket.
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

// Release waits for the connections still being made, which are given up, and closes the poller itself.
func (p *Handed) Release() {
	p.group.Wait()
	p.Epoll.Release()
}
