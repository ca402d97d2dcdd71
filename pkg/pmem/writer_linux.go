package pmem

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// FaultError is the cause of an error if an access to the mapping faulted.
type FaultError struct {
	Offset int64 // offset of an accessed byte, not always the first missing one, from the beginning of the file
}

func (e *FaultError) Error() string {
	return fmt.Sprintf("no medium behind byte %d: the file was truncated or the medium is damaged", e.Offset)
}

// writer is the Medium of a File. It allocates nothing until something fails. It shares its cache lines with nothing.
type writer struct {
	file   *File
	lo, hi int64 // the bytes flushed since the last fence are in [lo, hi)
	before int64 // end of the bytes of the last fence
	fences uint64
	block  []byte // aligned memory for direct writes
	_      [2*line - 8*8]byte
}

// timedWriter is the Medium of a File whose fences wait for a device.
type timedWriter struct {
	writer
	waited time.Duration
}

// Fence implements Medium.
func (w *timedWriter) Fence() error {
	began := time.Now()
	err := w.writer.Fence()
	w.waited += time.Since(began)
	return err
}

// Waited implements Timed.
func (w *timedWriter) Waited() time.Duration { return w.waited }

// Writer returns a new Medium, which is a Timed one unless [Untimed] says why not. Each goroutine needs its own: a fence waits only for what was flushed
// on the same Medium.
func (f *File) Writer() Medium {
	f.mu.Lock()
	defer f.mu.Unlock()
	if Untimed(f.mode, f.place) != "" {
		w := &writer{file: f}
		f.writers = append(f.writers, w)
		return w
	}
	w := &timedWriter{writer: writer{file: f}}
	f.writers = append(f.writers, &w.writer)
	return w
}

// Fences returns the number of fences on the file's mediums, including modes in which a fence does nothing. No medium may be in use.
func (f *File) Fences() (n uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.writers {
		n += w.fences
	}
	return n
}

// Put implements Medium.
func (w *writer) Put(off int64, head, p []byte) error {
	_, err := w.put(&chunk{off: off, head: head, p: p})
	return err
}

// Seal implements Medium.
func (w *writer) Seal(off int64, head, p []byte, room int64) (uint32, error) {
	return w.put(&chunk{off: off, head: head, p: p, room: room, seal: true})
}

// put stores a chunk and flushes it.
func (w *writer) put(p *chunk) (sum uint32, err error) {
	f, n := w.file, p.size()
	if err := w.writable(p.off, n+p.room); err != nil || n == 0 {
		return 0, err
	}
	if f.cpu.flush != nil {
		defer f.storing(debug.SetPanicOnFault(true), &err)
		return f.cpu.put(f.data, p), nil
	}
	if p.seal {
		sum = checksum(0, p.p)
		p.combine(sum)
	}
	if f.mode.opened() {
		return sum, w.through(p)
	}
	w.note(p.off, n)
	if f.made == Extending {
		return sum, f.extend(p.off, p.head, p.p)
	}
	if f.mode == Fdatasync && p.off+n < f.Size() {
		return sum, f.write(p.off, p.head, p.p)
	}
	defer f.storing(debug.SetPanicOnFault(true), &err)
	copy(f.data[p.off:], p.head)
	f.cpu.copy(f.data, p.off+int64(len(p.head)), p.p)
	return sum, nil
}

// through stores a chunk by a system call after which it is durable. The check comes before, because a write to the end of the file would make it as
// long as it was.
func (w *writer) through(p *chunk) error {
	f, n := w.file, p.size()
	if n%f.Alignment() != 0 || p.off%f.Alignment() != 0 {
		return fmt.Errorf("%s: %d bytes at %d in mode %s: want multiples of %d", f.file.Name(), n, p.off, f.mode, f.align)
	}
	if err := f.Check(); err != nil {
		return err
	}
	from := p.p
	if f.mode == ODirect || len(p.head) > 0 {
		if int64(len(w.block)) < n {
			w.block = aligned(n, max(f.align, int64(os.Getpagesize())))
		}
		from = w.block[:n]
		copy(from[copy(from, p.head):], p.p)
	}
	if _, err := f.kernel.writeAt(f.opened, from, p.off); err != nil {
		return f.fail(fmt.Errorf("%s of bytes %d to %d on %s: %w", f.mode, p.off, p.off+n, f.place, err))
	}
	return nil
}

