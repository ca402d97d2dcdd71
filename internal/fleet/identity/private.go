package identity

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// openDir makes a directory unless it exists, and refuses one that others can enter.
func openDir(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory: move it out of the way", path)
	}
	return private(path, info)
}

// private refuses a file that belongs to another user, or that others may read or write.
func private(path string, info os.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return fmt.Errorf("%s: its owner cannot be told", path)
	case int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to you (%d): set XDG_STATE_HOME to a directory of your own", path, owner.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (mode %04o): chmod go= %s; if somebody may have read what is in it, delete it, and a new one is made",
			path, info.Mode().Perm(), path)
	}
	return nil
}

// readPrivate reads a regular file of this user that others cannot read.
func readPrivate(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file: delete it, and one is made", path)
	}
	if err := private(path, info); err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has more than %d bytes: delete it, and one is made", path, limit)
	}
	return io.ReadAll(io.LimitReader(file, limit))
}

// readOrMake is readPrivate for a file that is made if there is none, once even if several processes do so. A power failure leaves all of it or nothing.
func readOrMake(path string, contents func() ([]byte, error)) ([]byte, error) {
	text, err := readPrivate(path, maxKeyFile)
	if !errors.Is(err, os.ErrNotExist) {
		return text, err
	}
	if text, err = contents(); err != nil {
		return nil, err
	}
	err = placed(path, text, true, func(temporary string) error { return os.Link(temporary, path) })
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	return readPrivate(path, maxKeyFile) // another process may have made it first
}

// tryWriting returns an error if no file can be made in a directory.
func tryWriting(dir string) error {
	file, err := os.CreateTemp(dir, "try-*")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// writePrivate replaces a file atomically with one that only this user can read. If durable, a power failure leaves either the old file or the new one.
func writePrivate(path string, b []byte, durable bool) error {
	return placed(path, b, durable, func(temporary string) error { return os.Rename(temporary, path) })
}

// placed writes a temporary file beside path, which only this user can read, and calls put to put it there.
func placed(path string, b []byte, durable bool, put func(temporary string) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+"-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(b)
	if err == nil && durable {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = put(file.Name())
	}
	if removing := os.Remove(file.Name()); !errors.Is(removing, os.ErrNotExist) { // it was renamed
		err = errors.Join(err, removing)
	}
	return err
}
