package log

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// volume is a log in one of the layouts, in the file or files of it.
type volume interface {
	// writer returns what the i-th of the n sessions on the log writes with: a *slotWriter, or an appender.
	writer(i, n int) (any, error)
	// reader returns what the i-th of the n sessions on the log reads with: all of it, or of a raw file its own part. nil for an array, whose
	// slots are read by their number.
	reader(i, n int) reader
	// clear empties all of it.
	clear() error
	// close closes the files; its error says that what was acknowledged may be lost.
	close() error
}

// appender writes for one session.
type appender interface {
	// Append stores an entry where the layout has it next, and returns a number of its place, or pmlog.ErrFull.
	Append(p []byte) (uint64, error)
}

// reader reads for one session.
type reader interface {
	// next returns the next entry, or io.EOF behind the last one. The bytes are valid until the next call.
	next() ([]byte, error)
}

// form is how a volume's files are made, and found again.
type form struct {
	Layout string
	Size   int // of an entry
	Slots  int // of an array

	Padding       int
	Order, Commit string
	CRC           bool
}

func (f *form) appendOptions() pmlog.AppendOptions {
	return pmlog.AppendOptions{Padding: f.Padding, Order: pmlog.Order(f.Order), Commit: pmlog.Commit(f.Commit)}
}

func (f *form) arrayOptions() pmlog.ArrayOptions {
	return pmlog.ArrayOptions{Slots: f.Slots, Capacity: f.Size, Padding: max(64, f.Padding)}
}

