package pmem

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

var errFault = errors.New("the kernel refuses")

// script is a kernel that notes what it is asked to do, refuses what it is told to, and says that files are where its mounts say.
type script struct {
	linux
	mounts  string            // its /proc/self/mountinfo; "": everything is on ext4
	on      map[string]string // numbers of mounts, by the directory that is on one; what is in no such directory is on mount 1
	backing string            // the file of /dev/loop3
	free    *unix.Statfs_t    // nil: as it is
	refuse  map[string]error  // by call
	at      int               // the number of a call that fails, from 1
	idle    bool              // nothing reaches the disk
	before  func()            // comes between the look at a file and its opening

	calls   []string
	failed  string // the call at
	mapping []byte
}

func (k *script) call(format string, args ...any) error {
	call := fmt.Sprintf(format, args...)
	k.calls = append(k.calls, call)
	if len(k.calls) == k.at {
		k.failed = call
		return errFault
	}
	return k.refuse[call]
}

// do notes a call, and makes it unless it is refused or would reach the disk.
func (k *script) do(call string, linux func() error) error {
	if err := k.call("%s", call); err != nil || k.idle {
		return err
	}
	return linux()
}

func (k *script) open(root *os.Root, name string, flags int) (*os.File, error) {
	if k.before != nil {
		k.before()
	}
	if flags&unix.O_NONBLOCK == 0 || flags&unix.O_NOCTTY == 0 {
		return nil, errors.New("what was put there may be a device that waits, or becomes the terminal of this process")
	}
	if err := k.call("open"); err != nil {
		return nil, err
	}
	return k.linux.open(root, name, flags)
}

func (k *script) flock(fd int) error { return errors.Join(k.call("lock"), k.linux.flock(fd)) }

func (k *script) fstat(fd int, stat *unix.Stat_t) error {
	err := errors.Join(k.call("stat"), k.linux.fstat(fd, stat))
	stat.Dev = unix.Mkdev(8, 1)
	return err
}

func (k *script) fstatfs(fd int, stat *unix.Statfs_t) error {
	err := errors.Join(k.call("statfs"), k.linux.fstatfs(fd, stat))
	if k.free != nil {
		*stat = *k.free
	}
	return err
}

func (k *script) readFile(path string) ([]byte, error) {
	if err := k.call("read %s", filepath.Dir(path)); err != nil {
		return nil, err
	}
	fd, isInfo := strings.CutPrefix(path, "/proc/self/fdinfo/")
	switch {
	case isInfo:
		at, err := os.Readlink("/proc/self/fd/" + fd)
		number := "1"
		for dir, n := range k.on {
			if strings.HasPrefix(at+"/", dir+"/") {
				number = n
			}
		}
		return fmt.Appendf(nil, "pos:\t0\nmnt_id:\t%s\nino:\t7\n", number), err
	case path == "/sys/class/block/loop3/loop/backing_file" && k.backing != "":
		return []byte(k.backing + "\n"), nil
	case path != "/proc/self/mountinfo":
		return nil, os.ErrNotExist
	case k.mounts == "":
		return []byte("1 0 8:1 / / rw - ext4 /dev/x rw\n"), nil
	}
	return []byte(k.mounts), nil
}

func (k *script) truncate(f *os.File, size int64) error {
	return errors.Join(k.call("truncate to %d", size), k.linux.truncate(f, size))
}

func (k *script) allocate(fd int, off, n int64) error {
	return k.do(fmt.Sprintf("allocate %d at %d", n, off), func() error { return k.linux.allocate(fd, off, n) })
}

func (k *script) writeAt(f *os.File, p []byte, off int64) (int, error) {
	what := "write"
	if slices.Max(p) > 0 {
		what = "store" // of more than zeros
	}
	return len(p), k.do(fmt.Sprintf("%s %d at %d", what, len(p), off), func() error { _, err := k.linux.writeAt(f, p, off); return err })
}

func (k *script) sync(f *os.File) error { return k.do("sync", func() error { return k.linux.sync(f) }) }

func (k *script) fdatasync(fd int) error {
	return k.do("fdatasync", func() error { return k.linux.fdatasync(fd) })
}

func (k *script) msync(p []byte) error {
	off := uintptr(unsafe.Pointer(unsafe.SliceData(p))) - uintptr(unsafe.Pointer(unsafe.SliceData(k.mapping)))
	return k.do(fmt.Sprintf("msync %d to %d", off, int(off)+len(p)), func() error { return k.linux.msync(p) })
}

