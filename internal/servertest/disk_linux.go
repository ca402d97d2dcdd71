package servertest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Disk is a block device whose writes can be made to fail, with ext4 on it: a loop device over a file in memory. The kernel's own write-back meets
// the error, as on a failing disk.
type Disk struct {
	Dir string // its mount point, until the end of the test

	t       testing.TB
	backing *os.File
}

const diskSize = 32 << 20

// NewDisk makes a disk of 32 MiB.
func NewDisk(t testing.TB) *Disk {
	t.Helper()
	d := &Disk{t: t}
	if err := d.make(); err != nil {
		Require(t, "mount", fmt.Errorf("mount a disk of a test: %w", err))
	}
	return d
}

func (d *Disk) make() error {
	if err := d.memory(); err != nil {
		return err
	}
	device, err := d.attach()
	if err != nil {
		return err
	}
	defer device.Close() // the mount keeps it open
	if out, err := exec.Command("mkfs.ext4", "-q", device.Name()).CombinedOutput(); err != nil {
		return fmt.Errorf("mkfs.ext4: %w: %s", err, out)
	}
	return d.mount(device)
}

// SmallDisk makes a file system in memory with room for size bytes, usable by Postgres' user, and returns its directory. It ends with the test.
func SmallDisk(t testing.TB, size int) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "loadgen-disk-") // other users cannot enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.Remove(dir) })
	if err := unix.Mount("loadgen-test", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, fmt.Sprintf("size=%d", size)); err != nil {
		Require(t, "mount", fmt.Errorf("mount a disk of a test: %w", err))
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil { // a server may still have files there
			t.Errorf("end a disk of the test: %v", err)
		}
	})
	unprivileged(t, dir)
	return dir
}

// memory creates the file behind the disk.
func (d *Disk) memory() error {
	fd, err := unix.MemfdCreate("disk", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return err
	}
	d.backing = os.NewFile(uintptr(fd), "disk")
	d.t.Cleanup(func() { d.backing.Close() })
	return d.backing.Truncate(diskSize)
}

// attach attaches the file to a loop device, which becomes free once nobody has it open.
func (d *Disk) attach() (*os.File, error) {
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for range 100 {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		device, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		err = unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{
			Fd: uint32(d.backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR},
		})
		if err == nil {
			return device, nil
		}
		device.Close()
		if !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, errors.New("others take every loop device that is free")
}

func (d *Disk) mount(device *os.File) error {
	d.Dir = d.t.TempDir()
	if err := unix.Mount(device.Name(), d.Dir, "ext4", 0, ""); err != nil {
		return err
	}
	d.t.Cleanup(func() {
		if err := unix.Unmount(d.Dir, unix.MNT_DETACH); err != nil {
			d.t.Errorf("unmount a disk of the test: %v", err)
		}
	})
	return nil
}

// Break makes each write to the device fail with EIO from now on. Its contents can still be read.
func (d *Disk) Break() {
	d.t.Helper()
	_, err := unix.FcntlInt(d.backing.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
	require.NoError(d.t, err, "break a disk of the test")
}

// The requests that freeze and thaw a file system (linux/fs.h: FIFREEZE, FITHAW).
const (
	freeze = 0xC0045877
	thaw   = 0xC0045878
)

// Stall makes all writes to the disk wait for the given time.
func (d *Disk) Stall(wait time.Duration) {
	d.t.Helper()
	dir, err := os.Open(d.Dir)
	require.NoError(d.t, err, "stall a disk of the test")
	defer dir.Close()
	err = unix.IoctlSetInt(int(dir.Fd()), freeze, 0)
	if err == nil {
		time.Sleep(wait)
		err = unix.IoctlSetInt(int(dir.Fd()), thaw, 0)
	}
	require.NoError(d.t, err, "stall a disk of the test")
}

// Remains mounts a copy of the device's contents as after a power loss: without the data that had not been written yet.
func (d *Disk) Remains() *Disk {
	d.t.Helper()
	after := &Disk{t: d.t}
	err := after.memory()
	if err == nil {
		_, err = io.Copy(after.backing, io.NewSectionReader(d.backing, 0, diskSize))
	}
	var device *os.File
	if err == nil {
		device, err = after.attach()
	}
	require.NoError(d.t, err, "copy a disk of the test")
	defer device.Close()
	require.NoError(d.t, after.mount(device), "mount the copy of a disk")
	return after
}
