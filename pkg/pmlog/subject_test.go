package pmlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

const writers = 3 // of a subject

// subject is a log in a crash test, whatever its layout. Its contents are a list: of records, of the values of slots, or of all its bytes as one.
type subject interface {
	write(writer, slot int, p []byte) error // slots are an array's
	clear() error
	checkpoint() error
	close() error
	items() ([][]byte, error)
	recovered() Recovery
}

// grouped is a subject whose writes wait together.
type grouped interface {
	subject
	store(writer int, p []byte) error // does not wait
	sync() error
}

// kind is a variant of a layout.
type kind struct {
	name    string
	sizes   []int64
	slots   int  // of an array
	length  bool // a channel's items count as one
	beside  bool // its writers do not wait for each other
	group   bool // it is a grouped one
	rotates bool // it has two segments, each with a header, of which a clear drops only the older
	create  func(r []Region) (subject, error)
	open    func(r []Region) (subject, error)
	holds   [][]byte // what is in it once it is created
}

// kinds are all variants of all layouts, with room for a few records.
func kinds() []kind {
	var list []kind
	for _, o := range forms() {
		list = append(list, kind{
			name: "append/" + o.name(), sizes: []int64{dataStart + 2000}, beside: o.Order == Relaxed, group: o.Order == Grouped,
			create: func(r []Region) (subject, error) { return appendSubject(CreateAppend(r[0], o)) },
			open:   func(r []Region) (subject, error) { return appendSubject(OpenAppend(r[0])) },
		})
	}
	for _, padding := range []int{64, 256} {
		o := ArrayOptions{Slots: 4, Capacity: 150, Padding: padding}
		list = append(list, kind{
			name: fmt.Sprintf("array/padding=%d", padding), sizes: []int64{ArraySize(o)}, slots: o.Slots, beside: true,
			create: func(r []Region) (subject, error) { return arraySubject(CreateArray(r[0], o)) },
			open:   func(r []Region) (subject, error) { return arraySubject(OpenArray(r[0])) },
		})
	}
	list = append(list, holed())
	for _, most := range []int64{oneForce, 75, 0} {
		list = append(list, kind{
			name: fmt.Sprintf("channel/force=%d", most), sizes: []int64{1000, SideSize}, length: true,
			create: func(r []Region) (subject, error) { return channelSubject(most)(CreateChannel(r[0], r[1])) },
			open:   func(r []Region) (subject, error) { return channelSubject(most)(OpenChannel(r[0], r[1])) },
		})
	}
	list = append(list, kind{
		name: "channel/grouped", sizes: []int64{1000, SideSize}, length: true, group: true,
		create: func(r []Region) (subject, error) { return groupedChannel(CreateChannel(r[0], r[1])) },
		open:   func(r []Region) (subject, error) { return groupedChannel(OpenChannel(r[0], r[1])) },
	})
	return list
}

// holed is a log that was recovered with a hole, in which there is a record of an earlier era that a crash left unfinished and later bytes completed:
// too rare to wait for, so it is made by hand.
func holed() kind {
	o := AppendOptions{Padding: 64, Order: Relaxed, Commit: ByChecksum}
	first, second := []byte("first"), []byte("second")
	return kind{
		name: "append/hole", sizes: []int64{dataStart + 2000}, beside: true, holds: [][]byte{first, second},
		open: func(r []Region) (subject, error) { return appendSubject(OpenAppend(r[0])) },
		create: func(r []Region) (subject, error) {
			l, err := CreateAppend(r[0], o)
			if err == nil {
				_, err = l.Writer().Append(first)
			}
			if err == nil {
				l, err = OpenAppend(r[0])
			}
			if err == nil {
				err = errors.Join(l.plant(l.end, 1, []byte("void")), l.plant(l.end+64, 2, second))
			}
			if err != nil {
				return nil, err
			}
			return appendSubject(OpenAppend(r[0]))
		},
	}
}

// plant stores a record of the era 1, with the next number, or of the era 2, with the one after.
func (l *Append) plant(off int64, era uint64, p []byte) error {
	var head [recordHeader]byte
	seal(&head, len(p), crc32.Checksum(p, castagnoli), l.next+era-1, mark(l.heads.salt, off, era))
	m, words := l.region.Writer(), append(slices.Concat(head[:], p), make([]byte, -len(p)&7)...)
	var errs []error
	for i := 0; i < len(words); i += 8 {
		errs = append(errs, m.Store8(off+int64(i), binary.LittleEndian.Uint64(words[i:])))
	}
	return errors.Join(errs...)
}