// aligned returns n bytes that begin at a multiple of to.
func aligned(n, to int64) []byte {
	p := make([]byte, n+to)
	skip := to - int64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))%uintptr(to))
	return p[skip : skip+n]
}

// write stores by system calls. It never writes the file's last byte: if somebody has truncated the file, a write makes it longer, but never as long
// as it was, so Check notices.
func (f *File) write(off int64, head, p []byte) error {
	if len(head) > 0 {
		if _, err := f.kernel.writeAt(f.file, head, off); err != nil {
			return f.fail(err)
		}
	}
	if _, err := f.kernel.writeAt(f.file, p, off+int64(len(head))); err != nil {
		return f.fail(err)
	}
	return nil
}

// extend stores by system calls to a file that they may make longer.
func (f *File) extend(off int64, head, p []byte) error {
	if err := f.write(off, head, p); err != nil {
		return err
	}
	for end := off + int64(len(head)+len(p)); ; {
		if was := f.end.Load(); end <= was || f.end.CompareAndSwap(was, end) {
			return nil
		}
	}
}

// Store8 implements Medium. It stores to the mapping in every mode: pwrite does not promise to store 8 bytes whole.
func (w *writer) Store8(off int64, v uint64) (err error) {
	if err := w.writable(off, 8); err != nil {
		return err
	}
	if off%8 != 0 {
		return fmt.Errorf("store 8 bytes at %d: want a multiple of 8", off)
	}
	defer w.file.storing(debug.SetPanicOnFault(true), &err)
	to := &w.file.data[off]
	if w.file.cpu.flush != nil {
		w.file.cpu.store8(to, v)
		return nil
	}
	var little [8]byte
	binary.LittleEndian.PutUint64(little[:], v)
	atomic.StoreUint64((*uint64)(unsafe.Pointer(to)), binary.NativeEndian.Uint64(little[:]))
	return nil
}

// Flush implements Medium.
func (w *writer) Flush(off, n int64) (err error) {
	if err := w.writable(off, n); err != nil || n == 0 {
		return err
	}
	if w.file.cpu.flush == nil {
		w.note(off, n)
		return nil
	}
	defer w.file.storing(debug.SetPanicOnFault(true), &err)
	w.file.cpu.flush(w.file.data[off : off+n])
	return nil
}

// note adds n bytes at off to what the next fence syncs.
func (w *writer) note(off, n int64) {
	if w.lo == w.hi {
		w.lo, w.hi = off, off+n
	}
	w.lo, w.hi = min(w.lo, off), max(w.hi, off+n)
}

// Fence implements Medium. If it waits for a disk, it also checks whether the file was truncated.
func (w *writer) Fence() error {
	f := w.file
	w.fences++
	if err := w.writable(0, 0); err != nil {
		return err
	}
	if f.cpu.flush != nil {
		f.cpu.fence()
	}
	if f.sync == nil || w.lo == w.hi {
		return nil
	}
	prefetch(w.foreseen())
	lo, hi := w.lo, w.hi
	w.lo, w.hi, w.before = 0, 0, w.hi
	if !f.returns {
		return f.synced(lo, hi, f.sync(lo, hi))
	}
	page := lo - lo%f.page
	_, _, e := syscall.RawSyscall6(unix.SYS_MSYNC, uintptr(unsafe.Pointer(&f.data[page])), uintptr(hi-page), unix.MS_SYNC, 0, 0, 0)
	if e != 0 {
		return f.synced(lo, hi, e)
	}
	return nil
}

