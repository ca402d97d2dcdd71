package pmlog

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

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
