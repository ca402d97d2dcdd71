package pmlog

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem"
)

// sharing are the kinds of log whose entries share syncs, and the one that Mashona's write-up measures.
func sharing() []kind {
	return slices.DeleteFunc(kinds(), func(k kind) bool {
		return !slices.Contains([]string{"append/padding=64/order=grouped/commit=checksum", "channel/grouped", "append/padding=64/order=strict/commit=checksum"}, k.name)
	})
}

// TestABrokenDiskLosesNothingAcknowledged makes the kernel's write-back fail in the middle of writing: nothing is acknowledged from the first error
// on, and everything before it is on the disk. If entries are acknowledged before they are durable, what a sync covered is.
func TestABrokenDiskLosesNothingAcknowledged(t *testing.T) {
	for _, mode := range []pmem.Mode{pmem.Msync, pmem.Fdatasync} {
		for _, k := range sharing() {
			for _, every := range []int{1, 7} {
				if every == 1 || k.group {
					t.Run(string(mode)+"/"+k.name+"/sync every "+string(rune('0'+every)), func(t *testing.T) { breakDisk(t, mode, k, every) })
				}
			}
		}
	}
}

func breakDisk(t *testing.T, mode pmem.Mode, k kind, every int) {
	disk := servertest.NewDisk(t)
	k.sizes = slices.Clone(k.sizes)
	k.sizes[0] = 4 << 20
	regions, _ := files(t, k, disk.Dir, mode)
	s, err := k.create(regions)
	require.NoError(t, err)
	acknowledged, durable := uint64(0), uint64(0)
	write := func() (err error) {
		p := binary.LittleEndian.AppendUint64(make([]byte, 0, 3000), acknowledged+1)[:3000]
		if every == 1 {
			err = s.write(0, 0, p)
		} else if err = s.(grouped).store(0, p); err == nil && acknowledged%uint64(every) == 0 {
			err = s.(grouped).sync()
		}
		if err == nil {
			acknowledged++
		}
		if err == nil && acknowledged%uint64(every) == uint64(1%every) {
			durable = acknowledged
		}
		return err
	}
	for range 50 {
		require.NoError(t, write())
	}
	disk.Break()
	for err = nil; err == nil && acknowledged < 1000; {
		err = write()
	}
	require.ErrorIs(t, err, unix.EIO)
	require.ErrorIs(t, err, pmem.ErrPoisoned)
	require.EqualValues(t, 50, durable, "no write has reached the disk since")
	for range 3 { // a second sync succeeds, as far as the kernel is concerned
		require.ErrorIs(t, write(), pmem.ErrPoisoned)
	}
	require.ErrorIs(t, s.write(1, 0, []byte("another writer")), pmem.ErrPoisoned)
	require.ErrorIs(t, s.clear(), pmem.ErrPoisoned)
	require.ErrorIs(t, s.close(), pmem.ErrPoisoned)

	regions, _ = reopened(t, k, disk.Remains().Dir, mode)
	again, err := k.open(regions)
	require.NoError(t, err)
	require.False(t, again.recovered().Clean)
	items, err := again.items()
	require.NoError(t, err)
	all := bytes.Join(items, nil)
	n := uint64(len(all) / 3000)
	require.True(t, n >= durable && n <= acknowledged, "%d recovered, of %d acknowledged and %d durable", n, acknowledged, durable)
	for i := range n {
		require.Equal(t, i+1, binary.LittleEndian.Uint64(all[3000*i:]))
	}
	require.NoError(t, again.close())
}
