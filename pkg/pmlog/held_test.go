package pmlog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// A log whose file says where its records end updates that after each record and after a Clear; each failure of it is reported.
func TestMashonaKeepsItsCheckpoint(t *testing.T) {
	for _, o := range []MashonaOptions{{}, {Blocks: true}} {
		build := func(r *refusals) (*Mashona, *pmemtest.Memory) {
			m := &pmemtest.Memory{Bytes: make([]byte, 4000)}
			_, err := CreateMashona(m, o)
			require.NoError(t, err)
			binary.BigEndian.PutUint32(m.Bytes[12:], mashonaFirst) // as the library leaves it
			l, err := OpenMashona(refusing{m, r})
			require.NoError(t, err)
			return l, m
		}
		says := func(m *pmemtest.Memory) []uint32 {
			return []uint32{binary.BigEndian.Uint32(m.Bytes[8:]), binary.BigEndian.Uint32(m.Bytes[12:]), binary.BigEndian.Uint32(m.Bytes[16:])}
		}
		padding := uint32(newMashona(&pmemtest.Memory{}, o).padding())
		l, m := build(&refusals{})
		for n := range 3 {
			require.NoError(t, l.Append(bytes.Repeat([]byte{1}, 10+n)))
			require.Equal(t, []uint32{padding, uint32(l.end), 1}, says(m))
		}
		require.NoError(t, l.Clear())
		require.Equal(t, []uint32{padding, 20, 1}, says(m))

		for name, step := range map[string]func(l *Mashona) error{
			"append": func(l *Mashona) error { return l.Append([]byte("more")) },
			"clear":  func(l *Mashona) error { return l.Clear() },
		} {
			at := 1
			for ; ; at++ {
				r := &refusals{}
				l, _ := build(r)
				require.NoError(t, l.Append([]byte("first")))
				r.at = r.calls + at
				err := step(l)
				if r.failed == "" {
					require.NoError(t, err)
					break
				}
				require.ErrorIs(t, err, errRefused, "%s: %s", name, r.failed)
			}
			require.Greater(t, at, 4, name)
		}
	}
}

// A torn record of a relaxed log is a hole, and counted as one.
func TestMashonaCountsHoles(t *testing.T) {
	m := &pmemtest.Memory{Bytes: make([]byte, 4000)}
	l, err := CreateMashona(m, MashonaOptions{Relaxed: true})
	require.NoError(t, err)
	var at []int64
	for n := range 4 {
		at = append(at, l.end)
		require.NoError(t, l.Append(bytes.Repeat([]byte{byte(n + 1)}, 30)))
	}
	m.Bytes[at[1]+mashonaHeader] ^= 1
	l, err = OpenMashona(m)
	require.NoError(t, err)
	require.Equal(t, Recovery{Records: 3, Walked: 3, Holes: 1}, l.Recovered())
	got, err := mashonas{l}.items()
	require.NoError(t, err)
	require.Len(t, got, 3)
}

// A record may fill a log; one byte more is too large, even for an empty log.
func TestAMashonaRecordMayFillTheLog(t *testing.T) {
	for _, o := range []MashonaOptions{{}, {Blocks: true}} {
		l, err := CreateMashona(&pmemtest.Memory{Bytes: make([]byte, 1024)}, o)
		require.NoError(t, err)
		whole := make([]byte, 1024-mashonaFirst-mashonaHeader)
		require.Equal(t, ErrTooLarge, l.Append(append(whole, 0)))
		require.NoError(t, l.Append(whole))
		require.Equal(t, ErrFull, l.Append(whole), "it would fit into an empty log")
		require.NoError(t, l.Clear())
		require.NoError(t, l.Append(whole))
	}
}

