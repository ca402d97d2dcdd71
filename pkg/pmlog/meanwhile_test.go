package pmlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// Damage to an open log is found when the bytes are read: to a payload or a length, of any record. A relaxed Mashona log skips damaged payloads, as
// it would after a crash.
func TestDamageToAnOpenLogIsFound(t *testing.T) {
	payload := func(n int) []byte { return bytes.Repeat([]byte{byte(n + 1)}, 40) }
	for _, o := range []MashonaOptions{{}, {Blocks: true}, {Relaxed: true}} {
		for damaged := range 3 {
			for what, at := range map[string]int64{"payload": mashonaHeader + 1, "length": 1} {
				m := &pmemtest.Memory{Bytes: make([]byte, 8<<10)}
				l, err := CreateMashona(m, o)
				require.NoError(t, err)
				var begins []int64
				for n := range 3 {
					begins = append(begins, l.end)
					require.NoError(t, l.Append(payload(n)))
				}
				m.Bytes[begins[damaged]+at] ^= 0x55
				r := l.Reader()
				var got []int
				var end error
				for end == nil {
					var p []byte
					if p, end = r.Next(); end == nil {
						got = append(got, int(p[0])-1)
					}
				}
				if o.Relaxed && what == "payload" {
					require.Equal(t, io.EOF, end)
					require.Len(t, got, 2)
					require.NotContains(t, got, damaged)
					continue
				}
				require.ErrorIs(t, end, ErrCorrupt, "%+v: %s of record %d", o, what, damaged)
				require.Len(t, got, damaged, "%+v: %s of record %d", o, what, damaged)
			}
			m := &pmemtest.Memory{Bytes: make([]byte, 8<<10)}
			l, err := CreateMashona(m, o)
			require.NoError(t, err)
			var begin int64
			for n := range 3 {
				if n == damaged {
					begin = l.end
				}
				require.NoError(t, l.Append(payload(n)))
			}
			clear(m.Bytes[begin:][:4])
			r := l.Reader()
			for range damaged {
				_, err := r.Next()
				require.NoError(t, err)
			}
			_, err = r.Next()
			require.EqualError(t, err, fmt.Sprintf("record at %d: %v", begin, ErrCorrupt), "%+v: no length of record %d", o, damaged)
		}
	}
	for _, o := range forms() {
		for damaged := range 3 {
			for at := range int64(recordHeader + 40) {
				m := &pmemtest.Memory{Bytes: make([]byte, dataStart+4000)}
				l, err := CreateAppend(m, o)
				require.NoError(t, err)
				w := l.Writer()
				var begins []int64
				for n := range 3 {
					begins = append(begins, l.end)
					_, err := w.Append(payload(n))
					require.NoError(t, err)
				}
				m.Bytes[begins[damaged]+at] ^= 0x55
				r := l.Reader()
				for n := range damaged {
					_, p, err := r.Next()
					require.NoError(t, err)
					require.Equal(t, payload(n), p)
				}
				seq, p, err := r.Next()
				require.ErrorIs(t, err, ErrCorrupt, "%s: byte %d of record %d", o.name(), at, damaged)
				require.Zero(t, seq)
				require.Nil(t, p)
			}
		}
	}
}

// A value with another number, place or size is not the acknowledged one, even if its own checksum is right.
func TestASlotHoldsWhatWasAcknowledged(t *testing.T) {
	o := ArrayOptions{Slots: 2, Capacity: 10}
	m := &pmemtest.Memory{Bytes: make([]byte, ArraySize(o))}
	l, err := CreateArray(m, o)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, l.Writer().Write(0, []byte("value")))
	}
	at := l.at(0, l.slots[0].copy)
	is := decodeRecord(m.Bytes[at:])
	for name, change := range map[string]func(r *record){
		"as it was":      func(*record) {},
		"an older value": func(r *record) { r.seq-- },
		"a newer value":  func(r *record) { r.seq++ },
		"another era":    func(r *record) { r.mark++ },
		"another place":  func(r *record) { r.mark = mark(l.salt, l.at(1, 0), l.slots[0].era) },
		"a byte less":    func(r *record) { r.size-- },
		"a byte more":    func(r *record) { r.size++ },
		"unpublished":    func(r *record) { r.size &^= published },
	} {
		r := is
		change(&r)
		p := m.Bytes[at+recordHeader:][:r.size&^published]
		r.sum = crc32.Checksum(p, castagnoli) ^ fold(r.size, r.seq, r.mark)
		binary.LittleEndian.PutUint32(m.Bytes[at:], r.sum)
		binary.LittleEndian.PutUint32(m.Bytes[at+4:], r.size)
		binary.LittleEndian.PutUint64(m.Bytes[at+8:], r.seq)
		binary.LittleEndian.PutUint64(m.Bytes[at+16:], r.mark)
		require.True(t, r.fits(p), name)
		got, err := l.Read(0, nil)
		if name == "as it was" {
			require.NoError(t, err)
			require.Equal(t, "value", string(got))
			continue
		}
		require.ErrorIs(t, err, ErrCorrupt, name)
	}
}

// partly reads that many bytes less than requested, and says why.
type partly struct {
	Region
	less int
	err  error
}

func (p partly) ReadAt(b []byte, off int64) (int, error) {
	n, _ := p.Region.ReadAt(b[:max(0, len(b)-p.less)], off)
	return n, p.err
}

// At the end of a file, a partly read header is judged by what is there. Otherwise, or if nothing was read, the read's error is returned.
func TestAHeaderThatIsReadInPart(t *testing.T) {
	m := &pmemtest.Memory{Bytes: make([]byte, dataStart+2000)}
	_, err := CreateAppend(m, AppendOptions{})
	require.NoError(t, err)
	why := errors.New("why")
	buffer := len(new(headers).buf)
	for name, c := range map[string]struct {
		less int
		err  error
		want error
	}{
		"whole":                 {0, nil, nil},
		"whole, at the end":     {0, io.EOF, nil},
		"whole, with an error":  {0, why, why},
		"in part":               {1, why, why},
		"nothing":               {buffer, why, why},
		"nothing, at the end":   {buffer, io.EOF, io.EOF},
		"in part, at the end":   {buffer - 1, io.EOF, ErrCorrupt},
		"in part, for a reason": {buffer - 1, why, why},
	} {
		_, err := openHeaders(partly{m, c.less, c.err}, appendLayout)
		require.ErrorIs(t, err, c.want, name)
		if c.want == nil {
			require.NoError(t, err, name)
		}
	}
}

// Clearing an empty channel writes nothing; clearing any other writes.
func TestAnEmptyChannelIsClear(t *testing.T) {
	r := &refusals{}
	regions, _ := over(kind{sizes: []int64{1000, SideSize}}, r, nil)
	l, err := CreateChannel(regions[0], regions[1])
	require.NoError(t, err)
	before := r.calls
	require.NoError(t, l.Clear())
	require.Equal(t, before, r.calls)
	_, err = l.Append([]byte("1"))
	require.NoError(t, err)
	before = r.calls
	require.NoError(t, l.Clear())
	require.Greater(t, r.calls, before)
	require.Zero(t, l.Len())
}
