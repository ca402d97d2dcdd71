package localfile

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

// MadeName is the name of an empty file in each directory that was made for log files. Such a directory is deleted with its last log file, whichever
// run or worker made it; one made by somebody else stays.
const MadeName = ".made-by-loadgen"

// Attempts is how often to enter a directory that somebody else keeps deleting.
const Attempts = 10

// Dir is the directory below a worker's --log-root that holds a store's files. No plan can escape it, and whatever was made is deleted again.
type Dir struct {
	*os.Root // the directory of the files

	root string   // as given by --log-root
	asks string   // as given by the plan
	top  *os.Root // no file lies outside it
	path string   // below top
}

// Enter opens the directory dir below root, and makes it if it does not exist. Leave closes it.
func Enter(root, dir string) (*Dir, error) {
	top, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("--log-root: %w: write a directory that is there and that this user may use", err)
	}
	d := &Dir{root: root, asks: dir, top: top}
	if filepath.IsAbs(dir) {
		if dir, err = filepath.Rel(root, dir); err != nil {
			return nil, errors.Join(fmt.Errorf("dir %q: %w", d.asks, err), top.Close())
		}
	}
	if !filepath.IsLocal(dir) && dir != "" {
		remedy := "write a path below it, without .."
		if filepath.IsAbs(d.asks) {
			remedy = "write another dir, or --log-root " + d.asks
		}
		return nil, errors.Join(fmt.Errorf("dir %q is not below %s, which is where this worker lets log files be: %s", d.asks, root, remedy), top.Close())
	}
	if d.path = filepath.ToSlash(filepath.Clean(dir)); d.path == "." {
		d.Root = top
		return d, nil
	}
	for range Attempts {
		if d.Root, err = makeDir(top, d.path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(d.unentered(err), d.Leave())
	}
	return d, nil
}

// unentered says what to do about a directory that cannot be entered.
func (d *Dir) unentered(err error) error {
	err = fmt.Errorf("dir %q: %w", d.asks, err)
	for _, cause := range []error{fs.ErrPermission, syscall.EROFS, syscall.ENOSPC} {
		if errors.Is(err, cause) {
			return Unmade(err, d.root)
		}
	}
	return fmt.Errorf("%w: write a dir that can be made below %s, and that no symbolic link is part of", err, d.root)
}

// Unmade says what to do about a file that could not be made in a directory.
func Unmade(err error, dir string) error {
	for _, cause := range []error{os.ErrPermission, os.ErrNotExist, syscall.EROFS, syscall.EOPNOTSUPP} {
		if errors.Is(err, cause) {
			return fmt.Errorf("%w: let this user make files in %s, or write another --log-root", err, dir)
		}
	}
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("%w: make room there, or write another --log-root", err)
	}
	return err
}

// makeDir opens a directory below root, and makes whatever part of the path does not exist. It returns fs.ErrNotExist if somebody deletes a part of
// it at the same time.
func makeDir(root *os.Root, dir string) (*os.Root, error) {
	return descend(root, dir, func(at *os.Root, name string) error {
		err := at.Mkdir(name, 0o700)
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		if err == nil {
			err = Mark(at, name)
		}
		return err
	})
}

// descend opens a directory below root one name at a time, each after a call of prepare. It follows no symbolic link, not even one to a place below
// root: somebody with write access there must not decide where others' files go.
func descend(root *os.Root, dir string, prepare func(at *os.Root, name string) error) (*os.Root, error) {
	at := root
	for name := range strings.SplitSeq(dir, "/") {
		err := prepare(at, name)
		var next *os.Root
		if err == nil {
			next, err = OpenDir(at, name)
		}
		if at != root {
			err = errors.Join(err, at.Close())
		}
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// OpenDir opens a directory by name, unless the name is a symbolic link. It opens nothing else: a pipe would never open.
func OpenDir(at *os.Root, name string) (*os.Root, error) {
	before, err := at.Lstat(name)
	if err != nil {
		return nil, err
	}
	if before.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("open %s: it is a symbolic link", path.Join(at.Name(), name))
	}
	if !before.IsDir() {
		return nil, &fs.PathError{Op: "open", Path: path.Join(at.Name(), name), Err: syscall.ENOTDIR}
	}
	dir, err := at.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(before, opened) {
		err = fmt.Errorf("open %s: %w: somebody has put another in its place", dir.Name(), fs.ErrNotExist) // it may have been deleted and created again
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// OpenBelow opens an existing directory below root, to look at what a store has left.
func OpenBelow(root, dir string) (*os.Root, error) {
	top, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	below, err := descend(top, dir, func(*os.Root, string) error { return nil })
	return below, errors.Join(err, top.Close())
}

// Mark puts MadeName into a directory. It does not open an existing one: that may be another store's, or a pipe that would never open.
func Mark(root *os.Root, dir string) error {
	f, err := root.OpenFile(path.Join(dir, MadeName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// Way returns --log-root and the directory's path below it.
func (d *Dir) Way() (root, dir string) { return d.top.Name(), d.path }

// Leave deletes the directories that were made on the way to the files, unless somebody has something there, and closes what Enter opened.
func (d *Dir) Leave() error {
	var errs []error
	if d.Root != nil && d.Root != d.top {
		errs = append(errs, d.Root.Close())
	}
	for dir := d.path; dir != "."; dir = path.Dir(dir) {
		errs = append(errs, unmakeDir(d.top, dir))
	}
	return errors.Join(append(errs, d.top.Close())...)
}

// unmakeDir deletes a directory that holds only the sign that it was made for log files.
func unmakeDir(root *os.Root, dir string) error {
	all, err := fs.ReadDir(root.FS(), dir)
	if err != nil || len(all) != 1 || all[0].Name() != MadeName { // loadgen did not make it, if it is a directory at all
		return nil
	}
	if err = root.Remove(path.Join(dir, MadeName)); err == nil {
		err = root.Remove(dir)
	}
	switch {
	case errors.Is(err, syscall.ENOTEMPTY): // somebody has just put something there
		return Mark(root, dir)
	case errors.Is(err, fs.ErrNotExist): // somebody else has just deleted it
		return nil
	}
	return err
}

// Vanished reports whether the directory was deleted since it was entered.
func (d *Dir) Vanished() bool {
	info, err := d.Stat(".")
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink == 0
}
