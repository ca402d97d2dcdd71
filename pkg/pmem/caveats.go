package pmem

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Caveats lists facts that limit what writes at a place promise, or the comparison of figures from there with those from another place.
func Caveats(mode Mode, place Place) []string { return caveats(blockDevices, mode, place) }

func caveats(devices string, mode Mode, place Place) []string {
	list := []string{}
	switch {
	case place.Volatile():
		what := place.FileSystem
		if place.Beneath != "" {
			what = place.String()
		}
		list = append(list, what+" lives in memory: a loss of power leaves nothing, whatever the mode")
	case place.Unsynced():
		list = append(list, "overlay is mounted with volatile: it passes no sync on to the file system beneath")
	case place.Hidden():
		list = append(list, place.FileSystem+": what the file is on beneath is not to be seen from here, so that nothing is called durable; write a --log-root that is on a mount of its own")
	case inMemory(place.Behind):
		list = append(list, place.Device+" is kept in memory ("+place.Behind+"): a loss of power leaves nothing, whatever the mode")
	case place.Behind == unknown:
		list = append(list, place.Device+": what its file is on is not to be seen from here, so that nothing is called durable")
	case place.Beneath != "":
		list = append(list, place.FileSystem+": each file is on the "+place.Beneath+" beneath")
	case place.FileSystem == "btrfs" || place.FileSystem == "zfs":
		list = append(list, place.FileSystem+" writes what is changed to another place: blocks are not reserved, and figures are those of an allocation each")
	case place.FileSystem == "nfs" || place.FileSystem == "nfs4" || place.FileSystem == "9p" || place.FileSystem == "fuse":
		list = append(list, place.FileSystem+": what a sync promises is the server's matter")
	}
	switch {
	case mode == None:
		list = append(list, "nothing is forced: an entry is acknowledged when it is in memory")
	case mode == CLWB:
		list = append(list, "instructions without MAP_SYNC: what they cost, and no durability")
	case mode.Syncs():
		if place.Unordered() {
			list = append(list, place.FileSystem+" is mounted with nobarrier: a sync does not have the device empty its write cache")
		}
		if writeCache(devices, place.Device) == "write back" {
			list = append(list, fmt.Sprintf("%s has a write cache that loses its content with the power, unless the sync's order to empty it is obeyed", place.Device))
		}
	}
	return list
}

// blockDevices is where the kernel describes block devices.
const blockDevices = "/sys/class/block"

// WriteCache returns what the kernel reports about the cache of a place's device: "write back" if it is volatile, "write through" if there is none
// that a sync has to empty, "" if the place has no device, or the kernel reports nothing.
func WriteCache(place Place) string { return writeCache(blockDevices, place.Device) }

// writeCache reads write_cache, in Linux's Documentation/ABI/stable/sysfs-block.
func writeCache(devices, device string) string {
	name, ok := strings.CutPrefix(device, "/dev/")
	if !ok {
		return ""
	}
	dir, err := filepath.EvalSymlinks(filepath.Join(devices, filepath.Base(name)))
	if err != nil {
		return ""
	}
	for _, at := range []string{dir, filepath.Dir(dir)} { // a partition is a directory below its disk
		if text, err := os.ReadFile(filepath.Join(at, "queue", "write_cache")); err == nil {
			return strings.TrimSpace(string(text))
		}
	}
	return ""
}
