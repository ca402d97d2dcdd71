package memcached

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/loadgen/loadgen/pkg/driver"
)

// maxIdentity bounds everything a server may send to Identify; a real one sends about 5 KiB.
const maxIdentity = 1 << 20

// questions are asked after the greeting. Each has the lines of its answer that matter to a measurement. reqs_per_event is how many requests of one
// connection the server carries out before it turns to another.
var questions = [...]struct {
	ask    string
	fields []string
}{
	{"stats", []string{"pid", "threads", "limit_maxbytes"}},
	{"stats settings", []string{"maxconns", "reqs_per_event", "item_size_max", "evictions", "lru_segmented", "cas_enabled"}},
}

// Identify greets the server and sends stats and stats settings. The result holds "server" (memcached, loadgen) and "version", and those other
// figures that the server reveals; a "note" says why they are missing otherwise. It returns soon after ctx is cancelled.
func (Driver) Identify(ctx context.Context, conn net.Conn, link driver.Link) (map[string]string, error) {
	cfg, err := check(link.Config)
	if err != nil {
		return nil, err
	}
	greet := greetMeta
	if cfg.Protocol == textProtocol {
		greet = greetText
	}
	var id map[string]string
	err = driver.Interruptible(ctx, conn, func() (err error) {
		if id, err = identify(conn, greet); err == nil && errors.Is(ctx.Err(), context.Canceled) {
			err = ctx.Err()
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("ask memcached what it is: %w", err)
	}
	return id, nil
}

// identify greets and waits for the answers before it asks: a proxy that closes the connection on a question would discard them.
func identify(conn net.Conn, greet func(net.Conn, *lineReader, map[string]string) error) (map[string]string, error) {
	in := newLineReader(conn)
	id := map[string]string{"server": "memcached"}
	if err := greet(conn, in, id); err != nil {
		return nil, err
	}
	if id[driver.Note] != "" {
		return id, nil
	}
	for _, q := range questions {
		stats, err := ask(conn, in, q.ask)
		if err == nil && len(stats) == 0 && q.ask == "stats" {
			err = errors.New("server tells nothing")
		}
		if err != nil {
			id[driver.Note] = fmt.Sprintf("the server says nothing of itself: %s: %v", q.ask, err)
			break
		}
		describe(id, stats, q.fields)
		if is := instance(stats, conn.LocalAddr(), conn.RemoteAddr()); is != "" {
			id["instance"] = is
		}
	}
	return id, nil
}

// instance returns a text that differs between the memcached servers on the client's own machine: process id, start time and port. On other machines
// these may be equal, since containers that are started together have the same process id.
func instance(stats map[string]string, from, to net.Addr) string {
	local, _ := from.(*net.TCPAddr)
	remote, tcp := to.(*net.TCPAddr)
	now, err := strconv.ParseInt(stats["time"], 10, 64)
	up, err2 := strconv.ParseInt(stats["uptime"], 10, 64)
	if !tcp || local == nil || err != nil || err2 != nil || stats["pid"] == "" || !remote.IP.IsLoopback() && !remote.IP.Equal(local.IP) {
		return ""
	}
	return fmt.Sprintf("pid %s, started %d, port %d of this machine", stats["pid"], now-up, remote.Port)
}

// greetMeta sends the greeting of a codec for the meta commands.
func greetMeta(conn net.Conn, in *lineReader, id map[string]string) error {
	hello, _ := codec{}.Greet(nil)
	if _, err := conn.Write(hello); err != nil {
		return err
	}
	for i, g := range greetings {
		rest, err := greet(in, i)
		switch {
		case errors.Is(err, errClosed) && g.want == "MN":
			return fmt.Errorf("%s: %w: it may be a proxy that does not know the meta commands, as twemproxy: it must be memcached 1.6.10 or newer, or write protocol = \"text\"", g.ask, err)
		case err != nil:
			return fmt.Errorf("%s: %w", g.ask, err)
		case g.want == "VERSION" && rest != "":
			id["version"] = rest
		}
	}
	return nil
}

// greetText asks for the version. A proxy may not know the command, and close the connection.
func greetText(conn net.Conn, in *lineReader, id map[string]string) error {
	_, _ = conn.Write([]byte("version\r\n")) // if this fails, so does reading the answer
	line, err := in.next()
	if err = silence(err); errors.Is(err, errClosed) {
		id[driver.Note] = fmt.Sprintf("the server says nothing of itself: version: %v: it may be a proxy, or speak TLS at this port", err)
		return nil
	}
	if err == nil {
		line, _, err = readLine(line)
	}
	word, version, _ := strings.Cut(string(line), " ")
	switch {
	case err != nil:
		return fmt.Errorf("version: %w", err)
	case word == "VERSION" && version != "":
		id["version"] = version
	case word != "VERSION" && !isError([]byte(word)):
		return fmt.Errorf("version: want VERSION, got %s", quote(line))
	}
	return nil
}

// ask asks for stats.
func ask(conn net.Conn, in *lineReader, question string) (map[string]string, error) {
	_, _ = conn.Write(append([]byte(question), "\r\n"...)) // if this fails, so does reading the answer
	stats, err := readStats(in)
	if err != nil {
		return nil, silence(err)
	}
	return stats, nil
}

// silence explains that a server did not answer.
func silence(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return errors.New("no answer in time")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrClosedPipe), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNRESET):
		return errClosed
	}
	return err
}

var errClosed = errors.New("server closed the connection")

// greet reads the reply to a greeting and returns what follows its first word.
func greet(in *lineReader, i int) (rest string, err error) {
	line, err := in.next()
	if err != nil {
		return "", silence(err)
	}
	_, rest, err = parseGreeting(line, i)
	return rest, err
}

// readStats reads the STAT lines of a reply to stats, up to END. If a server refuses, the result is empty.
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

// describe adds what bears on a measurement. Servers other than memcached identify themselves in server_name, and give their own version beside the
// one that memcached's clients ask for.
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

// lineReader reads lines from a blocking connection, at most maxIdentity bytes in all.
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
		return nil, errClosed
	default:
		return nil, err
	}
}