// fileSize returns the bytes of the file, if it may have as many as asked for, and how many entries fit into it.
func (f *form) fileSize(asked int64) (size, entries int64, err error) {
	one := int64(f.Size)
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

// sideName is the name of a channel's second file.
func sideName(name string) string { return name + ".side" }

// open opens the log with a name, or makes it when size is above 0, unless ctx ends before. It returns the files that it is in; after an error, none of
// those that it was to make is there.
func (f *form) open(ctx context.Context, root *os.Root, name string, size int64, mode pmem.Mode) (volume, []*pmem.File, error) {
	files := opener{root: root, mode: mode, create: size > 0}
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

// opener opens files, or makes them, until one cannot be had.
type opener struct {
	root   *os.Root
	mode   pmem.Mode
	create bool
	all    []*pmem.File
	err    error
}

// open opens a file, or makes it of a size in bytes; nil once one could not be had.
func (o *opener) open(ctx context.Context, name string, size int64) (f *pmem.File) {
	if o.err != nil {
		return nil
	}
	if o.create {
		f, o.err = pmem.CreateIn(ctx, o.root, name, size, o.mode)
	} else {
		f, o.err = pmem.OpenIn(o.root, name, o.mode)
	}
	if o.err != nil {
		return nil
	}
	o.all = append(o.all, f)
	return f
}

// discard closes the files, and deletes those that it has made.
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

// over makes the volume in open files.
func (f *form) over(data, side *pmem.File, create bool) (volume, error) {
	switch f.Layout {
	case layoutAppend:
		l, err := either(create, func() (*pmlog.Append, error) { return pmlog.CreateAppend(data, f.appendOptions()) },
			func() (*pmlog.Append, error) { return pmlog.OpenAppend(data) })
		return appendVolume{l}, err
	case layoutChannel:
		l, err := either(create, func() (*pmlog.Channel, error) { return pmlog.CreateChannel(data, side) },
			func() (*pmlog.Channel, error) { return pmlog.OpenChannel(data, side) })
		return channelVolume{l, f.Size}, err
	case layoutArray:
		l, err := either(create, func() (*pmlog.Array, error) { return pmlog.CreateArray(data, f.arrayOptions()) },
			func() (*pmlog.Array, error) { return pmlog.OpenArray(data) })
		if err == nil {
			err = f.within(l.Options())
		}
		return arrayVolume{l, f.Slots}, err
	}
	return rawVolume{pmlog.NewRaw(data, f.CRC), f.Size, data.Size() / int64(f.Size)}, nil
}

// within returns an error unless an array that an earlier phase made has the slots that this one writes.
func (f *form) within(o pmlog.ArrayOptions) error {
	if f.Slots > o.Slots || f.Size > o.Capacity {
		return fmt.Errorf("%d slots of %d bytes where an earlier phase made %d of %d; write no more keys and no larger values than there, or another target",
			f.Slots, f.Size, o.Slots, o.Capacity)
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

func (v appendVolume) writer(int, int) (any, error) { return v.Writer(), nil }
func (v appendVolume) reader(int, int) reader       { return appendReader{v.Reader()} }
func (v appendVolume) clear() error                 { return v.Clear() }
func (v appendVolume) close() error                 { return v.Close() }

type appendReader struct{ *pmlog.Reader }

func (r appendReader) next() ([]byte, error) {
	_, p, err := r.Next()
	return p, err
}

// channelVolume is one file of bytes for all its sessions, an entry behind another.
type channelVolume struct {
	*pmlog.Channel
	size int
}

func (v channelVolume) writer(int, int) (any, error) { return channelWriter{v.Channel}, nil }
func (v channelVolume) reader(int, int) reader       { return &pieces{of: v, size: v.size} }
func (v channelVolume) clear() error                 { return v.Clear() }
func (v channelVolume) close() error                 { return v.Close() }

type channelWriter struct{ *pmlog.Channel }

func (w channelWriter) Append(p []byte) (uint64, error) {
	off, err := w.Channel.Append(p)
	return uint64(off), err
}

// pieces reads entries that follow each other.
type pieces struct {
	of   io.ReaderAt
	size int
	at   int64
	buf  []byte
}

func (r *pieces) next() ([]byte, error) {
	if r.buf == nil {
		r.buf = make([]byte, r.size)
	}
	n, err := r.of.ReadAt(r.buf, r.at)
	if n < r.size {
		if n > 0 && err == io.EOF {
			err = fmt.Errorf("%d bytes at %d are less than an entry: %w", n, r.at, pmlog.ErrCorrupt)
		}
		return nil, err
	}
	r.at += int64(n)
	return r.buf, nil
}

// arrayVolume divides its slots between its sessions: the i-th of n has i, i + n, …
type arrayVolume struct {
	*pmlog.Array
	slots int
}

func (v arrayVolume) writer(i, n int) (any, error) {
	return &slotWriter{ArrayWriter: v.Writer(), slot: i, first: i, apart: n, slots: v.slots}, nil
}

func (v arrayVolume) reader(int, int) reader { return nil }
func (v arrayVolume) clear() error           { return v.Clear() }
func (v arrayVolume) close() error           { return v.Close() }

// slotWriter writes slots, and knows whose turn it is of the session's own.
type slotWriter struct {
	*pmlog.ArrayWriter
	slot, first, apart, slots int
}

// turn returns the slot that is next.
func (w *slotWriter) turn() int {
	slot := w.slot
	if w.slot += w.apart; w.slot >= w.slots {
		w.slot = w.first
	}
	return slot
}

// rawVolume divides its file between its sessions: each has pieces of it that follow each other.
type rawVolume struct {
	*pmlog.Raw
	size   int
	pieces int64
}

// part returns the pieces of the i-th of n sessions: from ≤ piece < to.
func (v rawVolume) part(i, n int) (from, to int64) {
	return v.pieces * int64(i) / int64(n), v.pieces * int64(i+1) / int64(n)
}

func (v rawVolume) writer(i, n int) (any, error) {
	from, to := v.part(i, n)
	w, err := v.Writer(from*int64(v.size), to*int64(v.size))
	return rawWriter{w, turns{int(from), uint64(to - from)}}, err
}

func (v rawVolume) reader(i, n int) reader {
	from, to := v.part(i, n)
	size := int64(v.size)
	return &pieces{of: io.NewSectionReader(v, from*size, (to-from)*size), size: v.size} // behind the last may be less than an entry
}

func (v rawVolume) clear() error { return nil }
func (v rawVolume) close() error { return v.Close() }

type rawWriter struct {
	*pmlog.RawWriter
	turns
}

// turns are the places that a session writes in turn, the first with its entry 1.
type turns struct {
	from   int
	places uint64
}

func (w rawWriter) Append(p []byte) (uint64, error) {
	off, err := w.Write(p)
	return uint64(off), err
}
