package sockets

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// Witness is a connection that remembers the first bytes from its far end. They identify the far end if it does not speak the protocol of the
// target's driver.
type Witness struct {
	net.Conn
	first []byte // the first bytes, at most mostFirst
	web   bool   // the driver's own protocol is HTTP
}

const mostFirst = 8

// Read implements net.Conn.
func (w *Witness) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.first = append(w.first, p[:min(n, mostFirst-len(w.first))]...)
	return n, err
}

// Write implements net.Conn.
func (w *Witness) Write(p []byte) (int, error) {
	w.web = w.web || bytes.Contains(p, []byte(" HTTP/1."))
	return w.Conn.Write(p)
}

// Explain adds to an error of talking to a server what the far end looks like.
func (w *Witness) Explain(err error) error {
	_, secure := w.Conn.(*tls.Conn)
	remedy := ""
	switch {
	case !w.web && bytes.HasPrefix(w.first, []byte("HTTP/")):
		remedy = "a web server answers at this port: write the endpoint of the target"
	case !secure && bytes.HasPrefix(w.first, []byte{0x15, 0x03}): // a TLS alert
		remedy = "the server speaks TLS at this port: write tls {} in the target"
	case !secure && len(w.first) == 0 && w.cut(err):
		remedy = "another kind of server may listen there, or one that speaks TLS at this port: then write tls {} in the target"
	}
	if remedy == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
}

// cut reports whether the far end has broken the connection off.
func (w *Witness) cut(err error) bool {
	if errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		return true
	}
	_, err = w.Conn.Read(make([]byte, 1)) // returns the same error again
	var waited net.Error
	return err != nil && !(errors.As(err, &waited) && waited.Timeout())
}
