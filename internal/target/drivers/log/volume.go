package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// volume is a log in one of the layouts, in its file or files.
type volume interface {
	// writer returns the writer of the i-th of the n sessions on the log: a *slotWriter, or an appender.
	writer(i, n int) (waiter, error)
	// reader returns the reader of the i-th of the n sessions on the log, for the whole log or for the session's part of a raw file. It is nil for an
	// array, whose slots are read by number.
	reader(i, n int) reader
	// room reports whether an entry of size bytes fits, unless another session writes one first.
	room(size int) bool
	// clear empties the whole log.
	clear() error
	// close closes the files. An error means that acknowledged entries may be lost.
	close() error
}

// groups is a volume in which one sync makes several entries durable.
type groups interface {
	Groups() pmlog.GroupSizes
	Sync() error
}

// waiter is a writer that knows how long it has waited for durability, as far as that is measured.
type waiter interface{ Waited() time.Duration }

// appender writes for one session.
type appender interface {
	// Append stores an entry in the layout's next place and returns a number for that place, or pmlog.ErrFull.
	Append(p []byte) (uint64, error)
}

// reader reads for one session.
type reader interface {
	// next returns the next entry, or io.EOF after the last one. The bytes are valid until the next call. After pmlog.ErrCorrupt, the next call
	// continues after the damage.
	next() ([]byte, error)
}

// form says how a volume's files are created and opened.
type form struct {
	Layout string
	Kind   kind
	Slots  int // number of slots in an array

	Padding       int
	Order, Commit string
	CRC           bool
	Prealloc      string
	Rotate        bool         // the log is in segments
	Group         *pmlog.Group // nil without group commit
}

func (f *form) appendOptions() pmlog.AppendOptions {
	o := pmlog.AppendOptions{Padding: f.Padding, Order: pmlog.Order(f.Order), Commit: pmlog.Commit(f.Commit)}
	if f.Group != nil {
		o.Order = pmlog.Grouped
	}
	return o
}

func (f *form) arrayOptions() pmlog.ArrayOptions {
	return pmlog.ArrayOptions{Slots: f.Slots, Capacity: f.Kind.Size, Padding: max(64, f.Padding)}
}

// fileSize returns the file's size in bytes, if it may be as large as asked, and how many entries fit in it.
func (f *form) fileSize(asked int64) (size, entries int64, err error) {
	one := int64(f.Kind.Size)
	switch f.Layout {
	case layoutArray:
		return pmlog.ArraySize(f.arrayOptions()), int64(f.Slots), nil
	case layoutAppend:
		o := f.appendOptions()
		head := pmlog.AppendSize(o, one, 0)
		entries = (asked - head) / (pmlog.AppendSize(o, one, 1) - head)
	default:
		entries = asked / one
	}
	if entries < 1 {
		return 0, 0, fmt.Errorf("a file of %s does not hold an entry of %s; write a larger file_size, or smaller values in the dataset",
			driver.Size(asked), driver.Size(one))
	}
	return asked, entries, nil
}

// sideName returns the name of a channel's second file.
func sideName(name string) string { return name + ".side" }

// open opens the log with the name, or creates it if size is above 0, unless ctx ends first. It returns the log's files. After an error, none of the
// files that it was to create exists.
func (f *form) open(ctx context.Context, root *os.Root, name string, size int64, mode pmem.Mode) (volume, []*pmem.File, error) {
	files := opener{root: root, mode: mode, prealloc: pmem.Prealloc(f.Prealloc), entry: int64(f.Kind.usual()), create: size > 0}
	if f.Prealloc == recycle {
		files.prealloc = pmem.Zeroed // files that are recycled
	}
	if f.Rotate {
		return f.openSegments(&folder{ctx: ctx, opener: files, name: name, size: size})
	}
	data := files.open(ctx, name, size)
	var side *pmem.File
	if f.Layout == layoutChannel {
		side = files.open(ctx, sideName(name), pmlog.SideSize)
	}
	if files.err != nil {
		return nil, nil, errors.Join(files.err, files.discard())
	}
	v, err := f.over(data, side, files.create)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", name, err), files.discard())
	}
	return v, files.all, nil
}

// view opens the log with the name to read it, and never writes to its files: what a recovery would change, it changes in memory.
func (f *form) view(root *os.Root, name string) (volume, error) {
	if f.Rotate {
		l, err := pmlog.OpenSegments(&seen{root: root, name: name}, false)
		return segmentsVolume{Segments: l}, err
	}
	data, err := pmem.OpenViewIn(root, name)
	if err != nil {
		return nil, err
	}
	regions := []pmlog.Region{data, data}
	if f.Layout == layoutChannel {
		side, err := pmem.OpenViewIn(root, sideName(name))
		if err != nil {
			return nil, errors.Join(err, data.Close())
		}
		regions[1] = side
	}
	v, err := f.over(regions[0], regions[1], false)
	if err != nil {
		return nil, errors.Join(err, regions[0].Close(), regions[1].Close())
	}
	return v, nil
}

