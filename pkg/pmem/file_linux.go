package pmem

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// File is a mapped file, locked against other processes. Its methods are safe for concurrent use.
type File struct {
	kernel kernel
	file   *os.File // open as long as the mapping: the kernel reports write-back errors to open files only
	data   []byte   // the mapping
	mode   Mode
	place  Place
	cpu    processor
	opened *os.File     // the same file, opened for the writes of modes o_dsync and o_direct
	align  int64        // offsets and lengths of writes are multiples of this
	made   Prealloc     // by this File; "" if it was there before
	end    atomic.Int64 // of an Extending file: its length so far

	sync func(lo, hi int64) error // waits for the write-back of a range; nil in modes without one
	// returns says that sync returns at once, as msync does for files in memory, so the scheduler need not know that the thread is in the kernel.
	// Fence then makes the system call itself: after a system call, some processors mispredict one return after another.
	returns bool
	page    int64 // size in bytes
	poison  atomic.Pointer[failure]

	mu      sync.Mutex // guards the fields below
	writers []*writer
}

// failure holds the error of the first failed write.
type failure struct{ err error }

// Create makes a file of the given size in bytes, at least 1, and maps it. The file must not exist. If Create fails, it leaves no file. It takes as
// long as writing the file once.
func Create(path string, size int64, mode Mode) (*File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return CreateIn(context.Background(), root, filepath.Base(path), Form{Size: size, Mode: mode})
}

// Form describes a new file.
type Form struct {
	Size  int64 // in bytes
	Entry int64 // the usual size of a write in bytes; 0 if unknown
	Mode  Mode

	Prealloc Prealloc // "" for Zeroed
}

// CreateIn is Create for a file in root, which name cannot escape. If ctx ends before the file is made, the error is its cause.
func CreateIn(ctx context.Context, root *os.Root, name string, form Form) (*File, error) {
	return createIn(ctx, linux{}, root, name, form)
}

func createIn(ctx context.Context, k kernel, root *os.Root, name string, form Form) (*File, error) {
	path := filepath.Join(root.Name(), name)
	if form.Size < 1 {
		return nil, fmt.Errorf("create %s: a size of %d bytes: want at least 1", path, form.Size)
	}
	file, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create %s: %w", path, pathless(err))
	}
	f := &File{kernel: k, file: file}
	err = f.prepare(ctx, &form)
	if err == nil {
		err = k.syncDirectory(root, filepath.Dir(name))
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create %s: %w", path, err), f.discard(), root.Remove(name))
	}
	return f, nil
}

// Open maps a file that Create made.
func Open(path string, mode Mode) (*File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return OpenIn(root, filepath.Base(path), mode)
}

// OpenIn is Open for a file in a directory. It refuses symbolic links, wherever they lead.
func OpenIn(root *os.Root, name string, mode Mode) (*File, error) {
	return openIn(linux{}, root, name, mode)
}

func openIn(k kernel, root *os.Root, name string, mode Mode) (*File, error) {
	path := filepath.Join(root.Name(), name)
	named, err := root.Lstat(name)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, pathless(err))
	}
	if !named.Mode().IsRegular() { // opening a device may have side effects
		return nil, fmt.Errorf("open %s: %w", path, errNotRegular)
	}
	file, err := k.open(root, name, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOCTTY)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, pathless(err))
	}
	f := &File{kernel: k, file: file}
	if err := f.open(named, mode); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), f.discard())
	}
	return f, nil
}

var errNotRegular = errors.New("want a regular file that is not empty, and no link to one")

