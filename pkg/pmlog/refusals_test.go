package pmlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem"
	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

var errRefused = errors.New("refused")

// refusals count the calls of regions and their mediums, of which number at fails, from 1.
type refusals struct {
	calls, at int
	failed    string // the call that did
}

func (r *refusals) call(name string) error {
	if r.calls++; r.calls != r.at {
		return nil
	}
	r.failed = name
	return errRefused
}

// refusing is a region whose calls may fail.
type refusing struct {
	Region
	r *refusals
}

func (f refusing) ReadAt(p []byte, off int64) (int, error) {
	if len(p) > 0 { // none is asked for of nothing
		if err := f.r.call("ReadAt"); err != nil {
			return 0, err
		}
	}
	return f.Region.ReadAt(p, off)
}

func (f refusing) Check() error { return errors.Join(f.r.call("Check"), f.Region.Check()) }

func (f refusing) Close() error { return errors.Join(f.r.call("Close"), f.Region.Close()) }

func (f refusing) Writer() pmem.Medium { return refusingMedium{f.Region.Writer(), f.r} }

type refusingMedium struct {
	pmem.Medium
	r *refusals
}

func (m refusingMedium) Put(off int64, head, p []byte) error {
	if err := m.r.call("Put"); err != nil {
		return err
	}
	return m.Medium.Put(off, head, p)
}

func (m refusingMedium) Seal(off int64, head, p []byte, room int64) (uint32, error) {
	if err := m.r.call("Seal"); err != nil {
		return 0, err
	}
	return m.Medium.Seal(off, head, p, room)
}

func (m refusingMedium) Store8(off int64, v uint64) error {
	if err := m.r.call("Store8"); err != nil {
		return err
	}
	return m.Medium.Store8(off, v)
}

func (m refusingMedium) Flush(off, n int64) error {
	if err := m.r.call("Flush"); err != nil {
		return err
	}
	return m.Medium.Flush(off, n)
}

func (m refusingMedium) Fence() error {
	if err := m.r.call("Fence"); err != nil {
		return err
	}
	return m.Medium.Fence()
}

// over returns failing regions in memory, of a kind's sizes or with copies of bytes.
func over(k kind, r *refusals, images [][]byte) (regions []Region, bare []*pmemtest.Memory) {
	for i, size := range k.sizes {
		m := &pmemtest.Memory{Bytes: make([]byte, size)}
		if images != nil {
			copy(m.Bytes, images[i])
		}
		bare = append(bare, m)
		regions = append(regions, refusing{m, r})
	}
	return regions, bare
}

// life puts a log through its life. Each step returns the first error.
func life(k kind, regions []Region) error {
	s, err := k.create(regions)
	if err != nil {
		return err
	}
	for n := range 4 {
		if err := s.write(n%writers, n%4, bytes.Repeat([]byte{byte(n + 1)}, 20+90*(n%2))); err != nil {
			return err
		}
	}
	if _, err := s.items(); err != nil {
		return err
	}
	if err := s.checkpoint(); err != nil {
		return err
	}
	if err := s.write(0, 0, []byte("behind the checkpoint")); err != nil {
		return err
	}
	if err := s.clear(); err != nil {
		return err
	}
	if err := s.write(0, 1, []byte("after a clear")); err != nil {
		return err
	}
	return s.close()
}

// If any call of the file fails in the life of a log of any layout, the step that made it returns the error.
func TestEachRefusalInALogsLifeIsTold(t *testing.T) {
	for _, k := range kinds() {
		at := 1
		for ; ; at++ {
			r := &refusals{at: at}
			regions, _ := over(k, r, nil)
			err := life(k, regions)
			if r.failed == "" {
				require.NoError(t, err, k.name)
				break
			}
			require.ErrorIs(t, err, errRefused, "%s: call %d, %s", k.name, at, r.failed)
		}
		require.Greater(t, at, 15, "%s: calls", k.name)
	}
}

// ended returns the files of logs as a crash or a close left them: with torn records, with holes, with both entries of a channel in use.
func ended(t *testing.T, k kind) (all [][][]byte) {
	keep := func(bare []*pmemtest.Memory, last int) {
		var images [][]byte
		for i, m := range bare {
			p := bytes.Clone(m.Bytes)
			if last > 0 && i == 0 { // the last byte of what was written then is not there
				at := bytes.LastIndex(p, bytes.Repeat([]byte{byte(last)}, 90))
				require.Positive(t, at)
				p[at+89] ^= 0xff
			}
			images = append(images, p)
		}
		all = append(all, images)
	}
	regions, bare := over(k, &refusals{}, nil)
	s, err := k.create(regions)
	require.NoError(t, err)
	keep(bare, 0)
	for n := range 5 {
		require.NoError(t, s.write(n%writers, n%2, bytes.Repeat([]byte{byte(n + 1)}, 90)))
	}
	keep(bare, 0)
	keep(bare, 5)
	keep(bare, 4)
	require.NoError(t, s.close())
	keep(bare, 0)
	return all
}

