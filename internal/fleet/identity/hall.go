package identity

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
)

// maxVisitors bounds a page's unproved connections; on the loopback these are all that were not made welcome. A further one replaces the oldest, so
// that a crowd shuts nobody out.
const maxVisitors = 256

// hall is a listener that tracks which of its connections are unproved.
type hall struct {
	net.Listener

	mu      sync.Mutex
	waiting []*visitor // oldest first
}

func newHall(l net.Listener) *hall { return &hall{Listener: l} }

// visitor is a connection.
type visitor struct {
	net.Conn
	hall *hall
}

// Accept returns the next connection.
func (h *hall) Accept() (net.Conn, error) {
	conn, err := h.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visitor{conn, h}
	h.mu.Lock()
	h.waiting = append(h.waiting, v)
	oldest, full := h.waiting[0], len(h.waiting) > maxVisitors
	h.mu.Unlock()
	if full {
		_ = oldest.Close() // it has had its chance
	}
	return v, nil
}

// Close ends the connection.
func (v *visitor) Close() error {
	v.hall.forget(v)
	return v.Conn.Close()
}

func (h *hall) forget(v *visitor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.waiting, v); i >= 0 {
		h.waiting = slices.Delete(h.waiting, i, i+1)
	}
}

// connectionKey is the context key of a request's connection. A visitor who has proved who they are keeps their connection.
type connectionKey struct{}

// Welcome removes a request's connection from the unproved ones. The caller must bound how many connections it makes welcome.
func Welcome(r *http.Request) {
	conn, _ := r.Context().Value(connectionKey{}).(net.Conn) // or nil
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	if v, ok := conn.(*visitor); ok {
		v.hall.forget(v)
	}
}
