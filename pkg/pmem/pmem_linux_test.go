package pmem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/servertest"
)

// usual are the modes that every file system has.
func usual() []Mode {
	modes := []Mode{Msync, Fdatasync, None}
	if detect().flush != nil {
		modes = append(modes, CLWB)
	}
	return modes
}

// places returns a directory on the ordinary file system and one on a tmpfs of 1 MiB.
func places(t *testing.T) map[string]string {
	return map[string]string{"ordinary": t.TempDir(), "tmpfs": tmpfs(t)}
}

// tmpfs mounts a file system of 1 MiB in memory until the end of the test.
func tmpfs(t *testing.T) string {
	dir := t.TempDir()
	servertest.Require(t, "mount", unix.Mount("none", dir, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

func create(t testing.TB, dir string, size int64, mode Mode) *File {
	f, err := Create(filepath.Join(dir, "log"), size, mode)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() }) // some tests close it themselves
	return f
}

// persist stores p at off and waits until it is durable.
func persist(m Medium, off int64, p []byte) error {
	if err := m.Put(off, nil, p); err != nil {
		return err
	}
	return m.Fence()
}

func TestWritesAreThereWhenOpenedAgain(t *testing.T) {
	for name, dir := range places(t) {
		for _, mode := range usual() {
			t.Run(name+"/"+string(mode), func(t *testing.T) {
				path := filepath.Join(dir, string(mode))
				f, err := Create(path, 100_001, mode)
				require.NoError(t, err)
				require.Equal(t, mode, f.Mode())
				require.Equal(t, mode == CLWB, f.Instruction(line) != "")
				require.EqualValues(t, 100_001, f.Size())
				require.True(t, f.Place().Volatile() || name != "tmpfs", f.Place())
				info, err := os.Stat(path)
				require.NoError(t, err)
				require.Equal(t, os.FileMode(0o600), info.Mode())
				w := f.Writer()
				require.NoError(t, persist(w, 4090, []byte("over the edge of a page")))
				for off := range int64(70) { // the next are fetched in advance, up to the end of the file
					require.NoError(t, persist(w, 99_928+off, []byte("-")))
				}
				require.NoError(t, persist(w, 99_998, []byte("end")))
				require.NoError(t, w.Store8(8, 0x0102030405060708))
				require.NoError(t, w.Flush(8, 8))
				require.NoError(t, w.Fence())
				require.NoError(t, f.Check())
				timed, is := w.(Timed)
				require.Equal(t, !f.Place().Volatile() && (mode == Msync || mode == Fdatasync), is)
				if is {
					require.Positive(t, timed.Waited())
				}
				require.NoError(t, f.Close())
				require.ErrorIs(t, f.Close(), os.ErrClosed)
				require.ErrorIs(t, w.Fence(), os.ErrClosed)
				_, err = f.ReadAt(nil, 0)
				require.ErrorIs(t, err, os.ErrClosed)

				want := make([]byte, 100_001)
				copy(want[4090:], "over the edge of a page")
				copy(want[99_928:], strings.Repeat("-", 70)+"end")
				copy(want[8:], []byte{8, 7, 6, 5, 4, 3, 2, 1})
				onDisk, err := os.ReadFile(path)
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, onDisk))
				f, err = Open(path, mode)
				require.NoError(t, err)
				mapped, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
				require.NoError(t, err)
				require.True(t, bytes.Equal(want, mapped))
				require.NoError(t, f.Close())
				require.NoError(t, os.Remove(path))
			})
		}
	}
}

// TestAFileOfNewBlocks has them again after Renew; one that is extended has as many bytes as were written, and notices that some are gone.
func TestAFileOfNewBlocks(t *testing.T) {
	for prealloc, size := range map[Prealloc]int64{Reserved: 100_000, Extending: 3000} {
		t.Run(string(prealloc), func(t *testing.T) {
			root := rootOf(t, t.TempDir())
			f, err := CreateIn(t.Context(), root, "log", Form{Size: 100_000, Mode: Fdatasync, Prealloc: prealloc})
			require.NoError(t, err)
			require.EqualValues(t, 100_000, f.Size())
			w := f.Writer()
			put := func() {
				for off := range int64(3) {
					require.NoError(t, persist(w, 1000*off, bytes.Repeat([]byte("x"), 1000)))
				}
				info, err := root.Stat("log")
				require.NoError(t, err)
				require.Equal(t, size, info.Size())
			}
			put()
			require.NoError(t, f.Renew())
			is, err := root.ReadFile("log")
			require.NoError(t, err)
			require.Empty(t, bytes.Trim(is, "\x00"))
			put()
			require.NoError(t, f.Check())
			require.NoError(t, os.Truncate(f.Name(), 2999))
			require.ErrorIs(t, f.Check(), ErrTruncated)
			require.ErrorIs(t, f.Renew(), ErrPoisoned)
			require.NoError(t, f.Close())
		})
	}
}