// If any call of the file fails while a log is opened or read, that error is returned.
func TestEachRefusalOfARecoveryIsTold(t *testing.T) {
	for _, k := range kinds() {
		for i, images := range ended(t, k) {
			at := 1
			for ; ; at++ {
				r := &refusals{at: at}
				regions, _ := over(k, r, images)
				s, err := k.open(regions)
				if err == nil {
					_, err = s.items()
				}
				if r.failed == "" {
					require.True(t, err == nil || errors.Is(err, ErrCorrupt), "%s, image %d: %v", k.name, i, err)
					break
				}
				require.ErrorIs(t, err, errRefused, "%s, image %d: call %d, %s", k.name, i, at, r.failed)
			}
			require.Greater(t, at, 2, "%s, image %d: calls", k.name, i)
		}
	}
}

// After a failure a channel is lost: the error stays, and nothing more is written.
func TestAChannelThatFailedStaysSo(t *testing.T) {
	k := kinds()[len(kinds())-3]
	require.Contains(t, k.name, "channel")
	steps := map[string]func(l *Channel) error{
		"append": func(l *Channel) error {
			off, err := l.Append([]byte("x"))
			require.Zero(t, off)
			return err
		},
		"clear": func(l *Channel) error { return l.Clear() },
	}
	for name, step := range steps {
		r := &refusals{}
		regions, _ := over(k, r, nil)
		l, err := CreateChannel(regions[0], regions[1])
		require.NoError(t, err)
		_, err = l.Append([]byte("before"))
		require.NoError(t, err)
		r.at = r.calls + 1
		first := step(l)
		require.ErrorIs(t, first, errRefused, name)
		calls := r.calls
		for other, step := range steps {
			require.Equal(t, first, step(l), "%s after %s", other, name)
		}
		require.Equal(t, calls, r.calls, "nothing more is written")
		require.ErrorIs(t, l.Close(), errRefused, name)
	}
}