// opener opens or creates files until one fails.
type opener struct {
	root     *os.Root
	mode     pmem.Mode
	prealloc pmem.Prealloc
	entry    int64
	create   bool
	all      []*pmem.File
	err      error
}

// open opens a file, or creates it with size bytes; nil once one has failed.
func (o *opener) open(ctx context.Context, name string, size int64) (f *pmem.File) {
	if o.err != nil {
		return nil
	}
	if o.create {
		f, o.err = pmem.CreateIn(ctx, o.root, name, pmem.Form{Size: size, Entry: o.entry, Mode: o.mode, Prealloc: o.prealloc})
	} else {
		f, o.err = pmem.OpenIn(o.root, name, o.mode)
	}
	if o.err != nil {
		return nil
	}
	o.all = append(o.all, f)
	return f
}

// discard closes the files, and deletes those that it created.
func (o *opener) discard() error {
	var errs []error
	for _, f := range o.all {
		errs = append(errs, f.Close())
		if o.create {
			errs = append(errs, o.root.Remove(filepath.Base(f.Name())))
		}
	}
	return errors.Join(errs...)
}

// over makes the volume from open files.
func (f *form) over(data, side pmlog.Region, create bool) (volume, error) {
	switch f.Layout {
	case layoutAppend:
		l, err := either(create, func() (*pmlog.Append, error) { return pmlog.CreateAppend(data, f.appendOptions()) },
			func() (*pmlog.Append, error) { return pmlog.OpenAppend(data) })
		if err == nil && f.Group != nil {
			l.Group(*f.Group)
		}
		return appendVolume{l}, err
	case layoutChannel:
		l, err := either(create, func() (*pmlog.Channel, error) { return pmlog.CreateChannel(data, side) },
			func() (*pmlog.Channel, error) { return pmlog.OpenChannel(data, side) })
		if err == nil && f.Group != nil {
			l.Group(*f.Group)
		}
		return channelVolume{l, &f.Kind}, err
	case layoutArray:
		l, err := either(create, func() (*pmlog.Array, error) { return pmlog.CreateArray(data, f.arrayOptions()) },
			func() (*pmlog.Array, error) { return pmlog.OpenArray(data) })
		if err == nil {
			err = f.within(l.Options())
		}
		return arrayVolume{l, f.Slots}, err
	}
	v := rawVolume{Raw: pmlog.NewRaw(data, f.CRC), kind: &f.Kind, size: data.Size()}
	if file, ok := data.(*pmem.File); ok && pmem.Prealloc(f.Prealloc) != pmem.Zeroed {
		v.renew = file.Renew
	}
	return v, nil
}

// within returns an error unless an earlier phase's array has the slots that this phase writes.
func (f *form) within(o pmlog.ArrayOptions) error {
	if f.Slots > o.Slots || f.Kind.Size > o.Capacity {
		return fmt.Errorf("%d slots of %d bytes where an earlier phase made %d of %d; write no more keys and no larger values than there, or another target",
			f.Slots, f.Kind.Size, o.Slots, o.Capacity)
	}
	return nil
}

func either[T any](first bool, a, b func() (T, error)) (T, error) {
	if first {
		return a()
	}
	return b()
}

// appendVolume is one log for all its sessions.
type appendVolume struct{ *pmlog.Append }

func (v appendVolume) writer(int, int) (waiter, error) { return v.Writer(), nil }
func (v appendVolume) reader(int, int) reader          { return appendReader{v.Reader()} }
func (v appendVolume) room(size int) bool              { return v.Fits(int64(size)) }
func (v appendVolume) clear() error                    { return v.Clear() }
func (v appendVolume) close() error                    { return v.Close() }

type appendReader struct{ *pmlog.Reader }

func (r appendReader) next() ([]byte, error) {
	_, p, err := r.Next()
	return p, err
}

// channelVolume is one file of bytes for all its sessions, one entry after another.
type channelVolume struct {
	*pmlog.Channel
	kind *kind
}

func (v channelVolume) writer(int, int) (waiter, error) { return v.Writer(), nil }
func (v channelVolume) reader(int, int) reader          { return &pieces{of: v, kind: v.kind} }
func (v channelVolume) room(size int) bool              { return v.Fits(int64(size)) }
func (v channelVolume) clear() error                    { return v.Clear() }
func (v channelVolume) close() error                    { return v.Close() }

// pieces reads entries that lie one after another.
type pieces struct {
	of   io.ReaderAt
	kind *kind
	end  bool // the first place where no entry begins is the end; otherwise it is damage
	at   int64
	buf  []byte
}