func TestMapSyncIsRefusedByName(t *testing.T) {
	dir := tmpfs(t)
	_, err := Create(filepath.Join(dir, "log"), 4096, MapSync)
	require.ErrorIs(t, err, ErrUnsupported)
	require.NoFileExists(t, filepath.Join(dir, "log"))
	if detect().flush == nil {
		require.ErrorContains(t, err, "this processor")
		return
	}
	require.ErrorContains(t, err, "tmpfs on none cannot map with MAP_SYNC: mount ext4 or xfs")
	require.ErrorContains(t, err, "dax=always, or ask for fdatasync or auto")
}

// A file that is written is nobody else's; one that is looked at may be looked at by others, and is not changed by what is written to its views.
func TestOtherUsersAreKeptOut(t *testing.T) {
	f := create(t, t.TempDir(), 4096, None)
	_, err := Open(f.Name(), None)
	require.ErrorIs(t, err, ErrLocked)
	_, err = OpenView(f.Name())
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, f.Writer().Put(4090, nil, []byte("kept")))
	require.NoError(t, f.Close())

	for range 2 {
		v, err := OpenView(f.Name())
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, v.Close()) })
		require.EqualValues(t, 4096, v.Size())
		w, body := v.Writer(), []byte("lost")
		sum, err := w.Seal(4000, make([]byte, 24), body, 0)
		require.NoError(t, err)
		require.Equal(t, crc32.Checksum(body, castagnoli), sum)
		require.NoError(t, errors.Join(w.Put(4090, nil, body), w.Store8(0, 1), w.Flush(0, 8), w.Fence(), v.Check()))
		p := make([]byte, 10)
		n, err := v.ReadAt(p, 4090)
		require.Equal(t, io.EOF, err)
		require.Equal(t, "kept\x00\x00", string(p[:n]))
	}
	_, err = Open(f.Name(), None)
	require.ErrorIs(t, err, ErrLocked)
}

// If a mapping is refused, nothing that other threads map meanwhile is taken from them. The kernel removes what is at a fixed address before it asks the
// file system, and ext4 and XFS refuse MAP_SYNC without DAX.
func TestRefusedMappingsLeaveOthersAlone(t *testing.T) {
	const size = 3 << 20 // more than what is given to align it in: two that are mapped at once overlap
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Truncate(size))
	var over atomic.Bool
	taken := make(chan error, 1)
	go func() {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() {
			if fault, ok := recover().(error); ok {
				taken <- fault
			}
			close(taken)
		}()
		for !over.Load() {
			p, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
			if err != nil {
				taken <- err
				return
			}
			for range 100 {
				p[0]++
				p[size-1]++
			}
			if err := unix.Munmap(p); err != nil {
				taken <- err
				return
			}
		}
	}()
	for i := 0; i < 5000 && len(taken) == 0; i++ {
		p, err := mapped(int(f.Fd()), size, unix.MAP_SHARED_VALIDATE|unix.MAP_SYNC)
		if err == nil { // it has DAX
			require.NoError(t, unmap(p))
		}
	}
	over.Store(true)
	require.NoError(t, <-taken)
}

func TestNoSpaceIsAnErrorOfCreate(t *testing.T) {
	dir := tmpfs(t)
	_, err := Create(filepath.Join(dir, "log"), 2<<20, Msync)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, "reserve 2097152 bytes of tmpfs on none")
	require.NoFileExists(t, filepath.Join(dir, "log"))
	create(t, dir, 512<<10, Msync)
}