// A slot whose value is lost stays lost until a Clear, for readers and writers.
func TestALostSlotIsNotRead(t *testing.T) {
	o := ArrayOptions{Slots: 2, Capacity: 10}
	m := &pmemtest.Memory{Bytes: make([]byte, ArraySize(o))}
	l, err := CreateArray(m, o)
	require.NoError(t, err)
	require.NoError(t, l.Writer().Write(0, []byte("value")))
	require.NoError(t, l.Writer().Write(1, []byte("other")))
	require.NoError(t, l.Close())
	m.Bytes[l.at(0, l.slots[0].copy)+recordHeader] ^= 1
	l, err = OpenArray(m)
	require.NoError(t, err)
	require.Equal(t, Recovery{Clean: true, Records: 1, Corrupt: 1}, l.Recovered())
	got, err := l.Read(0, []byte("before"))
	require.ErrorIs(t, err, ErrCorrupt)
	require.Equal(t, "before", string(got))
	require.ErrorIs(t, l.Writer().Write(0, []byte("new")), ErrCorrupt)
	got, err = l.Read(1, nil)
	require.NoError(t, err)
	require.Equal(t, "other", string(got))
	require.NoError(t, l.Clear())
	require.NoError(t, l.Writer().Write(0, []byte("new")))
}

// Each option of a log must have a valid value.
func TestOptionsOfLogs(t *testing.T) {
	for _, o := range forms() {
		_, err := o.check()
		require.NoError(t, err, o.name())
	}
	for says, o := range map[string]AppendOptions{
		`padding 16`:                      {Padding: 16},
		`padding -8`:                      {Padding: -8},
		`order "loose": want`:             {Order: "loose"},
		`commit by "name": want`:          {Commit: "name"},
		`with order relaxed`:              {Order: Relaxed, Commit: ByLength},
		`commit by length with padding 8`: {Padding: 8, Commit: ByLength},
	} {
		_, err := o.check()
		require.ErrorContains(t, err, says)
	}
	for _, padding := range []int{8, 63, 65, 128, 512} {
		_, err := ArrayOptions{Slots: 1, Capacity: 1, Padding: padding}.check()
		require.ErrorContains(t, err, "want 64 or 256", "%d", padding)
	}
	for _, o := range []ArrayOptions{{Slots: 1, Capacity: 1}, {Slots: 1, Capacity: maxPayload, Padding: 256}} {
		_, err := o.check()
		require.NoError(t, err)
	}
	_, err := ArrayOptions{Slots: 1, Capacity: maxPayload + 1}.check()
	require.Error(t, err)
}

// An entry with a right check and impossible contents is damage: a piece that ends beyond the data, or begins before them.
func TestAnEntryThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		e    entry
		want bool // whether the entry is valid
	}{
		{entry{end: 100}, true},
		{entry{end: 101}, false},
		{entry{end: 50, size: 51}, false},
		{entry{end: 1 << 63}, false},
	} {
		data, side := &pmemtest.Memory{Bytes: make([]byte, 100)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)}
		l, err := CreateChannel(data, side)
		require.NoError(t, err)
		require.NoError(t, l.note(c.e))
		l, err = OpenChannel(data, side)
		if c.want {
			require.NoError(t, err)
			require.EqualValues(t, c.e.end, l.Len())
			continue
		}
		require.ErrorIs(t, err, ErrCorrupt, "%+v", c.e)
	}
}

// A slot of the library's array takes its capacity and an eight-byte header, rounded up to a block.
func TestMashonaSlotsAreRoundedUp(t *testing.T) {
	for capacity, stride := range map[int]int{1: 256, 248: 256, 249: 512, 504: 512, 505: 768} {
		file := make([]byte, 2*stride)
		copy(file[stride:], "\x00\x00\x00\x01")
		file[stride+mashonaHeader] = 9
		binary.BigEndian.PutUint32(file[stride+4:], crc32.Checksum([]byte{9}, castagnoli))
		p, err := MashonaSlot(bytes.NewReader(file), capacity, 1, nil)
		require.NoError(t, err, "%d", capacity)
		require.Equal(t, []byte{9}, p, "%d", capacity)
	}
}