func (k *script) mapped(fd int, size int64, flags int) (p []byte, err error) {
	how := map[int]string{unix.MAP_SHARED: "shared", unix.MAP_SHARED_VALIDATE | unix.MAP_SYNC: "synchronous"}[flags]
	if err := k.call("map %d %s", size, how); err != nil {
		return nil, err
	}
	k.mapping, err = k.linux.mapped(fd, size, unix.MAP_SHARED)
	return k.mapping, err
}

func (k *script) unmap(p []byte) error { // the mapping goes whatever the answer
	return errors.Join(k.call("unmap"), k.linux.unmap(p))
}

func (k *script) advise(p []byte, advice int) error {
	how := map[int]string{unix.MADV_COLLAPSE: "collapse", unix.MADV_POPULATE_WRITE: "populate"}[advice]
	k.calls = append(k.calls, fmt.Sprintf("%s %d", how, len(p)))
	return errFault // it only costs time
}

func (k *script) syncDirectory(root *os.Root, name string) error {
	return k.do("sync directory "+name, func() error { return k.linux.syncDirectory(root, name) })
}

// steps returns the calls but for looks at the file, with writes of equal pieces, one behind the other, as one.
func (k *script) steps() (steps []string) {
	var pieces, size, begin, end int64
	for _, call := range k.calls {
		var n, off int64
		switch _, err := fmt.Sscanf(call, "write %d at %d", &n, &off); {
		case call == "stat" || call == "statfs" || strings.HasPrefix(call, "read "):
			continue
		case err != nil:
			steps, end = append(steps, call), -1
			continue
		case n == size && off == end:
			steps = steps[:len(steps)-1]
		default:
			pieces, size, begin = 0, n, off
		}
		pieces, end = pieces+1, off+n
		steps = append(steps, fmt.Sprintf("write %d × %d at %d", pieces, size, begin))
	}
	return steps
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

// made makes a file on a kernel, and closes it at the end of the test.
func made(t *testing.T, k kernel, form Form) *File {
	f, err := createIn(t.Context(), k, rootOf(t, t.TempDir()), "log", form)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// Each call that the kernel refuses fails Create, Open or Close. No descriptor and no mapping is left, nor a file that could not be made.
func TestWhatTheKernelRefuses(t *testing.T) {
	for _, mode := range []Mode{Msync, Fdatasync, None, Auto} {
		dir := t.TempDir()
		root, path := rootOf(t, dir), filepath.Join(dir, "log")
		for _, c := range []struct {
			what string
			get  func(k kernel) (*File, error)
		}{
			{"create", func(k kernel) (*File, error) {
				return createIn(t.Context(), k, root, "log", Form{Size: 300 << 10, Mode: mode})
			}},
			{"open", func(k kernel) (*File, error) { return openIn(k, root, "log", mode) }}, // what create has made at last
		} {
			for at := 1; ; at++ {
				k := &script{at: at, refuse: map[string]error{"map 307200 synchronous": unix.EOPNOTSUPP}}
				f, err := c.get(k)
				if k.failed == "" {
					require.NoError(t, err, "nothing is left of the one before")
					require.EqualValues(t, 300<<10, f.Size())
					k.at = len(k.calls) + 1
					require.ErrorIs(t, f.Close(), errFault)
					require.Equal(t, "unmap", k.failed)
					require.ErrorIs(t, f.Close(), os.ErrClosed)
					require.Empty(t, held(t, path))
					require.Greater(t, at, 5, "calls")
					break
				}
				require.ErrorIs(t, err, errFault, "%s: %s", mode, k.failed)
				require.ErrorContains(t, err, c.what+" "+path)
				require.Equal(t, k.failed == "sync", errors.Is(err, ErrPoisoned), "the zeros, and what is beneath the file system does not take them: %s", k.failed)
				require.Nil(t, f)
				require.Empty(t, held(t, path), "%s: %s", mode, k.failed)
			}
		}
	}
}

// The blocks and the zeros of a new file are on the disk before its name is. They are written in pieces of an entry's size, since msync of an entry
// writes back its whole pieces, and larger ones where system calls store. In memory, huge pages are asked for where they fit, and all pages are mapped.
func TestHowAFileIsMade(t *testing.T) {
	const mem = "1 0 0:9 / / rw - tmpfs none rw\n"
	touched := func(from, to int) (steps []string) {
		for off := from; off < to; off += hugePage {
			steps = append(steps, fmt.Sprintf("write 1 × 1 at %d", off))
		}
		return steps
	}
	type making struct {
		mounts string
		form   Form
		steps  []string // between the lock and mapping, and the end
	}
	all := map[string]making{
		"large": {"", Form{Size: 65<<20 + 5, Mode: Msync}, []string{
			"truncate to 68157445", "allocate 67108864 at 0", "allocate 1048581 at 67108864",
			"write 256 × 65536 at 0", "sync", "write 256 × 65536 at 16777216", "sync", "write 256 × 65536 at 33554432", "sync",
			"write 256 × 65536 at 50331648", "sync", "write 16 × 65536 at 67108864", "write 1 × 5 at 68157440", "sync",
		}},
		"as much as is waited for": {"", Form{Size: 16 << 20, Mode: Msync}, []string{
			"truncate to 16777216", "allocate 16777216 at 0", "write 256 × 65536 at 0", "sync", "sync",
		}},
		"of 1 byte": {"", Form{Size: 1, Mode: None}, []string{"truncate to 1", "allocate 1 at 0", "write 1 × 1 at 0", "sync"}},
		"reserved":  {"", Form{Size: 9000, Mode: Msync, Prealloc: Reserved}, []string{"truncate to 9000", "allocate 9000 at 0", "sync"}},
		"extended":  {"", Form{Size: 9000, Mode: Fdatasync, Prealloc: Extending}, []string{"sync"}},
		"below a huge page": {mem, Form{Size: hugePage - 1, Mode: None}, []string{
			"truncate to 2097151", "allocate 2097151 at 0", "write 31 × 65536 at 0", "write 1 × 65535 at 2031616", "sync", "populate 2097151",
		}},
		"in memory": {mem, Form{Size: 64<<20 + 2*hugePage + 100, Mode: None}, slices.Concat(
			[]string{"truncate to 71303268"},
			touched(0, 64<<20), []string{"collapse 67108864", "allocate 67108864 at 0"},
			touched(64<<20, 64<<20+2*hugePage), []string{"collapse 4194304", "allocate 4194404 at 67108864"},
			[]string{
				"write 256 × 65536 at 0", "sync", "write 256 × 65536 at 16777216", "sync", "write 256 × 65536 at 33554432", "sync",
				"write 256 × 65536 at 50331648", "sync", "write 64 × 65536 at 67108864", "write 1 × 100 at 71303168", "sync",
				"populate 67108864", "populate 4194404",
			},
		)},
	}
	if detect().flush != nil { // nothing writes pages back that instructions flush
		all["flushed by instructions"] = making{"", Form{Size: 1, Mode: CLWB}, append(slices.Clone(all["of 1 byte"].steps), "populate 1")}
	}
	for _, c := range []struct {
		mode        Mode
		entry       int64
		pieces, end string
	}{
		{Msync, 1, "75 × 4096", ""},
		{Msync, 4 << 10, "75 × 4096", ""},
		{Msync, 4<<10 + 1, "37 × 8192", "1 × 4096 at 303104"},
		{Msync, 1 << 20, "4 × 65536", "1 × 45056 at 262144"},
		{Fdatasync, 100, "75 × 4096", ""},
		{Fdatasync, 1 << 20, "1 × 262144", "1 × 45056 at 262144"},
		{Fdatasync, 0, "1 × 262144", "1 × 45056 at 262144"},
	} {
		steps := []string{"truncate to 307200", "allocate 307200 at 0", "write " + c.pieces + " at 0"}
		if c.end != "" {
			steps = append(steps, "write "+c.end)
		}
		all[fmt.Sprintf("%s of %d bytes", c.mode, c.entry)] = making{"", Form{Size: 300 << 10, Mode: c.mode, Entry: c.entry}, append(steps, "sync")}
	}
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			k, told := &script{mounts: c.mounts, idle: true}, int64(0)
			ctx := WithProgress(t.Context(), func(n int64) { told += n })
			f, err := createIn(ctx, k, rootOf(t, t.TempDir()), "log", c.form)
			require.NoError(t, err)
			require.NoError(t, f.Close())
			begin, end := []string{"lock", fmt.Sprintf("map %d shared", c.form.Size)}, []string{"sync directory .", "unmap"}
			require.Equal(t, slices.Concat(begin, c.steps, end), k.steps())
			if c.form.Prealloc == "" {
				require.Equal(t, c.form.Size, told, "progress")
			}
		})
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

// TestCreateIsGivenUp ends the making of a file before each of its parts, and leaves nothing there.
func TestCreateIsGivenUp(t *testing.T) {
	dir := t.TempDir()
	const size = atATime + 1
	for after, says := range map[int]string{
		0:                "given up after 0 bytes",
		1:                "given up after 67108864 bytes",
		2:                "given up after 0 of",
		3:                "given up after 65536 of",
		2 + size>>16 + 1: "map: given up after 0 of",
	} {
		k := &script{mounts: "1 0 0:9 / / rw - tmpfs none rw\n", idle: true}
		_, err := createIn(&countdown{context.Background(), after}, k, rootOf(t, dir), "log", Form{Size: size, Mode: None})
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, says)
		require.NoFileExists(t, filepath.Join(dir, "log"))
	}
}

