package pmem

import (
	"fmt"
	"strings"
)

// Place is where a file is.
type Place struct {
	FileSystem string // as the kernel names its type: "ext4"
	Device     string // "/dev/sda1"; what a file system without a device names instead; "8:1" when the kernel lists neither
	Options    string // of the mount, as the file system lists them: "rw,nobarrier"
}

// Unordered reports whether the file system is mounted so that a sync does not have the device empty its cache.
func (p Place) Unordered() bool {
	for option := range strings.SplitSeq(p.Options, ",") {
		if option == "nobarrier" || option == "barrier=0" {
			return true
		}
	}
	return false
}

// Volatile reports whether the file system lives in memory: what is there is lost with the power, in every mode.
func (p Place) Volatile() bool { return p.FileSystem == "tmpfs" || p.FileSystem == "ramfs" }

func (p Place) String() string { return fmt.Sprintf("%s on %s", p.FileSystem, p.Device) }

// find returns the place that /proc/self/mountinfo (proc(5)) gives for a device:
//
//	36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
//	      major:minor      options    tags      - type device options
func find(mounts string, major, minor uint32) Place {
	device := fmt.Sprintf("%d:%d", major, minor)
	for line := range strings.Lines(mounts) {
		mount, super, ok := strings.Cut(line, " - ")
		fields, last := strings.Fields(mount), strings.Fields(super)
		if ok && len(fields) > 2 && fields[2] == device && len(last) > 1 {
			return Place{FileSystem: last[0], Device: last[1], Options: strings.Join(last[2:], " ")}
		}
	}
	return Place{FileSystem: "unknown file system", Device: device}
}
