package pmem

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Types of file systems: one that hides another, and what stands for one that the kernel does not list.
const (
	overlay = "overlay"
	unknown = "unknown file system"
)

// Place is where a file is.
type Place struct {
	FileSystem string // as the kernel names its type: "ext4"
	Device     string // "/dev/sda1"; what a file system without a device names instead; "8:1" when the kernel lists neither
	Options    string // of the mount, as the file system lists them: "rw,nobarrier"
	Beneath    string // type of the file system that an overlay has its new files on; "" where that is not to be seen from here
}

// Unordered reports whether the file system is mounted so that a sync does not have the device empty its cache.
func (p Place) Unordered() bool { return p.has("nobarrier") || p.has("barrier=0") }

// Unsynced reports whether the file system passes no sync on: an overlay that is mounted so (volatile, in the kernel's overlayfs.rst), which
// the kernel writes in one of two ways.
func (p Place) Unsynced() bool {
	return p.FileSystem == overlay && (p.has("volatile") || p.has("fsync=volatile"))
}

// Hidden reports whether nothing here says what the file is really on: nothing is known then of what a loss of power leaves.
func (p Place) Hidden() bool {
	return p.FileSystem == unknown || p.FileSystem == overlay && p.Beneath == ""
}

// has reports whether the mount has an option.
func (p Place) has(option string) bool { return slices.Contains(strings.Split(p.Options, ","), option) }

// Volatile reports whether the file system lives in memory: what is there is lost with the power, in every mode.
func (p Place) Volatile() bool { return inMemory(p.FileSystem) || inMemory(p.Beneath) }

func inMemory(fileSystem string) bool { return fileSystem == "tmpfs" || fileSystem == "ramfs" }

// String is "ext4 on /dev/sda1", or "tmpfs" where the device is no more than a name; an overlay's has what is beneath, "overlay over tmpfs".
func (p Place) String() string {
	switch {
	case p.Beneath != "":
		return p.FileSystem + " over " + p.Beneath
	case p.Device == p.FileSystem:
		return p.FileSystem
	}
	return p.FileSystem + " on " + p.Device
}

// upper returns the directory that an overlay has its new files in (upperdir, in the kernel's overlayfs.rst), "" when it is given by no path from the
// root. The kernel writes what separates options as \ and three octal digits; behind that is what mount was given, where
// a comma has a \, too.
func (p Place) upper() string {
	if p.FileSystem != overlay {
		return ""
	}
	for option := range strings.SplitSeq(p.Options, ",") {
		if dir, ok := strings.CutPrefix(option, "upperdir=/"); ok {
			return "/" + escaped.Replace(octal.ReplaceAllStringFunc(dir, func(s string) string {
				n, _ := strconv.ParseUint(s[1:], 8, 8) // the expression has no more than 377
				return string([]byte{byte(n)})
			}))
		}
	}
	return ""
}

var escaped = strings.NewReplacer(`\,`, ",", `\:`, ":", `\\`, `\`)

var octal = regexp.MustCompile(`\\[0-3][0-7]{2}`)

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