// Each condition on a header, on both sides of its bound.
func TestWhatAHeaderMaySay(t *testing.T) {
	const size = dataStart + 4096
	good := header{
		layout: appendLayout, padding: 64, salt: 1, serial: 3, generation: 2, era: 5, first: 10, checkpoint: dataStart + 640, next: 20, holes: 3, size: size,
	}
	array := good
	array.layout, array.slots, array.capacity = arrayLayout, 4, 400 // 448 bytes each, twice
	for _, c := range []struct {
		name   string
		of     header
		change func(h *header)
		says   string // "" if valid
	}{
		{"as it is", good, func(*header) {}, ""},
		{"padding 8", good, func(h *header) { h.padding = 8 }, ""},
		{"padding 256", good, func(h *header) { h.padding, h.checkpoint = 256, dataStart+256 }, ""},
		{"padding 0", good, func(h *header) { h.padding = 0 }, "padding is 0"},
		{"padding 63", good, func(h *header) { h.padding = 63 }, "padding is 63"},
		{"a smaller region", good, func(h *header) { h.size = size - 1 }, ""},
		{"a larger region", good, func(h *header) { h.size = size + 1 }, "of which there are"},
		{"generation 0", good, func(h *header) { h.generation = 0 }, "generation is 0"},
		{"generation 1", good, func(h *header) { h.generation = 1 }, ""},
		{"generation of today", good, func(h *header) { h.generation = 5 }, ""},
		{"generation of tomorrow", good, func(h *header) { h.generation = 6 }, "generation is 6 of 5"},
		{"checkpoint at the beginning", good, func(h *header) { h.checkpoint = dataStart }, ""},
		{"checkpoint before", good, func(h *header) { h.checkpoint = dataStart - 64 }, "checkpoint is at"},
		{"checkpoint at the end", good, func(h *header) { h.checkpoint = size }, ""},
		{"checkpoint behind a record at the end", good, func(h *header) { h.checkpoint = size + 64 }, ""},
		{"checkpoint behind that", good, func(h *header) { h.checkpoint = size + 128 }, "checkpoint is at"},
		{"checkpoint at no record", good, func(h *header) { h.checkpoint = dataStart + 8 }, "checkpoint is at"},
		{"no records", good, func(h *header) { h.size, h.checkpoint = dataStart, dataStart }, ""},
		{"not even a header", good, func(h *header) { h.size, h.checkpoint = dataStart-1, dataStart }, "checkpoint is at"},
		{"no records yet", good, func(h *header) { h.next, h.holes = 10, 0 }, ""},
		{"less than no records", good, func(h *header) { h.next, h.holes = 9, 0 }, "with 0 missing are none"},
		{"all missing", good, func(h *header) { h.holes = 10 }, ""},
		{"more than all missing", good, func(h *header) { h.holes = 11 }, "with 11 missing are none"},
		{"slots of no array", good, func(h *header) { h.slots = 1 << 60 }, ""},
		{"an array", array, func(*header) {}, ""},
		{"as many slots as there is room for", array, func(h *header) { h.size, h.checkpoint = dataStart+8*448, dataStart }, ""},
		{"a byte less", array, func(h *header) { h.size, h.checkpoint = dataStart+8*448-1, dataStart }, "do not lie in"},
		{"no slots", array, func(h *header) { h.slots = 0 }, "0 slots"},
		{"a slot", array, func(h *header) { h.slots = 1 }, ""},
		{"slots without room", array, func(h *header) { h.capacity = 0 }, "of 0 bytes"},
		{"slots of a byte", array, func(h *header) { h.capacity = 1 }, ""},
		{"slots beyond all", array, func(h *header) { h.slots = 1 << 62 }, "do not lie in"},
		{"values beyond all", array, func(h *header) { h.capacity = maxPayload + 1 }, "do not lie in"},
		{"slots of words", array, func(h *header) { h.padding = 8 }, "do not lie in"},
	} {
		h := c.of
		c.change(&h)
		p := make([]byte, headerSize)
		h.encode(p)
		got, err := decodeHeader(p, size)
		if c.says == "" {
			require.NoError(t, err, c.name)
			require.Equal(t, h, got, c.name)
		} else {
			require.ErrorContains(t, err, c.says, c.name)
		}
	}
}

// A version is a digit after the family; anything else is no log.
func TestStrayHeaders(t *testing.T) {
	for _, begins := range []string{"LGPMLOG0", "LGPMLOG2", "LGPMLOG9"} {
		require.ErrorIs(t, stray(begins), ErrVersion, begins)
		require.ErrorContains(t, stray(begins), "writes version "+begins[7:])
	}
	for _, begins := range []string{"LGPMLOG/", "LGPMLOG:", "LGPMLOGx", "XGPMLOG2", strings.Repeat("\x00", 8)} {
		require.NotErrorIs(t, stray(begins), ErrVersion, begins)
		require.ErrorContains(t, stray(begins), "it begins with")
	}
}

// The smallest region has room for the header and one step of the padding.
func TestTheSmallestRegion(t *testing.T) {
	for _, padding := range paddings {
		o := AppendOptions{Padding: padding}
		_, err := CreateAppend(&pmemtest.Memory{Bytes: make([]byte, dataStart+padding)}, o)
		require.NoError(t, err)
		_, err = CreateAppend(&pmemtest.Memory{Bytes: make([]byte, dataStart+padding-1)}, o)
		require.ErrorContains(t, err, fmt.Sprintf("want at least %d", dataStart+padding))
	}
	_, err := CreateChannel(&pmemtest.Memory{Bytes: make([]byte, 1)}, &pmemtest.Memory{Bytes: make([]byte, SideSize-1)})
	require.ErrorContains(t, err, "want at least 8320")
	_, err = CreateMashona(&pmemtest.Memory{Bytes: make([]byte, 27)}, MashonaOptions{})
	require.ErrorContains(t, err, "want 28")
	l, err := CreateMashona(&pmemtest.Memory{Bytes: make([]byte, 28)}, MashonaOptions{})
	require.NoError(t, err)
	require.Equal(t, ErrTooLarge, l.Append([]byte{1}))
}

// Opening a log as another layout reports its actual layout.
func TestALogIsOfItsLayout(t *testing.T) {
	m := &pmemtest.Memory{Bytes: make([]byte, dataStart+2000)}
	_, err := CreateAppend(m, AppendOptions{})
	require.NoError(t, err)
	_, err = OpenArray(m)
	require.ErrorContains(t, err, "open an array log: the log has layout append, not array")
	_, err = OpenChannel(m, m)
	require.ErrorContains(t, err, "the log has layout append, not channel")
	require.Equal(t, "number 7", layout(7).String())
}

