package memcached

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
)

// maxIdentity bounds all that a server may say to Identify; a real one says about 5 KiB.
const maxIdentity = 1 << 20

// questions are asked after the greeting, and the lines of the answers that bear on a measurement. reqs_per_event is how many
// requests of one connection the server carries out before it turns to another.
var questions = [...]struct {
	ask    string
	fields []string
}{
	{"stats", []string{"pid", "threads", "limit_maxbytes"}},
	{"stats settings", []string{"maxconns", "reqs_per_event", "item_size_max", "evictions", "lru_segmented", "cas_enabled"}},
}

// Identify greets the server and asks stats and stats settings. The result holds "server" (memcached, loadgen) and "version", and
// of the other figures those that the server tells. It returns soon after ctx is cancelled.
func (Driver) Identify(ctx context.Context, conn net.Conn, config any, _ driver.Secrets) (map[string]string, error) {
	if err := check(config); err != nil {
		return nil, err
	}
	var id map[string]string
	err := driver.Interruptible(ctx, conn, func() (err error) {
		id, err = identify(conn)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask memcached what it is: %w", err)
	}
	return id, nil
}

func identify(conn net.Conn) (map[string]string, error) {
	request, _ := codec{}.Greet(nil)
	for _, q := range questions {
		request = append(append(request, q.ask...), "\r\n"...)
	}
	if _, err := conn.Write(request); err != nil {
		return nil, err
	}
	in := newLineReader(conn)
	id := map[string]string{"server": "memcached"}
	for i, g := range greetings {
		rest, err := greet(in, i)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", g.ask, err)
		}
		if g.want == "VERSION" {
			id["version"] = rest
		}
	}
	for _, q := range questions {
		stats, err := readStats(in)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", q.ask, err)
		}
		describe(id, stats, q.fields)
	}
	return id, nil
}

// greet reads the reply to a greeting and returns what stands behind its first word.
func greet(in *lineReader, i int) (rest string, err error) {
	line, err := in.next()
	if err != nil {
		return "", err
	}
	_, rest, err = parseGreeting(line, i)
	return rest, err
}

// readStats reads the STAT lines of a reply to stats, up to END. A server may refuse to tell: that is an empty answer.
func readStats(in *lineReader) (map[string]string, error) {
	stats := make(map[string]string)
	for {
		b, err := in.next()
		if err != nil {
			return nil, err
		}
		line, _, err := readLine(b)
		if err != nil {
			return nil, err
		}
		switch word, rest, _ := strings.Cut(string(line), " "); {
		case word == "END", len(stats) == 0 && isError([]byte(word)):
			return stats, nil
		case word != "STAT":
			return nil, fmt.Errorf("want STAT or END, got %s", quote(b))
		default:
			name, value, _ := strings.Cut(rest, " ")
			stats[name] = value
		}
	}
}

// describe adds what bears on a measurement. A server that is not memcached itself says who it is in server_name, and holds
// its own version beside the one that memcached's clients ask for.
func describe(id, stats map[string]string, fields []string) {
	if name := stats["server_name"]; name != "" {
		id["server"] = name
	}
	if version := stats[id["server"]+"_version"]; version != "" {
		id["version"] = version
	}
	for _, name := range fields {
		if value, ok := stats[name]; ok {
			id[name] = value
		}
	}
}

// lineReader reads lines from a blocking connection, maxIdentity bytes in all.
type lineReader struct {
	limited io.LimitedReader
	buf     *bufio.Reader
}

func newLineReader(conn net.Conn) *lineReader {
	r := &lineReader{limited: io.LimitedReader{R: conn, N: maxIdentity}}
	r.buf = bufio.NewReaderSize(&r.limited, maxLine)
	return r
}

// next returns the next line with its terminator, valid until the next call.
func (r *lineReader) next() ([]byte, error) {
	line, err := r.buf.ReadSlice('\n')
	switch {
	case err == nil:
		return line, nil
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("line does not end within %d bytes: got %s", maxLine, quote(line))
	case errors.Is(err, io.EOF) && r.limited.N == 0:
		return nil, fmt.Errorf("reply goes on beyond %d bytes", maxIdentity)
	case errors.Is(err, io.EOF):
		return nil, errors.New("server closed the connection")
	default:
		return nil, err
	}
}
