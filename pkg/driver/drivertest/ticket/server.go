package ticket

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
)

// Server speaks the protocol. It answers requests that arrive together in reverse order.
type Server struct {
	// Answer, if set, replaces the n-th reply, from 1, by none, two, or anything. Several goroutines may call it.
	Answer func(n int, reply []byte) []byte

	mu   sync.Mutex
	keys map[string][]byte
	n    int            // replies
	got  map[string]int // requests by their verb
}

// Got returns how many requests with the verb have arrived.
func (s *Server) Got(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got[verb]
}

// Serve serves a connection until it ends, and closes it.
func (s *Server) Serve(conn net.Conn) error {
	defer conn.Close()
	in := bufio.NewReader(conn)
	var replies [][]byte
	for {
		reply, err := s.next(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		replies = append(replies, reply)
		if in.Buffered() > 0 {
			continue
		}
		for i := len(replies) - 1; i >= 0; i-- {
			if _, err := conn.Write(replies[i]); err != nil {
				return err
			}
		}
		replies = replies[:0]
	}
}

// next reads a request and returns the reply.
func (s *Server) next(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	words := bytes.Fields(line)
	if len(words) < 2 {
		return nil, fmt.Errorf("%q is no request", line)
	}
	var value []byte
	if len(words) == 4 {
		size, err := strconv.Atoi(string(words[3]))
		if err != nil || size < 0 || size > maxValue {
			return nil, fmt.Errorf("a value of %q bytes", words[3])
		}
		value = make([]byte, size)
		if _, err := io.ReadFull(in, value); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reply := append(append(words[0], ' '), s.answer(words[1:], value)...)
	s.n++
	if s.Answer != nil {
		reply = s.Answer(s.n, reply)
	}
	return reply, nil
}

// answer carries out a request and returns the reply without its ticket. The caller holds the mutex.
func (s *Server) answer(words [][]byte, value []byte) string {
	if s.keys == nil {
		s.keys, s.got = map[string][]byte{}, map[string]int{}
	}
	verb := string(words[0])
	s.got[verb]++
	if verb == "version" {
		return "ticket 1\n"
	}
	if len(words) < 2 {
		return "error which key?\n"
	}
	held, there := s.keys[string(words[1])]
	switch {
	case verb == "put" && value != nil:
		s.keys[string(words[1])] = value
	case verb != "get" && verb != "delete":
		return "error no such request\n"
	case !there:
		return "miss\n"
	case verb == "get":
		return fmt.Sprintf("value %d\n%s", len(held), held)
	default:
		delete(s.keys, string(words[1]))
	}
	return "ok\n"
}
