package pmem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var errFault = errors.New("the kernel refuses")

// faulty is a kernel that records its calls, and whose call number at fails, from 1.
type faulty struct {
	linux
	at     int
	calls  []string
	failed string // the call that did
}

func (k *faulty) call(format string, args ...any) error {
	k.calls = append(k.calls, fmt.Sprintf(format, args...))
	if len(k.calls) != k.at {
		return nil
	}
	k.failed = k.calls[k.at-1]
	return errFault
}

func (k *faulty) flock(fd int) error {
	return orElse(k.call("lock"), func() error { return k.linux.flock(fd) })
}

func (k *faulty) fstat(fd int, stat *unix.Stat_t) error {
	return orElse(k.call("stat"), func() error { return k.linux.fstat(fd, stat) })
}

func (k *faulty) fstatfs(fd int, stat *unix.Statfs_t) error {
	return orElse(k.call("statfs"), func() error { return k.linux.fstatfs(fd, stat) })
}

func (k *faulty) readFile(path string) ([]byte, error) {
	if err := k.call("read %s", filepath.Dir(path)); err != nil {
		return nil, err
	}
	return k.linux.readFile(path)
}

func (k *faulty) truncate(f *os.File, size int64) error {
	return orElse(k.call("truncate to %d", size), func() error { return k.linux.truncate(f, size) })
}

func (k *faulty) allocate(fd int, off, n int64) error {
	return orElse(k.call("allocate %d at %d", n, off), func() error { return k.linux.allocate(fd, off, n) })
}

func (k *faulty) writeAt(f *os.File, p []byte, off int64) (int, error) {
	if err := k.call("write %d at %d", len(p), off); err != nil {
		return 0, err
	}
	return k.linux.writeAt(f, p, off)
}

func (k *faulty) sync(f *os.File) error {
	return orElse(k.call("sync"), func() error { return k.linux.sync(f) })
}

func (k *faulty) mapped(fd int, size int64, flags int) ([]byte, error) {
	if err := k.call("map %d", size); err != nil {
		return nil, err
	}
	return k.linux.mapped(fd, size, flags)
}

func (k *faulty) unmap(p []byte) error { // the mapping goes whatever the answer
	return errors.Join(k.call("unmap"), k.linux.unmap(p))
}

func (k *faulty) syncDirectory(root *os.Root, name string) error {
	return orElse(k.call("sync directory %s", name), func() error { return k.linux.syncDirectory(root, name) })
}

func orElse(err error, otherwise func() error) error {
	if err != nil {
		return err
	}
	return otherwise()
}

// held returns what of this process still refers to a path: descriptors and mappings.
func held(t *testing.T, path string) (all []string) {
	fds, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil && strings.HasPrefix(to, path) {
			all = append(all, "descriptor of "+to)
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, path) {
			all = append(all, line)
		}
	}
	return all
}

func rootOf(t *testing.T, dir string) *os.Root {
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return root
}

// Each call that fails makes Create fail, and leaves nothing behind: no file, no descriptor, no mapping.
func TestWhatTheKernelRefusesFailsCreate(t *testing.T) {
	for _, mode := range []Mode{Msync, Fdatasync, None, Auto} {
		dir := t.TempDir()
		root, path := rootOf(t, dir), filepath.Join(dir, "log")
		at := 1
		for ; ; at++ {
			k := &faulty{at: at}
			f, err := createIn(context.Background(), k, root, "log", Form{Size: 300 << 10, Mode: mode})
			if k.failed == "" {
				require.NoError(t, err)
				k.at = 0
				require.NoError(t, f.Close())
				break
			}
			require.ErrorIs(t, err, errFault, "%s: %s", mode, k.failed)
			require.ErrorContains(t, err, "create "+path)
			require.Equal(t, k.failed == "sync", errors.Is(err, ErrPoisoned), "the zeros, and what is beneath the file system does not take them: %s", k.failed)
			require.Nil(t, f)
			require.NoFileExists(t, path, "%s: %s", mode, k.failed)
			require.Empty(t, held(t, path), "%s: %s", mode, k.failed)
		}
		require.Greater(t, at, 10, "calls")
	}
}

