package pmem

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// overlay is a file system that hides another; unknown stands for one that the kernel does not list.
const (
	overlay = "overlay"
	unknown = "unknown file system"
)

// Place says where a file is.
type Place struct {
	FileSystem string // the kernel's name for its type: "ext4"
	Device     string // "/dev/sda1", or the name that a file system without a device gives instead; "8:1" if the kernel lists neither
	Options    string // of the mount, as the file system lists them: "rw,nobarrier"
	Beneath    string // type of the file system that holds an overlay's new files; "" if not visible from here
	Number     string // of the block device that the files are on, "8:1"; of a file system without one, a number that no device has
	Behind     string // what a device without hardware of its own is kept in: a file system's type, "ram" or "zram"; "" for other devices
}

// Keeps reports whether, as far as can be seen, synced bytes survive a power loss.
func (p Place) Keeps() bool {
	return !p.Volatile() && !p.Unsynced() && !p.Hidden() && !inMemory(p.Behind) && p.Behind != unknown
}

// Unordered reports whether a mount option keeps a sync from flushing the device's cache.
func (p Place) Unordered() bool { return p.has("nobarrier") || p.has("barrier=0") }

// Unsynced reports whether the file system ignores syncs: an overlay mounted volatile (the kernel's overlayfs.rst), an option that the kernel writes
// in one of two ways.
func (p Place) Unsynced() bool {
	return p.FileSystem == overlay && (p.has("volatile") || p.has("fsync=volatile"))
}

// Hidden reports whether the file system that really holds the file is not visible. What survives a power loss is then unknown.
func (p Place) Hidden() bool {
	return p.FileSystem == unknown || p.FileSystem == overlay && p.Beneath == ""
}

// has reports whether the mount has an option.
func (p Place) has(option string) bool { return slices.Contains(strings.Split(p.Options, ","), option) }

// Volatile reports whether the file system lives in memory: its files are lost with the power, in every mode.
func (p Place) Volatile() bool { return inMemory(p.FileSystem) || inMemory(p.Beneath) }

func inMemory(kind string) bool {
	return slices.Contains([]string{"tmpfs", "ramfs", "devtmpfs", "hugetlbfs", "rootfs", "ram", "zram"}, kind)
}

// String returns "ext4 on /dev/sda1", or "tmpfs" if the device is only a name. An overlay names what is beneath: "overlay over tmpfs".
func (p Place) String() string {
	switch {
	case p.Beneath != "":
		return p.FileSystem + " over " + p.Beneath
	case p.Device == p.FileSystem:
		return p.FileSystem
	}
	return p.FileSystem + " on " + p.Device
}

// upper returns the directory that holds an overlay's new files (upperdir, in the kernel's overlayfs.rst); "" unless it is an absolute path. The
// kernel escapes the characters that separate options as \ and three octal digits. Decoded, it is what was given to mount, in which a comma is
// escaped by a \, too.
func (p Place) upper() string {
	if p.FileSystem != overlay {
		return ""
	}
	for option := range strings.SplitSeq(p.Options, ",") {
		if dir, ok := strings.CutPrefix(option, "upperdir=/"); ok {
			return "/" + escaped.Replace(octal.ReplaceAllStringFunc(dir, func(s string) string {
				n, _ := strconv.ParseUint(s[1:], 8, 8) // the expression matches at most 377
				return string([]byte{byte(n)})
			}))
		}
	}
	return ""
}

var escaped = strings.NewReplacer(`\,`, ",", `\:`, ":", `\\`, `\`)

var octal = regexp.MustCompile(`\\[0-3][0-7]{2}`)

// mountOf returns the mount number that /proc/self/fdinfo (proc(5)) gives for an open file, "" if it gives none.
func mountOf(info string) string {
	for line := range strings.Lines(info) {
		if number, ok := strings.CutPrefix(line, "mnt_id:"); ok {
			return strings.TrimSpace(number)
		}
	}
	return ""
}

// find returns the place that /proc/self/mountinfo (proc(5)) gives for the number of a mount, or else for a device: files of btrfs and overlay have
// devices that no mount has, and a process in a chroot need not see the mount.
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//	number device                     tags      - type device   options
func find(mounts, number, device string) Place {
	place := Place{FileSystem: unknown, Device: device}
	for line := range strings.Lines(mounts) {
		mount, super, _ := strings.Cut(line, " - ") // a line without has no type
		fields, last := strings.Fields(mount), strings.Fields(super)
		if len(fields) < 3 || len(last) < 2 || fields[0] != number && fields[2] != device {
			continue
		}
		place = Place{FileSystem: last[0], Device: last[1], Options: strings.Join(last[2:], " ")}
		if fields[0] == number {
			break
		}
	}
	return place
}
