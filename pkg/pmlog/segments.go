package pmlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
)

// The names of a log's segments: the one being written, the full one before it, and the one to write next.
const (
	Current  = ""
	Previous = ".1"
	Next     = ".next"
)

// Folder holds the segments of a log: files of one size in a directory.
type Folder interface {
	// Create makes the file Next, in place of any that is there, with all its blocks and any content. File and name are then durable.
	Create() (Region, error)
	// Open opens the file with a name, or returns fs.ErrNotExist.
	Open(name string) (Region, error)
	// Rename gives a file another name, in place of any that has it. Until a Sync, a crash may leave the first few of the renames, in order.
	Rename(from, to string) error
	// Sync makes all renames durable.
	Sync() error
}

// Segments is an append log in segments, like a write-ahead log: a full segment stays as it is, and the next one is written. The log holds the
// current segment and the one before it. Its methods are safe for concurrent use, except for Rotate, during which no writer may be in use.
type Segments struct {
	folder  Folder
	options AppendOptions
	recycle bool
	limit   Group

	mu                sync.Mutex // guards the fields below; writers need not hold it
	current, previous *Append    // previous is nil if there is none
	rotations         uint64
	sizes             GroupSizes // sizes of the segments before the current one
}

// CreateSegments creates an empty log. With recycle, it makes both files now, and each Rotate writes over the older one, whose blocks exist and have
// been written. Otherwise each Rotate makes a new file.
func CreateSegments(f Folder, o AppendOptions, recycle bool) (*Segments, error) {
	s := &Segments{folder: f, options: o, recycle: recycle}
	var err error
	if recycle {
		if s.previous, err = s.next(nil); err == nil {
			err = f.Rename(Next, Previous)
		}
	}
	if err == nil {
		s.current, err = s.next(nil)
	}
	if err == nil {
		err = f.Rename(Next, Current)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create a log in segments: %w", err), s.release())
	}
	return s, nil
}

// OpenSegments recovers the log in a folder, and completes or undoes a Rotate that a crash has interrupted.
func OpenSegments(f Folder, recycle bool) (*Segments, error) {
	s := &Segments{folder: f, recycle: recycle}
	err := s.recover()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a log in segments: %w", err), s.release())
	}
	return s, nil
}

func (s *Segments) recover() error {
	current, err := s.folder.Open(Current)
	if errors.Is(err, fs.ErrNotExist) { // the former current segment is the previous one already
		if err = s.folder.Rename(Next, Current); err == nil {
			current, err = s.folder.Open(Current)
		}
	}
	if err != nil {
		return err
	}
	if err := s.folder.Sync(); err != nil { // makes renames of a killed process durable
		return errors.Join(err, current.Close())
	}
	if s.current, err = OpenAppend(current); err != nil {
		return errors.Join(err, current.Close())
	}
	s.options = s.current.Options()
	previous, err := s.folder.Open(Previous)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.previous, err = OpenAppend(previous); err != nil {
		return errors.Join(err, previous.Close())
	}
	return nil
}

// next makes the segment Next, over the file r that has that name already, or in a new one if r is nil.
func (s *Segments) next(r Region) (l *Append, err error) {
	if r == nil {
		if r, err = s.folder.Create(); err != nil {
			return nil, err
		}
	}
	if l, err = CreateAppend(r, s.options); err != nil { // with a new salt, no old record is one of this log
		return nil, errors.Join(err, r.Close())
	}
	if l.group != nil {
		l.Group(s.limit)
	}
	return l, nil
}

// Rotate drops the previous segment, makes the current one the previous one, and begins an empty one. First, it makes all stored records durable.
// Once it returns, the new segment is what a recovery finds; before, a crash leaves the log as it was, or without the segment that is to be dropped.
func (s *Segments) Rotate() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.rotate(); err != nil {
		return fmt.Errorf("rotate a log: %w", err)
	}
	return nil
}

