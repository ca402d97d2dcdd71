package pmem

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const mounts = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
24 22 0:21 / /dev/shm rw,nosuid - tmpfs tmpfs rw
25 22 259:0 / /mnt/pmem rw,relatime shared:9 master:2 - xfs /dev/pmem0 rw,dax=always
26 22 0:40 / /odd\040name rw - fuse.x
`

func TestFind(t *testing.T) {
	require.Equal(t, Place{FileSystem: "ext4", Device: "/dev/sda1", Options: "rw"}, find(mounts, "", "8:1"))
	require.Equal(t, Place{FileSystem: "tmpfs", Device: "tmpfs", Options: "rw"}, find(mounts, "24", "0:99"), "a device that no mount has")
	require.Equal(t, "tmpfs", find(mounts, "24", "0:99").String())
	require.Equal(t, "xfs on /dev/pmem0", find(mounts, "25", "8:1").String(), "the mount goes before the device")
	require.Equal(t, "unknown file system on 0:40", find(mounts, "26", "0:40").String())
	require.Equal(t, Place{FileSystem: "unknown file system", Device: "7:7"}, find("", "1", "7:7"))
	require.Equal(t, "25", mountOf("pos:\t0\nflags:\t02100000\nmnt_id:\t25\nino:\t7\n"))
	require.Empty(t, mountOf("pos:\t0\n"))
}

// A mount is found by its own number, not by its parent's; and later mounts are ignored, whatever their device.
func TestAMountIsFoundByItsOwnNumber(t *testing.T) {
	const own, inside, other = "22 1 8:1 / / rw - ext4 /dev/own\n", "24 22 8:1 / /in rw - xfs /dev/inside\n", "30 1 8:1 / /other rw - tmpfs other\n"
	for _, text := range []string{own + inside + other, inside + own, inside + other + own, other + own + inside} {
		require.Equal(t, "ext4", find(text, "22", "8:1").FileSystem, text)
	}
}

// Incomplete lines are skipped.
func TestMountsThatSayLess(t *testing.T) {
	for _, line := range []string{
		"", "\n", " - ", " - ext4 /dev/sda1 rw", "22 - ext4 /dev/sda1 rw", "22 1 - ext4 /dev/sda1 rw", "22 1 8:1 / / rw", "22 1 8:1 / / rw - ", "22 1 8:1 / / rw - ext4",
		"21 1 8:2 / / rw - ext4 /dev/sda1 rw", "21 1 - ext4 /dev/sda1 rw",
	} {
		require.Equal(t, Place{FileSystem: "unknown file system", Device: "8:1"}, find(line, "22", "8:1"), "%q", line)
		require.Equal(t, "ext4", find(line+"\n22 1 8:1 - ext4 /dev/sda1", "22", "8:1").FileSystem, "%q", line)
	}
}

func TestUnordered(t *testing.T) {
	for options, want := range map[string]bool{"": false, "rw": false, "rw,nobarrier,data=ordered": true, "rw,barrier=0": true, "rw,barrier=1": false} {
		require.Equal(t, want, find("22 1 8:1 / / rw - ext4 /dev/sda1 "+options, "22", "").Unordered(), options)
	}
}

func TestUnsynced(t *testing.T) {
	require.True(t, find("22 1 0:40 / / rw - overlay none rw,upperdir=/a,volatile", "22", "").Unsynced())
	require.True(t, find("22 1 0:40 / / rw - overlay none rw,upperdir=/a,uuid=on,fsync=volatile", "22", "").Unsynced(), "Linux 6.18")
	require.False(t, find("22 1 0:40 / / rw - overlay none rw,upperdir=/volatile", "22", "").Unsynced())
	require.False(t, Place{FileSystem: "ext4", Options: "rw,volatile"}.Unsynced())
}

func TestUpper(t *testing.T) {
	for options, want := range map[string]string{
		"rw,lowerdir=/l,upperdir=/u,workdir=/w":        "/u",
		`rw,upperdir=/a\054b\134c\040d,workdir=/w`:     `/a,b\c d`,
		`rw,upperdir=/\303\244\377,workdir=/w`:         "/\303\244\377",
		`rw,upperdir=/u\134\0541,workdir=/w`:           "/u,1",
		"rw,upperdir=from/somewhere,workdir=else":      "",
		"rw,lowerdir=/l":                               "",
		`rw,upperdir=/a\054upperdir=/b,lowerdir=/high`: "/a,upperdir=/b",
	} {
		require.Equal(t, want, find("22 1 0:40 / / rw - overlay none "+options, "22", "").upper(), options)
	}
	require.Empty(t, Place{FileSystem: "ext4", Options: "rw,upperdir=/u"}.upper())
}

func FuzzFind(f *testing.F) {
	f.Add(mounts, "22", "8:1")
	f.Add("1 2 8:1 - ", "1", "8:1")
	f.Fuzz(func(t *testing.T, text, number, device string) {
		p := find(text, number, device)
		require.NotEmpty(t, p.FileSystem)
		require.True(t, p.Device != "" || device == "")
		require.Regexp(t, "^(|/.*)$", strings.ReplaceAll(p.upper(), "\n", ""))
	})
}