// If a mapping cannot be synchronous, map_sync says so, and auto uses fdatasync. Any other error is returned by both.
func TestAutoFallsBackOnlyWhereSyncIsNotToBeHad(t *testing.T) {
	const shared, synchronous = "map 4096 shared", "map 4096 synchronous"
	for _, c := range []struct {
		asked   Mode
		call    string
		refuse  error
		mode    Mode // "": an error
		is, not error
	}{
		{Auto, synchronous, unix.EOPNOTSUPP, Fdatasync, nil, nil},
		{Auto, synchronous, unix.EINVAL, Fdatasync, nil, nil}, // older kernels
		{Auto, synchronous, nil, MapSync, nil, nil},
		{Auto, synchronous, unix.ENOMEM, "", unix.ENOMEM, ErrUnsupported},
		{MapSync, synchronous, unix.EOPNOTSUPP, "", ErrUnsupported, unix.EOPNOTSUPP},
		{MapSync, synchronous, unix.EINVAL, "", ErrUnsupported, unix.EINVAL},
		{MapSync, synchronous, nil, MapSync, nil, nil},
		{MapSync, synchronous, unix.ENOMEM, "", unix.ENOMEM, ErrUnsupported},
		{Msync, shared, unix.EINVAL, "", unix.EINVAL, ErrUnsupported}, // it has nothing to do with the flag
		{None, shared, unix.EINVAL, "", unix.EINVAL, ErrUnsupported},
	} {
		if detect().flush == nil && c.call == synchronous {
			continue
		}
		k := &script{refuse: map[string]error{c.call: c.refuse}}
		f, err := createIn(t.Context(), k, rootOf(t, t.TempDir()), "log", Form{Size: 4096, Mode: c.asked})
		if c.mode != "" {
			require.NoError(t, err, "%+v", c)
			require.Equal(t, c.mode, f.Mode(), "%+v", c)
			require.Equal(t, c.mode == MapSync, f.Instruction(1) != "")
			require.NoError(t, f.Close())
			continue
		}
		require.ErrorIs(t, err, c.is, "%+v", c)
		require.NotErrorIs(t, err, c.not, "%+v", c)
		if c.is != ErrUnsupported {
			require.ErrorContains(t, err, "map 4096 bytes of ext4 on /dev/x")
		}
	}
}

