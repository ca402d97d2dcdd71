package capture

import (
	"bufio"
	"bytes"
	"cmp"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
)

// Request is a recorded request in the order of all of them.
type Request struct {
	At     int64 // ns since 1970
	Client uint32
	Place  uint32 // the number that the caller gave its database
	Name   string // of its command
	Alone  bool   // it is one command
	Bytes  []byte // as it is sent; valid until the next one

	seq  uint64 // its place in the recording
	tick int64
}

// Sorter sorts requests by time. Those of one time stay in the order in which they were added. What does not fit into its window goes to a temporary
// file.
type Sorter struct {
	window int // bytes
	held   []Request
	size   int
	n      uint64
	file   *os.File
	runs   []int64 // offsets of the sorted runs in the file
	end    int64
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

// Add takes a request, whose time is known to a tick of so many ns.
func (s *Sorter) Add(r Request, tick int64) error {
	r.Bytes, r.seq, r.tick = bytes.Clone(r.Bytes), s.n, tick
	s.n++
	s.held = append(s.held, r)
	if s.size += len(r.Bytes) + 96; s.size < s.window {
		return nil
	}
	return s.spill()
}

func flag(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

func before(a, b Request) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.seq, b.seq)) }

// spill writes what is held to the file, as a run.
func (s *Sorter) spill() error {
	if s.file == nil {
		file, err := os.CreateTemp("", "loadgen-trace-")
		if err != nil {
			return err
		}
		s.file = file
		if err := os.Remove(file.Name()); err != nil {
			return err
		}
	}
	slices.SortFunc(s.held, before)
	w := bufio.NewWriterSize(s.file, 1<<20)
	s.runs = append(s.runs, s.end)
	var b []byte
	for _, r := range s.held {
		b = binary.AppendVarint(b[:0], r.At)
		for _, n := range []uint64{uint64(r.Client), uint64(r.Place), flag(r.Alone), r.seq, uint64(r.tick), uint64(len(r.Name)), uint64(len(r.Bytes))} {
			b = binary.AppendUvarint(b, n)
		}
		b = append(append(b, r.Name...), r.Bytes...)
		s.end += int64(len(b))
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("a temporary file of requests: %w", err)
		}
	}
	s.held, s.size = s.held[:0], 0
	if err := w.Flush(); err != nil {
		return fmt.Errorf("a temporary file of requests: %w", err)
	}
	return nil
}

// run is a sorted run that is being read.
type run struct {
	in   *bufio.Reader
	held []Request // of the run that never went to the file
	next Request
}

// advance reads the run's next request.
func (r *run) advance() error {
	if r.in == nil {
		if len(r.held) == 0 {
			return io.EOF
		}
		r.next, r.held = r.held[0], r.held[1:]
		return nil
	}
	at, err := binary.ReadVarint(r.in)
	if err != nil {
		return err
	}
	var n [7]uint64
	for i := range n {
		if n[i], err = binary.ReadUvarint(r.in); err != nil {
			return err
		}
	}
	text := make([]byte, n[5]+n[6])
	if _, err := io.ReadFull(r.in, text); err != nil {
		return err
	}
	r.next = Request{At: at, Client: uint32(n[0]), Place: uint32(n[1]), Alone: n[2] == 1, seq: n[3], tick: int64(n[4]), Name: string(text[:n[5]]), Bytes: text[n[5]:]}
	return nil
}

type runHeap []*run

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return before(h[i].next, h[j].next) < 0 }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

// merge hands over all requests in order.
func (s *Sorter) merge(take func(Request) error) error {
	slices.SortFunc(s.held, before)
	all := runHeap{{held: s.held}}
	for i, from := range s.runs {
		end := s.end
		if i+1 < len(s.runs) {
			end = s.runs[i+1]
		}
		all = append(all, &run{in: bufio.NewReaderSize(io.NewSectionReader(s.file, from, end-from), 256<<10)})
	}
	ready := runHeap{}
	for _, r := range all {
		switch err := r.advance(); {
		case err == nil:
			ready = append(ready, r)
		case !errors.Is(err, io.EOF):
			return fmt.Errorf("a temporary file of requests: %w", err)
		}
	}
	heap.Init(&ready)
	for len(ready) > 0 {
		if err := take(ready[0].next); err != nil {
			return err
		}
		switch err := ready[0].advance(); {
		case err == nil:
			heap.Fix(&ready, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&ready)
		default:
			return fmt.Errorf("a temporary file of requests: %w", err)
		}
	}
	return nil
}

const (
	coarse     = int64(1e6) // ns: the least tick over which requests are spread
	tickWindow = 16 << 20   // bytes of the requests of a tick that are held
)

// Each hands over all requests in order. Requests whose times were recorded to a tick of 1 ms or more, and which share one, are spread over it as
// sorted uniform draws of the seed: they came at random, and would otherwise come at once.
func (s *Sorter) Each(seed [32]byte, take func(Request) error) error {
	spread := spreader{rand: rand.New(rand.NewChaCha8(seed)), take: take, same: NewSorter(tickWindow)}
	defer func() { _ = spread.same.Close() }() // it was only read
	if err := s.merge(spread.add); err != nil {
		return err
	}
	return spread.flush()
}

// spreader spreads the requests of a tick.
type spreader struct {
	rand *rand.Rand
	take func(Request) error
	same *Sorter // of one tick, at
	at   int64
	last int64
}

func (s *spreader) add(r Request) error {
	known := r.tick < coarse || r.At%r.tick != 0
	if s.same.n > 0 && (known || s.at != r.At) {
		if err := s.flush(); err != nil {
			return err
		}
	}
	if known {
		return s.hand(r)
	}
	s.at = r.At
	return s.same.Add(r, r.tick)
}

func (s *spreader) hand(r Request) error {
	r.At = max(r.At, s.last)
	s.last = r.At
	return s.take(r)
}

// flush hands over the requests of the tick. Of n sorted draws the least is 1 − V^(1/n) of the way, V uniform, and the others are as draws of the rest.
func (s *spreader) flush() error {
	left, passed := float64(s.same.n), 0.0
	err := s.same.merge(func(r Request) error {
		passed = 1 - (1-passed)*math.Pow(s.rand.Float64(), 1/left)
		left--
		r.At += int64(passed * float64(r.tick))
		return s.hand(r)
	})
	if err := errors.Join(err, s.same.Close()); err != nil {
		return err
	}
	s.same = NewSorter(tickWindow)
	return nil
}
