package adapter

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

// planted is an adapter over a map, with one fault.
type planted struct {
	fault string

	mu     sync.Mutex
	kept   map[string][]byte
	shared string // the key of the last command of any connection
}

func (p *planted) serve(conn net.Conn) {
	defer conn.Close()
	in, out := bufio.NewReader(conn), bufio.NewWriter(conn)
	var held []string // replies, for the fault that swaps them
	for {
		args, err := p.command(in)
		if err != nil {
			return
		}
		reply := p.answer(args)
		switch {
		case reply == "" || p.fault == "dies" && len(args) > 2:
			return
		case p.fault == "half a reply" && strings.HasPrefix(reply, "$2"):
			_, _ = io.WriteString(conn, reply[:len(reply)/2])
			return
		case p.fault == "out of order" && in.Buffered() > 0 && len(held) == 0 && args[0] == "GET":
			held = append(held, reply)
			continue
		}
		_, _ = out.WriteString(reply)
		if len(held) > 0 {
			_, _ = out.WriteString(held[0])
			held = nil
		}
		if in.Buffered() == 0 {
			_ = out.Flush()
		}
	}
}

// command reads one command.
func (p *planted) command(in *bufio.Reader) ([]string, error) {
	number := func() (int, error) {
		text, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.TrimSpace(text[1:]))
	}
	n, err := number()
	if err != nil {
		return nil, err
	}
	if p.fault == "whole commands only" && in.Buffered() == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	var args []string
	for range n {
		size, err := number()
		if err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, err
		}
		args = append(args, string(b[:size]))
	}
	return args, nil
}

func (p *planted) answer(args []string) string {
	is := func(fault string) bool { return p.fault == fault }
	bulk := func(b []byte) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(b), b) }
	key := ""
	if len(args) > 1 {
		switch key = args[1]; {
		case is("keys as text"):
			key = strings.ToValidUTF8(key, "\ufffd")
		case is("keys in lower case"):
			key = strings.ToLower(key)
		case is("keys cut at 200"):
			key = key[:min(len(key), 200)]
		case is("keys end at a nul"):
			key, _, _ = strings.Cut(key, "\x00")
		case is("shared state"):
			p.mu.Lock()
			p.shared = key
			p.mu.Unlock()
			time.Sleep(10 * time.Microsecond)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if is("shared state") {
		key = p.shared
	}
	value, there := p.kept[key]
	switch args[0] {
	case "PING":
		if is("silent") {
			time.Sleep(10 * time.Millisecond)
			return "\r\n"
		}
		return "+PONG\r\n"
	case "INFO":
		if is("INFO is a status") {
			return "+OK\r\n"
		}
		return bulk([]byte("server_name:map\r\n"))
	case "DBSIZE":
		if is("occupied") {
			return ":3\r\n"
		}
	case "GET":
		switch {
		case is("1 GB") && there:
			return "$1000000000\r\n" + strings.Repeat("x", 8<<20)
		case is("RESP3") && !there:
			return "_\r\n"
		case is("a miss is empty") && !there:
			return bulk(nil)
		case !there, is("empty is a miss") && len(value) == 0:
			return "$-1\r\n"
		}
		return bulk(value)
	case "SET":
		switch v := []byte(args[2]); {
		case is("insert only") && there:
		case is("values as text"):
			p.kept[key] = bytes.ToValidUTF8(v, []byte("\ufffd"))
		case is("values cut at 1000"):
			p.kept[key] = v[:min(len(v), 1000)]
		default:
			p.kept[key] = v
		}
		return "+OK\r\n"
	case "DEL":
		if !is("deletes nothing") {
			delete(p.kept, key)
		}
		switch {
		case is("DEL is OK"):
			return "+OK\r\n"
		case there, is("deletes what is not there"):
			return ":1\r\n"
		}
		return ":0\r\n"
	}
	if is("an unknown command ends it") {
		return ""
	}
	return "-ERR unknown command\r\n"
}

// listen serves an adapter until the test ends.
func (p *planted) listen(t *testing.T) func(context.Context) (net.Conn, error) {
	p.kept = map[string][]byte{}
	addr := servertest.Serve(t, nil, p.serve)
	return func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	}
}

func TestCheckFindsPlantedFaults(t *testing.T) {
	for fault, check := range map[string]string{
		"":                           "",
		"keys as text":               "keys are bytes",
		"keys in lower case":         "keys are bytes",
		"keys cut at 200":            "keys are bytes",
		"keys end at a nul":          "keys are bytes",
		"shared state":               "connections do not share state",
		"out of order":               "replies keep the order of requests",
		"a miss is empty":            "a key that is not there",
		"empty is a miss":            "values of all sizes and bytes",
		"deletes what is not there":  "a key that is not there",
		"DEL is OK":                  "a key that is not there",
		"deletes nothing":            "a delete counts",
		"insert only":                "an overwrite counts",
		"values as text":             "values of all sizes and bytes",
		"values cut at 1000":         "values of all sizes and bytes",
		"an unknown command ends it": "an unknown command is an error",
		"INFO is a status":           "INFO is answered",
		"RESP3":                      "a key that is not there",
		"1 GB":                       "values of all sizes and bytes",
		"dies":                       "values of all sizes and bytes",
		"half a reply":               "values of all sizes and bytes",
		"silent":                     "answers PING",
		"whole commands only":        "requests come in pieces",
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			p := &planted{fault: fault}
			dial := p.listen(t)
			limit := time.Minute
			if slices.Contains([]string{"1 GB", "half a reply", "silent"}, fault) { // they end with the limit
				limit = 2 * Within
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			r, err := Check(ctx, dial, "check:", false)
			require.NoError(t, err)
			require.Equal(t, check == "", r.OK(), "%v", r)
			var found []string
			for _, f := range r.Findings {
				if f.Err != nil {
					found = append(found, f.Check)
					require.NotEmpty(t, f.Remedy)
				}
			}
			if check == "" {
				require.Empty(t, found)
				require.Empty(t, p.kept, "the check leaves keys behind")
				require.LessOrEqual(t, r.P50, r.P99)
				return
			}
			require.Contains(t, found, check)
		})
	}
	_, err := Check(t.Context(), (&planted{fault: "occupied"}).listen(t), "check:", false)
	require.ErrorIs(t, err, ErrOccupied)
	r, err := Check(t.Context(), (&planted{fault: "occupied"}).listen(t), "check:", true)
	require.NoError(t, err)
	require.True(t, r.OK())
}

// TestCheckPassesRedis: what is no adapter, but does what they are asked for, has no fault.
func TestCheckPassesRedis(t *testing.T) {
	addr := servertest.Redis(t)
	dial := func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", addr) }
	r, err := Check(t.Context(), dial, "check:", false)
	require.NoError(t, err)
	require.True(t, r.OK(), "%v", r)
}