// pathless strips an incomplete path from an error.
func pathless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// prepare gives the new file its size and blocks, makes them durable, and maps it.
func (f *File) prepare(ctx context.Context, form *Form) error {
	if err := f.lock(); err != nil {
		return err
	}
	if err := f.mapAs(form.Mode, form.Size); err != nil {
		return err
	}
	f.made = form.Prealloc
	if f.made == Extending {
		if f.mode != Fdatasync {
			return fmt.Errorf("a file that is extended in mode %s: want %s", f.mode, Fdatasync)
		}
		return f.kernel.sync(f.file)
	}
	if err := f.reserve(ctx, form.Size); err != nil {
		return fmt.Errorf("reserve %d bytes of %s: %w", form.Size, f.place, err)
	}
	if f.made == Reserved {
		return f.kernel.sync(f.file)
	}
	if err := f.fill(ctx, form.Size, f.piece(form.Entry)); err != nil {
		return fmt.Errorf("fill with zeros: %w", err)
	}
	return f.populate(ctx)
}

// atATime is how many bytes to reserve or map per system call. In memory, the call creates the pages and cannot be interrupted.
const atATime = 64 << 20

// reserve allocates the file's blocks. If they do not fit, the file system refuses at once.
func (f *File) reserve(ctx context.Context, size int64) error {
	free, err := freeOf(f.kernel, f.fd())
	if err != nil {
		return err
	}
	if size > free {
		return fmt.Errorf("%d bytes are free: %w", free, unix.ENOSPC)
	}
	if err := f.kernel.truncate(f.file, size); err != nil {
		return err
	}
	for off := int64(0); off < size; off += atATime {
		if ctx.Err() != nil {
			return fmt.Errorf("given up after %d bytes: %w", off, context.Cause(ctx))
		}
		end := min(off+atATime, size)
		f.enlarge(off, end)
		if err := f.kernel.allocate(f.fd(), off, end-off); err != nil {
			return err
		}
	}
	return nil
}

// Renew gives a file that was made Reserved or Extending unwritten blocks again, as if it were new. It leaves other files as they are. No Medium of
// the file may be in use by another goroutine.
func (f *File) Renew() error {
	if err := f.failed(); err != nil || f.made != Reserved && f.made != Extending {
		return err
	}
	err := f.kernel.truncate(f.file, 0)
	if err == nil && f.made == Reserved {
		err = f.reserve(context.Background(), f.Size())
	}
	f.end.Store(0)
	if err != nil {
		return f.fail(fmt.Errorf("renew: %w", err))
	}
	return nil
}

// hugePage is the size in bytes of a huge page.
const hugePage = 2 << 20

// enlarge asks the kernel for huge pages for the bytes from off to end of a file in memory. Without them, storing 1 MiB took about half as long
// again, varying from file to file, and creating the file three times as long. An empty range does not become a huge page, so each gets a byte first.
func (f *File) enlarge(off, end int64) {
	if !f.place.Volatile() {
		return
	}
	end -= end % hugePage
	for at := off; at < end; at += hugePage {
		if _, err := f.kernel.writeAt(f.file, []byte{0}, at); err != nil {
			return // Fallocate will report it
		}
	}
	if off < end {
		_ = f.kernel.advise(f.data[off:end], unix.MADV_COLLAPSE) // an error only costs time
	}
}

// unsynced is how many bytes of zeros to write before waiting for them, which cannot be interrupted.
const unsynced = 16 << 20

// WithProgress returns a context with which [CreateIn] reports the bytes of a new file as it writes them.
func WithProgress(ctx context.Context, wrote func(n int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, wrote)
}

type progressKey struct{}

// fill writes size bytes of zeros, atOnce bytes at a time, and makes them durable.
func (f *File) fill(ctx context.Context, size, atOnce int64) error {
	zeros := make([]byte, min(size, atOnce))
	wrote, told := ctx.Value(progressKey{}).(func(int64))
	for off := int64(0); off < size; {
		if ctx.Err() != nil {
			return fmt.Errorf("given up after %d of %d bytes: %w", off, size, context.Cause(ctx))
		}
		n, err := f.kernel.writeAt(f.file, zeros[:min(size-off, int64(len(zeros)))], off)
		if err != nil {
			return err
		}
		off += int64(n)
		if told {
			wrote(int64(n))
		}
		if off%unsynced == 0 {
			if err := f.filled(); err != nil {
				return err
			}
		}
	}
	return f.filled()
}

