package engine

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/loadgen/loadgen/internal/sockets"
	"github.com/loadgen/loadgen/pkg/plan"
)

// Dial connects to an endpoint of a target as the target's load does: over TLS where the plan wants it, with open and allow as in Config.
func Dial(ctx context.Context, t *plan.Target, addr string, open func(path string) (*os.File, error), allow Allow) (net.Conn, error) {
	e := &Engine{cfg: Config{Open: open, Allow: allow}}
	c, err := sockets.NewConnector(new(net.Dialer).DialContext, e.readFile, t.TLS)
	if err != nil {
		return nil, err
	}
	c.Allow = e.allowance(t.Config)
	end := sockets.NewEndpoint("", addr)
	return c.To(ctx, &end)
}

// maxTLSFile bounds a file of certificates, or of a key.
const maxTLSFile = 4 << 20

// readFile reads a file of certificates or of a key.
func (e *Engine) readFile(path string) ([]byte, error) {
	file, err := e.openNamed(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxTLSFile+1))
	if len(text) > maxTLSFile {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxTLSFile)
	}
	return text, err
}
