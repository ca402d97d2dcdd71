package files

import (
	"os"
	"sync"
)

// shelf is a subdirectory for files, with what is known about the files that this phase has changed.
type shelf struct {
	dir *os.File

	mu    sync.Mutex // held while a name changes its meaning, not while waiting for the device
	turn  uint64     // number of changes so far
	known map[string]*state
}

// state is what a name stands for.
type state struct {
	turn  uint64
	size  int
	sum   uint32 // CRC-32C of the value
	there bool
	sure  bool // the change was acknowledged
}

func (s *shelf) fd() int { return int(s.dir.Fd()) }

// replace renames a file, and records what the new name now stands for.
func (s *shelf) replace(k kernel, from, to string, is state) (turn uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := k.rename(s.fd(), from, to); err != nil {
		return 0, err
	}
	return s.note(to, is), nil
}

// remove removes a file, and records that.
func (s *shelf) remove(k kernel, name string) (turn uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := k.unlink(s.fd(), name); err != nil {
		return 0, err
	}
	return s.note(name, state{}), nil
}

func (s *shelf) note(name string, is state) (turn uint64) {
	s.turn++
	is.turn = s.turn
	if at := s.known[name]; at != nil {
		*at = is
	} else {
		s.known[name] = &is
	}
	return s.turn
}

// settled records that the change with this turn is acknowledged, unless the name has changed again since.
func (s *shelf) settled(name string, turn uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.known[name]; at.turn == turn {
		at.sure = true
	}
}
