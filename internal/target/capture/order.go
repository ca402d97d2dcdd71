package capture

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
)

// Stamp is what is known of a request.
type Stamp struct {
	At, Tick            int64  // as in a Record
	Client, Place, Name uint32 // numbers that the caller gave its client, its database and its command
	Size                uint32 // of its bytes
}

// Request is a recorded request in the order of all of them.
type Request struct {
	Stamp
	Bytes []byte // as it is sent; valid until the next one
}

// Sorter sorts requests by time. Those of one time stay in the order in which they were added. What does not fit into its window goes to a temporary
// file.
type Sorter struct {
	window int // bytes
	held   []Request
	size   int
	file   *os.File
	runs   []int64 // where the sorted runs in the file end
}

// NewSorter returns a sorter that holds so many bytes. The caller calls Close.
func NewSorter(window int) *Sorter { return &Sorter{window: window} }

// Close removes the temporary file.
func (s *Sorter) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close() // it has no name any more
}

// Add takes a request.
func (s *Sorter) Add(r Request) error {
	r.Bytes, r.Size = bytes.Clone(r.Bytes), uint32(len(r.Bytes))
	s.held = append(s.held, r)
	if s.size += len(r.Bytes) + 96; s.size < s.window {
		return nil
	}
	if err := s.spill(); err != nil {
		return fmt.Errorf("a temporary file of requests: %w", err)
	}
	return nil
}

// spill writes what is held to the file, as a run.
func (s *Sorter) spill() (err error) {
	if s.file == nil {
		if s.file, err = os.CreateTemp("", "loadgen-trace-"); err != nil {
			return err
		}
		if err := os.Remove(s.file.Name()); err != nil {
			return err
		}
	}
	s.sort()
	w := bufio.NewWriterSize(s.file, 1<<20)
	for _, r := range s.held {
		if err := binary.Write(w, binary.LittleEndian, &r.Stamp); err != nil {
			return err
		}
		if _, err := w.Write(r.Bytes); err != nil {
			return err
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	end, err := s.file.Seek(0, io.SeekCurrent)
	s.runs, s.held, s.size = append(s.runs, end), s.held[:0], 0
	return err
}

func (s *Sorter) sort() {
	slices.SortStableFunc(s.held, func(a, b Request) int { return cmp.Compare(a.At, b.At) })
}

// run is a sorted run that is being read.
type run struct {
	Request                      // its next one
	advance func(*Request) error // io.EOF at the end
}

// merge goes through all requests in order.
type merge struct {
	runs []*run
	last *run // whose request was handed over
}

// merge begins with the first request.
func (s *Sorter) merge() (*merge, error) {
	m, from := &merge{}, int64(0)
	for _, end := range s.runs {
		in := bufio.NewReaderSize(io.NewSectionReader(s.file, from, end-from), 64<<10)
		from = end
		m.runs = append(m.runs, &run{advance: func(r *Request) error {
			if err := binary.Read(in, binary.LittleEndian, &r.Stamp); err != nil {
				return err
			}
			r.Bytes = slices.Grow(r.Bytes[:0], int(r.Size))[:r.Size]
			_, err := io.ReadFull(in, r.Bytes)
			return err
		}})
	}
	held := s.held
	m.runs = append(m.runs, &run{advance: func(r *Request) error {
		if len(held) == 0 {
			return io.EOF
		}
		*r, held = held[0], held[1:]
		return nil
	}})
	for _, r := range slices.Clone(m.runs) {
		if err := m.advance(r); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// advance reads a run's next request, and forgets the run at its end.
func (m *merge) advance(r *run) error {
	switch err := r.advance(&r.Request); {
	case errors.Is(err, io.EOF):
		m.runs = slices.DeleteFunc(m.runs, func(other *run) bool { return other == r })
	case err != nil:
		return fmt.Errorf("a temporary file of requests: %w", err)
	}
	return nil
}

// next returns the next request, nil after the last one.
func (m *merge) next() (*Request, error) {
	if m.last != nil {
		if err := m.advance(m.last); err != nil {
			return nil, err
		}
	}
	if m.last = nil; len(m.runs) == 0 {
		return nil, nil
	}
	m.last = slices.MinFunc(m.runs, func(a, b *run) int { return cmp.Compare(a.At, b.At) }) // of equal ones, the first
	return &m.last.Request, nil
}

// coarse is the least tick over which requests are spread, in ns.
const coarse = int64(1e6)

// spreads reports whether a request's time is but its tick.
func (s *Stamp) spreads() bool { return s.Tick >= coarse && s.At%s.Tick == 0 }

// Each hands over all requests in order. Requests whose times were recorded to a tick of 1 ms or more, and which share one, are spread over it as
// sorted uniform draws of the seed: they came at random, and would otherwise come at once.
func (s *Sorter) Each(seed [32]byte, take func(*Request) error) error {
	s.sort()
	ahead, err := s.merge() // counts how many requests share a tick
	if err != nil {
		return err
	}
	behind, err := s.merge()
	if err != nil {
		return err
	}
	random := rand.New(rand.NewChaCha8(seed))
	left, passed, last := 0, 0.0, int64(0)
	following, err := ahead.next()
	for err == nil {
		r, err := behind.next()
		if r == nil || err != nil {
			return err
		}
		if left == 0 {
			for passed = 0; following != nil && following.At == r.At && following.spreads() == r.spreads(); left++ {
				if following, err = ahead.next(); err != nil {
					return err
				}
			}
		}
		if r.spreads() { // of n sorted draws the least is 1 − V^(1/n) of the way, V uniform, and the others are as draws of the rest
			passed = 1 - (1-passed)*math.Pow(random.Float64(), 1/float64(left))
			r.At += int64(passed * float64(r.Tick))
		}
		left--
		r.At = max(r.At, last)
		last = r.At
		if err := take(r); err != nil {
			return err
		}
	}
	return err
}
