package log

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver/localfile"
	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmlog"
)

// Contents describes the contents of a log that no run has open.
type Contents struct {
	pmlog.Shape
	Size    int64          // of its file, in bytes
	End     int64          // offset of the log's end, in bytes; for an array, its size
	Found   pmlog.Recovery // what a recovery would find if the log were opened
	Epochs  []*Epoch       // in the order of their first entries; in an array, in the order of their slots
	Strange uint64         // records or slots that hold no entry of a run
	Gaps    Findings       // entries that are missing between others of their session; none for an array, which keeps only the last entries
	Damage  Findings       // contents that neither a run nor a crash can have left
}

// Epoch is the entries of one phase of a run.
type Epoch struct {
	ID       uint64
	Least    int // bytes of its smallest entry
	Most     int // bytes of its largest entry
	Entries  uint64
	Sessions []*SessionEntries // by number
}

// SessionEntries counts the entries of a session. They are numbered from 1 on; those before the first were cleared or overwritten.
type SessionEntries struct {
	Session         int
	Entries         uint64
	Lowest, Highest uint64
}

// Findings are counted, and the first of them described.
type Findings struct {
	Count uint64
	First []string
	More  bool // there are more findings than described
}

// maxFindings is how many findings are described.
const maxFindings = 10

func (f *Findings) add(n uint64, format string, args ...any) {
	f.Count += n
	if f.More = len(f.First) == maxFindings; !f.More {
		f.First = append(f.First, fmt.Sprintf(format, args...))
	}
}

// Whole reports whether nothing is damaged and no entry is missing between others.
func (c *Contents) Whole() bool { return c.Damage.Count == 0 && c.Gaps.Count == 0 }

// Held returns how many entries there are.
func (c *Contents) Held() (n uint64) {
	for _, e := range c.Epochs {
		n += e.Entries
	}
	return n
}

// Expect takes it as damage if fewer entries are there than were acknowledged: nothing in a file says how far it should reach.
func (c *Contents) Expect(acknowledged uint64) { c.lacks(c.Held(), acknowledged, "") }

// ExpectOf is Expect for the entries of one epoch, of which the lowest 40 bits count.
func (c *Contents) ExpectOf(epoch, acknowledged uint64, phase string) {
	held := uint64(0)
	for _, e := range c.Epochs {
		if e.ID == epochOf(epoch) {
			held = e.Entries
		}
	}
	c.lacks(held, acknowledged, fmt.Sprintf(" of phase %q", phase))
}

func (c *Contents) lacks(held, acknowledged uint64, of string) {
	if held < acknowledged {
		c.Damage.add(acknowledged-held, "%d of %d acknowledged entries%s are not there; the log ends at byte %d", acknowledged-held, acknowledged, of, c.End)
	}
}

// Reused reports whether entries may have given their room to later ones: then no number of acknowledged entries says how many must be there.
func (c *Contents) Reused() bool { return c.Layout == layoutArray || c.Cleared > 1 }

// tooTorn takes it as damage if more slots of an array are torn than its sessions can have, or earlier ones: a session writes one at a time, in turn.
func (c *Contents) tooTorn() {
	sessions := 0
	for _, e := range c.Epochs {
		for _, s := range e.Sessions {
			sessions = max(sessions, s.Session+1)
			if missing := s.Highest - s.Lowest + 1 - s.Entries; c.Found.Torn > 0 && missing > 0 && len(c.Epochs) == 1 {
				c.Damage.add(missing, "a slot is torn, and its session %d has gone on to entry %d", s.Session, s.Highest)
			}
		}
	}
	if torn := c.Found.Torn; sessions > 0 && torn > sessions {
		c.Damage.add(uint64(torn-sessions), "%d slots are torn, and a crash can have torn %d, one of each session", torn, sessions)
	}
}

