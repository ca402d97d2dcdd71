package pmlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"github.com/loadgen/loadgen/pkg/pmem"
)

// shelf is a folder of regions in a trace. The last region is its directory: a word with a byte for each name, which is the number of a file, from 1.
type shelf struct {
	files []Region
	dir   Region
	m     pmem.Medium
}

var names = []string{Current, Previous, Next}

func newShelf(r []Region) *shelf {
	dir := r[len(r)-1]
	return &shelf{files: r[:len(r)-1], dir: dir, m: dir.Writer()}
}

func (s *shelf) word() (b [8]byte, err error) {
	if n, err := s.dir.ReadAt(b[:], 0); n < len(b) {
		return b, err
	}
	return b, nil
}

func (s *shelf) set(b [8]byte) error {
	return s.m.Store8(0, binary.LittleEndian.Uint64(b[:]))
}

// Create returns a file without a name as it was left: what is in it is not to matter.
func (s *shelf) Create() (Region, error) {
	b, err := s.word()
	if err != nil {
		return nil, err
	}
	b[2] = 0
	for i := range s.files {
		if !slices.Contains(b[:3], byte(i+1)) {
			b[2] = byte(i + 1)
		}
	}
	if err := errors.Join(s.set(b), s.Sync()); err != nil {
		return nil, err
	}
	return s.files[b[2]-1], nil
}

func (s *shelf) Open(name string) (Region, error) {
	b, err := s.word()
	if n := b[slices.Index(names, name)]; err != nil || n > 0 {
		return s.files[max(n, 1)-1], err
	}
	return nil, fs.ErrNotExist
}

func (s *shelf) Rename(from, to string) error {
	b, err := s.word()
	if err != nil {
		return err
	}
	i := slices.Index(names, from)
	b[slices.Index(names, to)] = b[i]
	b[i] = 0
	return s.set(b)
}

// Sync makes all renames durable, also those of a process that was killed.
func (s *shelf) Sync() error { return errors.Join(s.m.Flush(0, 8), s.m.Fence()) }

// segmentKinds are logs in segments, which are recycled, or made anew.
func segmentKinds() []kind {
	var list []kind
	for _, recycle := range []bool{true, false} {
		for _, order := range []Order{Strict, Grouped} {
			sizes := []int64{dataStart + 600, dataStart + 600, dataStart + 600, 64}
			if recycle {
				sizes = sizes[1:]
			}
			o := AppendOptions{Padding: 64, Order: order}
			list = append(list, kind{
				name: fmt.Sprintf("segments/recycle=%t/%s", recycle, order), sizes: sizes, rotates: true, group: order == Grouped,
				create: func(r []Region) (subject, error) { return segmentsSubject(CreateSegments(newShelf(r), o, recycle)) },
				open:   func(r []Region) (subject, error) { return segmentsSubject(OpenSegments(newShelf(r), recycle)) },
			})
		}
	}
	return list
}

type segments struct {
	log *Segments
	w   [writers]*SegmentsWriter
}

func segmentsSubject(l *Segments, err error) (subject, error) {
	if err != nil {
		return nil, err
	}
	s := &segments{log: l}
	for i := range s.w {
		s.w[i] = l.Writer()
	}
	return s, nil
}

func (s *segments) write(writer, _ int, p []byte) error {
	_, err := s.w[writer].Append(p)
	return err
}

func (s *segments) store(writer int, p []byte) error {
	_, err := s.w[writer].Store(p)
	return err
}

func (s *segments) sync() error         { return s.log.Sync() }
func (s *segments) clear() error        { return s.log.Rotate() }
func (s *segments) close() error        { return s.log.Close() }
func (s *segments) recovered() Recovery { return s.log.current.Recovered() }
func (s *segments) older() int          { return int(s.log.Older()) }

func (s *segments) checkpoint() error { return s.log.current.Checkpoint() }

func (s *segments) items() ([][]byte, error) {
	list := [][]byte{}
	for r := s.log.Reader(); ; {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, bytes.Clone(p))
	}
}
