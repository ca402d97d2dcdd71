package hook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// servers start a server anew in place of the one before, by one goroutine at a time.
type servers struct {
	at      string
	command map[string]Hook // by variant
	running *supervisor     // nil before the first
}

// Servers returns a hook that starts a server anew each time: by the command of the variant that it is told of, which runs as long as it serves, or
// returns. The server is ready once a client can connect at HOST:PORT. {port} in a command is that port. Call end when no more is to be run.
func Servers(name, at string, commands map[string]string) (h Hook, end func(), err error) {
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		return h, nil, err
	}
	s := &servers{at: at, command: map[string]Hook{}}
	for variant, text := range commands {
		if s.command[variant], err = commandOf(name, strings.ReplaceAll(text, "{port}", port)); err != nil {
			return h, nil, fmt.Errorf("server %s: %w", variant, err)
		}
	}
	return Hook{Name: name, servers: s}, s.end, nil
}

// end ends the server that runs.
func (s *servers) end() {
	if s.running != nil {
		s.running.end()
		s.running = nil
	}
}

// start ends the server that runs, and starts that of the variant.
func (s *servers) start(ctx context.Context, told []string, out *bounded) error {
	s.end()
	var command Hook
	for variant, h := range s.command {
		if slices.Contains(told, "LOADGEN_VARIANT="+variant) {
			command = h
		}
	}
	switch {
	case command.path == "":
		return errors.New("the variant has no server")
	case s.listens(ctx):
		return fmt.Errorf("something else listens at %s: end it", s.at)
	}
	var err error
	if s.running, err = command.begin(told, out); err != nil {
		return err
	}
	ended := make(chan string, 1)
	go func(said io.Reader) { // ends with the supervisor
		how, _ := io.ReadAll(said)
		ended <- string(how)
	}(s.running.said)
	for !s.listens(ctx) {
		select {
		case how := <-ended:
			if err := verdict(how); err != nil {
				s.end()
				return fmt.Errorf("the server ended before it listened at %s: %w", s.at, err)
			}
			ended = nil // it serves in the background
		case <-time.After(poll):
		case <-ctx.Done():
			s.end()
			return fmt.Errorf("the server does not listen at %s: its command must take that port, as {port}", s.at)
		}
	}
	return nil
}

// listens says whether a client can connect.
func (s *servers) listens(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.at)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}