func (r *pieces) next() ([]byte, error) {
	if r.buf == nil {
		r.buf = make([]byte, r.kind.Size)
	}
	size := r.kind.Size
	if r.kind.Sizes != nil {
		stamp := r.buf[:localfile.StampSize]
		if n, err := r.of.ReadAt(stamp, r.at); n < len(stamp) {
			return nil, r.short(n, err)
		}
		switch {
		case isEntry(stamp):
			size = r.kind.size(markIn(stamp))
		case r.end:
			return nil, io.EOF
		default:
			return nil, r.skip()
		}
	}
	n, err := r.of.ReadAt(r.buf[:size], r.at)
	if n < size {
		return nil, r.short(n, err)
	}
	r.at += int64(n)
	return r.buf[:size], nil
}

// short returns the error for n bytes that are less than an entry.
func (r *pieces) short(n int, err error) error {
	if n > 0 && err == io.EOF {
		err = fmt.Errorf("%d bytes at %d are less than an entry: %w", n, r.at, pmlog.ErrCorrupt)
		r.at += int64(n)
	}
	return err
}

// skip moves to the next place where an entry may begin, after one with a damaged stamp.
func (r *pieces) skip() error {
	damaged := fmt.Errorf("no entry begins at %d: %w", r.at, pmlog.ErrCorrupt)
	for r.at++; ; r.at += int64(len(r.buf) - localfile.StampSize + 1) {
		n, err := r.of.ReadAt(r.buf, r.at)
		for i := range n {
			if isEntry(r.buf[i:n]) {
				r.at += int64(i)
				return damaged
			}
		}
		if err != nil || n < len(r.buf) {
			r.at += int64(n)
			return damaged
		}
	}
}

// arrayVolume divides its slots among its sessions: the i-th of n has i, i + n, …
type arrayVolume struct {
	*pmlog.Array
	slots int
}

func (v arrayVolume) writer(i, n int) (waiter, error) {
	return &slotWriter{ArrayWriter: v.Writer(), slot: i, first: i, apart: n, slots: v.slots}, nil
}

func (v arrayVolume) reader(int, int) reader { return nil }
func (v arrayVolume) room(int) bool          { return true }
func (v arrayVolume) clear() error           { return v.Clear() }
func (v arrayVolume) close() error           { return v.Close() }

// slotWriter writes slots, and knows which of the session's own slots is next.
type slotWriter struct {
	*pmlog.ArrayWriter
	slot, first, apart, slots int
}

// turn returns the next slot.
func (w *slotWriter) turn() int {
	slot := w.slot
	if w.slot += w.apart; w.slot >= w.slots {
		w.slot = w.first
	}
	return slot
}

// rawVolume divides its file among its sessions: each has consecutive bytes.
type rawVolume struct {
	*pmlog.Raw
	kind  *kind
	size  int64        // size of the file
	renew func() error // makes the file's blocks new again; nil to keep them
}

// part returns the bytes of the i-th of n sessions: from ≤ offset < to. The largest entries fit as often as they can.
func (v rawVolume) part(i, n int) (from, to int64) {
	largest := int64(v.kind.Size)
	pieces := v.size / largest
	return pieces * int64(i) / int64(n) * largest, pieces * int64(i+1) / int64(n) * largest
}

func (v rawVolume) writer(i, n int) (waiter, error) {
	from, to := v.part(i, n)
	w, err := v.Writer(from, to)
	t := turns{from: from, to: to, first: 1}
	if err == nil && n == 1 && v.renew != nil {
		w.Wrap, t.renewed = v.renew, true
	}
	return &rawWriter{w, t}, err
}

func (v rawVolume) reader(i, n int) reader {
	from, to := v.part(i, n)
	return &pieces{of: io.NewSectionReader(v, from, to-from), kind: v.kind, end: true}
}

func (v rawVolume) room(int) bool { return true }
func (v rawVolume) clear() error  { return nil }
func (v rawVolume) close() error  { return v.Close() }

type rawWriter struct {
	*pmlog.RawWriter
	turns
}

// turns are the rounds in which a session writes its part of a file, from the beginning of the part each time.
type turns struct {
	from, to      int64
	written       uint64 // number of entries
	before, first uint64 // numbers of the first entries of the previous round and of this one; before is 0 if there was no previous round
	again         uint64 // number of rounds after the first
	renewed       bool   // the file is made anew before its first byte is written again
}

func (w *rawWriter) Append(p []byte) (uint64, error) {
	off, err := w.Write(p)
	if err != nil {
		return 0, err
	}
	w.written++
	if off == w.from && w.written > 1 {
		w.before, w.first = w.first, w.written
		w.again++
	}
	return uint64(off), nil
}