// TestHoleOnAFullFileSystem writes to a file whose blocks are not reserved, and for which there is no space.
func TestHoleOnAFullFileSystem(t *testing.T) {
	sparse := filepath.Join(tmpfs(t), "sparse")
	require.NoError(t, os.WriteFile(sparse, nil, 0o600))
	require.NoError(t, os.Truncate(sparse, 4<<20))
	for mode, cause := range map[Mode]any{None: new(*FaultError), Fdatasync: new(unix.Errno)} {
		f, err := Open(sparse, mode)
		require.NoError(t, err)
		err = f.Writer().Put(0, []byte("head"), make([]byte, 2<<20))
		require.ErrorIs(t, err, ErrPoisoned)
		require.ErrorAs(t, err, cause)
		require.Equal(t, err, f.Writer().Put(0, nil, []byte("small")), "no retry")
		require.NoError(t, f.Close())
	}
}

func TestTruncationFaults(t *testing.T) {
	writes := map[string]func(w Medium) error{
		"store":  func(w Medium) error { return w.Put(8192, nil, []byte("x")) },
		"store8": func(w Medium) error { return w.Store8(8192, 1) },
	}
	if detect().flush != nil {
		writes["flush"] = func(w Medium) error { return w.Flush(8192, 1) }
	}
	for name, write := range writes {
		t.Run(name, func(t *testing.T) {
			f := create(t, t.TempDir(), 16384, usual()[len(usual())-1]) // CLWB if available
			require.NoError(t, os.Truncate(f.file.Name(), 4096))
			w := f.Writer()
			require.NoError(t, w.Put(0, nil, []byte("still there")))
			err := write(w)
			require.ErrorIs(t, err, ErrPoisoned)
			var fault *FaultError
			require.ErrorAs(t, err, &fault)
			require.EqualValues(t, 8192, fault.Offset)
			require.Equal(t, err, w.Put(0, nil, nil), "the first failure is the answer from now on")
			require.Equal(t, err, f.Writer().Fence())

			p := make([]byte, 4096)
			_, err = f.ReadAt(p, 0)
			require.NoError(t, err)
			require.Equal(t, "still there", string(p[:11]))
			n, err := f.ReadAt(p[:1], 12288)
			require.ErrorAs(t, err, &fault)
			require.Zero(t, n)
			require.EqualValues(t, 12288, fault.Offset)
		})
	}
}

func TestTruncationIsNoticed(t *testing.T) {
	for _, mode := range usual() {
		t.Run(string(mode), func(t *testing.T) {
			f := create(t, t.TempDir(), 16384, mode)
			w := f.Writer()
			require.NoError(t, persist(w, 0, []byte("x")))
			require.NoError(t, os.Truncate(f.file.Name(), 8192))
			if (mode == Msync || mode == Fdatasync) && !f.Place().Volatile() {
				require.ErrorIs(t, persist(w, 0, []byte("y")), ErrTruncated)
			}
			require.ErrorIs(t, f.Check(), ErrTruncated)
			require.ErrorIs(t, w.Fence(), ErrPoisoned)
		})
	}
}

// TestWritesToATruncatedFileDoNotHideIt makes system calls lengthen the file again, up to its last byte.
func TestWritesToATruncatedFileDoNotHideIt(t *testing.T) {
	for name, dir := range places(t) {
		for _, last := range []int64{12287, 12288} { // that is written, from the end of the file
			t.Run(fmt.Sprintf("%s/%d", name, last), func(t *testing.T) {
				path := filepath.Join(dir, fmt.Sprint(last))
				f, err := Create(path, 12288, Fdatasync)
				require.NoError(t, err)
				defer f.Close()
				w := f.Writer()
				require.NoError(t, persist(w, 0, []byte("x")))
				require.NoError(t, os.Truncate(path, 100))
				err = w.Put(100, []byte("head"), make([]byte, last-104))
				if err == nil {
					err = w.Fence()
				}
				if f.Place().Volatile() && last < 12288 {
					require.NoError(t, err)
					require.NoError(t, persist(w, 12287, []byte("y")), "the last page is there again")
				} else {
					require.ErrorIs(t, err, ErrPoisoned)
				}
				require.Error(t, f.Check())
				require.ErrorIs(t, w.Fence(), ErrPoisoned)
			})
		}
	}
}