// Free is what this process may use: without what is kept for the superuser and for the file system itself. A file of as many bytes is made; one byte
// more is refused before anything is written.
func TestWhatIsFreeIsTaken(t *testing.T) {
	const most = uint64(math.MaxInt64 / 4096)
	root := rootOf(t, t.TempDir())
	for _, c := range []struct {
		stat unix.Statfs_t
		want int64
	}{
		{unix.Statfs_t{Bsize: 4096, Blocks: 100, Bfree: 50, Bavail: 40}, 40 * 4096},
		{unix.Statfs_t{Bsize: 4096, Blocks: 100}, 0},
		{unix.Statfs_t{Bsize: 4096}, math.MaxInt64}, // a file system without a bound
		{unix.Statfs_t{Bsize: 4096, Blocks: 1, Bavail: most}, int64(most) * 4096},
		{unix.Statfs_t{Bsize: 4096, Blocks: 1, Bavail: most + 1}, math.MaxInt64},
	} {
		free, _, err := roomOf(&script{free: &c.stat}, root)
		require.NoError(t, err)
		require.Equal(t, c.want, free, "%+v", c.stat)
	}
	k := &script{free: &unix.Statfs_t{Bsize: 4096, Blocks: 9, Bfree: 2, Bavail: 2}}
	made(t, k, Form{Size: 8192, Mode: None})
	k.calls = nil
	_, err := createIn(t.Context(), k, root, "log", Form{Size: 8193, Mode: None})
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, "reserve 8193 bytes of ext4 on /dev/x: 8192 bytes are free")
	require.Equal(t, []string{"lock", "map 8193 shared", "unmap"}, k.steps())
}

