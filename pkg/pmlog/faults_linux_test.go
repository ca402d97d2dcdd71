package pmlog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/pmem"
)

// files creates the files of a kind of log in a directory, and returns them with the path of the records' file.
func files(t *testing.T, k kind, dir string, mode pmem.Mode) ([]Region, string) {
	var regions []Region
	for i, size := range k.sizes {
		f, err := pmem.Create(filepath.Join(dir, string(rune('a'+i))), size+64<<10, mode)
		require.NoError(t, err)
		t.Cleanup(func() { _ = f.Close() }) // logs close it themselves
		regions = append(regions, f)
	}
	return regions, filepath.Join(dir, "a")
}

// reopened opens what files created.
func reopened(t *testing.T, k kind, dir string, mode pmem.Mode) (regions []Region, close func()) {
	for i := range k.sizes {
		f, err := pmem.Open(filepath.Join(dir, string(rune('a'+i))), mode)
		require.NoError(t, err)
		regions = append(regions, f)
	}
	return regions, func() {
		for _, r := range regions {
			require.NoError(t, r.Close())
		}
	}
}

// TestATruncatedFileIsAnError truncates files under open logs, so that accesses to the mapping fault.
func TestATruncatedFileIsAnError(t *testing.T) {
	for _, k := range kinds() {
		for _, mode := range []pmem.Mode{pmem.Msync, pmem.Fdatasync} {
			t.Run(k.name+"/"+string(mode), func(t *testing.T) {
				regions, path := files(t, k, t.TempDir(), mode)
				s, err := k.create(regions)
				require.NoError(t, err)
				require.NoError(t, s.write(0, 0, []byte("before")))
				require.NoError(t, os.Truncate(path, 0))
				first := s.write(0, 0, []byte("after"))
				require.ErrorIs(t, first, pmem.ErrPoisoned)
				require.ErrorIs(t, s.write(1, 1, []byte("after")), pmem.ErrPoisoned)
				require.ErrorIs(t, s.clear(), pmem.ErrPoisoned)
				if mode == pmem.Fdatasync { // a system call makes the file longer again: only the fence notices
					require.True(t, errors.Is(first, pmem.ErrTruncated) || errors.As(first, new(*pmem.FaultError)), first)
				} else {
					require.ErrorAs(t, first, new(*pmem.FaultError))
					_, err = s.items()
					require.Error(t, err)
				}
				require.ErrorIs(t, s.close(), pmem.ErrPoisoned)
				require.Error(t, s.write(0, 0, []byte("after")))
			})
		}
	}
}

// TestAShortenedFileIsCorrupt cuts records off a closed log.
func TestAShortenedFileIsCorrupt(t *testing.T) {
	for _, k := range kinds() {
		regions, path := files(t, k, t.TempDir(), pmem.None)
		s, err := k.create(regions)
		require.NoError(t, err)
		require.NoError(t, s.write(0, 0, []byte("x")))
		require.NoError(t, s.close())
		require.NoError(t, os.Truncate(path, k.sizes[0]+60<<10))
		var again []Region
		for i := range k.sizes {
			again = append(again, reopen(t, filepath.Join(filepath.Dir(path), string(rune('a'+i)))))
		}
		_, err = k.open(again)
		require.ErrorIs(t, err, ErrCorrupt, k.name)
	}
}

// TestALogOfAnotherVersionIsNotCorrupt opens logs that a later build has made.
func TestALogOfAnotherVersionIsNotCorrupt(t *testing.T) {
	for _, k := range kinds() {
		dir := t.TempDir()
		regions, _ := files(t, k, dir, pmem.None)
		s, err := k.create(regions)
		require.NoError(t, err)
		require.NoError(t, s.close())
		var again []Region
		for i := range k.sizes {
			path := filepath.Join(dir, string(rune('a'+i)))
			p, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, bytes.ReplaceAll(bytes.ReplaceAll(p, []byte(magic), []byte(family+"3")), []byte(magic2), []byte(family+"3")), 0o600))
			again = append(again, reopen(t, path))
		}
		_, err = k.open(again)
		require.ErrorIs(t, err, ErrVersion, k.name)
		require.NotErrorIs(t, err, ErrCorrupt, k.name)
		require.ErrorContains(t, err, "another version of the format: 3, not 1 or 2; open it with a loadgen that writes version 3")
	}
}

// TestAFullFileSystemIsAnError writes to a file without space, because its blocks were not reserved.
func TestAFullFileSystemIsAnError(t *testing.T) {
	dir := t.TempDir()
	servertest.Require(t, "mount", unix.Mount("none", dir, "tmpfs", 0, "size=64k"))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	path := filepath.Join(dir, "sparse")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Truncate(path, 1<<20))
	l, err := CreateAppend(reopen(t, path), AppendOptions{})
	require.NoError(t, err)
	w, acknowledged := l.Writer(), 0
	for err == nil {
		if _, err = w.Append(make([]byte, 5000)); err == nil {
			acknowledged++
		}
	}
	require.ErrorIs(t, err, pmem.ErrPoisoned)
	require.ErrorAs(t, err, new(*pmem.FaultError))
	require.Greater(t, acknowledged, 3)
	_, err = w.Append([]byte("small"))
	require.ErrorIs(t, err, pmem.ErrPoisoned)
	require.Error(t, l.Close())

	l, err = OpenAppend(reopen(t, path))
	require.ErrorContains(t, err, "no medium behind byte", "looking for more records reaches the hole")
	require.Nil(t, l)
}

func TestWritesDoNotAllocate(t *testing.T) {
	p, dst := make([]byte, 100), make([]byte, 0, 200)
	for _, k := range kinds() {
		regions, _ := files(t, k, t.TempDir(), pmem.None)
		s, err := k.create(regions)
		require.NoError(t, err)
		require.Zero(t, testing.AllocsPerRun(5, func() {
			if err := s.write(0, 1, p); err != nil {
				t.Error(k.name, err)
			}
			if a, ok := s.(*arrays); ok {
				if _, err := a.log.Read(1, dst); err != nil {
					t.Error(err)
				}
			}
		}), k.name)
	}
	w, err := NewRaw(file(t, 4096, pmem.None), true).Writer(0, 4096)
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := w.Write(p); err != nil {
			t.Error(err)
		}
	}))
}

func TestRaw(t *testing.T) {
	l := NewRaw(file(t, 4096, pmem.None), true)
	w, err := l.Writer(100, 120)
	require.NoError(t, err)
	for n, want := range []int64{100, 109, 100} {
		off, err := w.Write([]byte("123456789"))
		require.NoError(t, err)
		require.Equal(t, want, off, n)
	}
	require.EqualValues(t, 0xe3069283, w.sum)
	_, err = w.Write(make([]byte, 21))
	require.Equal(t, ErrTooLarge, err)
	for _, r := range [][2]int64{{-1, 10}, {10, 10}, {0, 4097}} {
		_, err := l.Writer(r[0], r[1])
		require.ErrorContains(t, err, "do not lie in the region's 4096")
	}
	p := make([]byte, 20)
	_, err = l.ReadAt(p, 100)
	require.NoError(t, err)
	require.Equal(t, "123456789123456789\x00\x00", string(p))
	require.NoError(t, l.Close())
	_, err = w.Write(p)
	require.Error(t, err)
}