// Writers of different goroutines share no cache line.
func TestAWriterIsAloneOnItsLines(t *testing.T) {
	require.EqualValues(t, 2*line, unsafe.Sizeof(writer{}))
}

// A fault in memory that is not the file's is a bug of the caller.
func TestOtherPanicsGoOn(t *testing.T) {
	f, g := create(t, t.TempDir(), 4096, None), create(t, t.TempDir(), 16384, None)
	require.NoError(t, os.Truncate(g.Name(), 4096))
	require.Panics(t, func() { _ = f.Writer().Put(0, nil, g.data[8192:8193]) })
	require.NoError(t, f.Check())
}

// What does not lie in the file is refused, and nothing of it is read or written; the file stays as good as it was.
func TestRangesOutsideTheFile(t *testing.T) {
	for size := int64(4089); size <= 4096; size++ {
		f := create(t, t.TempDir(), size, None)
		w := f.Writer()
		_, sealed := w.Seal(4000, nil, make([]byte, 90), 7)
		for what, err := range map[string]error{
			"put": w.Put(size-1, nil, []byte("xy")), "put of nothing": w.Put(-1, nil, nil), "seal with its room": sealed,
			"store8": w.Store8(size&^7, 0), "store8 across words": w.Store8(4, 0),
			"flush": w.Flush(0, size+1), "flush of less than nothing": w.Flush(1, -1), "flush of too much": w.Flush(1<<62, 1<<62),
		} {
			require.Error(t, err, "%s: %d bytes", what, size)
			require.NotErrorIs(t, err, ErrPoisoned)
		}
		require.NoError(t, w.Store8(size&^7-8, 1), "the last word")
		p := make([]byte, 10)
		for off, want := range map[int64]int{-1: 0, size: 0, size - 6: 6} {
			n, err := f.ReadAt(p, off)
			require.Error(t, err)
			require.Equal(t, off >= 0, err == io.EOF)
			require.Equal(t, want, n)
		}
		require.NoError(t, f.Check())
	}
}

// addresses returns how much address space this process has taken, in bytes: the first figure of /proc/self/statm (proc(5)).
func addresses(t *testing.T) (n int64) {
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	_, err = fmt.Sscan(string(text), &n)
	require.NoError(t, err)
	return n * int64(os.Getpagesize())
}

// TestMappingsGiveBackTheirRoom opens a file a hundred times, each time with 2 MiB more of address space to align it in. What stays taken is less than
// two arenas of Go's heap.
func TestMappingsGiveBackTheirRoom(t *testing.T) {
	for _, size := range []int64{4097, hugePage} {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		before := addresses(t)
		for range 100 {
			f, err := Open(path, None)
			require.NoError(t, err)
			require.NoError(t, f.Close())
		}
		require.Less(t, addresses(t)-before, int64(128<<20), "after files of %d bytes", size)
	}
}

func TestWritersSideBySide(t *testing.T) {
	f := create(t, t.TempDir(), 64<<10, Msync)
	var wait sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wait.Go(func() {
			w := f.Writer()
			for range 20 {
				errs[i] = errors.Join(errs[i], persist(w, int64(i)*1000, bytes.Repeat([]byte{byte(i)}, 1000)))
				runtime.Gosched()
			}
		})
	}
	wait.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, 8*20, f.Fences())
	require.NoError(t, f.Writer().Fence())
	require.EqualValues(t, 8*20+1, f.Fences(), "asked once more")
	for i := range errs {
		p := make([]byte, 1000)
		_, err := f.ReadAt(p, int64(i)*1000)
		require.NoError(t, err)
		require.Equal(t, bytes.Repeat([]byte{byte(i)}, 1000), p)
	}
}

func TestPersistDoesNotAllocate(t *testing.T) {
	for _, mode := range usual() {
		f := create(t, t.TempDir(), 16384, mode)
		w, p, back := f.Writer(), make([]byte, 1000), make([]byte, 1000)
		require.Zero(t, testing.AllocsPerRun(20, func() {
			if persist(w, 100, p) != nil || w.Store8(8, 1) != nil || f.Check() != nil {
				t.Error("write")
			}
			if _, err := f.ReadAt(back, 100); err != nil {
				t.Error(err)
			}
		}), mode)
	}
}

