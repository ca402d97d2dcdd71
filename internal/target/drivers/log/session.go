package log

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"time"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// session writes and reads one log, which others may write and read at the same time.
type session struct {
	store  *store
	file   *file
	id     int
	alone  bool // it is the only session on its log
	make   *maker
	entry  []byte // the current entry, whose number is in number
	number uint64
	waits  waiter      // its writer
	log    appender    // for a layout without slots
	slots  *slotWriter // for a layout with slots
	turns  *turns      // for a raw file, else nil
	reader reader
	read   []byte // buffer for slots
	reads  bool   // the session has read something

	// busy is held while the session changes the log, unless it is alone on it. To have a log alone, hold busy of all its sessions.
	busy   sync.Mutex
	base   uint64 // number of the last entry before the log was cleared, or before its previous segment
	turned uint64 // number of the last entry before the current segment
	issued uint64 // number of the last entry begun
	acked  uint64 // number of the last entry acknowledged
	bytes  uint64 // bytes of acknowledged entries
	_      [64]byte
}

// newSession returns session id, the i-th of n on a log.
func newSession(s *store, f *file, id, i, n int) (*session, error) {
	one := &session{store: s, file: f, id: id, alone: n == 1, make: newMaker(s.form.Kind)}
	w, err := f.volume.writer(i, n)
	if err != nil {
		return nil, err
	}
	if f.policy != nil {
		w = &lazyWriter{storing: w.(storing), policy: f.policy}
	}
	one.waits = w
	one.log, _ = w.(appender)
	one.slots, _ = w.(*slotWriter)
	if raw, ok := w.(*rawWriter); ok {
		one.turns = &raw.turns
	}
	one.reader = f.volume.reader(i, n)
	return one, nil
}

// Prepare implements localfile.Session.
func (s *session) Prepare(req *driver.Request) error {
	if !req.Verb.Stores() {
		return nil
	}
	if req.Verb == driver.Append && s.store.cfg.Full == "outside" {
		if seen := s.file.resets.Load(); !s.file.volume.room(s.make.size(markOf(s.id, s.issued+1))) {
			if err := s.clearFull(seen); err != nil {
				return s.fail(err)
			}
		}
	}
	if next := s.issued + 1; next != s.number {
		s.number = next
		s.entry = s.make.entry(markOf(s.id, next))
	}
	return nil
}

// Do implements localfile.Session. It makes most appends right here: from deeper calls, returning after a system call takes longer, because the
// kernel's own returns have defeated return prediction.
func (s *session) Do(req *driver.Request, reply *driver.Reply) (err error) {
	if req.Verb == driver.Append && s.alone && s.log != nil {
		s.issued = s.number
		if _, err = s.log.Append(s.entry); err == nil {
			s.done()
			return nil
		}
		return s.fail(s.again(err, s.file.resets.Load(), reply))
	}
	switch req.Verb {
	case driver.Append:
		err = s.append(reply)
	case driver.Write:
		err = s.write(s.slotOf(req))
	case driver.Read:
		err = s.next(req, reply)
	case driver.Clear:
		err = s.clear(req)
	default:
		return fmt.Errorf("a log knows no %s", req.Verb)
	}
	return s.fail(err)
}

// Waited implements localfile.Timed.
func (s *session) Waited() (all time.Duration, measured bool) {
	return s.waits.Waited(), s.store.account.Untimed == ""
}

// fail records err, if any, as an error after which the session cannot go on.
func (s *session) fail(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s: %w%s", s.file.name, err, remedy(err))
	s.store.failed(err)
	return err
}

// remedy says what to do about a failed write.
func remedy(err error) string {
	switch {
	case !errors.Is(err, pmem.ErrPoisoned) && errors.Is(err, syscall.ENOSPC): // no room for a segment
		return "; make room on its file system, which others fill too, or write a smaller file_size, or another --log-root"
	case !errors.Is(err, pmem.ErrPoisoned) && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.EROFS): // a file system that failed is read-only
		return ""
	case errors.Is(err, pmem.ErrTruncated):
		return "; let nobody else change files below --log-root"
	case errors.As(err, new(*pmem.FaultError)):
		return "; let nobody else change files below --log-root, and see what the kernel says of the device (dmesg)"
	case errors.Is(err, syscall.ENOSPC):
		return "; make room beneath the file system, on what its device takes its blocks from, or write another --log-root"
	}
	return "; see what the kernel says of the device (dmesg), or write another --log-root"
}

var full = []byte("the log is full, and clear = \"never\"")