// A fence syncs once what was flushed on its medium since the last one, in whatever order that came, and nothing if there is nothing.
func TestAFenceSyncsWhatItsMediumFlushed(t *testing.T) {
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
	const a, b, c = 4196, 8292, 12388 // on a page each
	for _, mode := range []Mode{Msync, Fdatasync} {
		for name, write := range ways {
			k := &script{idle: true}
			f := made(t, k, Form{Size: 5 * 4096, Mode: mode})
			w, other := f.Writer(), f.Writer()
			nothing := func() {
				require.NoError(t, w.Flush(0, 0))
				require.NoError(t, w.Put(17000, nil, nil))
				_, err := w.Seal(100, nil, nil, 64)
				require.NoError(t, err)
			}
			fenced := func(w Medium, want string, says any) {
				k.calls = slices.DeleteFunc(k.calls, func(call string) bool { return strings.HasPrefix(call, "write ") || strings.HasPrefix(call, "store ") })
				require.Empty(t, k.calls, "nothing is synced before")
				require.NoError(t, w.Fence())
				require.NoError(t, w.Fence(), "with nothing new")
				if want != "" && mode == Fdatasync {
					want = "fdatasync"
				}
				require.Equal(t, want, strings.Join(k.calls, ", "), "%s, by %s: %v", mode, name, says)
				k.calls = nil
			}
			k.calls = nil
			nothing()
			fenced(w, "", "nothing")
			for _, order := range [][][2]int64{
				{{a, 10}, {b, 10}, {c, 10}},
				{{c, 10}, {b, 10}, {a, 10}},
				{{b, 10}, {c, 10}, {a, 10}},
				{{b, 10}, {a, c + 10 - a}},
				{{a, c + 10 - a}, {b, 10}},
				{{a, b - a}, {b, c + 10 - b}},
			} {
				for range 2 {
					require.NoError(t, other.Flush(17000, 9))
					for _, piece := range order {
						require.NoError(t, write(w, piece[0], piece[1]))
						nothing()
					}
					fenced(w, "msync 4096 to 12398", order)
				}
				fenced(other, "msync 16384 to 17009", "the other's")
			}
			require.NoError(t, f.Close())
		}
	}
}

// The kernel reports a failed write once, and would then claim success: the first failure is the answer to everything that follows.
func TestTheFirstFailurePoisons(t *testing.T) {
	for name, c := range map[string]struct {
		mode Mode
		call string
		says string
	}{
		"msync":           {Msync, "msync 4096 to 5008", "msync of bytes 5000 to 5008 on ext4 on /dev/x"},
		"fdatasync":       {Fdatasync, "fdatasync", "fdatasync of bytes 5000 to 5008 on ext4 on /dev/x"},
		"write of a head": {Fdatasync, "store 4 at 5000", ""},
		"write behind it": {Fdatasync, "store 4 at 5004", ""},
		"o_dsync":         {ODsync, "store 8 at 5000", "o_dsync of bytes 5000 to 5008 on ext4 on /dev/x"},
	} {
		for _, cause := range []error{unix.EIO, unix.ENOSPC} {
			t.Run(fmt.Sprintf("%s/%v", name, cause), func(t *testing.T) {
				k := &script{}
				f := made(t, k, Form{Size: 16384, Mode: c.mode})
				w, other := f.Writer(), f.Writer()
				require.NoError(t, persist(w, 0, []byte("good")))
				require.NoError(t, other.Put(64, nil, []byte("lost too")))
				k.refuse = map[string]error{c.call: cause}
				err := w.Put(5000, []byte("head"), []byte("body"))
				if err == nil {
					err = w.Fence()
				}
				require.ErrorIs(t, err, cause)
				require.ErrorIs(t, err, ErrPoisoned)
				require.ErrorContains(t, err, c.says)
				k.refuse, k.calls = nil, nil
				require.Equal(t, err, w.Fence(), "no retry, which would succeed")
				require.Equal(t, err, other.Fence())
				require.Equal(t, err, other.Put(0, nil, []byte("x")))
				require.Equal(t, err, w.Store8(0, 1))
				require.Equal(t, err, f.Check())
				require.Empty(t, k.calls)
			})
		}
	}
}

