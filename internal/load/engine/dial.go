package engine

import (
	"context"
	"fmt"
	"io"
	"net"

	"github.com/loadgen/loadgen/internal/load/sockets"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Dial connects to an endpoint of a target as the target's load does: over TLS if the plan wants it, with open and allow as in Config, and for the
// protocols that are to be chosen by ALPN.
func Dial(ctx context.Context, t *plan.Target, addr string, open func(path string) (File, error), allow Allow, protocols ...string) (net.Conn, error) {
	e := &Engine{cfg: Config{Open: open, Allow: allow}}
	c, err := sockets.NewConnector(new(net.Dialer).DialContext, e.readUntil(ctx), t.TLS)
	if err != nil {
		return nil, err
	}
	c.Allow = e.allowance(t)
	for _, protocol := range protocols {
		c.Negotiate(protocol)
	}
	end := sockets.NewEndpoint("", addr)
	return c.To(ctx, &end)
}

// maxTLSFile bounds a file of certificates or of a key, in bytes.
const maxTLSFile = 4 << 20

// readUntil returns a function that reads files of certificates and keys until ctx ends.
func (e *Engine) readUntil(ctx context.Context) func(path string) ([]byte, error) {
	return func(path string) ([]byte, error) { return e.readFile(ctx, path) }
}

// readFile reads a file of certificates or of a key.
func (e *Engine) readFile(ctx context.Context, path string) ([]byte, error) {
	file, err := e.openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(newPatient(ctx, file), maxTLSFile+1))
	if len(text) > maxTLSFile {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxTLSFile)
	}
	return text, err
}