// Each call that fails makes Open fail, which leaves the file as it was and releases it.
func TestWhatTheKernelRefusesFailsOpen(t *testing.T) {
	dir := t.TempDir()
	root, path := rootOf(t, dir), filepath.Join(dir, "log")
	f, err := Create(path, 100_001, None)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	at := 1
	for ; ; at++ {
		k := &faulty{at: at}
		f, err := openIn(k, root, "log", Msync)
		if k.failed == "" {
			require.NoError(t, err)
			k.at = 0
			require.NoError(t, f.Close())
			break
		}
		require.ErrorIs(t, err, errFault, k.failed)
		require.ErrorContains(t, err, "open "+path)
		require.Nil(t, f)
		require.Empty(t, held(t, path), k.failed)
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.EqualValues(t, 100_001, info.Size())
	}
	require.Greater(t, at, 5, "calls")
}

// An unmapping error is reported, and the file is closed nevertheless.
func TestCloseTellsWhatTheKernelRefuses(t *testing.T) {
	dir := t.TempDir()
	k := &faulty{}
	f, err := createIn(context.Background(), k, rootOf(t, dir), "log", Form{Size: 4096, Mode: None})
	require.NoError(t, err)
	k.at = len(k.calls) + 1
	require.ErrorIs(t, f.Close(), errFault)
	require.Equal(t, "unmap", k.failed)
	require.Empty(t, held(t, filepath.Join(dir, "log")))
	require.ErrorIs(t, f.Close(), os.ErrClosed)
}

// planned is a kernel with a file system of any given kind. It writes nothing.
type planned struct {
	faulty
	fileSystem string
	refuse     error // of mapping
	advised    []string
}

func (k *planned) writeAt(_ *os.File, p []byte, off int64) (int, error) {
	if slices.Max(p) > 0 {
		return 0, errors.New("a new file has zeros only")
	}
	return len(p), k.call("write %d at %d", len(p), off)
}

func (k *planned) sync(*os.File) error { return k.call("sync") }

func (k *planned) allocate(_ int, off, n int64) error { return k.call("allocate %d at %d", n, off) }

func (k *planned) mapped(fd int, size int64, flags int) ([]byte, error) {
	how := map[int]string{unix.MAP_SHARED: "shared", unix.MAP_SHARED_VALIDATE | unix.MAP_SYNC: "synchronous"}[flags]
	if err := k.call("map %d %s", size, how); err != nil {
		return nil, err
	}
	if how == "synchronous" && k.refuse != nil {
		return nil, k.refuse
	}
	return k.linux.mapped(fd, size, unix.MAP_SHARED)
}

func (k *planned) advise(p []byte, advice int) error {
	k.advised = append(k.advised, fmt.Sprintf("%d of %d", advice, len(p)))
	return errFault // it only costs time
}

func (k *planned) readFile(path string) ([]byte, error) {
	if strings.HasSuffix(path, "mountinfo") {
		return fmt.Appendf(nil, "22 1 8:1 / / rw - %s /dev/x rw\n", k.fileSystem), nil
	}
	return []byte("mnt_id:\t22\n"), nil
}

func made(t *testing.T, k *planned, size int64, mode Mode) []string {
	f, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: size, Mode: mode})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return slices.DeleteFunc(k.calls, func(call string) bool { return call == "stat" || call == "statfs" })
}

// The blocks and the zeros of a new file are on the disk before its name is. They are written in pieces, between which the creation can be abandoned.
func TestANewFileIsDurableBeforeItsName(t *testing.T) {
	const piece, size = 64 << 10, 65<<20 + 5
	var want []string
	want = append(want, "lock", fmt.Sprintf("map %d shared", size), fmt.Sprintf("truncate to %d", size),
		fmt.Sprintf("allocate %d at 0", 64<<20), fmt.Sprintf("allocate %d at %d", size-64<<20, 64<<20))
	for off := 0; off < size; {
		n := min(piece, size-off)
		want = append(want, fmt.Sprintf("write %d at %d", n, off))
		if off += n; off%(16<<20) == 0 {
			want = append(want, "sync")
		}
	}
	want = append(want, "sync", "sync directory .", "unmap")
	k := &planned{fileSystem: "ext4"}
	require.Equal(t, want, made(t, k, size, Msync))
	require.Empty(t, k.advised, "pages that are written back are not entered before")
}

