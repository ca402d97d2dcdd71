package sockets

import (
	"errors"
	"net/netip"

	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/pkg/plan"
)

// Endpoint is a server: its name by the plan's order, and where it was found.
type Endpoint struct {
	Name string // n0, n1, …
	Text string // as the plan has it
	Path string // path of its Unix socket; "" if it has an address
	Addr netip.AddrPort

	Addrs []netip.AddrPort // the name's addresses, if it has several, which clients divide among themselves; Addr is one of them
}

// NewEndpoint returns the endpoint that a plan's text names. Its address is not known yet.
func NewEndpoint(name, text string) Endpoint {
	path, _ := plan.SocketPath(text)
	return Endpoint{Name: name, Text: text, Path: path}
}

// String returns the name and the plan's text.
func (e Endpoint) String() string { return e.Name + " (" + e.Text + ")" }

// morePorts says what to do when no local port is left to connect from.
const morePorts = "keep connections open, load from fewer sessions or more machines, use more endpoints or addresses, or widen net.ipv4.ip_local_port_range"

// Explain adds to an error of connecting what to do about it.
func (e *Endpoint) Explain(err error) error {
	remedy := ""
	switch {
	case errors.Is(err, unix.EADDRNOTAVAIL) && e.Addr.Addr().Is6():
		remedy = "no local port is left, or no IPv6 address: " + morePorts
	case errors.Is(err, unix.EADDRNOTAVAIL):
		remedy = "no local port is left: " + morePorts
	case e.Path == "":
	case errors.Is(err, unix.ENOENT):
		remedy = "there is no such file where the load runs: start the server, and have it listen there (Redis: unixsocket PATH, memcached: -s PATH)"
	case errors.Is(err, unix.EACCES):
		remedy = "this user may not write to the socket, or not enter its directory: see their owner and mode (Redis: unixsocketperm 770, memcached: -a 770)"
	case errors.Is(err, unix.ECONNREFUSED):
		remedy = "nobody listens there: the server has ended and left the file, or it is not a socket"
	case errors.Is(err, unix.EAGAIN):
		remedy = "the server's queue of connections is full: use fewer sessions, or a larger backlog (Redis: tcp-backlog, memcached: -b)"
	}
	if remedy == "" || errors.As(err, new(*explainedError)) {
		return err
	}
	return &explainedError{err, remedy}
}

// explainedError is an error with its remedy, which its text states once.
type explainedError struct {
	err    error
	remedy string
}

func (e *explainedError) Error() string { return e.err.Error() + ": " + e.remedy }

func (e *explainedError) Unwrap() error { return e.err }
