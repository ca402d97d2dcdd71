package pmem

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFencesAreTimedWhereTheyWaitForADevice, and elsewhere it says why not.
func TestFencesAreTimedWhereTheyWaitForADevice(t *testing.T) {
	disk := Place{FileSystem: "ext4", Device: "/dev/sda1"}
	for mode, says := range map[Mode]string{
		Msync: "", Fdatasync: "", None: "nothing waits until it is durable", ODsync: `"o_dsync", one call writes an entry and waits`, ODirect: `"o_direct", one call`,
		CLWB: `"clwb", waiting takes hardly longer than reading the clock`, MapSync: `"map_sync", waiting takes`,
	} {
		require.Equal(t, says == "", Untimed(mode, disk) == "", mode)
		require.Contains(t, Untimed(mode, disk), says)
	}
	require.Equal(t, "on tmpfs, which lives in memory, a sync takes hardly longer than reading the clock", Untimed(Msync, Place{FileSystem: "tmpfs", Device: "none"}))
}

// A device's cache is as the kernel reports it; a partition has its disk's.
func TestWhichDevicesHaveACache(t *testing.T) {
	devices := t.TempDir()
	for name, says := range map[string]string{"sda": "write back\n", "nvme0": "write through\n", "sda/sda1": "", "nvme0/part": "", "loop/own": "write back\n", "loop": "write through\n", "dm": ""} {
		queue := filepath.Join(devices, "all", name, "queue")
		require.NoError(t, os.MkdirAll(queue, 0o700))
		require.NoError(t, os.Symlink(filepath.Dir(queue), filepath.Join(devices, filepath.Base(name))))
		if says != "" {
			require.NoError(t, os.WriteFile(filepath.Join(queue, "write_cache"), []byte(says), 0o600))
		}
	}
	for device, want := range map[string]string{
		"/dev/sda": "write back", "/dev/sda1": "write back", "/dev/mapper/sda": "write back", "sda": "", "/var/sda": "",
		"/dev/nvme0": "write through", "/dev/part": "write through",
		"/dev/loop": "write through", "/dev/own": "write back", // its own report takes precedence over its disk's
		"/dev/dm": "", "/dev/none": "", "tmpfs": "", "": "",
	} {
		require.Equal(t, want, writeCache(devices, device), device)
	}
	for mode, want := range map[Mode]bool{Msync: true, Fdatasync: true, MapSync: false, CLWB: false, None: false} {
		for device, has := range map[string]bool{"/dev/sda": true, "/dev/nvme0": false} {
			list := caveats(devices, mode, Place{FileSystem: "ext4", Device: device})
			require.Equal(t, want && has, strings.Contains(strings.Join(list, "\n"), device+" has a write cache"), "%s, %s", mode, device)
		}
	}
	t.Chdir(filepath.Join(devices, "sda"))
	require.Empty(t, writeCache(devices, "/dev/none"), "it says nothing of where loadgen was started")
}