// What is stored by system calls is written in larger pieces; a smaller file in one piece.
func TestANewFileIsWrittenInPieces(t *testing.T) {
	k := &planned{fileSystem: "ext4"}
	require.Equal(t, []string{
		"lock", "map 262145 shared", "truncate to 262145", "allocate 262145 at 0",
		"write 262144 at 0", "write 1 at 262144", "sync", "sync directory .", "unmap",
	}, made(t, k, 256<<10+1, Fdatasync))
	k = &planned{fileSystem: "ext4"}
	require.Equal(t, []string{
		"lock", "map 1 shared", "truncate to 1", "allocate 1 at 0", "write 1 at 0", "sync", "sync directory .", "unmap",
	}, made(t, k, 1, None), "the smallest")
	k = &planned{fileSystem: "ext4"}
	calls := made(t, k, 64<<20, Msync)
	require.Equal(t, []string{"write 65536 at 67043328", "sync", "sync", "sync directory .", "unmap"}, calls[len(calls)-5:])
	require.Equal(t, []string{"allocate 67108864 at 0", "write 65536 at 0"}, calls[3:5])
}

// In memory, huge pages are requested where they fit, and all pages are mapped at once.
func TestANewFileInMemoryIsEntered(t *testing.T) {
	const size = 64<<20 + 2*hugePage + 100
	k := &planned{fileSystem: "tmpfs"}
	calls := made(t, k, size, None)
	var bytes []string
	for off := 0; off+hugePage <= size; off += hugePage {
		bytes = append(bytes, fmt.Sprintf("write 1 at %d", off))
	}
	require.Equal(t, bytes, slices.DeleteFunc(slices.Clone(calls), func(c string) bool { return !strings.HasPrefix(c, "write 1 at") }))
	require.Less(t, slices.Index(calls, "allocate 67108864 at 0"), slices.Index(calls, "write 1 at 67108864"))
	require.Equal(t, []string{
		fmt.Sprintf("%d of %d", unix.MADV_COLLAPSE, 64<<20), fmt.Sprintf("%d of %d", unix.MADV_COLLAPSE, 2*hugePage),
		fmt.Sprintf("%d of %d", unix.MADV_POPULATE_WRITE, 64<<20), fmt.Sprintf("%d of %d", unix.MADV_POPULATE_WRITE, 2*hugePage+100),
	}, k.advised)

	k = &planned{fileSystem: "tmpfs"}
	made(t, k, hugePage-1, None)
	require.Equal(t, []string{fmt.Sprintf("%d of %d", unix.MADV_POPULATE_WRITE, hugePage-1)}, k.advised)
	if detect().flush != nil {
		k = &planned{fileSystem: "ext4"}
		made(t, k, 4096, CLWB)
		require.Len(t, k.advised, 1, "instructions flush: nothing is written back behind them")
	}
}

// If a mapping cannot be synchronous, map_sync returns an error that says so, and auto uses fdatasync; any other error is returned by both.
func TestAutoFallsBackOnlyWhereSyncIsNotToBeHad(t *testing.T) {
	if detect().flush == nil {
		return
	}
	for _, refuse := range []error{unix.EOPNOTSUPP, unix.EINVAL} {
		k := &planned{fileSystem: "ext4", refuse: refuse}
		_, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 4096, Mode: MapSync})
		require.ErrorIs(t, err, ErrUnsupported)
		k = &planned{fileSystem: "ext4", refuse: refuse}
		f, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 4096, Mode: Auto})
		require.NoError(t, err)
		require.Equal(t, Fdatasync, f.Mode())
		require.NoError(t, f.Close())
	}
	for _, mode := range []Mode{Auto, MapSync} {
		k := &planned{fileSystem: "ext4", refuse: unix.ENOMEM}
		_, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 4096, Mode: mode})
		require.ErrorIs(t, err, unix.ENOMEM)
		require.NotErrorIs(t, err, ErrUnsupported)
		require.ErrorContains(t, err, "map 4096 bytes of ext4")

		k = &planned{fileSystem: "ext4"}
		f, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 4096, Mode: mode})
		require.NoError(t, err)
		require.Equal(t, MapSync, f.Mode())
		require.NotEmpty(t, f.Instruction(1))
		require.NoError(t, f.Close())
	}
	for _, mode := range []Mode{Msync, None} { // an EINVAL that has nothing to do with the flag
		k := &planned{fileSystem: "ext4"}
		k.at = 4
		_, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 4096, Mode: mode})
		require.ErrorIs(t, err, errFault)
		require.NotErrorIs(t, err, ErrUnsupported)
	}
}

