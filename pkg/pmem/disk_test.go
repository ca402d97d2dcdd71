package pmem

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// devicesWith makes a directory as the kernel lists block devices: a file's content by its path. The first element of a path is a device's number,
// and a partition's directory is in its disk's.
func devicesWith(t *testing.T, files map[string]string) string {
	all := t.TempDir()
	for name, content := range files {
		path := filepath.Join(all, "devices", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	for number, dir := range map[string]string{"8:0": "sda", "8:1": "sda/sda1", "252:0": "dm-0", "9:0": "md0", "7:0": "loop0", "259:0": "old"} {
		require.NoError(t, os.Symlink(filepath.Join(all, "devices", dir), filepath.Join(all, number)))
	}
	return all
}

// What is written is counted by the device itself, and flushes by the disk that it is a part of. What is not counted has its reason.
func TestWhatIsKnownOfADisk(t *testing.T) {
	const stat = "  1 2 3 4 5 6 %s 8 9 10 11 12 13 14 15 %s 17\n"
	counts := func(sectors, flushes string) string {
		return strings.Replace(strings.Replace(stat, "%s", sectors, 1), "%s", flushes, 1)
	}
	disks := devicesWith(t, map[string]string{
		"sda/stat": counts("100", "7"), "sda/queue/write_cache": "write back\n", "sda/sda1/stat": counts("10", "0"), "sda/sda1/partition": "1\n",
		"dm-0/stat": counts("20", "0"), "dm-0/dm/name": "lv\n", "dm-0/queue/write_cache": "write back\n",
		"md0/stat": counts("30", "0"), "md0/md/level": "raid1\n",
		"loop0/stat": counts("40", "0"), "loop0/queue/write_cache": "write through\n",
		"old/stat": "1 2 3 4 5 6 50 8 9 10 11\n", "old/queue/write_cache": "write back\n",
	})
	ext4 := func(number string) Place { return Place{FileSystem: "ext4", Device: "/dev/it", Number: number} }
	for _, c := range []struct {
		mode               Mode
		place              Place
		device             string
		bytes, flushes     uint64
		noBytes, noFlushes string
	}{
		{Fdatasync, ext4("8:0"), "/dev/sda", 51200, 7, "", ""},
		{Msync, ext4("8:1"), "/dev/sda1", 5120, 7, "", ""},
		{Msync, Place{FileSystem: "overlay", Beneath: "ext4", Number: "8:1"}, "/dev/sda1", 5120, 7, "", ""},
		{Msync, ext4("252:0"), "/dev/dm-0", 10240, 0, "", "/dev/dm-0 is one of device-mapper, which passes flushes on uncounted"},
		{Msync, ext4("9:0"), "/dev/md0", 15360, 0, "", "/dev/md0 is one of a software RAID, which passes flushes on uncounted"},
		{Msync, ext4("7:0"), "/dev/loop0", 20480, 0, "", "/dev/loop0 has no volatile write cache, so the kernel never flushes it"},
		{Msync, ext4("259:0"), "/dev/old", 25600, 0, "", "has 11 fields: the kernel does not count that"},
		{Msync, Place{FileSystem: "tmpfs", Device: "tmpfs", Number: "0:21"}, "", 0, 0, "tmpfs lives in memory", "tmpfs lives in memory"},
		{Msync, Place{FileSystem: "overlay", Number: "0:40"}, "", 0, 0, "what overlay is on is not to be seen from here", "what overlay is on"},
		{Fdatasync, Place{FileSystem: "btrfs", Device: "/dev/sda1", Number: "0:44"}, "", 0, 0, "btrfs on /dev/sda1 is not a single block device of this machine", "btrfs on"},
		{Fdatasync, Place{FileSystem: "nfs4", Device: "server:/x", Number: "0:45"}, "", 0, 0, "nfs4 on server:/x is not a single block device of this machine", "nfs4 on"},
		{MapSync, ext4("8:1"), "", 0, 0, "with map_sync, stores go past the block device", "with map_sync"},
		{None, ext4("8:1"), "", 0, 0, `with sync = "none", the kernel writes when it likes`, "with sync"},
	} {
		d := diskOf(disks, c.mode, c.place)
		require.Equal(t, c.device, d.Device)
		require.Equal(t, c.noBytes, d.NoBytes, c.device)
		require.Contains(t, d.NoFlushes, c.noFlushes)
		require.Equal(t, c.noFlushes == "", d.NoFlushes == "", d.NoFlushes)
		bytes, flushes, err := d.Counts()
		require.NoError(t, err)
		require.Equal(t, []uint64{c.bytes, c.flushes}, []uint64{bytes, flushes}, c.device)
	}
}
