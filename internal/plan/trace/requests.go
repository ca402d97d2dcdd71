package trace

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/klauspost/compress/zstd"

	"github.com/loadgen/loadgen/internal/plan/rowfile"
	"github.com/loadgen/loadgen/pkg/driver"
)

// Requests is the form of traces that hold whole requests, as they are sent. The key of such an op is its request, and a plan's own op of its name sends
// it. The ops of a client stay in order.
//
//	┌────────────────────────┬──────────────────────────────────────────────────────────┐
//	│ Header, JSON on a line │ zstd frame: for each request                             │
//	│                        │ ┌──────────┬────────┬──────────┬────────┬──────────────┐ │
//	│                        │ │ ns since │ client │ index of │ length │ length bytes │ │
//	│                        │ │ the last │        │ its name │        │              │ │
//	│                        │ │ uvarint  │uvarint │ uvarint  │uvarint │              │ │
//	│                        │ └──────────┴────────┴──────────┴────────┴──────────────┘ │
//	└────────────────────────┴──────────────────────────────────────────────────────────┘
const Requests = "requests"

const (
	// MaxRequest bounds a request of a trace, in bytes.
	MaxRequest  = 64<<20 + 4096
	maxHeader   = 64 << 10
	maxCommands = 1 << 10
	maxWindow   = 8 << 20 // of zstd, in bytes
)

// Header begins a trace of form [Requests].
type Header struct {
	Form    string   `json:"form"`    // Requests
	Version int      `json:"version"` // 1
	Names   []string `json:"names"`   // of ops
	Clients uint32   `json:"clients"` // those of requests are below it
	// Commands counts what all requests ask for; a request may have several commands. Nil in older traces.
	Commands map[string]int64 `json:"commands,omitempty"`
}

var opName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

// valid says what is wrong with a header.
func (h *Header) valid() error {
	switch {
	case h.Form != Requests:
		return fmt.Errorf("form %.40q where %q should be", h.Form, Requests)
	case h.Version != 1:
		return fmt.Errorf("version %d of the form, and this loadgen reads 1", h.Version)
	case len(h.Names) == 0 || len(h.Names) > maxNames:
		return fmt.Errorf("%d names of ops, and there have to be 1 to %d", len(h.Names), maxNames)
	}
	if len(h.Commands) > maxCommands {
		return fmt.Errorf("%d commands, and there are at most %d", len(h.Commands), maxCommands)
	}
	for _, name := range h.Names {
		if !opName.MatchString(name) {
			return fmt.Errorf("an op named %.40q: names are letters, digits and _", name)
		}
	}
	return nil
}

// Writer writes a trace of form [Requests].
type Writer struct {
	z    *zstd.Encoder
	last int64
	buf  []byte
}

// NewWriter writes the header. The caller calls Close.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	h.Form, h.Version = Requests, 1
	if err := h.valid(); err != nil {
		return nil, err
	}
	line, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(maxWindow))
	return &Writer{z: z}, err
}

// Write appends a request that is sent at a time in ns, which never decreases, by a client. name is an index of the header's names.
func (w *Writer) Write(at int64, client uint32, name int, request []byte) error {
	b := binary.AppendUvarint(w.buf[:0], uint64(at-w.last))
	b = binary.AppendUvarint(b, uint64(client))
	b = binary.AppendUvarint(b, uint64(name))
	b = binary.AppendUvarint(b, uint64(len(request)))
	w.last, w.buf = at, b
	if _, err := w.z.Write(b); err != nil {
		return err
	}
	_, err := w.z.Write(request)
	return err
}

// Close writes what is left, and does not close the writer below.
func (w *Writer) Close() error { return w.z.Close() }

// packed reads the form Requests.
type packed struct {
	head  Header
	verbs []driver.Verb // of the names
	z     *zstd.Decoder
	in    *bufio.Reader
	at    int64
	n     int64
	buf   []byte
}

// reset begins to read at the header.
func (p *packed) reset(r io.Reader) error {
	from := bufio.NewReaderSize(r, maxHeader)
	line, err := from.ReadSlice('\n')
	if err != nil {
		return &rowfile.Error{Line: 1, Column: 1, What: "no header of a trace of requests, which loadgen trace import writes"}
	}
	var h Header
	if err := json.Unmarshal(line, &h); err != nil {
		return &rowfile.Error{Line: 1, Column: 1, What: "its header: " + err.Error()}
	}
	if err := h.valid(); err != nil {
		return &rowfile.Error{Line: 1, Column: 1, What: "its header has " + err.Error()}
	}
	if p.z == nil {
		if p.z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow)); err != nil {
			return err
		}
		p.in = bufio.NewReaderSize(nil, 64<<10)
	}
	if err := p.z.Reset(from); err != nil {
		return err
	}
	p.in.Reset(p.z)
	p.head, p.at, p.n = h, 0, 0
	return nil
}

// fault returns an error for the request read last. Its line is the request's number.
func (p *packed) fault(what string) error { return &rowfile.Error{Line: p.n, Column: 1, What: what} }

// next reads the next request.
func (p *packed) next(rec *Record) error {
	after, err := binary.ReadUvarint(p.in)
	if errors.Is(err, io.EOF) {
		return io.EOF // between requests; within one, it is unexpected
	}
	p.n++
	var fields [3]uint64
	for i := range fields {
		if err == nil {
			fields[i], err = binary.ReadUvarint(p.in)
		}
	}
	client, name, length := fields[0], fields[1], fields[2]
	switch {
	case err != nil:
		return p.fault("the trace is cut off or damaged: " + err.Error())
	case after > uint64(maxTime-p.at):
		return p.fault("more than a year after the first request")
	case client >= uint64(max(p.head.Clients, 1)) || name >= uint64(len(p.head.Names)) || length == 0 || length > MaxRequest:
		return p.fault("the trace is damaged: impossible numbers")
	}
	if uint64(cap(p.buf)) < length {
		p.buf = make([]byte, length)
	}
	if _, err := io.ReadFull(p.in, p.buf[:length]); err != nil {
		return p.fault("the trace is cut off or damaged: " + err.Error())
	}
	p.at += int64(after)
	*rec = Record{Line: p.n, At: p.at, Key: p.buf[:length], Client: uint32(client), name: int(name)}
	if p.verbs != nil {
		rec.Verb = p.verbs[name]
	}
	return nil
}
