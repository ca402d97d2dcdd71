package pmem

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
				require.Equal(t, name == "tmpfs", f.Place().Volatile(), f.Place())
				w := f.Writer()
				require.NoError(t, persist(w, 4090, []byte("over the edge of a page")))
				require.NoError(t, persist(w, 99_998, []byte("end")))
				require.NoError(t, w.Store8(8, 0x0102030405060708))
				require.NoError(t, w.Flush(8, 8))
				require.NoError(t, w.Fence())
				require.NoError(t, f.Check())
				timed, is := w.(Timed)
				require.Equal(t, name == "ordinary" && (mode == Msync || mode == Fdatasync), is)
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
				copy(want[99_998:], "end")
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
	_, err := CreateIn(t.Context(), rootOf(t, t.TempDir()), "log", Form{Size: 1, Mode: Msync, Prealloc: Extending})
	require.ErrorContains(t, err, "want fdatasync")
}

func TestAutoTakesTheStrongest(t *testing.T) {
	for name, dir := range places(t) {
		t.Run(name, func(t *testing.T) {
			f := create(t, dir, 4096, Auto)
			require.Contains(t, []Mode{MapSync, Fdatasync}, f.Mode())
			require.Equal(t, f.Mode() == MapSync, f.Instruction(line) != "")
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

func TestOtherUsersAreKeptOut(t *testing.T) {
	f := create(t, t.TempDir(), 4096, None)
	_, err := Open(f.file.Name(), None)
	require.ErrorIs(t, err, ErrLocked)
	require.NoError(t, f.Close())
	again, err := Open(f.file.Name(), None)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	_, err := Open(path, None)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Create(path, 0, None)
	require.ErrorContains(t, err, "want at least 1")
	_, err = Create(path, 4096, "fsync")
	require.ErrorContains(t, err, `mode "fsync": want one of ["auto" "map_sync" "msync"`)
	require.NoFileExists(t, path)
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	_, err = Open(path, None)
	require.ErrorContains(t, err, "not empty")
	_, err = Create(path, 4096, None)
	require.ErrorIs(t, err, os.ErrExist)
	require.FileExists(t, path)
}

func TestNoSpaceIsAnErrorOfCreate(t *testing.T) {
	dir := tmpfs(t)
	_, err := Create(filepath.Join(dir, "log"), 2<<20, Msync)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, "reserve 2097152 bytes of tmpfs on none")
	require.NoFileExists(t, filepath.Join(dir, "log"))
	create(t, dir, 512<<10, Msync)
}

// TestCreateIsGivenUp ends the making of a file before each of its parts, and leaves nothing there.
func TestCreateIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close()
	for after, says := range []string{"given up after 0 bytes", "given up after 67108864 bytes", "given up after 0 of", "given up after 65536 of"} {
		_, err := CreateIn(&countdown{context.Background(), after}, root, "log", Form{Size: atATime + 1, Mode: None})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, says)
		require.NoFileExists(t, filepath.Join(dir, "log"))
	}
}

// countdown is a context that ends after a number of queries.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left == 0 {
		return context.Canceled
	}
	c.left--
	return nil
}