// memory returns the files of an image as regions.
func memory(t *pmemtest.Trace, image []byte) []Region {
	var list []Region
	for _, m := range t.Regions(image) {
		list = append(list, m)
	}
	return list
}

// traced returns the files of a trace as regions.
func (k kind) traced(t *pmemtest.Trace) []Region {
	var list []Region
	for i := range k.sizes {
		list = append(list, t.Region(i))
	}
	return list
}

type appends struct {
	log *Append
	w   [writers]*AppendWriter
}

func appendSubject(l *Append, err error) (subject, error) {
	if err != nil {
		return nil, err
	}
	s := &appends{log: l}
	for i := range s.w {
		s.w[i] = l.Writer()
	}
	return s, nil
}

func (s *appends) write(writer, _ int, p []byte) error {
	_, err := s.w[writer].Append(p)
	return err
}

func (s *appends) store(writer int, p []byte) error {
	_, err := s.w[writer].Store(p)
	return err
}

func (s *appends) sync() error              { return s.log.Sync() }
func (s *appends) clear() error             { return s.log.Clear() }
func (s *appends) checkpoint() error        { return s.log.Checkpoint() }
func (s *appends) close() error             { return s.log.Close() }
func (s *appends) recovered() Recovery      { return s.log.Recovered() }
func (s *appends) items() ([][]byte, error) { return readAll(s.log) }

type arrays struct {
	log *Array
	w   [writers]*ArrayWriter
}

func arraySubject(l *Array, err error) (subject, error) {
	if err != nil {
		return nil, err
	}
	s := &arrays{log: l}
	for i := range s.w {
		s.w[i] = l.Writer()
	}
	return s, nil
}

func (s *arrays) write(writer, slot int, p []byte) error { return s.w[writer].Write(slot, p) }
func (s *arrays) clear() error                           { return s.log.Clear() }
func (s *arrays) checkpoint() error                      { return nil }
func (s *arrays) close() error                           { return s.log.Close() }
func (s *arrays) recovered() Recovery                    { return s.log.Recovered() }