// Inspect reads the log in a file, without writing to it. It returns pmem.ErrLocked if the file is in use. Damage is no error.
func Inspect(path string) (*Contents, error) {
	path = strings.TrimSuffix(path, sideName(""))
	data, err := pmem.OpenView(path)
	if errors.Is(err, pmem.ErrLocked) {
		return nil, fmt.Errorf("%w: let the run that writes it end", err)
	}
	if err != nil {
		return nil, err
	}
	defer data.Close()
	c := &Contents{Size: data.Size()}
	head := pmlog.Region(data)
	side, err := pmem.OpenView(sideName(path))
	switch {
	case err == nil:
		defer side.Close()
		head = side
	case !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	if err := inspectable(path, head); err != nil {
		return nil, err
	}
	c.Shape, err = pmlog.ShapeOf(head)
	if err == nil {
		err = c.read(data, side)
	}
	if errors.Is(err, pmlog.ErrCorrupt) {
		c.Damage.add(1, "%v", err)
		err = nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// inspectable returns an error if the file with a log's header is no such file.
func inspectable(path string, head pmlog.Region) error {
	first := make([]byte, min(head.Size(), beginning))
	if _, err := head.ReadAt(first, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch {
	case !ours(first):
		return fmt.Errorf("%s is not a log file", path)
	case bytes.HasPrefix(first, []byte(entryMagic)):
		return fmt.Errorf("%s is of layout raw, or a channel without its file %s: it has entries and nothing that says which of them count", path, sideName(path))
	}
	return nil
}

// read reads the log's entries. side is nil unless it is a channel.
func (c *Contents) read(data, side *pmem.View) error {
	switch {
	case side != nil:
		return c.channel(data, side)
	case c.Layout == layoutArray:
		return c.array(data)
	}
	return c.append(data)
}

func (c *Contents) append(data *pmem.View) error {
	l, refusal := pmlog.OpenAppend(data)
	err := refusal
	if errors.Is(refusal, pmlog.ErrCorrupt) {
		l, err = pmlog.SalvageAppend(data)
	}
	if err != nil {
		return err
	}
	c.Found, c.End = l.Recovered(), l.End()
	r := l.Reader()
	if err := c.entries(func() ([]byte, error) {
		_, p, err := r.Next()
		return p, err
	}); err != nil {
		return err
	}
	if c.Damage.Count == 0 {
		return refusal // of what lies behind the last record
	}
	return nil
}

func (c *Contents) array(data *pmem.View) error {
	l, err := pmlog.OpenArray(data)
	if err != nil {
		return err
	}
	c.Found, c.End = l.Recovered(), data.Size()
	var buf []byte
	slot, slots := 0, l.Options().Slots
	defer c.tooTorn()
	return c.entries(func() ([]byte, error) {
		for ; slot < slots; slot++ {
			p, err := l.Read(slot, buf[:0])
			if buf = p; err != nil || len(p) > 0 {
				slot++
				return p, err
			}
		}
		return nil, io.EOF
	})
}

func (c *Contents) channel(data, side *pmem.View) error {
	l, err := pmlog.OpenChannel(data, side)
	if err != nil {
		return err
	}
	c.Found, c.End = l.Recovered(), l.Len()
	at, end := int64(0), l.Len()
	return c.entries(func() ([]byte, error) {
		if at == end {
			return nil, io.EOF
		}
		from := at
		if at, err = nextStamp(l, from, end); err != nil {
			return nil, err
		}
		p := make([]byte, at-from)
		if n, err := l.ReadAt(p, from); n < len(p) {
			return nil, err
		}
		if !isEntry(p) {
			return nil, fmt.Errorf("the %d bytes at %d are not an entry: %w", len(p), from, pmlog.ErrCorrupt)
		}
		return p, nil
	})
}

// nextStamp returns the offset in a channel at which the entry after the one at from begins. Only stamps show this: the next entry is of the same
// phase, or the first of its session, or there is no entry at from.
func nextStamp(l io.ReaderAt, from, end int64) (int64, error) {
	var epoch, stamp [localfile.StampSize]byte
	if n, err := l.ReadAt(epoch[:], from); n < len(epoch) && !errors.Is(err, io.EOF) {
		return 0, err
	}
	for at := from + 1; ; at++ {
		var err error
		if at, err = find(l, []byte(entryMagic), at, end); err != nil || at == end {
			return at, err
		}
		n, err := l.ReadAt(stamp[:], at)
		if n < len(stamp) && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if isEntry(stamp[:n]) && (!isEntry(epoch[:]) || bytes.Equal(stamp[:8], epoch[:8]) || markIn(stamp[:]).number() == 1) {
			return at, nil
		}
	}
}

// find returns where the bytes first occur from an offset on, or end.
func find(r io.ReaderAt, what []byte, from, end int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for from+int64(len(what)) <= end {
		p := buf[:min(int64(len(buf)), end-from)]
		if n, err := r.ReadAt(p, from); n < len(p) {
			return 0, err
		}
		if i := bytes.Index(p, what); i >= 0 {
			return from + int64(i), nil
		}
		from += int64(len(p) - len(what) + 1)
	}
	return end, nil
}

// isEntry reports whether p begins with a stamp.
func isEntry(p []byte) bool {
	return len(p) >= localfile.StampSize && bytes.HasPrefix(p, []byte(entryMagic)) && markIn(p).number() > 0
}

// markIn returns the mark in a stamp.
func markIn(p []byte) mark { return mark(binary.LittleEndian.Uint64(p[8:])) }

// entries counts all entries that next returns, until io.EOF.
func (c *Contents) entries(next func() ([]byte, error)) error {
	type key struct {
		epoch   uint64
		session int
	}
	epochs, sessions := map[uint64]*Epoch{}, map[key]*SessionEntries{}
	for {
		p, err := next()
		switch {
		case errors.Is(err, io.EOF):
			for _, e := range c.Epochs {
				slices.SortFunc(e.Sessions, func(a, b *SessionEntries) int { return cmp.Compare(a.Session, b.Session) })
			}
			return nil
		case errors.Is(err, pmlog.ErrCorrupt):
			c.Damage.add(1, "%v", err)
			continue
		case err != nil:
			return err
		case !isEntry(p):
			c.Strange++
			continue
		}
		id, m := binary.LittleEndian.Uint64(p), markIn(p)
		e := epochs[id]
		if e == nil {
			e = &Epoch{ID: id, Least: len(p)}
			epochs[id], c.Epochs = e, append(c.Epochs, e)
		}
		s := sessions[key{id, m.session()}]
		if s == nil {
			s = &SessionEntries{Session: m.session(), Lowest: m.number(), Highest: m.number() - 1}
			if c.Layout == layoutChannel && !c.Reused() {
				s.Highest = 0 // the first entry is there, and no checksum guards its number
			}
			sessions[key{id, m.session()}], e.Sessions = s, append(e.Sessions, s)
		}
		e.Entries++
		e.Least, e.Most = min(e.Least, len(p)), max(e.Most, len(p))
		c.follow(s, m)
	}
}

// follow counts an entry, and records a gap if it does not follow its session's last one.
func (c *Contents) follow(s *SessionEntries, m mark) {
	s.Entries++
	switch due := s.Highest + 1; {
	case c.Layout == layoutArray:
	case m.number() < due:
		c.Damage.add(1, "%v comes after %v", m, markOf(s.Session, s.Highest))
	case m.number() > due:
		c.Gaps.add(m.number()-due, "%v is not there; the next is entry %d", markOf(s.Session, due), m.number())
		if c.Layout == layoutChannel { // a channel loses nothing in between
			c.Damage.add(m.number()-due, "%v has lost its stamp", markOf(s.Session, due))
		}
	}
	s.Lowest, s.Highest = min(s.Lowest, m.number()), max(s.Highest, m.number())
}