// undirected is a kernel with a file system that takes direct writes in blocks of a size only; 0: none.
type undirected struct {
	linux
	block int64
}

func (k undirected) alignment(int) (int64, error) { return k.block, nil }

func (k undirected) reopen(fd, flags int) (*os.File, error) {
	return k.linux.reopen(fd, flags&^unix.O_DIRECT) // which the file system of the test may not have
}

// TestDirectWritesThatAFileSystemDoesNotTake are refused, as far as possible when the file is made.
func TestDirectWritesThatAFileSystemDoesNotTake(t *testing.T) {
	form := Form{Size: 1 << 16, Mode: ODirect}
	_, err := createIn(t.Context(), undirected{}, rootOf(t, t.TempDir()), "log", form)
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "takes no direct writes: ask for o_dsync")
	f := made(t, undirected{block: 8192}, form)
	require.EqualValues(t, 8192, f.Alignment())
	w := f.Writer()
	require.ErrorContains(t, w.Put(8192, nil, make([]byte, 4096)), "want multiples of 8192")
	require.ErrorContains(t, w.Put(4096, nil, make([]byte, 8192)), "want multiples of 8192")
	require.NoError(t, w.Put(1<<16-8192, make([]byte, 8), make([]byte, 8184)))
	require.NoError(t, os.Truncate(f.Name(), 1<<15))
	require.ErrorIs(t, w.Put(1<<16-8192, nil, make([]byte, 8192)), ErrTruncated, "and is not made as long again")
}

// Only a regular file that is not empty is opened, and the one that was looked at: neither a device nor another log that took its place meanwhile.
func TestWhatCannotBeOpened(t *testing.T) {
	dir := t.TempDir()
	root := rootOf(t, dir)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"log", "other"} {
		require.NoError(t, os.WriteFile(at(name), make([]byte, 4096), 0o600))
	}
	require.NoError(t, os.WriteFile(at("empty"), nil, 0o600))
	require.NoError(t, unix.Mkfifo(at("pipe"), 0o600))
	require.NoError(t, os.Mkdir(at("directory"), 0o700))
	require.NoError(t, os.Symlink("log", at("link")))

	_, err := Open(at("none"), None)
	require.EqualError(t, err, "open "+at("none")+": no such file or directory")
	_, err = OpenView(at("none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(at("none/log"), None)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Create(at("none/log"), 4096, None)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Create(at("log"), 4096, None)
	require.ErrorIs(t, err, os.ErrExist)
	_, err = Create(at("new"), 0, None)
	require.ErrorContains(t, err, "want at least 1")
	_, err = Create(at("new"), 4096, "fsync")
	require.ErrorContains(t, err, `mode "fsync": want one of ["auto" "map_sync" "msync"`)
	_, err = CreateIn(t.Context(), root, "new", Form{Size: 1, Mode: Msync, Prealloc: Extending})
	require.ErrorContains(t, err, "want fdatasync")
	require.NoFileExists(t, at("new"))
	require.FileExists(t, at("log"))

	for _, name := range []string{"pipe", "directory", "link", "empty"} {
		_, err := Open(at(name), None)
		require.ErrorContains(t, err, "want a regular file that is not empty, and no link to one", name)
		_, err = OpenViewIn(root, name)
		require.ErrorContains(t, err, "only regular files are read, and none that is empty", name)
	}
	for _, name := range []string{"pipe", "empty", "other"} {
		require.NoError(t, os.WriteFile(at("swapped"), make([]byte, 4096), 0o600))
		k := &script{before: func() { require.NoError(t, os.Rename(at(name), at("swapped"))) }}
		_, err := openIn(k, root, "swapped", None)
		require.ErrorContains(t, err, "want a regular file", name)
		require.Equal(t, []string{"open"}, k.steps(), "neither locked nor mapped")
		require.Empty(t, held(t, at("swapped")))
		require.NoError(t, os.Remove(at("swapped")))
	}
	_, err = openView(at("log"), func(string) (os.FileInfo, error) { return os.Stat(at("log")) },
		func(string, int, os.FileMode) (*os.File, error) { return os.Open("/dev/zero") })
	require.ErrorIs(t, err, errNotViewed)
}