func TestANewFileIsItsOwners(t *testing.T) {
	f := create(t, t.TempDir(), 1, None)
	info, err := os.Stat(f.Name())
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	require.EqualValues(t, 1, info.Size(), "the smallest there is")
}

func TestBytesFree(t *testing.T) {
	disk := unix.Statfs_t{Bsize: 4096, Blocks: 100, Bfree: 50, Bavail: 40}
	require.EqualValues(t, 40*4096, bytesFree(&disk), "without what is kept for the superuser and for the file system itself")
	require.EqualValues(t, math.MaxInt64, bytesFree(&unix.Statfs_t{Bsize: 4096}), "a file system without a bound")
	require.Zero(t, bytesFree(&unix.Statfs_t{Bsize: 4096, Blocks: 100}), "full")
	most := uint64(math.MaxInt64 / 4096)
	require.EqualValues(t, int64(most)*4096, bytesFree(&unix.Statfs_t{Bsize: 4096, Blocks: 1, Bavail: most}))
	require.EqualValues(t, math.MaxInt64, bytesFree(&unix.Statfs_t{Bsize: 4096, Blocks: 1, Bavail: most + 1}))
}

// A file of exactly the free size is created; one byte more is refused before anything is written.
func TestWhatIsFreeIsTaken(t *testing.T) {
	k := &small{}
	f, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 8192, Mode: None})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 8193, Mode: None})
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, "8192 bytes are free")
}

type small struct{ linux }

func (small) fstatfs(_ int, stat *unix.Statfs_t) error {
	*stat = unix.Statfs_t{Bsize: 4096, Blocks: 9, Bfree: 2, Bavail: 2}
	return nil
}

// layered is a kernel on which the current file is on an overlay, whose upper directory is on another file system.
type layered struct {
	linux
	upper, beneath string
	fd             *int // that the overlay's file has: the first that is asked for
}

func (k layered) readFile(path string) ([]byte, error) {
	var fd int
	if _, err := fmt.Sscanf(path, "/proc/self/fdinfo/%d", &fd); err != nil {
		return fmt.Appendf(nil, "1 0 0:40 / / rw - overlay none rw,upperdir=%s\n2 0 0:41 / /x rw - %s none rw\n", k.upper, k.beneath), nil
	}
	if *k.fd == 0 {
		*k.fd = fd
	}
	if *k.fd == fd {
		return []byte("mnt_id: 1\n"), nil
	}
	return []byte("mnt_id: 2\n"), nil
}

func TestWhatAnOverlayIsOn(t *testing.T) {
	upper := t.TempDir()
	for _, c := range []struct{ upper, beneath, want string }{
		{upper, "tmpfs", "tmpfs"},
		{upper, "xfs", "xfs"},
		{upper, "overlay", ""}, // whose own upper directory is that of the first: nothing is known
		{filepath.Join(upper, "gone"), "xfs", ""},
		{"relative", "xfs", ""},
	} {
		k := layered{upper: c.upper, beneath: c.beneath, fd: new(int)}
		f, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 4096, Mode: None})
		require.NoError(t, err)
		place := f.Place()
		require.Equal(t, "overlay", place.FileSystem)
		require.Equal(t, c.want, place.Beneath, "%+v", c)
		require.Equal(t, c.want == "", place.Hidden())
		require.Equal(t, c.want == "tmpfs", place.Volatile())
		if c.want != "" {
			require.Equal(t, "overlay over "+c.want, place.String())
		}
		require.NoError(t, f.Close())
	}
}

// An overlay beneath an overlay counts as what it is on.
func TestOverlayOnOverlay(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	k := stacked{order: map[int]int{}, first: first, second: second}
	place, ok := placeAt(&k, first)
	require.True(t, ok)
	require.Equal(t, "tmpfs", place.Beneath)
	k = stacked{order: map[int]int{}, first: first, second: filepath.Join(second, "gone")}
	_, ok = placeAt(&k, first)
	require.False(t, ok, "an overlay that is on nothing that is known")
	_, ok = placeAt(&faulty{at: 1}, first)
	require.False(t, ok, "what cannot be found out")
	require.Empty(t, held(t, first), "nothing stays open")
}

// stacked is a kernel whose first descriptor is on an overlay above another, and whose second is on tmpfs.
type stacked struct {
	linux
	order         map[int]int
	first, second string
}

