package pmlog

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
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
		_, err := l.Append(bytes.Repeat([]byte{byte(n + 1)}, 10))
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
			_, err := l.Append([]byte("0123456789"))
			require.NoError(t, err)
			want += 10
			if round%7 == 3 && n == 1 {
				require.NoError(t, l.Clear())
				want = 0
			}
		}
		end, turn := l.Len(), l.turn
		_, err := l.Append([]byte("torn"))
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
			_, err := l.Append([]byte("0123456789"))
			require.NoError(t, err)
		}
		l, err = OpenChannel(data, side) // the entries are of an earlier era from now on
		require.NoError(t, err)
		end, turn := l.Len(), l.turn
		_, err = l.Append([]byte("torn"))
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

// damagedMashona returns a log of five records, one of which has a changed length, and the records.
func damagedMashona(t *testing.T, o MashonaOptions, record int, length func(uint32) uint32) (*Mashona, [][]byte, error) {
	t.Helper()
	m := &pmemtest.Memory{Bytes: make([]byte, 8<<10)}
	l, err := CreateMashona(m, o)
	require.NoError(t, err)
	var all [][]byte
	at := int64(0)
	for n := range 5 {
		if n == record {
			at = l.end
		}
		p := bytes.Repeat([]byte{byte(n)}, 40+300*n) // one of zeros: what lies in it looks like an end
		require.NoError(t, l.Append(p))
		all = append(all, p)
	}
	is := binary.BigEndian.Uint32(m.Bytes[at:])
	binary.BigEndian.PutUint32(m.Bytes[at:], length(is))
	l, err = OpenMashona(m)
	return l, all, err
}

// A changed length must not pass for the end of the log: the records after it were acknowledged.
func TestAGarbledLengthIsNoEnd(t *testing.T) {
	for _, o := range []MashonaOptions{{}, {Relaxed: true}, {Blocks: true}, {Blocks: true, Relaxed: true}} {
		for record := range 4 {
			for bit := range 33 {
				length := func(n uint32) uint32 { return n ^ 1<<bit }
				if bit == 32 {
					length = func(uint32) uint32 { return 0 }
				}
				name := fmt.Sprintf("%+v, record %d, bit %d", o, record, bit)
				l, all, err := damagedMashona(t, o, record, length)
				if errors.Is(err, ErrCorrupt) {
					continue
				}
				require.NoError(t, err, name)
				got, err := mashonas{l}.items()
				require.NoError(t, err, name)
				if record == 0 && bit == 32 {
					require.Empty(t, got, "as after a Clear")
					continue
				}
				require.True(t, o.Relaxed, name)
				require.Equal(t, append(append([][]byte{}, all[:record]...), all[record+1:]...), got, name)
			}
		}
	}
	l, all, err := damagedMashona(t, MashonaOptions{}, 4, func(n uint32) uint32 { return n - 8 }) // the last record may be torn
	require.NoError(t, err)
	got, err := mashonas{l}.items()
	require.NoError(t, err)
	require.Equal(t, all[:4], got)
}

// TestNoFlippedBitPassesForARecord of Mashona: it is refused, records are missing, or it is where it says nothing.
func TestNoFlippedBitPassesForARecord(t *testing.T) {
	for _, o := range []MashonaOptions{{}, {Relaxed: true}} {
		m := &pmemtest.Memory{Bytes: make([]byte, 512)}
		l, err := CreateMashona(m, o)
		require.NoError(t, err)
		for n := range 5 {
			require.NoError(t, l.Append(bytes.Repeat([]byte{byte(n)}, 20+9*n)))
		}
		want, err := mashonas{l}.items()
		require.NoError(t, err)
		for bit := range 8 * (l.end + 8) {
			image := &pmemtest.Memory{Bytes: bytes.Clone(m.Bytes)}
			image.Bytes[bit/8] ^= 1 << (bit % 8)
			l, err := OpenMashona(image)
			if errors.Is(err, ErrCorrupt) {
				continue
			}
			require.NoError(t, err)
			got, err := mashonas{l}.items()
			require.NoError(t, err)
			if len(got) >= len(want) {
				require.Equal(t, want, got, "%+v, bit %d", o, bit)
			}
		}
	}
}
