package log

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// namesOf returns the names that the files of a log may have.
func namesOf(name string) []string {
	return []string{name, sideName(name), name + pmlog.Previous, name + pmlog.Next}
}

// files returns the largest number of files that a log has at the same time, apart from a side file.
func (f *form) files() int {
	switch {
	case !f.Rotate:
		return 1
	case f.Prealloc == recycle:
		return 2
	}
	return 3 // the oldest is deleted only once the next has been created
}

// folder is the directory with a log's segments.
type folder struct {
	opener
	ctx  context.Context // context of the first creation; later segments are created without one
	name string
	size int64
	gone uint64 // fences on files that are closed
}

// Create implements pmlog.Folder.
func (f *folder) Create() (pmlog.Region, error) {
	name := f.name + pmlog.Next
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	made, err := pmem.CreateIn(f.ctx, f.root, name, pmem.Form{Size: f.size, Entry: f.entry, Mode: f.mode, Prealloc: f.prealloc})
	if err != nil {
		return nil, err
	}
	f.all = append(f.all, made)
	return segment{made, f}, nil
}

// Open implements pmlog.Folder.
func (f *folder) Open(name string) (pmlog.Region, error) {
	is, err := pmem.OpenIn(f.root, f.name+name, f.mode)
	if err != nil {
		return nil, err
	}
	f.all, f.size = append(f.all, is), is.Size()
	return segment{is, f}, nil
}

// Rename implements pmlog.Folder.
func (f *folder) Rename(from, to string) error { return f.root.Rename(f.name+from, f.name+to) }

// Sync implements pmlog.Folder.
func (f *folder) Sync() error {
	dir, err := f.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// fences returns the number of fences on all files that the log has had. No session may be running.
func (f *folder) fences() uint64 {
	n := f.gone
	for _, file := range f.all {
		n += file.Fences()
	}
	return n
}

// segment is a file. When it is closed, its folder counts its fences.
type segment struct {
	*pmem.File
	of *folder
}

// Close implements pmlog.Region.
func (s segment) Close() error {
	for i, file := range s.of.all {
		if file == s.File {
			s.of.gone += file.Fences()
			s.of.all = append(s.of.all[:i:i], s.of.all[i+1:]...)
			break
		}
	}
	return s.File.Close()
}

// openSegments opens the log in a folder, or creates it.
func (f *form) openSegments(in *folder) (volume, []*pmem.File, error) {
	again := f.Prealloc == recycle
	l, err := either(in.create, func() (*pmlog.Segments, error) { return pmlog.CreateSegments(in, f.appendOptions(), again) },
		func() (*pmlog.Segments, error) { return pmlog.OpenSegments(in, again) })
	if err != nil {
		if in.create {
			for _, name := range namesOf(in.name) {
				if gone := in.root.Remove(name); !errors.Is(gone, fs.ErrNotExist) {
					err = errors.Join(err, gone)
				}
			}
		}
		return nil, nil, fmt.Errorf("%s: %w", in.name, err)
	}
	if f.Group != nil {
		l.Group(*f.Group)
	}
	in.ctx = context.Background()
	return segmentsVolume{l, in}, in.all, nil
}

// segmentsVolume is one log in segments for all its sessions.
type segmentsVolume struct {
	*pmlog.Segments
	of *folder
}

func (v segmentsVolume) writer(int, int) (waiter, error) { return v.Writer(), nil }
func (v segmentsVolume) reader(int, int) reader          { return segmentsReader{v.Reader()} }
func (v segmentsVolume) room(int) bool                   { return true }
func (v segmentsVolume) clear() error                    { return v.Rotate() }
func (v segmentsVolume) close() error                    { return v.Close() }

type segmentsReader struct{ *pmlog.SegmentsReader }

func (r segmentsReader) next() ([]byte, error) { return r.Next() }

// seen is a folder that is only read: a rotation that a crash has interrupted is completed in memory.
type seen struct {
	root   *os.Root
	name   string
	rename map[string]string
}

// Create implements pmlog.Folder.
func (s *seen) Create() (pmlog.Region, error) { return nil, errors.ErrUnsupported }

// Open implements pmlog.Folder.
func (s *seen) Open(name string) (pmlog.Region, error) {
	if from, ok := s.rename[name]; ok {
		name = from
	}
	v, err := pmem.OpenViewIn(s.root, s.name+name)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Rename implements pmlog.Folder.
func (s *seen) Rename(from, to string) error {
	s.rename = map[string]string{to: from}
	return nil
}

// Sync implements pmlog.Folder.
func (s *seen) Sync() error { return nil }