// TestHoleOnAFullFileSystem writes to a file whose blocks are not reserved.
func TestHoleOnAFullFileSystem(t *testing.T) {
	dir := tmpfs(t)
	sparse := filepath.Join(dir, "sparse")
	require.NoError(t, os.WriteFile(sparse, nil, 0o600))
	require.NoError(t, os.Truncate(sparse, 2<<20))
	f, err := Open(sparse, None)
	require.NoError(t, err)
	err = f.Writer().Put(0, nil, make([]byte, 2<<20))
	require.ErrorIs(t, err, ErrPoisoned)
	require.ErrorAs(t, err, new(*FaultError))
	require.NoError(t, f.Close())
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
			_, err = f.ReadAt(p[:1], 12288)
			require.ErrorAs(t, err, &fault)
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
				if name == "tmpfs" && last < 12288 {
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

// TestWhatASystemCallRefusesPoisons writes to a hole for which there is no space.
func TestWhatASystemCallRefusesPoisons(t *testing.T) {
	sparse := filepath.Join(tmpfs(t), "sparse")
	require.NoError(t, os.WriteFile(sparse, nil, 0o600))
	require.NoError(t, os.Truncate(sparse, 4<<20))
	f, err := Open(sparse, Fdatasync)
	require.NoError(t, err)
	defer f.Close()
	err = f.Writer().Put(0, []byte("head"), make([]byte, 2<<20))
	require.ErrorIs(t, err, ErrPoisoned)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.Equal(t, err, f.Writer().Put(0, nil, []byte("small")), "no retry")
}

// TestOtherPanicsGoOn: only faults in the mapping are errors.
func TestOtherPanicsGoOn(t *testing.T) {
	f := create(t, t.TempDir(), 4096, None)
	g := create(t, t.TempDir(), 16384, None)
	require.NoError(t, os.Truncate(g.file.Name(), 4096))
	require.Panics(t, func() {
		var err error
		defer f.storing(false, &err)
		panic("a bug")
	})
	require.Panics(t, func() { _ = f.Writer().Put(0, nil, g.data[8192:8193]) }, "the fault is in the other mapping")
	require.NoError(t, f.Check())
}

// faultAt is what the runtime panics with when an access to an address faults.
type faultAt uintptr

func (a faultAt) Addr() uintptr { return uintptr(a) }

// A fault between the mapping's first byte and its last is an error. Any other, or one without a mapping, is a bug and is passed on.
func TestFaultsAreOfTheMappingOrGoOn(t *testing.T) {
	f := create(t, t.TempDir(), 8192, None)
	begin := uintptr(unsafe.Pointer(unsafe.SliceData(f.data)))
	for _, off := range []uintptr{0, 1, 4096, 8191} {
		require.Equal(t, &FaultError{Offset: int64(off)}, f.fault(faultAt(begin+off)))
	}
	for _, at := range []faultAt{0, faultAt(begin - 1), faultAt(begin + 8192), faultAt(begin + 8193)} {
		require.PanicsWithValue(t, at, func() { _ = f.fault(at) })
	}
	require.PanicsWithValue(t, faultAt(0), func() { _ = new(File).fault(faultAt(0)) })
	require.NoError(t, f.fault(nil))
}

func TestFirstFailureOfWriteBackPoisons(t *testing.T) {
	for _, cause := range []error{unix.EIO, unix.ENOSPC} {
		f := create(t, t.TempDir(), 16384, Msync)
		write, calls := f.sync, 0
		f.sync = func(lo, hi int64) error {
			if calls++; calls == 2 {
				return cause
			}
			return write(lo, hi)
		}
		w, other := f.Writer(), f.Writer()
		require.NoError(t, persist(w, 0, []byte("good")))
		require.NoError(t, other.Put(64, nil, []byte("lost too")))
		require.NoError(t, other.Flush(64, 8))
		err := persist(w, 5000, []byte("bad"))
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, ErrPoisoned)
		require.ErrorContains(t, err, "msync of bytes 5000 to 5003")
		require.Equal(t, err, w.Fence(), "no retry, which would succeed")
		require.Equal(t, err, other.Fence())
		require.Equal(t, err, f.Check())
		require.Equal(t, 2, calls)
	}
}

func TestFenceSyncsWhatItsWriterFlushed(t *testing.T) {
	f := create(t, t.TempDir(), 16384, Msync)
	var synced [][2]int64
	f.sync = func(lo, hi int64) error {
		synced = append(synced, [2]int64{lo, hi})
		return nil
	}
	w, other := f.Writer(), f.Writer()
	require.NoError(t, w.Flush(100, 10))
	require.NoError(t, w.Flush(50, 10))
	require.NoError(t, other.Flush(0, 1))
	require.NoError(t, w.Fence())
	require.NoError(t, w.Fence())
	require.NoError(t, other.Fence())
	require.Equal(t, [][2]int64{{50, 110}, {0, 1}}, synced)
}

// What is flushed between two fences is synced in whatever order it came: upwards, downwards, within what is there already.
func TestAFenceSyncsWhatCameInAnyOrder(t *testing.T) {
	ways := map[string]func(w Medium, off, n int64) error{
		"flush": func(w Medium, off, n int64) error { return w.Flush(off, n) },
		"put":   func(w Medium, off, n int64) error { return w.Put(off, nil, make([]byte, n)) },
		"put with a head": func(w Medium, off, n int64) error {
			return w.Put(off, make([]byte, n/2), make([]byte, n-n/2))
		},
		"seal": func(w Medium, off, n int64) error {
			_, err := w.Seal(off, make([]byte, 8), make([]byte, n-8), 0)
			return err
		},
	}
	orders := [][][2]int64{
		{{100, 10}, {200, 10}, {300, 10}},
		{{300, 10}, {200, 10}, {100, 10}},
		{{200, 10}, {300, 10}, {100, 10}},
		{{200, 10}, {100, 210}},
		{{100, 210}, {200, 10}},
		{{100, 10}, {110, 200}},
	}
	for _, mode := range []Mode{Msync, Fdatasync} {
		for name, write := range ways {
			for _, order := range orders {
				f := create(t, t.TempDir(), 16384, mode)
				f.returns = false
				var synced [][2]int64
				f.sync = func(lo, hi int64) error {
					synced = append(synced, [2]int64{lo, hi})
					return nil
				}
				w, want := f.Writer(), [2]int64{math.MaxInt64, 0}
				for range 2 { // the second time, from an empty range again
					for _, piece := range order {
						require.NoError(t, write(w, piece[0], piece[1]))
						want = [2]int64{min(want[0], piece[0]), max(want[1], piece[0]+piece[1])}
					}
					require.NoError(t, w.Fence())
				}
				require.Equal(t, [][2]int64{want, want}, synced, "%s by %s of %v", mode, name, order)
				require.NoError(t, f.Close())
			}
		}
	}
}

// A fence syncs nothing if nothing was written, wherever that was.
func TestAFenceSyncsNothingOfNothing(t *testing.T) {
	for _, mode := range []Mode{Msync, Fdatasync} {
		f := create(t, t.TempDir(), 16384, mode)
		f.returns = false
		var synced [][2]int64
		f.sync = func(lo, hi int64) error {
			synced = append(synced, [2]int64{lo, hi})
			return nil
		}
		w := f.Writer()
		nothing := func() {
			require.NoError(t, w.Flush(0, 0))
			require.NoError(t, w.Put(8000, nil, nil))
			_, err := w.Seal(9000, nil, nil, 64)
			require.NoError(t, err)
		}
		nothing()
		require.NoError(t, w.Fence())
		require.Empty(t, synced)
		require.NoError(t, w.Flush(100, 10))
		nothing()
		require.NoError(t, w.Fence())
		require.Equal(t, [][2]int64{{100, 110}}, synced)
	}
}

// The bytes fetched in advance are as many as those written last and a line more, up to 4 KiB, and only if writes follow each other.
func TestWhatIsForeseen(t *testing.T) {
	const size = 1 << 16
	for name, c := range map[string]struct {
		mode           Mode
		before, lo, hi int64
		want           int64
	}{
		"the first":               {Msync, 0, 0, 100, 164},
		"the next":                {Msync, 1000, 1000, 1100, 164},
		"behind padding":          {Msync, 1000, 1255, 1300, 109},
		"too far behind":          {Msync, 1000, 1256, 1300, 0},
		"before the last":         {Msync, 1000, 999, 1300, 0},
		"much":                    {Msync, 1000, 1000, 1000 + 4096 - 64, 4096},
		"more":                    {Msync, 1000, 1000, 20000, 4096},
		"up to the end":           {Msync, size - 200, size - 200, size - 100, 100},
		"at the end":              {Msync, size - 200, size - 200, size, 0},
		"where the kernel writes": {Fdatasync, 1000, 1000, 1100, 0},
		"where nothing is synced": {None, 1000, 1000, 1100, 0},
		"by instructions":         {CLWB, 1000, 1000, 1100, 0},
	} {
		w := &writer{file: &File{mode: c.mode, data: make([]byte, size)}, before: c.before, lo: c.lo, hi: c.hi}
		next := w.foreseen()
		require.EqualValues(t, c.want, len(next), name)
		if c.want > 0 {
			require.EqualValues(t, size-c.hi, cap(next), "%s: right behind", name)
		}
	}
}

// Writers of different goroutines share no cache line.
func TestAWriterIsAloneOnItsLines(t *testing.T) {
	require.EqualValues(t, 2*line, unsafe.Sizeof(writer{}))
}

func TestRangesOutsideTheFile(t *testing.T) {
	f := create(t, t.TempDir(), 4096, None)
	w := f.Writer()
	for _, err := range []error{
		w.Put(4095, nil, []byte("xy")), w.Put(-1, nil, nil), w.Store8(4096, 0), w.Store8(4, 0), w.Flush(0, 4097), w.Flush(1, -1), w.Flush(1<<62, 1<<62),
	} {
		require.Error(t, err)
		require.NotErrorIs(t, err, ErrPoisoned)
	}
	_, err := f.ReadAt(nil, -1)
	require.Error(t, err)
	_, err = f.ReadAt(nil, 4096)
	require.ErrorIs(t, err, io.EOF)
	n, err := f.ReadAt(make([]byte, 10), 4090)
	require.Equal(t, 6, n)
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, f.Check())
}

