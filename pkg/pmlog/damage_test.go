package pmlog

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/pkg/pmem/pmemtest"
)

// spoiledChannel returns an unclosed channel log of that many pieces, after damage to bytes of its entries.
func spoiledChannel(t *testing.T, pieces int, damaged ...int64) (*Channel, error) {
	t.Helper()
	data, side := &pmemtest.Memory{Bytes: make([]byte, 1000)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)}
	l, err := CreateChannel(data, side)
	require.NoError(t, err)
	for n := range pieces {
		_, err := l.Writer().Append(bytes.Repeat([]byte{byte(n + 1)}, 10))
		require.NoError(t, err)
	}
	for _, turn := range damaged {
		side.Bytes[entriesStart+line*turn+3] ^= 0x40
	}
	return OpenChannel(data, side)
}

// A crash can spoil the entry being written, but not both. A log with two damaged entries has lost acknowledged data, and must not start again where
// its header says.
func TestAChannelWithTwoDamagedEntriesIsCorrupt(t *testing.T) {
	for pieces := 2; pieces < 6; pieces++ {
		_, err := spoiledChannel(t, pieces, 0, 1)
		require.ErrorIs(t, err, ErrCorrupt, "%d pieces", pieces)
	}
	l, err := spoiledChannel(t, 3, 0) // the newest
	require.NoError(t, err)
	require.EqualValues(t, 20, l.Len())
	l, err = spoiledChannel(t, 3, 1)
	require.NoError(t, err)
	require.EqualValues(t, 30, l.Len())
	l, err = spoiledChannel(t, 1, 0)
	require.NoError(t, err)
	require.Zero(t, l.Len(), "the first that was written")
}

// Crashes that spoil one entry each, in successive openings, do not add up to damage.
func TestOneTornEntryAfterAnotherIsNoDamage(t *testing.T) {
	data, side := &pmemtest.Memory{Bytes: make([]byte, 4000)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)}
	l, err := CreateChannel(data, side)
	require.NoError(t, err)
	want := int64(0)
	for round := range 40 {
		for n := range round % 4 {
			_, err := l.Writer().Append([]byte("0123456789"))
			require.NoError(t, err)
			want += 10
			if round%7 == 3 && n == 1 {
				require.NoError(t, l.Clear())
				want = 0
			}
		}
		end, turn := l.Len(), l.turn
		_, err := l.Writer().Append([]byte("torn"))
		require.NoError(t, err)
		side.Bytes[entriesStart+line*turn] ^= 1
		l, err = OpenChannel(data, side)
		require.NoError(t, err, "round %d", round)
		require.Equal(t, end, l.Len())
		require.Equal(t, want, l.Len())
	}
}

// A crash while a recovery blanks entries leaves one damaged at most. Where one was torn already, it once left two: one of a million images.
func TestACrashOfARecoveryLeavesOneDamagedEntry(t *testing.T) {
	for pieces := 1; pieces <= 2; pieces++ { // the torn entry is the first, or the second
		data, side := &pmemtest.Memory{Bytes: make([]byte, 4096)}, &pmemtest.Memory{Bytes: make([]byte, SideSize)}
		l, err := CreateChannel(data, side)
		require.NoError(t, err)
		for range pieces {
			_, err := l.Writer().Append([]byte("0123456789"))
			require.NoError(t, err)
		}
		l, err = OpenChannel(data, side) // the entries are of an earlier era from now on
		require.NoError(t, err)
		end, turn := l.Len(), l.turn
		_, err = l.Writer().Append([]byte("torn"))
		require.NoError(t, err)
		side.Bytes[entriesStart+line*turn] ^= 1

		trace, images := pmemtest.After(1, slices.Concat(data.Bytes, side.Bytes), 4096, SideSize), 0
		trace.OnFence = func() {
			trace.Images(1000, rand.New(rand.NewPCG(1, 2)), func(image pmemtest.Image) bool {
				images++
				files := memory(trace, image.Bytes)
				l, err := OpenChannel(files[0], files[1])
				require.NoError(t, err)
				require.Equal(t, end, l.Len())
				return true
			})
		}
		_, err = OpenChannel(trace.Region(0), trace.Region(1))
		require.NoError(t, err)
		require.Greater(t, images, 10)
	}
}
