package observe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
)

// blockSize is the unit of stat(2)'s block counts.
const blockSize = 512

// directory adds up the space that a directory uses.
type directory struct{ path string }

func (d directory) Of() string { return d.path }

func (d directory) Close() {}

// Take walks the directory. Files removed meanwhile do not count, hard links count once, and symbolic links are not followed, except for the path
// itself.
func (d directory) Take(ctx context.Context) (value map[string]float64, missing map[string]string) {
	root, err := filepath.EvalSymlinks(d.path)
	if err != nil {
		return nothing("%v", err)
	}
	var room syscall.Statfs_t
	if err := syscall.Statfs(root, &room); err != nil {
		return nothing("%s: %v", root, err)
	}
	f := newFigures()
	f.set("free_bytes", float64(room.Bavail)*float64(room.Bsize))
	sum, err := add(ctx, root)
	if err != nil {
		for _, name := range []string{"used_bytes", "size_bytes", "files"} {
			f.missing[name] = err.Error()
		}
		return f.value, f.missing
	}
	f.set("used_bytes", float64(sum.blocks)*blockSize)
	f.set("size_bytes", float64(sum.size))
	f.set("files", float64(sum.files))
	return f.value, f.missing
}

// space is the space that files use.
type space struct{ blocks, size, files int64 }

// add sums up everything below a directory, including the directories' own blocks.
func add(ctx context.Context, root string) (sum space, err error) {
	type file struct{ dev, ino uint64 }
	linked := map[file]bool{}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return fmt.Errorf("%d files, and no end in time", sum.files)
		}
		if err != nil {
			return unlessGone(err, path == root)
		}
		info, err := e.Info()
		if err != nil {
			return unlessGone(err, path == root)
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return errors.New("the system does not say what files take")
		}
		if at := (file{uint64(s.Dev), s.Ino}); !e.IsDir() && s.Nlink > 1 {
			if linked[at] {
				return nil
			}
			linked[at] = true
		}
		sum.blocks += s.Blocks
		if info.Mode().IsRegular() {
			sum.size += info.Size()
			sum.files++
		}
		return nil
	})
	return sum, err
}

// unlessGone ignores errors about files that no longer exist, as happens in a directory in use.
func unlessGone(err error, root bool) error {
	if errors.Is(err, fs.ErrNotExist) && !root {
		return nil
	}
	return err
}
