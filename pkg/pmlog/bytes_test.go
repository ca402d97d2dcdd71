package pmlog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// words64 are numbers as files have them.
func words64(list ...uint64) (p []byte) {
	for _, w := range list {
		p = binary.LittleEndian.AppendUint64(p, w)
	}
	return p
}

// TestBytesOfAHeader pins the format that the package comment describes: future versions must be able to read today's logs.
func TestBytesOfAHeader(t *testing.T) {
	h := header{
		layout: arrayLayout, length: true, padding: 0x0a0b0c0d,
		salt: 0x1122334455667788, serial: 2, generation: 3, era: 4, first: 5, checkpoint: 6, next: 7, holes: 8, slots: 9, capacity: 10, size: 11,
	}
	want := slices.Concat([]byte("LGPMLOG1\x03\x00\x01\x00\x0d\x0c\x0b\x0a"), words64(0x1122334455667788, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), make([]byte, 20))
	want = binary.LittleEndian.AppendUint32(want, crc32.Checksum(want, castagnoli))
	got := bytes.Repeat([]byte{0xee}, 128)
	h.encode(got)
	require.Equal(t, want, got)
	for at, change := range map[int]func(h *header){9: func(h *header) { h.relaxed = true }, 11: func(h *header) { h.clean = true }} {
		changed := h
		change(&changed)
		changed.encode(got)
		require.Equal(t, byte(1), got[at])
		require.Equal(t, want[:9], got[:9])
	}
}

// TestPlacesOfHeaders pins where each layout's header copies are, how long they are, and what follows them.
func TestPlacesOfHeaders(t *testing.T) {
	m, side := &pmemtest.Memory{Bytes: make([]byte, 10_000)}, &pmemtest.Memory{Bytes: make([]byte, 8320)}
	for number, create := range map[byte]func() error{
		1: func() error {
			l, err := CreateAppend(m, AppendOptions{})
			if err == nil {
				_, err = l.Writer().Append([]byte("x"))
			}
			return err
		},
		2: func() error { _, err := CreateChannel(&pmemtest.Memory{Bytes: make([]byte, 10)}, side); return err },
		3: func() error {
			l, err := CreateArray(m, ArrayOptions{Slots: 1, Capacity: 1})
			if err == nil {
				err = l.Writer().Write(0, []byte("x")) // the first value goes to the second copy
			}
			return err
		},
	} {
		clear(m.Bytes)
		require.NoError(t, create())
		p := m.Bytes
		if number == 2 {
			p = side.Bytes
		}
		require.Equal(t, number, p[8])
		require.Equal(t, p[:128], p[4096:4096+128])
		require.NotZero(t, binary.LittleEndian.Uint32(p[124:]))
		require.True(t, blank(p[128:4096]) && blank(p[4096+128:8192]), "layout %d", number)
		if begin := map[byte]int{1: 8192, 3: 8192 + 64}[number]; begin > 0 {
			require.True(t, blank(p[8192:begin]))
			require.Equal(t, uint32(1<<31+1), binary.LittleEndian.Uint32(p[begin+4:]))
			require.Equal(t, byte('x'), p[begin+24])
		}
	}
	require.EqualValues(t, 1<<31-1, maxPayload, "of a length to which 2^31 is added")
	for layout, name := range map[layout]string{1: "append", 2: "channel", 3: "array", 4: "number 4"} {
		require.Equal(t, name, layout.String())
	}
}

// TestBytesOfAChannelsEntries pins their format, for the longest piece that is forced together with its entry and for a longer one.
func TestBytesOfAChannelsEntries(t *testing.T) {
	data, side := &pmemtest.Memory{Bytes: make([]byte, 20_000)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)}
	l, err := CreateChannel(data, side)
	require.NoError(t, err)
	salt := binary.LittleEndian.Uint64(side.Bytes[16:])
	end := uint64(0)
	for turn, p := range [][]byte{[]byte("123456789"), bytes.Repeat([]byte{7}, 4096), bytes.Repeat([]byte{7}, 4097), bytes.Repeat([]byte{7}, 4096)} {
		_, err := l.Writer().Append(p)
		require.NoError(t, err)
		end += uint64(len(p))
		size, sum := uint64(len(p)), uint64(crc32.Checksum(p, castagnoli))
		if size > 4096 {
			size, sum = 0, 0
		}
		want := words64(end, sum<<32|size, mix(mix(mix(salt+1)+end)^(sum<<32|size)), 0, 0, 0, 0, 0)
		require.Equal(t, want, side.Bytes[8192+64*(turn%2):][:64], "%d bytes", len(p))
	}

	before := bytes.Clone(side.Bytes)
	off, err := l.Writer().Append(nil)
	require.NoError(t, err)
	require.EqualValues(t, end, off)
	require.Equal(t, before, side.Bytes, "nothing is written of a piece without bytes")

	data, side = &pmemtest.Memory{Bytes: make([]byte, 100)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)}
	_, err = CreateChannel(data, side)
	require.NoError(t, err)
	side.Bytes[8192+24], side.Bytes[8192+64+24] = 1, 1
	_, err = OpenChannel(data, side)
	require.NoError(t, err, "what is behind an entry is not of it")
}