// filled makes the zeros durable that were written. The file system had room for them, so an error is of what is beneath it.
func (f *File) filled() error {
	if err := f.kernel.sync(f.file); err != nil {
		return fmt.Errorf("%w: %w", ErrPoisoned, pathless(err))
	}
	return nil
}

// piece returns how many bytes to write at once to a new file for entries of a size. The kernel keeps them together from then on. A store to a clean
// page of the mapping has its whole piece written back, so large pieces slow down small stores, and small ones slow down large stores. A system call
// only has the blocks written back that it wrote to, but in mode fdatasync, too, a Store8 goes to the mapping.
func (f *File) piece(entry int64) int64 {
	n, most := int64(4<<10), int64(64<<10)
	if f.mode == Fdatasync || f.mode.opened() {
		most = 256 << 10
	}
	for n < most && (n < entry || entry == 0) {
		n *= 2
	}
	return n
}

// open locks and maps an existing file, if it is still the regular file described by named. It does not follow a link that has replaced it.
func (f *File) open(named fs.FileInfo, mode Mode) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(named, info) || info.Size() == 0 {
		return errNotRegular
	}
	if err := f.lock(); err != nil {
		return err
	}
	if err := f.mapAs(mode, info.Size()); err != nil {
		return err
	}
	return f.populate(context.Background())
}

// lock locks the file until it is closed, and finds out where it is.
func (f *File) lock() error {
	if err := f.kernel.flock(f.fd()); errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	} else if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	var err error
	f.place, err = placeOf(f.kernel, f.fd())
	return err
}

// Room returns how many bytes this process may still use on a directory's file system, and which that is.
func Room(dir *os.Root) (free int64, place Place, err error) {
	return roomOf(linux{}, dir)
}

func roomOf(k kernel, dir *os.Root) (free int64, place Place, err error) {
	d, err := dir.Open(".")
	if err != nil {
		return 0, place, err
	}
	defer d.Close()
	if free, err = freeOf(k, int(d.Fd())); err == nil {
		place, err = placeOf(k, int(d.Fd()))
	}
	return free, place, err
}

// freeOf returns how many bytes are free on a file system. One in memory need not have a limit of its own.
func freeOf(k kernel, fd int) (int64, error) {
	var system unix.Statfs_t
	if err := k.fstatfs(fd, &system); err != nil {
		return 0, err
	}
	return bytesFree(&system), nil
}

// bytesFree leaves out what a file system keeps for the superuser, and for itself: files get none of the latter, whoever makes them.
func bytesFree(system *unix.Statfs_t) int64 {
	blocks := system.Bavail
	if system.Blocks == 0 || blocks > math.MaxInt64/uint64(system.Bsize) {
		return math.MaxInt64
	}
	return int64(blocks) * system.Bsize
}

