package capture

import (
	"bufio"
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

	"github.com/loadgen/loadgen/internal/target/drivers/redis"
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

// comparison is a comparison under way.
type comparison struct {
	ctx   context.Context
	again func() (io.ReadCloser, error)
	seed  maphash.Seed
	flush bool
	asks  *Session        // A, which is asked about its commands
	specs map[string]spec // of A's commands, by name
	d     *Differences
	shown map[int]*Difference // by index of the line: where B differs from the first A
}

// Compare sends the requests of a trace of RESP to A, to B and to A again, in order, and compares the replies. Each server must be empty, unless flush
// empties it or its Before fills it; what was put is deleted after each pass. again opens the trace.
func Compare(ctx context.Context, again func() (io.ReadCloser, error), a, b Compared, flush bool) (*Differences, error) {
	c := &comparison{
		ctx: ctx, again: again, seed: maphash.MakeSeed(), flush: flush, d: &Differences{NotJudged: map[string]int64{}}, specs: map[string]spec{},
		shown: map[int]*Difference{},
	}
	var err error
	if c.asks, err = connect(ctx, a); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	defer c.asks.conn.Close()
	first, err := c.pass(a, func(_ int, l *line, _ uint64, r reply) {
		if l.reads {
			c.d.Reads++
			if r.missing() {
				c.d.Missed++
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	second, err := c.pass(b, func(at int, l *line, sum uint64, r reply) {
		if at < len(first) && sum != first[at] && len(c.shown) < mostShown {
			c.shown[at] = &Difference{Line: int64(at) + 1, Command: shownCommand(l.words), B: r.String()}
		}
	})
	var ended *endedError
	switch {
	case errors.As(err, &ended):
		c.d.Died = &Difference{Line: ended.line, Command: ended.command, B: ended.err.Error()}
	case err != nil:
		return nil, fmt.Errorf("%s: %w", b.Name, err)
	}
	third, err := c.pass(a, func(at int, _ *line, _ uint64, r reply) {
		if d := c.shown[at]; d != nil {
			d.A = r.String()
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s, again: %w", a.Name, err)
	}
	return c.d, c.judge(first, second, third)
}

// endedError says which line ended a server.
type endedError struct {
	line    int64
	command string
	err     error
}

func (e *endedError) Error() string { return fmt.Sprintf("line %d (%s): %v", e.line, e.command, e.err) }

// Session is a connection to a server.
type Session struct {
	In   *bufio.Reader
	conn net.Conn
	out  *bufio.Writer
}

// NewSession returns the session of a connection, which the caller closes.
func NewSession(conn net.Conn) *Session {
	return &Session{bufio.NewReaderSize(conn, 64<<10), conn, bufio.NewWriterSize(conn, 64<<10)}
}

func connect(ctx context.Context, s Compared) (*Session, error) {
	conn, err := s.Dial(ctx)
	if err != nil {
		return nil, err
	}
	return NewSession(conn), nil
}

// Do sends a command and reads its reply. It leaves a deadline on the connection.
func (x *Session) Do(words ...string) error {
	_, err := x.ask(words...)
	return err
}

// flush sends what was written, and gives the server a while for its replies.
func (x *Session) flush() error {
	return errors.Join(x.conn.SetDeadline(time.Now().Add(patient)), x.out.Flush())
}

func (x *Session) read() (reply, error) {
	room := int64(mostReply)
	return readReply(x.In, &room, 0)
}

// ask sends a command and returns its reply, which is an error if the server says so.
func (x *Session) ask(words ...string) (reply, error) {
	if _, err := x.out.Write(redis.AppendCommand(nil, words...)); err != nil {
		return reply{}, err
	}
	if err := x.flush(); err != nil {
		return reply{}, err
	}
	r, err := x.read()
	if err == nil && r.kind == '-' {
		err = &refusal{words[0], r.text}
	}
	return r, err
}

// refusal is an error reply.
type refusal struct{ command, says string }

func (e *refusal) Error() string { return e.command + ": " + e.says }

// empty checks that a server holds no keys, or empties it.
func (c *comparison) empty(x *Session) error {
	words := []string{"INFO", "keyspace"}
	if c.flush {
		words = []string{"FLUSHALL"}
	}
	said, err := x.ask(words...)
	if err == nil && strings.Contains(said.text, ":keys=") {
		err = errors.New("it holds keys: name an empty server, or have --flush empty both")
	}
	return err
}

// pass sends all requests to a server and returns the digests of the replies, as many as there were.
func (c *comparison) pass(s Compared, look func(at int, l *line, sum uint64, r reply)) (digests []uint64, err error) {
	if s.Before != nil {
		if err := s.Before(c.ctx); err != nil {
			return nil, err
		}
	}
	x, err := connect(c.ctx, s)
	if err != nil {
		return nil, err
	}
	defer x.conn.Close()
	defer context.AfterFunc(c.ctx, func() { _ = x.conn.Close() })()
	if c.flush || s.Before == nil {
		if err := c.empty(x); err != nil {
			return nil, err
		}
	}
	lines, err := c.lines()
	if err != nil {
		return nil, err
	}
	defer lines.file.Close()
	began := time.Now()
	digests, err = c.send(x, lines, look)
	c.d.Longest = max(c.d.Longest, time.Since(began))
	if err != nil {
		return digests, err
	}
	return digests, clean(x, lines.touched)
}

// clean deletes what a pass has put.
func clean(x *Session, touched map[string]map[string]bool) error {
	for database, keys := range touched {
		if _, err := x.ask("SELECT", database); errors.As(err, new(*refusal)) {
			continue // it has no such database
		} else if err != nil {
			return err
		}
		for some := range slices.Chunk(slices.Collect(maps.Keys(keys)), 1000) {
			if _, err := x.ask(append([]string{"DEL"}, some...)...); err != nil {
				return err
			}
		}
	}
	return nil
}

// send sends the trace with at most window requests under way.
func (c *comparison) send(x *Session, lines *lines, look func(int, *line, uint64, reply)) (digests []uint64, err error) {
	var queue []*line
	ended := func(err error) error {
		return &endedError{line: int64(len(digests)) + 1, command: shownCommand(queue[0].words), err: err}
	}
	for {
		for len(queue) < window {
			l, err := lines.next()
			if err != nil {
				return digests, err
			}
			if l == nil {
				break
			}
			queue = append(queue, l)
			if _, err := x.out.Write(lines.rec.Key); err != nil {
				return digests, ended(err)
			}
		}
		if len(queue) == 0 {
			return digests, nil
		}
		if err := x.flush(); err != nil {
			return digests, ended(err)
		}
		for range min(len(queue), window/2) {
			l, sum, r := queue[0], uint64(0), reply{}
			for i := range l.replies { // the last one tells
				if r, err = x.read(); err != nil {
					return digests, ended(err)
				}
				s := inOrder
				if i == l.replies-1 {
					s = l.shape
				}
				sum = mix(sum, r.digest(c.seed, s))
			}
			look(len(digests), l, sum, r)
			digests, queue = append(digests, sum), queue[1:]
		}
	}
}

// shownCommand is a command as people read it, cut.
func shownCommand(words []string) string {
	var b []byte
	for i, w := range words {
		if len(b) > mostKept || i == 8 {
			return string(b) + " …"
		}
		if i > 0 {
			b = append(b, ' ')
		}
		w = w[:min(len(w), mostKept)]
		if w == "" || strings.ContainsFunc(w, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' }) {
			w = strconv.Quote(w)
		}
		b = append(b, w...)
	}
	return string(b)
}
