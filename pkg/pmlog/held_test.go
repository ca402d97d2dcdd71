package pmlog

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// A log whose file says where its records end says so behind each, and behind a Clear; each refusal of that is told.
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

// A record that fills a log is one; one byte more is too large, also for an empty log.
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

// A slot whose value is lost stays so until a Clear, for who reads and for who writes.
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
