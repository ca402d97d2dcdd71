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

// maxRequest bounds a request and a line, in bytes. A longer one is left out.
const maxRequest = 64 << 20

// Record is a request, or the commands of a transaction, which belong together.
type Record struct {
	At     int64  // when it was sent, in ns since 1970
	Tick   int64  // resolution of At, in ns
	Client string // who sent it; requests of a client follow each other
	// Database is the number of Redis' database, the name of PostgreSQL's, or the host that was asked.
	Database string
	Name     string // the command in upper case, the first word of a statement, or the method
	// Commands has one element, but for a transaction from MULTI to EXEC. An element has the command and its arguments; the statement and its
	// parameters, of which a nil one is NULL; or method and target. Valid until the next call of Next.
	Commands [][][]byte
}

// Ledger counts the records of a recording: Records is the sum of Ops and of all that were left out.
type Ledger struct {
	Records int64
	Ops     int64            // SELECT and each command of a transaction count as one
	LeftOut map[string]int64 // by reason
}

// leave counts records that are left out.
func (l *Ledger) leave(reason string, n int64) {
	if n > 0 {
		l.Records += n
		l.LeftOut[reason] += n
	}
}

// take counts records that are ops.
func (l *Ledger) take(n int64) {
	l.Records += n
	l.Ops += n
}

// Untake leaves out the ops of the record that was taken last.
func (l *Ledger) Untake(reason string, n int64) {
	l.Ops -= n
	l.LeftOut[reason] += n
}

// Reader reads a recording, in its own order: that of the requests' starts, or of their ends.
type Reader interface {
	// Next reads the next request. It returns io.EOF at the end of the recording.
	Next(*Record) error
}

// Options say how to read a recording.
type Options struct {
	Form   string            // "": recognised
	Fields map[string]string // names of an Access log's members: "time", "method", "uri", and optionally "duration", "client", "host"
	Ports  []uint16          // servers' ports in Packets; none: that of the first connection that speaks RESP
	Allow  []string          // names of commands and statements that are otherwise left out, in upper case
}

// Open returns a reader of a recording, which may be compressed by gzip or zstd, and its form. The reader counts in the ledger. close releases what
// decompression holds.
func Open(r io.Reader, o Options, l *Ledger) (reader Reader, form string, closing func(), err error) {
	if l.LeftOut == nil {
		l.LeftOut = map[string]int64{}
	}
	in, closing, err := expand(r)
	if err != nil {
		return nil, "", nil, err
	}
	if form = o.Form; form == "" {
		head, _ := in.Peek(headSize) // whatever there is
		if form = recognise(head); form == "" {
			closing()
			return nil, "", nil, errors.New("its form is not recognised: name it by --form: monitor, pcap, csvlog, jsonlog, combined or access")
		}
	}
	allow := allowed(o.Allow)
	switch form {
	case Monitor:
		reader = newMonitor(in, l, allow)
	case Packets:
		reader, err = newPackets(in, l, allow, o.Ports)
	case CSVLog:
		reader = newStatements(&csvLog{in: in}, l, allow)
	case JSONLog:
		reader = newStatements(&jsonLog{lines{in: in}}, l, allow)
	case Combined:
		reader = newAccess(&combined{}, in, l)
	case Access:
		var fields *members
		if fields, err = newMembers(o.Fields); err == nil {
			reader = newAccess(fields, in, l)
		}
	default:
		err = fmt.Errorf("form %q: write monitor, pcap, csvlog, jsonlog, combined or access", form)
	}
	if err != nil {
		closing()
		return nil, "", nil, err
	}
	return reader, form, closing, nil
}

// headSize is how much of a recording tells its form, in bytes.
const headSize = 4096

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

var (
	monitorLine  = regexp.MustCompile(`(?m)^\+?[0-9]+\.[0-9]{6} \[[^\]\n]*\] "`)
	csvLine      = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:.]+ [^,\n]+,`)
	combinedLine = regexp.MustCompile(`^\S+ \S+ .*\[[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:`)
)

// recognise returns the form of a recording that begins like this, or "".
func recognise(head []byte) string {
	if len(head) >= 4 {
		switch string(head[:4]) {
		case "\xd4\xc3\xb2\xa1", "\xa1\xb2\xc3\xd4", "\x4d\x3c\xb2\xa1", "\xa1\xb2\x3c\x4d", ng:
			return Packets
		}
	}
	first, _, _ := bytes.Cut(head, []byte{'\n'})
	switch {
	case monitorLine.Match(head):
		return Monitor
	case csvLine.Match(first):
		return CSVLog
	case bytes.HasPrefix(first, []byte{'{'}) && bytes.Contains(first, []byte(`"error_severity"`)):
		return JSONLog
	case bytes.HasPrefix(first, []byte{'{'}):
		return Access
	case combinedLine.Match(first):
		return Combined
	}
	return ""
}

// lines reads lines of bounded length.
type lines struct {
	in  *bufio.Reader
	n   int64 // of the line read last, from 1
	buf []byte
}

// next returns the next line without its end, valid until the next call; long if it was longer than maxRequest, whole unless the recording ends in it.
func (l *lines) next() (line []byte, long, whole bool, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if long = long || len(l.buf)+len(part) > maxRequest; !long {
			l.buf = append(l.buf, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(l.buf) == 0 && !long:
			return nil, false, false, io.EOF
		case err != nil && err != io.EOF:
			return nil, false, false, fmt.Errorf("line %d: %w", l.n+1, err)
		}
		l.n++
		line = bytes.TrimSuffix(bytes.TrimSuffix(l.buf, []byte{'\n'}), []byte{'\r'})
		return line, long, err == nil, nil
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

// allowed returns whether a command or statement is allowed by name.
func allowed(names []string) map[string]bool {
	set := map[string]bool{}
	for _, n := range names {
		set[strings.ToUpper(n)] = true
	}
	return set
}
