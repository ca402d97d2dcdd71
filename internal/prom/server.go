package prom

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/loadgen/loadgen/internal/listen"
)

// Limits of the server. A client that stays silent is cut off; one that scrapes each minute keeps its connection.
const (
	readHeaderWithin = 5 * time.Second
	readWithin       = 10 * time.Second
	writeWithin      = 30 * time.Second
	idleFor          = 2 * time.Minute
	maxHeaderBytes   = 16 << 10
)

// Listen listens on a TCP address, host:port, of the loopback; port 0 takes a free one. Other addresses are refused: what is
// served has neither encryption nor authentication.
func Listen(address string) (net.Listener, error) {
	l, err := listen.Loopback(address)
	if errors.Is(err, listen.ErrBeyond) {
		return nil, fmt.Errorf("listen for HTTP: %w: only the loopback is served until there is authenticated TLS: write 127.0.0.1:PORT", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	return l, nil
}

// NewServer returns a server of c's Handler with every wait bounded. Its complaints about clients go to log.
func NewServer(c *Collector, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           Handler(c),
		ConnState:         c.connection,
		ReadHeaderTimeout: readHeaderWithin,
		ReadTimeout:       readWithin,
		WriteTimeout:      writeWithin,
		IdleTimeout:       idleFor,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}
