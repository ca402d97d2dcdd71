package log

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// madeName is of an empty file in each directory that was made for log files: it goes with the last of them, also of other runs and workers, and one that
// somebody else has made stays.
const madeName = ".made-by-loadgen"

// attempts is how often a directory is entered that somebody else is about to delete.
const attempts = 10

// enter opens the directory that the files are in.
func (s *store) enter() error {
	root, err := os.OpenRoot(s.site.Root)
	if err != nil {
		return fmt.Errorf("--log-root: %w: write a directory that is there and that this user may use", err)
	}
	dir := s.cfg.Dir
	if filepath.IsAbs(dir) {
		if dir, err = filepath.Rel(s.site.Root, dir); err != nil {
			return errors.Join(fmt.Errorf("dir %q: %w", s.cfg.Dir, err), root.Close())
		}
	}
	if !filepath.IsLocal(dir) && dir != "" {
		remedy := "write a path below it, without .."
		if filepath.IsAbs(s.cfg.Dir) {
			remedy = "write another dir, or --log-root " + s.cfg.Dir
		}
		return errors.Join(fmt.Errorf("dir %q is not below %s, which is where this worker lets log files be: %s", s.cfg.Dir, s.site.Root, remedy), root.Close())
	}
	s.top, s.dir = root, filepath.ToSlash(filepath.Clean(dir))
	if s.dir == "." {
		s.root = root
		return nil
	}
	for range attempts {
		if s.root, err = makeDir(root, s.dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return errors.Join(s.unentered(err), s.leave())
	}
	return nil
}

// unentered says what to do about a directory that cannot be had.
func (s *store) unentered(err error) error {
	err = fmt.Errorf("dir %q: %w", s.cfg.Dir, err)
	for _, cause := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC} {
		if errors.Is(err, cause) {
			return unmade(err, s.site.Root)
		}
	}
	return fmt.Errorf("%w: write a dir that can be made below %s and that no symbolic link leads out of", err, s.site.Root)
}

// makeDir opens a directory below root, and makes what is not there of the way to it. It returns fs.ErrNotExist when somebody deletes a part of
// it at the same time.
func makeDir(root *os.Root, dir string) (*os.Root, error) {
	way := ""
	for name := range strings.SplitSeq(dir, "/") {
		way = path.Join(way, name)
		err := root.Mkdir(way, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = markMade(root, way)
		}
		if err != nil {
			return nil, err
		}
	}
	return root.OpenRoot(dir)
}

// markMade puts the sign into a directory. One that is there is not opened: it may be another store's, or a pipe that would never open.
func markMade(root *os.Root, dir string) error {
	f, err := root.OpenFile(path.Join(dir, madeName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// leave deletes what was made of the way to the files, as far as nobody has anything there, and closes what enter opened.
func (s *store) leave() error {
	var errs []error
	if s.root != nil && s.root != s.top {
		errs = append(errs, s.root.Close())
	}
	for dir := s.dir; dir != "."; dir = path.Dir(dir) {
		errs = append(errs, unmakeDir(s.top, dir))
	}
	return errors.Join(append(errs, s.top.Close())...)
}

// unmakeDir deletes a directory that has nothing but the sign that it was made for log files.
func unmakeDir(root *os.Root, dir string) error {
	all, err := fs.ReadDir(root.FS(), dir)
	if err != nil || len(all) != 1 || all[0].Name() != madeName { // none that was made, if it is a directory at all
		return nil
	}
	if err = root.Remove(path.Join(dir, madeName)); err == nil {
		err = root.Remove(dir)
	}
	switch {
	case errors.Is(err, syscall.ENOTEMPTY): // somebody has just come
		return markMade(root, dir)
	case errors.Is(err, fs.ErrNotExist): // somebody else has just deleted it
		return nil
	}
	return err
}

// vanished reports whether the directory of the files was deleted since it was entered.
func (s *store) vanished() bool {
	info, err := s.root.Stat(".")
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