// A slot's number must be in range.
func TestSlotsAreNumbered(t *testing.T) {
	o := ArrayOptions{Slots: 3, Capacity: 10}
	l, err := CreateArray(&pmemtest.Memory{Bytes: make([]byte, ArraySize(o))}, o)
	require.NoError(t, err)
	w := l.Writer()
	for _, slot := range []int{-1, 3, 4} {
		require.ErrorContains(t, w.Write(slot, []byte{1}), "the log has 3")
		_, err := l.Read(slot, nil)
		require.ErrorContains(t, err, "the log has 3")
	}
	for slot := range 3 {
		require.NoError(t, w.Write(slot, []byte{byte(slot), 1}))
	}
	for slot := range 3 {
		p, err := l.Read(slot, nil)
		require.NoError(t, err)
		require.Equal(t, []byte{byte(slot), 1}, p)
	}
}

// If any byte of a value is not as acknowledged, reading finds it.
func TestEachByteOfASlotIsHeld(t *testing.T) {
	o := ArrayOptions{Slots: 1, Capacity: 10}
	m := &pmemtest.Memory{Bytes: make([]byte, ArraySize(o))}
	l, err := CreateArray(m, o)
	require.NoError(t, err)
	require.NoError(t, l.Writer().Write(0, []byte("value")))
	at := l.at(0, l.slots[0].copy)
	for i := range int64(recordHeader + 5) {
		m.Bytes[at+i] ^= 1
		got, err := l.Read(0, []byte("before"))
		require.ErrorIs(t, err, ErrCorrupt, "byte %d", i)
		require.Equal(t, "before", string(got[:6]))
		m.Bytes[at+i] ^= 1
	}
	got, err := l.Read(0, []byte("before"))
	require.NoError(t, err)
	require.Equal(t, "beforevalue", string(got))
}

// A closed channel whose last piece is not as it was is damaged, even if the piece before it would explain a crash. A crash may tear only the last
// piece, from where the one before it ends.
func TestAChannelsLastPiece(t *testing.T) {
	build := func(pieces int, closed bool) (data, side *pmemtest.Memory) {
		data, side = &pmemtest.Memory{Bytes: make([]byte, 1000)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)}
		l, err := CreateChannel(data, side)
		require.NoError(t, err)
		for n := range pieces {
			_, err := l.Append(bytes.Repeat([]byte{byte(n + 1)}, 10))
			require.NoError(t, err)
		}
		if closed {
			require.NoError(t, l.Close())
		}
		return data, side
	}
	for pieces := 1; pieces < 5; pieces++ {
		data, side := build(pieces, true)
		data.Bytes[10*pieces-1] ^= 1
		_, err := OpenChannel(data, side)
		require.ErrorIs(t, err, ErrCorrupt, "%d pieces, closed", pieces)

		data, side = build(pieces, false)
		data.Bytes[10*pieces-1] ^= 1
		l, err := OpenChannel(data, side)
		require.NoError(t, err, "%d pieces", pieces)
		require.EqualValues(t, 10*(pieces-1), l.Len())
		require.Equal(t, Recovery{Torn: 1}, l.Recovered())

		if pieces < 3 {
			continue
		}
		data, side = build(pieces, false)
		data.Bytes[10*pieces-1] ^= 1
		side.Bytes[entriesStart+line*int64(pieces%2)] ^= 1 // the entry before the last, too
		_, err = OpenChannel(data, side)
		require.ErrorIs(t, err, ErrCorrupt, "%d pieces: nothing says where the torn one begins", pieces)
	}
	data, side := build(3, false)
	_, err := OpenChannel(&pmemtest.Memory{Bytes: data.Bytes[:999]}, side)
	require.ErrorIs(t, err, ErrCorrupt, "the data are shorter")
	data, side = build(3, true)
	l, err := OpenChannel(data, side)
	require.NoError(t, err)
	require.EqualValues(t, 30, l.Len())
	require.Equal(t, Recovery{Clean: true}, l.Recovered())
}

