package capture

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loadgen/loadgen/internal/plan/trace"
)

// Compared is a server whose replies are compared, and how to connect to it. Before makes it ready for a pass, and may let it hold keys; nil if nothing
// does.
type Compared struct {
	Name   string
	Dial   func(context.Context) (net.Conn, error)
	Before func(context.Context) error
}

// Differences is what a comparison has found.
type Differences struct {
	Lines     int64
	Reads     int64            // lines whose command may find something
	Missed    int64            // those of A that found nothing
	NotJudged map[string]int64 // lines that could not be judged, by reason
	Different int64            // lines that were judged, and whose replies differ
	Followers int64            // those of them on a key that differed before
	First     []Difference     // the first difference of each key, the first of them
	Died      *Difference      // the line that ended B; nil if B answered all
	Longest   time.Duration    // of a pass
}

// Difference is a line whose replies differ.
type Difference struct {
	Line    int64 // from 1
	Command string
	A, B    string
}

const (
	window    = 256 // requests that are under way
	mostFirst = 100 // differences that are kept
	mostShown = 1 << 16
	restful   = 10 // a key is not judged once it expires within as many of the longest pass
	patient   = 30 * time.Second
)

// Reasons why a line is not judged.
const (
	byChance = "answered by chance"
	afterIt  = "on a key that a command changed by chance"
	expires  = "on a key that expires soon"
	unsteady = "A differs from itself"
)

// line is a request of the trace.
type line struct {
	replies int
	shape   shape
	chance  bool
	reads   bool
	keys    []uint64 // hashes of its database and keys; of the command, if it has none
	expiry  time.Duration
	text    []byte // the request; its words lie in it
	words   [][]byte
}

