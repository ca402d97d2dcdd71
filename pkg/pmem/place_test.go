package pmem

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const mounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
24 22 0:21 / /dev/shm rw,nosuid - tmpfs tmpfs rw
25 22 259:0 / /mnt/pmem rw,relatime shared:9 master:2 - xfs /dev/pmem0 rw,dax=always
26 22 0:40 / /odd\040name rw - fuse.x
`

func TestFind(t *testing.T) {
	require.Equal(t, Place{"ext4", "/dev/sda1", "rw"}, find(mounts, 8, 1))
	require.Equal(t, Place{"tmpfs", "tmpfs", "rw"}, find(mounts, 0, 21))
	require.Equal(t, "xfs on /dev/pmem0", find(mounts, 259, 0).String())
	require.Equal(t, "unknown file system on 0:40", find(mounts, 0, 40).String())
	require.Equal(t, Place{"unknown file system", "7:7", ""}, find("", 7, 7))
}

func TestUnordered(t *testing.T) {
	for options, want := range map[string]bool{"": false, "rw": false, "rw,nobarrier,data=ordered": true, "rw,barrier=0": true, "rw,barrier=1": false} {
		require.Equal(t, want, find("22 1 8:1 / / rw - ext4 /dev/sda1 "+options, 8, 1).Unordered(), options)
	}
}

func FuzzFind(f *testing.F) {
	f.Add(mounts, uint32(8), uint32(1))
	f.Add("1 2 8:1 - ", uint32(8), uint32(1))
	f.Fuzz(func(t *testing.T, text string, major, minor uint32) {
		p := find(text, major, minor)
		require.NotEmpty(t, p.FileSystem)
		require.NotEmpty(t, p.Device)
	})
}
