package pmem

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Disk is the block device that files are on.
type Disk struct {
	Device string // "/dev/sda1"; "" if there is none
	Number string // "8:1"

	NoBytes   string // why the number of bytes written to it is unknown; "" if it is known
	NoFlushes string // why the number of flushes of its write cache is unknown; "" if it is known

	own, whole string // directories of the device and of the disk that it is a part of
}

// disks is where the kernel lists block devices by number.
const disks = "/sys/dev/block"

// DiskOf returns the block device of a place, for files in a mode.
func DiskOf(mode Mode, place Place) Disk { return diskOf(disks, mode, place) }

func diskOf(disks string, mode Mode, place Place) Disk {
	none := func(why string) Disk { return Disk{NoBytes: why, NoFlushes: why} }
	switch {
	case place.Volatile():
		return none(place.String() + " lives in memory")
	case place.Hidden():
		return none("what " + place.FileSystem + " is on is not to be seen from here")
	case mode == MapSync:
		return none("with " + string(mode) + ", stores go past the block device")
	case !mode.Syncs():
		return none("with sync = " + strconv.Quote(string(mode)) + ", the kernel writes when it likes")
	}
	own, err := filepath.EvalSymlinks(filepath.Join(disks, place.Number))
	if err != nil { // btrfs, whose files have a device number of their own, and network file systems
		return none(place.String() + " is not a single block device of this machine")
	}
	d := Disk{Device: "/dev/" + strings.ReplaceAll(filepath.Base(own), "!", "/"), Number: place.Number, own: own, whole: own}
	if _, err := os.Stat(filepath.Join(own, "partition")); err == nil {
		d.whole = filepath.Dir(own)
	}
	if _, err := d.counts(d.own, sectorsWritten); err != nil {
		d.NoBytes = err.Error()
	}
	d.NoFlushes = d.unflushed()
	return d
}

// unflushed returns why the kernel counts no flushes of the disk; "" if it does.
func (d *Disk) unflushed() string {
	for kind, name := range map[string]string{"dm": "device-mapper", "md": "a software RAID"} {
		if _, err := os.Stat(filepath.Join(d.whole, kind)); err == nil {
			return d.Device + " is one of " + name + ", which passes flushes on uncounted"
		}
	}
	if cache, _ := os.ReadFile(filepath.Join(d.whole, "queue", "write_cache")); strings.TrimSpace(string(cache)) == "write through" {
		return d.Device + " has no volatile write cache, so the kernel never flushes it"
	}
	if _, err := d.counts(d.whole, flushRequests); err != nil {
		return err.Error()
	}
	return ""
}

// Fields of a device's statistics, from 0 (Linux's Documentation/block/stat.rst).
const (
	sectorsWritten = 6
	flushRequests  = 15
)

// sector is the unit of the statistics in bytes, whatever the device's own sectors are.
const sector = 512

// Counts returns how many bytes all programs have written to the device since the kernel found it, and how often its disk's write cache was flushed.
// An unknown count is 0.
func (d *Disk) Counts() (bytes, flushes uint64, err error) {
	if d.NoBytes == "" {
		if bytes, err = d.counts(d.own, sectorsWritten); err != nil {
			return 0, 0, err
		}
	}
	if d.NoFlushes == "" {
		if flushes, err = d.counts(d.whole, flushRequests); err != nil {
			return 0, 0, err
		}
	}
	return bytes * sector, flushes, nil
}

// counts returns one field of the statistics in a device's directory.
func (d *Disk) counts(dir string, field int) (uint64, error) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) <= field {
		return 0, fmt.Errorf("%s has %d fields: the kernel does not count that", filepath.Join(dir, "stat"), len(fields))
	}
	return strconv.ParseUint(fields[field], 10, 64)
}