// Compare sends the requests of a trace of RESP to A, to B and to A again, in order, and compares the replies. Each server must be empty, unless flush
// empties it or its Before fills it; what was put is deleted after each pass. again opens the trace.
func Compare(ctx context.Context, again func() (io.ReadCloser, error), a, b Compared, flush bool) (*Differences, error) {
	c := &comparison{
		ctx: ctx, again: again, seed: maphash.MakeSeed(), flush: flush, d: &Differences{NotJudged: map[string]int64{}}, specs: map[string]spec{},
		shown: map[int]*Difference{},
	}
	asks, err := c.connect(a)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	defer asks.conn.Close()
	c.asks = asks
	first, err := c.pass(a, c.counts)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	second, err := c.pass(b, func(at int, l *line, sum uint64, x *reply) {
		if at < len(first) && sum != first[at] && len(c.shown) < mostShown {
			c.shown[at] = &Difference{Line: int64(at) + 1, Command: shownCommand(l.words), B: string(x.keep)}
		}
	})
	if err != nil {
		var ended *endedError
		if !errors.As(err, &ended) || ended.line == 0 {
			return nil, fmt.Errorf("%s: %w", b.Name, err)
		}
		c.d.Died = &Difference{Line: ended.line, Command: ended.command, B: ended.err.Error()}
	}
	third, err := c.pass(a, func(at int, _ *line, _ uint64, x *reply) {
		if d := c.shown[at]; d != nil {
			d.A = string(x.keep)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s, again: %w", a.Name, err)
	}
	return c.d, c.judge(first, second, third)
}

// counts counts reads of the first pass.
func (c *comparison) counts(_ int, l *line, _ uint64, x *reply) {
	if l.reads {
		c.d.Reads++
		if x.null {
			c.d.Missed++
		}
	}
}

// comparison is a comparison under way.
type comparison struct {
	ctx   context.Context
	again func() (io.ReadCloser, error)
	seed  maphash.Seed
	flush bool
	asks  *session        // A, which is asked about its commands
	specs map[string]spec // of A's commands, by name
	d     *Differences
	shown map[int]*Difference // by index of the line: where B differs from the first A
}

// endedError says which line ended a server.
type endedError struct {
	line    int64
	command string
	err     error
}

func (e *endedError) Error() string { return fmt.Sprintf("line %d (%s): %v", e.line, e.command, e.err) }
func (e *endedError) Unwrap() error { return e.err }

// session is a connection to a server.
type session struct {
	conn net.Conn
	out  *bufio.Writer
	in   *reply
}

func (c *comparison) connect(s Compared) (*session, error) {
	conn, err := s.Dial(c.ctx)
	if err != nil {
		return nil, err
	}
	x := &session{conn: conn, out: bufio.NewWriterSize(conn, 64<<10), in: &reply{in: bufio.NewReaderSize(conn, 64<<10), seed: c.seed}}
	return x, nil
}

// ask sends a command and returns its reply as people see it.
func (x *session) ask(words ...string) (string, error) {
	b := AppendCommand(nil, words...)
	if err := x.conn.SetDeadline(time.Now().Add(patient)); err != nil {
		return "", err
	}
	if _, err := x.out.Write(b); err != nil {
		return "", err
	}
	if err := x.out.Flush(); err != nil {
		return "", err
	}
	x.in.keep = []byte{}
	_, err := x.in.next(inOrder)
	text := string(x.in.keep)
	x.in.keep = nil
	return text, err
}

// empty checks that a server holds no keys, or empties it.
func (c *comparison) empty(x *session) error {
	if c.flush {
		said, err := x.ask("FLUSHALL")
		if err == nil && said != `"OK"` {
			err = fmt.Errorf("FLUSHALL: %s", said)
		}
		return err
	}
	x.in.keep = []byte{}
	said, err := x.ask("INFO", "keyspace")
	if err == nil && strings.Contains(said, ":keys=") {
		err = errors.New("it holds keys: name an empty server, or have --flush empty both")
	}
	return err
}

// pass sends all requests to a server and returns the digests of the replies, as many as there were.
func (c *comparison) pass(s Compared, look func(at int, l *line, sum uint64, x *reply)) (digests []uint64, err error) {
	if s.Before != nil {
		if err := s.Before(c.ctx); err != nil {
			return nil, err
		}
	}
	x, err := c.connect(s)
	if err != nil {
		return nil, err
	}
	defer x.conn.Close()
	stop := context.AfterFunc(c.ctx, func() { _ = x.conn.Close() })
	defer stop()
	if c.flush || s.Before == nil {
		if err := c.empty(x); err != nil {
			return nil, err
		}
	}
	touched := map[string][]string{} // keys by database
	began := time.Now()
	x.in.keep = []byte{}
	digests, err = c.send(x, look, touched)
	x.in.keep = nil
	c.d.Longest = max(c.d.Longest, time.Since(began))
	if err != nil {
		return digests, err
	}
	return digests, clean(x, touched)
}

// clean deletes what a pass has put.
func clean(x *session, touched map[string][]string) error {
	for _, database := range slices.Sorted(maps.Keys(touched)) {
		if _, err := x.ask("SELECT", database); err != nil {
			return err
		}
		for keys := range slices.Chunk(touched[database], 1000) {
			if _, err := x.ask(append([]string{"DEL"}, keys...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends the trace with at most window requests under way.
func (c *comparison) send(x *session, look func(int, *line, uint64, *reply), touched map[string][]string) (digests []uint64, err error) {
	file, err := c.again()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r, err := trace.NewReader(file, trace.Requests, false)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var queue []line
	var rec trace.Record
	database, more := "0", true
	for more || len(queue) > 0 {
		for more && len(queue) < window {
			_, err := r.Next(&rec)
			if err == io.EOF {
				more = false
				break
			}
			if err != nil {
				return digests, err
			}
			l, err := c.line(rec.Key, &database, func(key []byte) {
				if name := database + " " + string(key); !known[name] {
					known[name] = true
					touched[database] = append(touched[database], string(key))
				}
			})
			if err != nil {
				return digests, fmt.Errorf("request %d: %w", rec.Line, err)
			}
			queue = append(queue, l)
			_, err = x.out.Write(rec.Key)
			if err != nil {
				return digests, ended(len(digests), &queue[0], err)
			}
		}
		if err := errors.Join(x.conn.SetDeadline(time.Now().Add(patient)), x.out.Flush()); err != nil {
			return digests, ended(len(digests), &queue[0], err)
		}
		for range min(len(queue), window/2) {
			d, err := c.replies(x, &queue[0])
			if err != nil {
				return digests, ended(len(digests), &queue[0], err)
			}
			look(len(digests), &queue[0], d, x.in)
			digests, queue = append(digests, d), queue[1:]
		}
	}
	return digests, nil
}

func ended(answered int, l *line, err error) error {
	return &endedError{line: int64(answered) + 1, command: shownCommand(l.words), err: err}
}

// replies reads the replies to a line, of which the last one tells.
func (c *comparison) replies(x *session, l *line) (sum uint64, err error) {
	for i := range l.replies {
		s := inOrder
		if i == l.replies-1 {
			s = l.shape
		}
		x.in.keep = x.in.keep[:0]
		d, err := x.in.next(s)
		if err != nil {
			return 0, err
		}
		sum = mix(sum, d)
	}
	return sum, nil
}

// shownCommand is a command as people read it, cut.
func shownCommand(words [][]byte) string {
	var b []byte
	for i, w := range words {
		if len(b) > mostKept || i == 8 {
			return string(b) + " …"
		}
		if i > 0 {
			b = append(b, ' ')
		}
		if len(w) == 0 || bytes.ContainsFunc(w, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' }) {
			b = strconv.AppendQuote(b, string(w[:min(len(w), mostKept)]))
		} else {
			b = append(b, w[:min(len(w), mostKept)]...)
		}
	}
	return string(b)
}