func (s *arrays) items() ([][]byte, error) {
	var list [][]byte
	for i := range s.log.slots {
		p, err := s.log.Read(i, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
	return list, nil
}

type channels struct{ log *Channel }

// channelSubject is a channel that forces pieces of at most most bytes with their entries.
func channelSubject(most int64) func(l *Channel, err error) (subject, error) {
	return func(l *Channel, err error) (subject, error) {
		if err != nil {
			return nil, err
		}
		l.oneForce = most
		return channels{l}, nil
	}
}

func (s channels) write(_, _ int, p []byte) error {
	_, err := s.log.Writer().Append(p)
	return err
}

func groupedChannel(l *Channel, err error) (subject, error) {
	if err == nil {
		l.Group(Group{})
	}
	return channelSubject(oneForce)(l, err)
}

func (s channels) store(_ int, p []byte) error {
	_, err := s.log.Writer().Store(p)
	return err
}

func (s channels) sync() error         { return s.log.Sync() }
func (s channels) clear() error        { return s.log.Clear() }
func (s channels) checkpoint() error   { return s.log.Sync() } // none, but what a grouped log does for one
func (s channels) close() error        { return s.log.Close() }
func (s channels) recovered() Recovery { return s.log.Recovered() }

func (s channels) items() ([][]byte, error) {
	p := make([]byte, s.log.Len())
	if n, err := s.log.ReadAt(p, 0); n < len(p) {
		return nil, err
	}
	return [][]byte{p}, nil
}

// model is what a log may hold: what was acknowledged, and what is being written.
type model struct {
	kind       kind
	items      []item
	clearing   bool // none of its contents need be there
	closed     bool // acknowledged
	closing    bool
	checkpoint int // items that a recovery need not read
	older      int // items in the older of two segments
}

// item is a value that is being written, or was.
type item struct {
	value   []byte
	maybe   bool
	refused bool   // there was no room for it
	old     []byte // in an array: what it replaces
}

func newModel(k kind) *model { return &model{kind: k, items: make([]item, k.slots)} }

// check returns an error unless the log may hold that.
func (m *model) check(got [][]byte) error {
	if m.clearing && (!m.kind.rotates && empty(got) || m.kind.rotates && m.rotated().check(got) == nil) {
		return nil
	}
	if m.kind.slots > 0 {
		return m.checkSlots(got)
	}
	left := got
	if m.kind.length {
		left = m.cut(got[0])
	}
	missing := false
	for i, it := range m.items {
		if len(left) > 0 && bytes.Equal(left[0], it.value) && !(missing && m.kind.group) {
			left = left[1:]
		} else if missing = true; !it.maybe {
			return fmt.Errorf("record %d, %.10x, %d bytes, was acknowledged and is not there: got %d records, want %d", i, it.value, len(it.value), len(got), len(m.items))
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%d of %d records were not written, at least not in this order: %.10x, %d bytes", len(left), len(got), left[0], len(left[0]))
	}
	return nil
}

// rotated returns what a log in segments may hold after a rotation.
func (m *model) rotated() *model {
	return &model{kind: m.kind, items: m.items[m.older:], older: len(m.items) - m.older}
}

// cut splits bytes into what was written.
func (m *model) cut(p []byte) [][]byte {
	var list [][]byte
	for _, it := range m.items {
		if len(p) >= len(it.value) {
			list, p = append(list, p[:len(it.value)]), p[len(it.value):]
		}
	}
	if len(p) > 0 {
		list = append(list, p)
	}
	return list
}

func (m *model) checkSlots(got [][]byte) error {
	for i, it := range m.items {
		if !bytes.Equal(got[i], it.value) && (!it.maybe || !bytes.Equal(got[i], it.old)) {
			return fmt.Errorf("slot %d holds %.10x, %d bytes; want %.10x, %d bytes, or, if %t, %.10x, %d bytes",
				i, got[i], len(got[i]), it.value, len(it.value), it.maybe, it.old, len(it.old))
		}
	}
	return nil
}

// checkRecovery returns an error unless the recovery found what was promised, apart from the items.
func (m *model) checkRecovery(r Recovery, items int) error {
	switch {
	case m.kind.rotates:
		return nil
	case m.closed && !r.Clean || r.Clean && !m.closed && !m.closing:
		return fmt.Errorf("clean is %t, the log had been closed: %t", r.Clean, m.closed)
	case m.kind.slots == 0 && !m.kind.length && int(r.Walked) > items-m.checkpoint && items > 0:
		return fmt.Errorf("%d of %d records were read after a checkpoint at %d", r.Walked, items, m.checkpoint)
	}
	return nil
}

// adopt takes what was found as certain, and copies it.
func (m *model) adopt(got [][]byte) {
	*m = model{kind: m.kind, checkpoint: len(got)}
	if m.kind.length && empty(got) {
		return
	}
	for _, p := range got {
		m.items = append(m.items, item{value: bytes.Clone(p)})
	}
}

// begin records a value that is being written, and returns what to call when the write has ended.
func (m *model) begin(slot int, p []byte) (ended func(err error)) {
	i := len(m.items)
	if m.kind.slots == 0 {
		m.items = append(m.items, item{value: p, maybe: true})
	} else {
		i = slot
		m.items[i] = item{value: p, maybe: true, old: m.items[i].value}
	}
	m.closed = false
	return func(err error) {
		m.items[i].maybe = err != nil
		m.items[i].refused = errors.Is(err, ErrFull)
	}
}

// synced notes that what was written up to item n is there.
func (m *model) synced(n int) {
	for i := range m.items[:n] {
		m.items[i].maybe = false
	}
}

// settle forgets what found no room.
func (m *model) settle() {
	m.items = slices.DeleteFunc(m.items, func(it item) bool { return it.refused })
}

func empty(items [][]byte) bool {
	for _, p := range items {
		if len(p) > 0 {
			return false
		}
	}
	return true
}

// readAll reads all records of a log, and returns any error that ends it.
func readAll(l *Append) ([][]byte, error) {
	list := [][]byte{}
	for r := l.Reader(); ; {
		seq, p, err := r.Next()
		if err != nil && (seq != 0 || p != nil) {
			return list, fmt.Errorf("record %d beside %w", seq, err)
		}
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, bytes.Clone(p))
	}
}

// forms are the variants of an append log.
func forms() []AppendOptions {
	var list []AppendOptions
	for _, padding := range paddings {
		for _, order := range []Order{Strict, Relaxed, Grouped} {
			list = append(list, AppendOptions{padding, order, ByChecksum})
		}
		if padding >= line {
			list = append(list, AppendOptions{padding, Strict, ByLength})
		}
	}
	return list
}

func (o AppendOptions) name() string {
	return fmt.Sprintf("padding=%d/order=%s/commit=%s", o.Padding, o.Order, o.Commit)
}