// Reads of a channel end where it ends.
func TestReadsOfAChannelEndWithIt(t *testing.T) {
	l, err := CreateChannel(&pmemtest.Memory{Bytes: bytes.Repeat([]byte{9}, 100)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)})
	require.NoError(t, err)
	off, err := l.Append([]byte("0123456789"))
	require.NoError(t, err)
	require.Zero(t, off)
	off, err = l.Append(nil)
	require.NoError(t, err)
	require.EqualValues(t, 10, off)
	n, err := l.ReadAt(make([]byte, 5), -1)
	require.ErrorContains(t, err, "read a channel log at -1")
	require.Zero(t, n)
	for _, c := range []struct {
		off, n int
		want   string
		err    error
	}{
		{0, 10, "0123456789", nil},
		{0, 11, "0123456789", io.EOF},
		{9, 1, "9", nil},
		{9, 2, "9", io.EOF},
		{10, 0, "", nil},
		{10, 1, "", io.EOF},
		{11, 1, "", io.EOF},
		{99, 5, "", io.EOF},
	} {
		p := make([]byte, c.n)
		n, err := l.ReadAt(p, int64(c.off))
		require.Equal(t, c.err, err, "%+v", c)
		require.Equal(t, c.want, string(p[:n]), "%+v", c)
	}
}

// A record of a Mashona log is protected only by its checksum. A torn one whose payload holds the image of a whole record at a place where one may
// begin looks like an earlier record with a damaged length. Records that may have been acknowledged are not skipped, so that is ErrCorrupt, and the
// log's bytes are left unchanged.
func TestATornMashonaRecordThatHoldsAnother(t *testing.T) {
	image := append([]byte("\x00\x00\x00\x09"+check), "123456789"...)
	for _, o := range []MashonaOptions{{}, {Blocks: true}, {Relaxed: true}, {Blocks: true, Relaxed: true}} {
		for _, aligned := range []bool{true, false} {
			m := &pmemtest.Memory{Bytes: make([]byte, 4000)}
			l, err := CreateMashona(m, o)
			require.NoError(t, err)
			require.NoError(t, l.Append([]byte("before")))
			at := l.end
			room := l.aligned(at+mashonaHeader) - at - mashonaHeader // where a record may begin within the payload
			if !aligned {
				room++
			}
			p := slices.Concat(bytes.Repeat([]byte{0xff}, int(room)), image, bytes.Repeat([]byte{0xff}, 300))
			require.NoError(t, l.Append(p))
			m.Bytes[at+mashonaHeader+int64(len(p))-1] = 0 // the crash kept it from being written
			before := bytes.Clone(m.Bytes)
			l, err = OpenMashona(m)
			if aligned {
				require.ErrorIs(t, err, ErrCorrupt, "%+v", o)
				require.Equal(t, before, m.Bytes, "%+v", o)
				continue
			}
			require.NoError(t, err, "%+v", o)
			got, err := mashonas{l}.items()
			require.NoError(t, err)
			require.Equal(t, [][]byte{[]byte("before")}, got)
		}
	}
}

// Readers and writers of raw bytes stay within their bounds.
func TestRawBounds(t *testing.T) {
	l := NewRaw(&pmemtest.Memory{Bytes: make([]byte, 100)}, false)
	for _, r := range [][2]int64{{0, 100}, {99, 100}, {0, 1}} {
		w, err := l.Writer(r[0], r[1])
		require.NoError(t, err)
		off, err := w.Write(make([]byte, r[1]-r[0]))
		require.NoError(t, err)
		require.Equal(t, r[0], off)
		_, err = w.Write(make([]byte, r[1]-r[0]+1))
		require.Equal(t, ErrTooLarge, err)
		require.Zero(t, w.Sum(), "which nobody asked for")
	}
	for _, r := range [][2]int64{{-1, 10}, {0, 101}, {5, 5}, {6, 5}} {
		_, err := l.Writer(r[0], r[1])
		require.Error(t, err)
	}
}

// A record without room is ErrFull, or ErrTooLarge if even an empty log has no room for it.
func TestPlaceOfARecord(t *testing.T) {
	l, err := CreateAppend(&pmemtest.Memory{Bytes: make([]byte, dataStart+256)}, AppendOptions{})
	require.NoError(t, err)
	for n, want := range map[int64]error{0: nil, 256 - recordHeader: nil, 256 - recordHeader + 1: ErrTooLarge, maxPayload + 1: ErrTooLarge} {
		_, _, err := l.place(n)
		require.Equal(t, want, err, "%d bytes", n)
	}
	_, err = l.Writer().Append(make([]byte, 100))
	require.NoError(t, err)
	for n, want := range map[int64]error{128 - recordHeader: nil, 128 - recordHeader + 1: ErrFull} {
		_, _, err := l.place(n)
		require.Equal(t, want, err, "%d bytes", n)
	}
}
