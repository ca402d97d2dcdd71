// Package capture reads what others have recorded of the requests to a server: the output of MONITOR of Redis and Valkey, packets of RESP (pcap), the
// logs of PostgreSQL (csvlog, jsonlog) and access logs of web servers (combined, or JSON).
//
// Every record of a recording is either a request or left out for a reason that is counted, so that the two add up (see [Ledger]). A request is never
// made up: what cannot be read whole is left out.
package capture

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// The forms of recordings.
const (
	Monitor  = "monitor"  // MONITOR of Redis or Valkey
	Packets  = "pcap"     // packets of RESP
	CSVLog   = "csvlog"   // of PostgreSQL
	JSONLog  = "jsonlog"  // of PostgreSQL
	Combined = "combined" // access log of nginx
	Access   = "access"   // access log of JSON objects, one on a line
)

// forms has the drivers of the servers that recordings of a form are of; how such a recording begins, in the order in which that is tried; and how its
// lines are read.
var forms = []struct {
	name, server string
	begins       func([]byte) bool
	lines        text
}{
	{Packets, "redis", isPackets, text{}},
	{Monitor, "redis", regexp.MustCompile(`(?m)^(\[ .* \] )?\+?[0-9]+\.[0-9]{6} \[[0-9]+ .+\] "`).Match, text{parse: monitor, ends: true}},
	{CSVLog, "postgres", regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+ [^,\n]+,`).Match, text{parse: csvEntry, quotes: true}},
	{JSONLog, "postgres", regexp.MustCompile(`^\{.*"error_severity"`).Match, text{parse: jsonEntry}},
	{Access, "web", regexp.MustCompile(`^\{`).Match, text{}},
	{Combined, "web", regexp.MustCompile(`^\S+ \S+ .*\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:`).Match, text{parse: combined}},
}

const (
	maxRequest = 64 << 20 // bytes of a request, and of a line; a longer one is left out
	headSize   = 4096     // bytes of a recording that tell its form
)

// Record is a request.
type Record struct {
	At     int64  // when it was sent, in ns since 1970
	Tick   int64  // resolution of At, in ns
	Client string // who sent it; requests of a client follow each other
	// Database is the number of Redis' database, the name of PostgreSQL's, or the host that was asked.
	Database string
	Name     string // the command in upper case, or "multi"; the first word of a statement; or the method
	Request  []byte // as it is sent; valid until the next call of Next

	// commands has one element, but for a transaction from MULTI to EXEC. An element has the command and its arguments; the statement and its
	// parameters; or method and target.
	commands [][]string
}

// Ledger counts the records of a recording: Records is the sum of Ops and of all that were left out.
type Ledger struct {
	Records int64
	Ops     int64            // SELECT and each command of a transaction count as one
	LeftOut map[string]int64 // by reason
	// Commands counts what the ops ask for, in lower case: commands, also those within transactions; statements by their first word; methods.
	Commands map[string]int64
}

// mostCommands bounds the commands that are counted apart.
const mostCommands = 1000

// ask counts a command.
func (l *Ledger) ask(name string) {
	name = clip(strings.ToLower(name))
	if _, known := l.Commands[name]; !known && len(l.Commands) >= mostCommands {
		name = "others"
	}
	l.Commands[name]++
}

// enter counts records that are ops, or are left out if why says so.
func (l *Ledger) enter(why string, n int64) {
	l.Records += n
	if why == "" {
		l.Ops += n
	} else if n > 0 {
		l.LeftOut[why] += n
	}
}

// Reasons why records are left out, which several forms have.
const (
	tooLong  = "a request over 64 MiB"
	cut      = "cut off by the end of the recording"
	strange  = "not a line of this form"
	secret   = "secret"
	managing = "manages the server: --allow "
)

// Options say how to read a recording, and which of its requests matter.
type Options struct {
	Form     string            // "": recognised
	Fields   map[string]string // names of an Access log's members: "time", "method", "uri", and optionally "duration", "client", "host"
	Ports    []uint            // servers' ports in Packets; none: that of the first connection that speaks RESP
	Allow    []string          // names of commands and statements that are otherwise left out
	Database string            // the only one of PostgreSQL whose statements are wanted; "" for all
	Mask     *Mask             // replaces keys and values; nil if they stay
}

// Reader reads a recording, in its own order: that of the requests' starts, or of their ends.
type Reader struct {
	Server string // the driver of the recorded server

	o      Options
	l      *Ledger
	from   source
	closes func()
	open   map[string]*transaction // by client
}

// source reads the records of a form.
type source interface {
	// next reads the next record, or returns why it is none; io.EOF at the end. A record of no commands only says that its client's connection ended.
	next(*Record) (why string, err error)
}

// Open returns a reader of a recording, which may be compressed by gzip or zstd. It counts in the ledger. The caller calls Close.
func Open(r io.Reader, o Options, l *Ledger) (*Reader, error) {
	if l.LeftOut == nil {
		l.LeftOut, l.Commands = map[string]int64{}, map[string]int64{}
	}
	in, closes, err := expand(r)
	if err != nil {
		return nil, err
	}
	c := &Reader{o: o, l: l, closes: closes, open: map[string]*transaction{}}
	if err := c.choose(in); err != nil {
		closes()
		return nil, err
	}
	return c, nil
}

// choose sets the source.
func (c *Reader) choose(in *bufio.Reader) (err error) {
	head, _ := in.Peek(headSize) // whatever there is
	for _, f := range forms {
		if c.o.Form != f.name && (c.o.Form != "" || !f.begins(head)) {
			continue
		}
		f.lines.in = in
		c.Server, c.from = f.server, &f.lines
		switch f.name {
		case Packets:
			c.from, err = newPackets(in, c.o.Ports)
		case Access:
			f.lines.parse, err = access(c.o.Fields)
		}
		switch {
		case err != nil:
			return err
		case c.o.Mask != nil && c.Server != "redis":
			return errors.New("--anonymize covers commands of Redis and Valkey, not SQL or URLs")
		case c.o.Database != "" && c.Server != "postgres":
			return errors.New("--database is of PostgreSQL's logs: leave it out")
		}
		return nil
	}
	if c.o.Form == "" {
		return errors.New("its form is not recognised: name it by --form: monitor, pcap, csvlog, jsonlog, combined or access")
	}
	return fmt.Errorf("form %q: write monitor, pcap, csvlog, jsonlog, combined or access", c.o.Form)
}

// Close releases what decompression holds.
func (c *Reader) Close() { c.closes() }

// expand reads through a decompressor, if the bytes begin as those of one.
func expand(r io.Reader) (*bufio.Reader, func(), error) {
	in := bufio.NewReaderSize(r, 64<<10)
	magic, _ := in.Peek(4) // a shorter recording is not compressed
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, fmt.Errorf("gzip: %w", err)
		}
		return bufio.NewReaderSize(z, 64<<10), func() {}, nil
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			return nil, nil, fmt.Errorf("zstd: %w", err)
		}
		return bufio.NewReaderSize(z, 64<<10), z.Close, nil
	}
	return in, func() {}, nil
}

// Next reads the next request. It returns io.EOF at the end of the recording.
func (c *Reader) Next(r *Record) error {
	for {
		request := r.Request
		*r = Record{}
		why, err := c.from.next(r)
		if err != nil {
			for client := range c.open {
				c.broken(client)
			}
			return err
		}
		n := int64(1)
		if why == "" && c.Server == "redis" {
			why, n = c.join(r)
		} else if why == "" && c.Server == "postgres" {
			why = c.judge(r)
		}
		if why == "" && n > 0 && c.o.Mask != nil {
			why = c.o.Mask.hide(r)
		}
		c.l.enter(why, n)
		if r.Request = request; why != "" || n == 0 {
			continue
		}
		r.write(c.Server)
		for _, words := range r.commands {
			if c.Server == "postgres" {
				words = []string{r.Name}
			}
			c.l.ask(words[0])
		}
		return nil
	}
}

// allows reports whether a command or statement is allowed by name.
func (c *Reader) allows(name string) bool {
	return slices.ContainsFunc(c.o.Allow, func(a string) bool { return strings.EqualFold(a, name) })
}

// text reads records that are lines.
type text struct {
	in     *bufio.Reader
	parse  func(line string, r *Record) (why string)
	quotes bool // a line goes on after its end where quotes are open
	ends   bool // whether a line is whole shows only by its end
	n      int64
	buf    []byte
}

// next implements source.
func (t *text) next(r *Record) (why string, err error) {
	for {
		line, long, whole, err := t.line()
		switch {
		case err != nil:
			return "", err
		case long:
			return tooLong, nil
		case line == "" || line == "OK" || line == "+OK": // what redis-cli prints before the first command
			continue
		case whole:
			return t.parse(line, r), nil
		}
		if why := t.parse(line, r); why != strange && !t.ends {
			return why, nil
		}
		return cut, nil
	}
}

// line returns the next line without its end; long if it was longer than maxRequest, whole unless the recording ends in it.
func (t *text) line() (line string, long, whole bool, err error) {
	t.buf = t.buf[:0]
	for quotes := 0; ; {
		part, err := t.in.ReadSlice('\n')
		if long = long || len(t.buf)+len(part) > maxRequest; !long {
			t.buf = append(t.buf, part...)
		}
		if t.quotes {
			quotes += bytes.Count(part, []byte{'"'})
		}
		switch {
		case err == bufio.ErrBufferFull, err == nil && quotes%2 == 1 && !long:
			continue
		case err == io.EOF && len(t.buf) == 0 && !long:
			return "", false, false, io.EOF
		case err != nil && err != io.EOF:
			return "", false, false, fmt.Errorf("line %d: %w", t.n+1, err)
		}
		t.n++
		return strings.TrimSuffix(strings.TrimSuffix(string(t.buf), "\n"), "\r"), long, err == nil, nil
	}
}