// placeOf finds out where an open file is.
func placeOf(k kernel, fd int) (Place, error) {
	var stat unix.Stat_t
	if err := k.fstat(fd, &stat); err != nil {
		return Place{}, err
	}
	mounts, err := k.readFile("/proc/self/mountinfo")
	if err != nil {
		return Place{}, err
	}
	info, err := k.readFile(fmt.Sprintf("/proc/self/fdinfo/%d", fd))
	if err != nil {
		return Place{}, err
	}
	number := fmt.Sprintf("%d:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev))
	place := find(string(mounts), mountOf(string(info)), number)
	place.Number, place.Behind = number, behind(k, place.Device)
	if under, ok := placeAt(k, place.upper()); ok {
		place.Beneath, place.Behind, place.Number = under.FileSystem, under.Behind, under.Number
		if under.Beneath != "" {
			place.Beneath = under.Beneath
		}
	}
	return place, nil
}

// behind returns what a block device keeps its blocks in, if that is a file or memory: the type of the file's file system, unknown if that is not
// visible, or the name of the device's driver.
func behind(k kernel, device string) string {
	kind := virtual.FindStringSubmatch(device)
	if kind == nil {
		return ""
	}
	if kind[2] != "loop" {
		return kind[2]
	}
	backing, err := k.readFile(blockDevices + "/" + kind[1] + "/loop/backing_file")
	file := strings.TrimSpace(string(backing))
	switch {
	case err != nil:
		return unknown
	case strings.HasPrefix(file, "/memfd:"): // memfd_create(2)
		return "tmpfs"
	}
	under, ok := placeAt(k, filepath.Dir(file))
	switch {
	case !ok:
		return unknown
	case under.Behind != "":
		return under.Behind
	case under.Beneath != "":
		return under.Beneath
	}
	return under.FileSystem
}

// virtual are the devices that have no hardware of their own, and their partitions: files, and memory (brd, zram).
var virtual = regexp.MustCompile(`^/dev/((loop|zram|ram)[0-9]+)(p[0-9]+)?$`)

// placeAt returns the place of the files in a directory, such as an overlay's upper directory, or that of a loop device's file. This process, which
// may be in a container, need not see the directory.
func placeAt(k kernel, path string) (place Place, ok bool) {
	if path == "" {
		return place, false
	}
	dir, err := os.Open(path)
	if err != nil {
		return place, false
	}
	defer dir.Close()
	place, err = placeOf(k, int(dir.Fd()))
	return place, err == nil && !place.Hidden()
}

// discard closes a file that could not be created or opened.
func (f *File) discard() error {
	if f.data != nil {
		return f.Close()
	}
	return f.shut()
}

// mapAs maps the file in the given mode.
func (f *File) mapAs(mode Mode, size int64) error {
	switch mode {
	case Auto:
		err := f.mapAs(MapSync, size)
		if errors.Is(err, ErrUnsupported) {
			return f.mapAs(Fdatasync, size)
		}
		return err
	case Msync:
		f.returns, f.page = f.place.Volatile(), int64(os.Getpagesize())
		f.sync = func(lo, hi int64) error { return f.kernel.msync(f.data[lo-lo%f.page : hi]) }
	case Fdatasync:
		f.sync = f.fdatasync
	case ODsync, ODirect:
		f.sync = f.fdatasync // for bytes that are stored to the mapping
		if err := f.reopen(mode); err != nil {
			return err
		}
	case MapSync, CLWB, None:
	default:
		return fmt.Errorf("mode %q: want one of %q", mode, Modes)
	}
	var cpu processor
	if mode.instructions() {
		if cpu = detect(); cpu.flush == nil {
			return fmt.Errorf("mode %s: this processor has none of the instructions CLWB, CLFLUSHOPT and CLFLUSH of amd64: "+
				"ask for %s or %s: %w", mode, Msync, Fdatasync, ErrUnsupported)
		}
	}
	if mode == None {
		cpu.aside = detect().aside
	}
	flags := unix.MAP_SHARED
	if mode == MapSync {
		flags = unix.MAP_SHARED_VALIDATE | unix.MAP_SYNC
	}
	var err error
	f.data, err = f.kernel.mapped(f.fd(), size, flags)
	// Kernels older than the flag, and file systems that do not know it, return EINVAL.
	if mode == MapSync && (errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL)) {
		return fmt.Errorf("mode %s: %s cannot map with MAP_SYNC: mount ext4 or xfs on a persistent-memory device with -o dax=always, "+
			"or ask for %s or %s: %w", mode, f.place, Fdatasync, Auto, ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("map %d bytes of %s: %w", size, f.place, err)
	}
	f.mode, f.cpu = mode, cpu
	return nil
}

// blockSize is the smallest unit of a direct write: the sector of a device.
const blockSize = 512

// reopen opens the file again for the writes of mode o_dsync or o_direct.
func (f *File) reopen(mode Mode) (err error) {
	flags := os.O_WRONLY | unix.O_DSYNC
	if mode == ODirect {
		flags |= unix.O_DIRECT
		if f.align, err = f.kernel.alignment(f.fd()); err != nil {
			return fmt.Errorf("mode %s: ask for the alignment of direct writes: %w", mode, err)
		}
	}
	if mode == ODsync || f.align > 0 {
		f.opened, err = f.kernel.reopen(f.fd(), flags)
	}
	if mode == ODirect && (f.align == 0 || errors.Is(err, unix.EINVAL)) {
		return fmt.Errorf("mode %s: %s takes no direct writes: ask for %s, or use another file system: %w", mode, f.place, ODsync, ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("mode %s: %w", mode, pathless(err))
	}
	if mode == ODirect {
		f.align = max(f.align, blockSize)
	}
	return nil
}

// Alignment returns the number that offsets and lengths of writes must be multiples of: above 1 in mode ODirect only.
func (f *File) Alignment() int64 { return max(f.align, 1) }

// populate makes the kernel map all pages now, which takes a third of the time of faulting them in one by one. It does nothing where pages are
// written back to a disk: populated pages would be clean, and the first store to a clean mapped page takes longer than to an unmapped one. An error
// from the kernel only costs time: an access to the page would meet the same error.
func (f *File) populate(ctx context.Context) error {
	if !f.mode.instructions() && !f.place.Volatile() {
		return nil
	}
	for off := int64(0); off < f.Size(); off += atATime {
		if ctx.Err() != nil {
			return fmt.Errorf("map: given up after %d of %d bytes: %w", off, f.Size(), context.Cause(ctx))
		}
		_ = f.kernel.advise(f.data[off:min(off+atATime, f.Size())], unix.MADV_POPULATE_WRITE)
	}
	return nil
}

// Name returns the path that the file was opened by.
func (f *File) Name() string { return f.file.Name() }

// Mode returns the mode in use, never Auto.
func (f *File) Mode() Mode { return f.mode }

// Instruction returns the names of the instructions that make a piece of n bytes durable, such as "CLWB", or "MOVNTDQ and CLWB" if whole lines bypass
// the caches and the rest is flushed; "" in modes that use none.
func (f *File) Instruction(n int) string {
	if n < line || !f.mode.instructions() {
		return f.cpu.name
	}
	return f.cpu.past + " and " + f.cpu.name
}

// Place returns where the file is.
func (f *File) Place() Place { return f.place }

// Size returns the size in bytes, which never changes.
func (f *File) Size() int64 { return int64(len(f.data)) }

// Close unmaps and unlocks the file. No Medium of it may be in use, or be used later. Bytes that were not fenced may be lost.
func (f *File) Close() error {
	if f.data == nil {
		return os.ErrClosed
	}
	err := f.kernel.unmap(f.data)
	f.data = nil
	return errors.Join(err, f.shut())
}

// shut closes the file, however often it is open.
func (f *File) shut() error {
	var err error
	if f.opened != nil {
		err = f.opened.Close()
	}
	return errors.Join(err, f.file.Close())
}

// Check returns an error if the file is poisoned or was truncated, which poisons it. In modes that flush from user space, and on file systems in
// memory, nothing else checks, as it would take as long as a write. Call it now and then, and before counting the last writes.
func (f *File) Check() error {
	if err := f.failed(); err != nil {
		return err
	}
	size, err := unix.Seek(f.fd(), 0, unix.SEEK_END) // stat would have the next write change the inode, and the next sync write the inode, too
	if err != nil {
		return f.fail(err)
	}
	want := f.Size()
	if f.made == Extending {
		want = f.end.Load()
	}
	if size < want {
		return f.fail(fmt.Errorf("%w to %d of its %d bytes", ErrTruncated, size, want))
	}
	return nil
}

// fail poisons the file unless it is poisoned already, and returns the error of the first failure.
func (f *File) fail(cause error) error {
	f.poison.CompareAndSwap(nil, &failure{fmt.Errorf("%s: %w: %w", f.file.Name(), ErrPoisoned, cause)})
	return f.failed()
}

// failed returns the error of the first failure, if any.
func (f *File) failed() error {
	if first := f.poison.Load(); first != nil {
		return first.err
	}
	return nil
}

func (f *File) fdatasync(_, _ int64) error { return f.kernel.fdatasync(f.fd()) }

func (f *File) fd() int { return int(f.file.Fd()) }