func BenchmarkPersist(b *testing.B) {
	for _, mode := range usual() {
		b.Run("mode="+string(mode), func(b *testing.B) {
			f := create(b, b.TempDir(), 1<<20, mode)
			w, p := f.Writer(), make([]byte, 1024)
			b.ReportAllocs()
			b.SetBytes(int64(len(p)))
			for off := int64(0); b.Loop(); off = (off + 1024) % f.Size() {
				if err := persist(w, off, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// putsOfAllSizes puts and seals bytes around the sizes of a line and of what is summed at once, at unaligned places of a file of at least 2*mostPut
// bytes: they are there, and nothing else is changed but zeros in the room behind them.
func putsOfAllSizes(t *testing.T, f *File, what string) {
	p := make([]byte, mostPut)
	for i := range p {
		p[i] = byte(i * 7 / 3)
	}
	w, want := f.Writer(), make([]byte, 2*mostPut)
	stored := f.data[:len(want)]
	for _, n := range []int{0, 1, 40, 63, 64, 100, 128, atOnce - 1, atOnce, atOnce + 1, atOnce + 63, 2*atOnce + 69} {
		for _, head := range []int{0, 4, 24, 64, 130} {
			for _, off := range []int{0, 1, 40, 63, 64} {
				put, at := p[head:head+n], fmt.Sprintf("%s: %d behind %d at %d", what, n, head, off)
				p[0]++
				copy(want[off:], p[:head+n])
				require.NoError(t, w.Put(int64(off), p[:head], put))
				require.NoError(t, w.Fence())
				require.True(t, bytes.Equal(want, stored), at)

				sum := crc32.Checksum(put, castagnoli)
				sealed := bytes.Clone(p[:head])
				for i := range min(head, 4) {
					want[off+i] ^= byte(sum >> (8 * i))
				}
				got, err := w.Seal(int64(off), sealed, put, 0)
				require.NoError(t, err)
				require.NoError(t, w.Fence())
				require.Equal(t, sum, got, at)
				require.True(t, bytes.Equal(want, stored), at)
			}
		}
	}
	for _, n := range []int{0, 1, 39, 40, 41, 104, 200, 300} {
		for _, room := range []int{0, 1, 23, 24, 40, 63, 64, 200} {
			stored := f.data[:4096]
			for i := range stored {
				stored[i] = 0xff
			}
			_, err := w.Seal(64, make([]byte, 24), make([]byte, n), int64(room))
			require.NoError(t, err)
			end := 64 + 24 + n
			behind := min(end+room, (end+63)/64*64)
			require.Equal(t, bytes.Repeat([]byte{0xff}, 64), stored[:64])
			for i, b := range stored[end:behind] {
				require.Contains(t, []byte{0, 0xff}, b, "%s: %d bytes, room %d: byte %d", what, n, room, i)
			}
			require.Equal(t, bytes.Repeat([]byte{0xff}, 4096-behind), stored[behind:], "%s: %d bytes, room %d", what, n, room)
		}
	}
}

const mostPut = 2*atOnce + 200

func TestPutsOfAllSizes(t *testing.T) {
	for _, mode := range usual() {
		putsOfAllSizes(t, create(t, t.TempDir(), 2*mostPut, mode), string(mode))
	}
	putsOfAllSizes(t, create(t, t.TempDir(), largerThanCaches, None), "a large file")
}

// cache is a processor that keeps what is stored until it is told to write it back and has waited for that.
type cache struct {
	mapping, memory []byte
	written         map[int][]byte // lines that are on their way, by their offset
	again           int            // lines that were written back twice without a fence between
}

// writeBack starts to write back the lines of a part of the mapping, as they are now.
func (c *cache) writeBack(p []byte) {
	if len(p) == 0 {
		return
	}
	from := int(uintptr(unsafe.Pointer(unsafe.SliceData(p))) - uintptr(unsafe.Pointer(unsafe.SliceData(c.mapping))))
	for at := from / line * line; at < from+len(p); at += line {
		if c.written[at] != nil {
			c.again++
		}
		c.written[at] = bytes.Clone(c.mapping[at:][:line])
	}
}

func (c *cache) processor() processor {
	return processor{
		flush: c.writeBack,
		aside: func(to, from []byte) {
			copy(to, from)
			c.writeBack(to)
		},
		line: func(to, head, p []byte, from, n int, sum uint32) {
			clear(to)
			copy(to[copy(to, head):], p[from:from+n])
			binary.LittleEndian.PutUint32(to, binary.LittleEndian.Uint32(to)^sum)
			c.writeBack(to)
		},
		store8: func(p *byte, v uint64) { binary.LittleEndian.PutUint64(unsafe.Slice(p, 8), v) },
		fence: func() {
			for at, p := range c.written {
				copy(c.memory[at:], p)
			}
			clear(c.written)
		},
	}
}

// TestAFenceLeavesNothingInTheCache tests what no crash of a process shows: each line that is stored to is written back, once and in its final state,
// and waited for.
func TestAFenceLeavesNothingInTheCache(t *testing.T) {
	const size = 16 << 10
	f := create(t, t.TempDir(), size, None)
	c := &cache{mapping: f.data, memory: make([]byte, size), written: map[int][]byte{}}
	f.cpu = c.processor()
	w, p := f.Writer(), make([]byte, size)
	fenced := func(at string) {
		require.NoError(t, w.Fence())
		require.True(t, bytes.Equal(f.data, c.memory), at)
		require.Zero(t, c.again, at)
	}
	for _, n := range []int{0, 1, 40, 63, 64, 100, 128, atOnce - 1, atOnce + 63, 2*atOnce + 69} {
		for _, head := range []int{0, 4, 24, 64, 130} {
			for _, off := range []int64{0, 1, 40, 63, 64} {
				at := fmt.Sprintf("%d behind %d at %d", n, head, off)
				for i := range p {
					p[i]++
				}
				require.NoError(t, w.Put(off, p[:head], p[head:head+n]))
				fenced("put " + at)
				for _, room := range []int64{0, 30, 200} {
					p[head+n/2]++
					_, err := w.Seal(off, p[:head], p[head:head+n], room)
					require.NoError(t, err)
					fenced(fmt.Sprintf("seal %s, %d behind them", at, room))
				}
			}
		}
	}
	require.NoError(t, w.Store8(72, 1))
	require.NoError(t, w.Store8(128, 2))
	require.NoError(t, w.Flush(72, 60))
	fenced("words")
}

// TestFilesInMemoryHaveHugePages makes files one after another, so that the kernel's own places for them are not all aligned.
func TestFilesInMemoryHaveHugePages(t *testing.T) {
	if err := collapse(t); err != nil {
		t.Logf("this kernel has none to give: %v", err)
		return
	}
	dir := t.TempDir()
	servertest.Require(t, "mount", unix.Mount("none", dir, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	for i, size := range []int64{hugePage + 4096, 3 * hugePage, hugePage - 1, 2*hugePage + 100} {
		path := filepath.Join(dir, strconv.Itoa(i))
		f, err := Create(path, size, None)
		require.NoError(t, err)
		defer f.Close()
		require.Equal(t, size/hugePage*hugePage, huge(t, path))
		zeros := make([]byte, size)
		got := bytes.Repeat([]byte{1}, int(size))
		_, err = f.ReadAt(got, 0)
		require.NoError(t, err)
		require.True(t, bytes.Equal(zeros, got))
		require.NoError(t, f.Close())
		f, err = Open(path, None)
		require.NoError(t, err)
		defer f.Close()
		require.Equal(t, size/hugePage*hugePage, huge(t, path), "opened again")
	}
}

// collapse tries whether the kernel can collapse pages into a huge page.
func collapse(t *testing.T) error {
	p, err := unix.Mmap(-1, 0, 2*hugePage, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Munmap(p)) }()
	for i := 0; i < len(p); i += 4096 {
		p[i] = 1
	}
	return unix.Madvise(p, unix.MADV_COLLAPSE)
}

// huge returns how many bytes of a file are mapped by huge pages.
func huge(t *testing.T, path string) (n int64) {
	maps, err := os.ReadFile("/proc/self/smaps")
	require.NoError(t, err)
	_, of, ok := strings.Cut(string(maps), path+"\n")
	require.True(t, ok)
	_, of, ok = strings.Cut(of, "ShmemPmdMapped:")
	require.True(t, ok)
	_, err = fmt.Sscan(of, &n)
	require.NoError(t, err)
	return n << 10
}