// synced turns the result of a sync of a range into the error to return.
func (f *File) synced(lo, hi int64, err error) error {
	switch {
	case err != nil:
		return f.fail(fmt.Errorf("%s of bytes %d to %d on %s: %w", f.mode, lo, hi, f.place, err))
	case f.place.Volatile():
		return nil
	}
	return f.Check()
}

// foreseen returns the bytes that probably come next, for the processor to fetch while the kernel works. If this fence follows on from the last,
// these are as many as there are now and a line more; otherwise none.
func (w *writer) foreseen() []byte {
	const near, most = 256, 4 << 10 // padding may separate records; more would leave the nearest cache before it is written
	f := w.file
	if f.mode != Msync || w.lo < w.before || w.lo >= w.before+near {
		return nil
	}
	return f.data[w.hi:min(w.hi+min(w.hi-w.lo+line, most), f.Size())]
}

// writable returns an error if n bytes at off cannot be written: the file is closed, poisoned or shorter.
func (w *writer) writable(off, n int64) error {
	if w.file.data == nil {
		return os.ErrClosed
	}
	if err := w.file.failed(); err != nil {
		return err
	}
	if off < 0 || n < 0 || off > w.file.Size()-n {
		return fmt.Errorf("%s: %d bytes at %d do not lie in its %d", w.file.file.Name(), n, off, w.file.Size())
	}
	return nil
}

// ReadAt implements io.ReaderAt, also for a poisoned file. A fault is a *FaultError.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	if f.data == nil {
		return 0, os.ErrClosed
	}
	if off < 0 {
		return 0, fmt.Errorf("%s: read at %d", f.file.Name(), off)
	}
	if off >= f.Size() {
		return 0, io.EOF
	}
	defer f.reading(debug.SetPanicOnFault(true), &n, &err)
	if n = copy(p, f.data[off:]); n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// storing is deferred by code that writes to the mapping: a fault poisons the file.
func (f *File) storing(old bool, err *error) {
	debug.SetPanicOnFault(old)
	if fault := f.fault(recover()); fault != nil {
		*err = f.fail(fault)
	}
}

// reading is deferred by code that reads the mapping.
func (f *File) reading(old bool, n *int, err *error) {
	debug.SetPanicOnFault(old)
	if fault := f.fault(recover()); fault != nil {
		*n, *err = 0, fmt.Errorf("%s: %w", f.file.Name(), fault)
	}
}

// fault returns the error of a fault in the mapping, and nil if there was no panic. It passes any other panic on.
func (f *File) fault(panicked any) error {
	if panicked == nil {
		return nil
	}
	if at, ok := panicked.(interface{ Addr() uintptr }); ok {
		off := at.Addr() - uintptr(unsafe.Pointer(unsafe.SliceData(f.data))) // wraps around for an address before the mapping
		if off < uintptr(len(f.data)) {
			return &FaultError{Offset: int64(off)}
		}
	}
	panic(panicked)
}

// mapped maps a file from its beginning, if possible at an address that allows huge pages. The address is a hint, without MAP_FIXED: with it, the
// kernel would first remove what is at the address and then ask the file system, which may refuse. Another thread could meanwhile have mapped
// something there, and nobody would know whose it is.
func mapped(fd int, size int64, flags int) ([]byte, error) {
	room := uintptr(size) + hugePage // to hold such an address
	begin, err := unix.MmapPtr(-1, 0, nil, room, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	if err := unix.MunmapPtr(begin, room); err != nil {
		return nil, err
	}
	at, err := unix.MmapPtr(fd, 0, unsafe.Add(begin, -uintptr(begin)%hugePage), uintptr(size), unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(at), size), nil
}

// unmap undoes mapped.
func unmap(p []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(p)), uintptr(len(p)))
}
