package pmem

import (
	"slices"
	"strings"
)

// Place is where a file is.
type Place struct {
	FileSystem string // as the kernel names its type: "ext4"
	Device     string // "/dev/sda1"; what a file system without a device names instead; "8:1" when the kernel lists neither
	Options    string // of the mount, as the file system lists them: "rw,nobarrier"
}

// Unordered reports whether the file system is mounted so that a sync does not have the device empty its cache.
func (p Place) Unordered() bool { return p.has("nobarrier") || p.has("barrier=0") }

// Unsynced reports whether the file system passes no sync on: an overlay that is mounted so (volatile, in the kernel's overlayfs.rst), which
// the kernel writes in one of two ways.
func (p Place) Unsynced() bool {
	return p.FileSystem == "overlay" && (p.has("volatile") || p.has("fsync=volatile"))
}

// has reports whether the mount has an option.
func (p Place) has(option string) bool { return slices.Contains(strings.Split(p.Options, ","), option) }

// Volatile reports whether the file system lives in memory: what is there is lost with the power, in every mode.
func (p Place) Volatile() bool { return p.FileSystem == "tmpfs" || p.FileSystem == "ramfs" }

// String is "ext4 on /dev/sda1", or "tmpfs" where the device is no more than a name.
func (p Place) String() string {
	if p.Device == p.FileSystem {
		return p.FileSystem
	}
	return p.FileSystem + " on " + p.Device
}

// mountOf returns the number of the mount that /proc/self/fdinfo (proc(5)) gives for an open file, "" if it gives none.
func mountOf(info string) string {
	for line := range strings.Lines(info) {
		if number, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strings.TrimSpace(number)
		}
	}
	return ""
}

// find returns the place that /proc/self/mountinfo (proc(5)) gives for the number of a mount, or else for a device: files of btrfs and overlay have
// devices that no mount has, and who was put into a directory (chroot) need not see the mount.
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//	number device                     tags      - type device   options
func find(mounts, number, device string) Place {
	place := Place{FileSystem: "unknown file system", Device: device}
	for line := range strings.Lines(mounts) {
		mount, super, ok := strings.Cut(line, " - ")
		fields, last := strings.Fields(mount), strings.Fields(super)
		if !ok || len(fields) < 3 || len(last) < 2 || fields[0] != number && fields[2] != device {
			continue
		}
		place = Place{FileSystem: last[0], Device: last[1], Options: strings.Join(last[2:], " ")}
		if fields[0] == number {
			break
		}
	}
	return place
}