func (k *stacked) readFile(path string) ([]byte, error) {
	var fd int
	if _, err := fmt.Sscanf(path, "/proc/self/fdinfo/%d", &fd); err != nil {
		return fmt.Appendf(nil, "1 0 0:40 / / rw - overlay none rw,upperdir=%s\n2 0 0:41 / /x rw - tmpfs none rw\n", k.second), nil
	}
	if k.order[fd] == 0 {
		k.order[fd] = len(k.order) + 1
	}
	return fmt.Appendf(nil, "mnt_id: %d\n", k.order[fd]), nil
}

func TestHiddenPlaces(t *testing.T) {
	require.True(t, Place{FileSystem: "unknown file system"}.Hidden())
	require.True(t, Place{FileSystem: "overlay"}.Hidden())
	require.False(t, Place{FileSystem: "overlay", Beneath: "xfs"}.Hidden())
	require.False(t, Place{FileSystem: "ext4"}.Hidden())
}

// Room reports for a directory what a file in it would be told.
func TestRoomOfADirectory(t *testing.T) {
	dir := tmpfs(t)
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	free, place, err := Room(root)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20, free)
	require.Equal(t, "tmpfs", place.FileSystem)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), make([]byte, 8192), 0o600))
	free, _, err = Room(root)
	require.NoError(t, err)
	require.EqualValues(t, 1<<20-8192, free)
	require.Len(t, held(t, dir), 1, "only the root is open")
	for at := range 3 {
		k := &faulty{at: at + 1}
		_, _, err = roomOf(k, root)
		require.ErrorIs(t, err, errFault, "%s", k.failed)
	}
	require.Len(t, held(t, dir), 1, "only the root is open")
	require.NoError(t, root.Close())
	free, _, err = Room(root)
	require.ErrorIs(t, err, os.ErrClosed)
	require.Zero(t, free)
}

// Only regular files are opened, however they are found.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "directory"), 0o700))
	made, err := Create(filepath.Join(dir, "log"), 4096, None)
	require.NoError(t, err)
	require.NoError(t, made.Close())
	require.NoError(t, os.Symlink("log", filepath.Join(dir, "link")))
	for _, name := range []string{"pipe", "directory", "link"} {
		_, err := Open(filepath.Join(dir, name), None)
		require.ErrorContains(t, err, "want a regular file", name)
		require.Empty(t, held(t, filepath.Join(dir, name)))
	}
	_, err = Open(filepath.Join(dir, "none", "log"), None)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Create(filepath.Join(dir, "none", "log"), 4096, None)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The last word of a file can be stored, and no word beyond it.
func TestStore8AtTheEnd(t *testing.T) {
	f, err := Create(filepath.Join(t.TempDir(), "log"), 4096, None)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.Writer().Store8(4088, 1))
	for size := int64(4089); size < 4096; size++ {
		f, err := Create(filepath.Join(t.TempDir(), "log"), size, None)
		require.NoError(t, err)
		require.Error(t, f.Writer().Store8(4088, 1), "%d bytes", size)
		require.NoError(t, f.Check())
		require.NoError(t, f.Close())
	}
}

// Progress is reported in parts that add up to the whole.
func TestProgressIsOfEachPart(t *testing.T) {
	var told []int64
	ctx := WithProgress(context.Background(), func(n int64) { told = append(told, n) })
	f, err := CreateIn(ctx, rootOf(t, t.TempDir()), "log", Form{Size: 100 << 10, Mode: Msync})
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.Equal(t, []int64{64 << 10, 36 << 10}, told)
}

// A new file is written in pieces as large as its entries, so that msync of an entry writes little else.
func TestAFileIsMadeInPiecesOfAnEntry(t *testing.T) {
	for _, tt := range []struct {
		form  Form
		piece int64
	}{
		{Form{Mode: Msync, Entry: 1}, 4 << 10},
		{Form{Mode: Msync, Entry: 4 << 10}, 4 << 10},
		{Form{Mode: Msync, Entry: 4<<10 + 1}, 8 << 10},
		{Form{Mode: Msync, Entry: 1 << 20}, 64 << 10},
		{Form{Mode: Fdatasync, Entry: 100}, 4 << 10},
		{Form{Mode: Fdatasync, Entry: 1 << 20}, 256 << 10},
		{Form{Mode: Fdatasync}, 256 << 10},
	} {
		var told []int64
		tt.form.Size = 300 << 10
		f, err := CreateIn(WithProgress(context.Background(), func(n int64) { told = append(told, n) }), rootOf(t, t.TempDir()), "log", tt.form)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, tt.piece, told[0], "%+v", tt.form)
	}
}

