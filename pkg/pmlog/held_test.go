package pmlog

import (
	"bytes"
	"encoding/binary"
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
		`with order grouped`:              {Order: Grouped, Commit: ByLength},
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