func (s *Segments) rotate() error {
	if s.current.group != nil {
		if err := s.current.Sync(); err != nil {
			return err
		}
	}
	if err := s.current.region.Check(); err != nil {
		return err
	}
	var used Region
	old := s.previous
	if s.recycle && old != nil {
		if err := s.folder.Rename(Previous, Next); err != nil {
			return err
		}
		used, s.previous = old.region, nil
	}
	next, err := s.next(used)
	if err != nil {
		return err
	}
	for _, names := range [][2]string{{Current, Previous}, {Next, Current}} {
		if err := s.folder.Rename(names[0], names[1]); err != nil {
			return errors.Join(err, next.region.Close())
		}
	}
	if err := s.folder.Sync(); err != nil {
		return errors.Join(err, next.region.Close())
	}
	if used == nil && old != nil { // a rename to its name has deleted the file
		if err := old.region.Close(); err != nil {
			return errors.Join(err, next.region.Close())
		}
	}
	if s.current.group != nil {
		s.sizes = s.groups()
	}
	s.previous, s.current = s.current, next
	s.rotations++
	return nil
}

// Group sets the limits of a grouped log; call it before anything is written.
func (s *Segments) Group(limit Group) {
	s.limit = limit
	s.current.Group(limit)
}

// Groups returns how many records the syncs of a grouped log have made durable.
func (s *Segments) Groups() GroupSizes {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.groups()
}

func (s *Segments) groups() GroupSizes {
	sum := s.current.Groups()
	for i := range sum {
		sum[i] += s.sizes[i]
	}
	return sum
}

// Sync returns once all records of a grouped log that were stored before are durable.
func (s *Segments) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current.Sync()
}

// Older returns how many records the previous segment has.
func (s *Segments) Older() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.previous == nil {
		return 0
	}
	return s.previous.next - s.previous.heads.first - s.previous.heads.holes
}

// Close closes both segments. An error means that acknowledged records may be lost.
func (s *Segments) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.current.Close()
	if s.previous != nil {
		err = errors.Join(err, s.previous.Close())
	}
	return err
}

// release closes the open files after an error.
func (s *Segments) release() error {
	var errs []error
	for _, l := range []*Append{s.current, s.previous} {
		if l != nil {
			errs = append(errs, l.region.Close())
		}
	}
	return errors.Join(errs...)
}

// SegmentsWriter appends to a log in segments. One goroutine at a time may use it; it allocates nothing but at a rotation.
type SegmentsWriter struct {
	log    *Segments
	to     *AppendWriter
	waited time.Duration // in earlier segments
}

// Writer returns a new writer.
func (s *Segments) Writer() *SegmentsWriter { return &SegmentsWriter{log: s, to: s.current.Writer()} }

// Append is AppendWriter.Append to the current segment. It returns ErrFull if that is full: Rotate makes room.
func (w *SegmentsWriter) Append(p []byte) (uint64, error) { return w.writer().Append(p) }

// Store is AppendWriter.Store to the current segment.
func (w *SegmentsWriter) Store(p []byte) (uint64, error) { return w.writer().Store(p) }

// Waited is AppendWriter.Waited for all segments so far.
func (w *SegmentsWriter) Waited() time.Duration { return w.waited + w.to.Waited() }

func (w *SegmentsWriter) writer() *AppendWriter {
	if w.to.log != w.log.current {
		w.waited += w.to.Waited()
		w.to = w.log.current.Writer()
	}
	return w.to
}

// SegmentsReader reads the records of both segments from the first on. One goroutine at a time may use it; others may append meanwhile.
type SegmentsReader struct {
	log       *Segments
	rotations uint64
	readers   []*Reader
}

// Reader returns a new reader.
func (s *Segments) Reader() *SegmentsReader {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &SegmentsReader{log: s, rotations: s.rotations}
	if s.previous != nil {
		r.readers = append(r.readers, s.previous.Reader())
	}
	r.readers = append(r.readers, s.current.Reader())
	return r
}

// Next returns the next record, which is valid until the next call, or errors as Reader.Next does: ErrCleared after a rotation.
func (r *SegmentsReader) Next() ([]byte, error) {
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.rotations != r.log.rotations {
		return nil, ErrCleared
	}
	for {
		_, p, err := r.readers[0].Next()
		if !errors.Is(err, io.EOF) || len(r.readers) == 1 {
			return p, err
		}
		r.readers = r.readers[1:]
	}
}