// behindLoop is a kernel whose only mount is of a device that a file backs.
type behindLoop struct {
	linux
	device, backing string
}

func (k behindLoop) readFile(path string) ([]byte, error) {
	switch {
	case strings.HasSuffix(path, "/mountinfo"):
		return fmt.Appendf(nil, "22 1 7:0 / / rw - ext4 %s rw\n", k.device), nil
	case path == "/sys/class/block/loop3/loop/backing_file" && k.backing != "":
		return []byte(k.backing + "\n"), nil
	case strings.HasPrefix(path, "/proc/self/fdinfo/"):
		return []byte("mnt_id:\t22\n"), nil
	}
	return nil, os.ErrNotExist
}

// What a device keeps in memory is not durable, nor is what nobody can see.
func TestADeviceOfMemoryKeepsNothing(t *testing.T) {
	for _, tt := range []struct {
		device, backing, says string
		keeps                 bool
	}{
		{"/dev/vda", "", "", true},
		{"/dev/loop3", "/memfd:disk (deleted)", "/dev/loop3 is kept in memory (tmpfs)", false},
		{"/dev/loop3p1", "/memfd:disk", "/dev/loop3p1 is kept in memory (tmpfs)", false},
		{"/dev/loop3", "", "/dev/loop3: what its file is on is not to be seen", false},
		{"/dev/loop3", "/no/such/dir/image", "/dev/loop3: what its file is on is not to be seen", false},
		{"/dev/zram0", "", "/dev/zram0 is kept in memory (zram)", false},
		{"/dev/ram0", "", "/dev/ram0 is kept in memory (ram)", false},
	} {
		_, place, err := roomOf(behindLoop{device: tt.device, backing: tt.backing}, rootOf(t, t.TempDir()))
		require.NoError(t, err)
		require.Equal(t, tt.keeps, place.Keeps(), tt.device)
		require.False(t, place.Volatile(), "its files are not pages of memory themselves")
		require.Contains(t, strings.Join(caveats(t.TempDir(), Msync, place), "\n"), tt.says)
	}
}

// System calls store what they are given where they are told, and each error poisons the file.
func TestEachWriteBySystemCallsThatFailsPoisons(t *testing.T) {
	for call, at := range []int{1, 2} {
		k := &faulty{}
		f, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 8192, Mode: Fdatasync})
		require.NoError(t, err)
		k.calls, k.at = nil, at
		err = f.Writer().Put(100, []byte("head"), []byte("body"))
		require.ErrorIs(t, err, ErrPoisoned)
		require.ErrorIs(t, err, errFault)
		require.Equal(t, []string{"write 4 at 100", "write 4 at 104"}[call], k.failed)
		require.NoError(t, f.Close())
	}
	k := &faulty{}
	f, err := createIn(context.Background(), k, rootOf(t, t.TempDir()), "log", Form{Size: 8192, Mode: Fdatasync})
	require.NoError(t, err)
	defer f.Close()
	k.calls = nil
	require.NoError(t, f.Writer().Put(8184, []byte("head"), []byte("bod")))
	require.Equal(t, []string{"write 4 at 8184", "write 3 at 8188"}, k.calls)
	k.calls = nil
	require.NoError(t, f.Writer().Put(8184, []byte("head"), []byte("body")), "the last byte is stored to the mapping")
	require.Empty(t, k.calls)
}

// A read where there is nothing, or where it faults, returns no byte.
func TestNothingIsReadWithAnError(t *testing.T) {
	f := create(t, t.TempDir(), 16384, None)
	n, err := f.ReadAt(make([]byte, 1), 16384)
	require.Equal(t, io.EOF, err)
	require.Zero(t, n)
	n, err = f.ReadAt(make([]byte, 1), -1)
	require.Error(t, err)
	require.Zero(t, n)
	require.NoError(t, os.Truncate(f.Name(), 4096))
	n, err = f.ReadAt(make([]byte, 1), 12288)
	require.ErrorAs(t, err, new(*FaultError))
	require.Zero(t, n)
	free, err := freeOf(&faulty{at: 1}, 0)
	require.ErrorIs(t, err, errFault)
	require.Zero(t, free)
}