// append stores the entry in the layout's next place.
func (s *session) append(reply *driver.Reply) error {
	if s.slots != nil {
		slot := s.slots.turn()
		if err := s.write(slot); err != nil || !s.store.cfg.Erase {
			return err
		}
		return s.erase(slot)
	}
	seen := s.file.resets.Load()
	return s.again(s.add(), seen, reply)
}

// again handles the error of an append. While the log is full, it clears the log, which had been reset seen times before, and repeats the append.
func (s *session) again(err error, seen uint64, reply *driver.Reply) error {
	for errors.Is(err, pmlog.ErrFull) {
		s.issued = s.number - 1
		if s.store.cfg.Full == "never" {
			reply.Outcome, reply.Message = driver.Error, full
			return nil
		}
		if err := s.clearFull(seen); err != nil {
			return err
		}
		seen = s.file.resets.Load()
		err = s.add()
	}
	return err
}

// add stores the entry at the end of the log.
func (s *session) add() error {
	if !s.alone {
		s.busy.Lock()
		defer s.busy.Unlock()
	}
	s.issued = s.number
	if _, err := s.log.Append(s.entry); err != nil {
		return err
	}
	s.done()
	return nil
}

// done records that the entry is acknowledged.
func (s *session) done() {
	s.acked = s.number
	s.bytes += uint64(len(s.entry))
}

// write stores the entry in a slot.
func (s *session) write(place int) error {
	at := &s.file.slots[place]
	if !s.alone {
		at.Lock()
		defer at.Unlock()
	}
	s.issued = s.number
	at.issued, at.erases, at.known = markOf(s.id, s.number), false, true
	if err := s.slots.Write(place, s.entry); err != nil {
		return err
	}
	at.acked = at.issued
	s.done()
	return nil
}

// erase empties a slot.
func (s *session) erase(place int) error {
	at := &s.file.slots[place]
	if !s.alone {
		at.Lock()
		defer at.Unlock()
	}
	at.erases, at.known = true, true
	if err := s.slots.Write(place, nil); err != nil {
		return err
	}
	at.acked, at.issued, at.erases = 0, 0, false
	return nil
}

// slotOf returns the slot of a request's key. With pools, each session has its own slots.
func (s *session) slotOf(req *driver.Request) int {
	slot := int(req.Index)
	if s.store.site.Pools && !s.alone {
		slot += (s.id - s.store.site.From) * int(s.store.site.Keys)
	}
	return slot
}

// next reads the next entry, or the key's slot.
func (s *session) next(req *driver.Request, reply *driver.Reply) (err error) {
	s.reads = true
	if v, ok := s.file.volume.(arrayVolume); ok {
		if s.read, err = v.Read(s.slotOf(req), s.read[:0]); err != nil {
			return err
		}
		reply.Value = s.read
		if len(s.read) == 0 {
			reply.Outcome = driver.Miss
		}
		return nil
	}
	reply.Value, err = s.reader.next()
	if errors.Is(err, io.EOF) || errors.Is(err, pmlog.ErrCleared) {
		s.reader = s.file.volume.reader(s.id-s.file.sessions[0].id, len(s.file.sessions))
		reply.Value, reply.Outcome = nil, driver.Miss
		return nil
	}
	return err
}

// clear empties the log, or the key's slot.
func (s *session) clear(req *driver.Request) error {
	if s.file.slots != nil {
		return s.erase(s.slotOf(req))
	}
	s.file.clearing.Lock()
	defer s.file.clearing.Unlock()
	return s.file.empty()
}

// clearFull empties the log, unless another session has done so since it was full with seen resets.
func (s *session) clearFull(seen uint64) error {
	s.file.clearing.Lock()
	defer s.file.clearing.Unlock()
	if s.file.resets.Load() != seen {
		return nil
	}
	if err := s.file.empty(); err != nil {
		return err
	}
	s.file.resets.Add(1)
	return nil
}

// empty clears the log while no session changes it.
func (f *file) empty() error {
	for _, s := range f.sessions {
		if !s.alone {
			s.busy.Lock()
			defer s.busy.Unlock()
		}
	}
	gone := f.older.Load()
	segments, rotates := f.volume.(segmentsVolume)
	if rotates {
		gone = min(gone, segments.Older())
	}
	if err := f.volume.clear(); err != nil {
		return err
	}
	f.older.Add(-gone)
	for _, s := range f.sessions {
		if s.base = s.acked; rotates {
			s.base, s.turned = s.turned, s.acked
		}
	}
	return nil
}
