package pmlog

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// Each opening begins its own era, after a crash as after a close, so that earlier torn writes are told from later ones.
func TestEachOpeningBeginsAnEra(t *testing.T) {
	data, side := &pmemtest.Memory{Bytes: make([]byte, 4000)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)}
	log := &pmemtest.Memory{Bytes: make([]byte, dataStart+4000)}
	type opened interface{ Close() error }
	for name, l := range map[string]struct {
		create, open func() (opened, *headers, error)
	}{
		"append": {
			func() (opened, *headers, error) { l, err := CreateAppend(log, AppendOptions{}); return l, l.heads, err },
			func() (opened, *headers, error) { l, err := OpenAppend(log); return l, l.heads, err },
		},
		"channel": {
			func() (opened, *headers, error) { l, err := CreateChannel(data, side); return l, l.heads, err },
			func() (opened, *headers, error) { l, err := OpenChannel(data, side); return l, l.heads, err },
		},
		"array": {
			func() (opened, *headers, error) {
				l, err := CreateArray(log, ArrayOptions{Slots: 2, Capacity: 64})
				return l, l.heads, err
			},
			func() (opened, *headers, error) { l, err := OpenArray(log); return l, l.heads, err },
		},
	} {
		_, heads, err := l.create()
		require.NoError(t, err, name)
		era := heads.era
		for opening := range 4 {
			is, heads, err := l.open()
			require.NoError(t, err, name)
			require.Equal(t, era+1, heads.era, "%s, opening %d", name, opening)
			require.False(t, heads.clean)
			era = heads.era
			if opening%2 == 1 {
				require.NoError(t, is.Close())
			}
		}
	}
}

// If any call of the file fails while an entry spoiled by a crash is being blanked, that error is returned.
func TestEachRefusalOfARepairIsTold(t *testing.T) {
	image := func() (data, side *pmemtest.Memory) {
		data, side = &pmemtest.Memory{Bytes: make([]byte, 1000)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)}
		l, err := CreateChannel(data, side)
		require.NoError(t, err)
		for n := range 2 {
			_, err := l.Append(bytes.Repeat([]byte{byte(n + 1)}, 10))
			require.NoError(t, err)
		}
		side.Bytes[entriesStart+line*(1-l.turn)+3] ^= 0x40 // the last one written
		return data, side
	}
	failed := map[string]int{}
	for at := 1; ; at++ {
		data, side := image()
		r := &refusals{at: at}
		l, err := OpenChannel(refusing{data, r}, refusing{side, r})
		if r.failed == "" {
			require.NoError(t, err)
			require.EqualValues(t, 10, l.Len())
			break
		}
		require.ErrorIs(t, err, errRefused, "call %d, %s", at, r.failed)
		failed[r.failed]++
	}
	require.GreaterOrEqual(t, failed["Fence"], 2, "of the blank entry, and of the header")
}

// If no copy of a log's header is whole, the error says what is wrong with each.
func TestBothCopiesOfAHeaderAreNamed(t *testing.T) {
	m := &pmemtest.Memory{Bytes: make([]byte, dataStart+2000)}
	_, err := CreateAppend(m, AppendOptions{})
	require.NoError(t, err)
	copy(m.Bytes[secondCopy:], "strayed!")
	m.Bytes[20] ^= 1
	_, err = OpenAppend(m)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, `the first: its checksum is wrong; the second: it begins with "strayed!" instead of`)
}

// The word that commits a record holds each bit of its size and checksum, each in its own place.
func TestWordOfARecord(t *testing.T) {
	for bit := range 32 {
		require.Equal(t, uint64(1)<<bit, record{sum: 1 << bit}.word())
		require.Equal(t, uint64(1)<<(32+bit), record{size: 1 << bit}.word())
	}
}

// The first 8 bytes of a file tell whether it is a Mashona log.
func TestNoMashonaLog(t *testing.T) {
	m := &pmemtest.Memory{Bytes: []byte("0123456789" + string(make([]byte, 100)))}
	_, err := OpenMashona(m)
	require.ErrorIs(t, err, ErrCorrupt)
	require.ErrorContains(t, err, `it begins with "01234567" instead of`)
}