// Pieces of a line or more bypass the caches, and Instruction says so.
func TestInstructionsAreNamedBySize(t *testing.T) {
	f := File{mode: CLWB, cpu: processor{name: "FLUSH", past: "PAST"}}
	require.Equal(t, "FLUSH", f.Instruction(63))
	require.Equal(t, "PAST and FLUSH", f.Instruction(64))
	f.mode = MapSync
	require.Equal(t, "PAST and FLUSH", f.Instruction(64))
	f = File{mode: Msync}
	require.Empty(t, f.Instruction(64))
}

// A file that cannot be examined again is not mapped.
func TestAFileThatIsClosedIsNotOpened(t *testing.T) {
	closed, err := os.CreateTemp(t.TempDir(), "log")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	f := &File{file: closed, kernel: linux{}}
	require.ErrorIs(t, f.open(nil, None), os.ErrClosed)
	require.Nil(t, f.data)
}

// When a created or opened file is closed, neither it nor its directory stays open.
func TestNothingStaysOpen(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	for _, open := range []func() (*File, error){
		func() (*File, error) { return Create(path, 4096, None) },
		func() (*File, error) { return Open(path, None) },
	} {
		f, err := open()
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Empty(t, held(t, dir))
		n, err := f.ReadAt(make([]byte, 1), 0)
		require.ErrorIs(t, err, os.ErrClosed)
		require.Zero(t, n)
	}
}

// Modes that order stores by instructions use all of them; in mode none, large pieces bypass the caches, too; what the kernel syncs goes through the
// caches.
func TestInstructionsOfModes(t *testing.T) {
	has := detect()
	modes := map[Mode][2]bool{None: {has.aside != nil, false}, Msync: {}, Fdatasync: {}}
	if has.flush != nil {
		modes[CLWB] = [2]bool{true, true}
	}
	for mode, want := range modes {
		f, err := Create(filepath.Join(t.TempDir(), "file"), 4096, mode)
		require.NoError(t, err)
		require.Equal(t, want, [2]bool{f.cpu.aside != nil, f.cpu.flush != nil}, mode)
		require.NoError(t, f.Close())
	}
}

// An error of the os package has an incomplete path, so only its cause is reported. Any other error is reported unchanged.
func TestCausesOfErrorsWithoutPaths(t *testing.T) {
	named := &fs.PathError{Op: "openat", Path: "log", Err: syscall.ENOENT}
	other := errors.New("why")
	require.Equal(t, syscall.ENOENT, pathless(named))
	require.Equal(t, syscall.ENOENT, pathless(fmt.Errorf("open: %w", named)))
	require.Equal(t, other, pathless(other))
	require.NoError(t, pathless(nil))
}

// undirected is a kernel with a file system that takes direct writes in blocks of a size only; 0: none.
type undirected struct {
	linux
	block int64
}

func (k undirected) alignment(int) (int64, error) { return k.block, nil }

// TestDirectWritesThatAFileSystemDoesNotTake are refused, as far as possible when the file is made.
func TestDirectWritesThatAFileSystemDoesNotTake(t *testing.T) {
	root := rootOf(t, t.TempDir())
	_, err := createIn(t.Context(), undirected{}, root, "log", Form{Size: 1 << 16, Mode: ODirect})
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "takes no direct writes: ask for o_dsync")
	f, err := createIn(t.Context(), undirected{block: 8192}, root, "log", Form{Size: 1 << 16, Mode: ODirect})
	require.NoError(t, err)
	require.EqualValues(t, 8192, f.Alignment())
	w := f.Writer()
	require.ErrorContains(t, w.Put(8192, nil, make([]byte, 4096)), "want multiples of 8192")
	require.ErrorContains(t, w.Put(4096, nil, make([]byte, 8192)), "want multiples of 8192")
	require.NoError(t, w.Put(1<<16-8192, make([]byte, 8), bytes.Repeat([]byte{7}, 8184)))
	require.NoError(t, os.Truncate(f.Name(), 1<<15))
	require.ErrorIs(t, w.Put(1<<16-8192, nil, make([]byte, 8192)), ErrTruncated, "and is not made as long again")
	require.NoError(t, f.Close())
}