// addresses returns how much address space this process has taken, in bytes: the first figure of /proc/self/statm (proc(5)).
func addresses(t *testing.T) (n int64) {
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	_, err = fmt.Sscan(string(text), &n)
	require.NoError(t, err)
	return n * int64(os.Getpagesize())
}

// TestMappingsGiveBackTheirRoom maps a file a thousand times, each time with 2 MiB more of address space to align it in. What stays taken is less
// than two arenas of Go's heap. Such an address may be another thread's by then, so that one or the other mapping is elsewhere.
func TestMappingsGiveBackTheirRoom(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	for _, size := range []int64{4096, 4097, 5000, hugePage} {
		require.NoError(t, file.Truncate(size))
		before, aligned := addresses(t), 0
		for range 1000 {
			p, err := mapped(int(file.Fd()), size, unix.MAP_SHARED)
			require.NoError(t, err)
			require.Len(t, p, int(size))
			if uintptr(unsafe.Pointer(&p[0]))%hugePage == 0 {
				aligned++
			}
			require.Zero(t, p[size-1], "its last page is there")
			require.NoError(t, unmap(p))
		}
		require.Greater(t, aligned, 990)
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

// TestPutsOfAllSizes puts and seals bytes around the sizes of a line and of what is summed at once, at unaligned places.
func TestPutsOfAllSizes(t *testing.T) {
	const most = 2*atOnce + 200
	p := make([]byte, most)
	for i := range p {
		p[i] = byte(i * 7 / 3)
	}
	for _, mode := range usual() {
		f := create(t, t.TempDir(), 2*most, mode)
		w, want := f.Writer(), make([]byte, 2*most)
		for _, n := range []int{0, 1, 40, 63, 64, 100, 128, atOnce - 1, atOnce, atOnce + 1, atOnce + 63, 2*atOnce + 69} {
			for _, head := range []int{0, 4, 24, 64, 130} {
				for _, off := range []int{0, 1, 40, 63, 64} {
					put, at := p[head:head+n], fmt.Sprintf("%s: %d behind %d at %d", mode, n, head, off)
					p[0]++
					copy(want[off:], p[:head+n])
					require.NoError(t, w.Put(int64(off), p[:head], put))
					require.NoError(t, w.Fence())
					require.True(t, bytes.Equal(want, f.data), at)

					sum := crc32.Checksum(put, crc32.MakeTable(crc32.Castagnoli))
					sealed := bytes.Clone(p[:head])
					for i := range min(head, 4) {
						want[off+i] ^= byte(sum >> (8 * i))
					}
					got, err := w.Seal(int64(off), sealed, put, 0)
					require.NoError(t, err)
					require.NoError(t, w.Fence())
					require.Equal(t, sum, got, at)
					require.True(t, bytes.Equal(want, f.data), at)
				}
			}
		}
	}
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

// TestSealWritesNothingBehindItsRoom has bytes behind the pieces that are not zero.
func TestSealWritesNothingBehindItsRoom(t *testing.T) {
	for _, mode := range usual() {
		f := create(t, t.TempDir(), 4096, mode)
		w := f.Writer()
		for _, n := range []int{0, 1, 39, 40, 41, 104, 200, 300} {
			for _, room := range []int{0, 1, 23, 24, 40, 63, 64, 200} {
				for i := range f.data {
					f.data[i] = 0xff
				}
				_, err := w.Seal(64, make([]byte, 24), make([]byte, n), int64(room))
				require.NoError(t, err)
				end := 64 + 24 + n
				behind := min(end+room, (end+63)/64*64)
				require.Equal(t, bytes.Repeat([]byte{0xff}, 64), f.data[:64])
				for i, b := range f.data[end:behind] {
					require.Contains(t, []byte{0, 0xff}, b, "%s: %d bytes, room %d: byte %d", mode, n, room, i)
				}
				require.Equal(t, bytes.Repeat([]byte{0xff}, 4096-behind), f.data[behind:], "%s: %d bytes, room %d", mode, n, room)
			}
		}
		_, err := w.Seal(4000, nil, make([]byte, 90), 7)
		require.Error(t, err, "the room does not lie in the file")
	}
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
