package safefile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Check checks in advance whether the file that a flag names could be written, and leaves nothing behind. It does not open a pipe, whose reader would
// take the attempt for the whole output. An empty path is fine: the flag was not given.
func Check(flag, path string) error {
	if path == "" || isDevice(path) {
		return nil
	}
	o, err := begin(path)
	if err == nil {
		err = o.discard()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// Replace makes write write a file, which keeps its permissions. A plain file is replaced completely or not at all, even behind a symbolic link; a
// device or a pipe is written to.
func Replace(path string, write func(io.Writer) error) error {
	o, err := begin(path)
	if err != nil {
		return err
	}
	if err := write(o); err != nil {
		return errors.Join(err, o.discard())
	}
	return o.keep()
}

// Create makes write write a new file with the permissions mode; one that exists is an error. A file that could not be written whole is removed.
func Create(path string, mode fs.FileMode, write func(io.Writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// isDevice says whether a path can be written to and is neither a plain file nor a directory: a pipe, a terminal.
func isDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// output is a file being written.
type output struct {
	file  *os.File
	asked string // the user's name for it
	path  string // its final path; "" if the file is already there
}

// begin creates a file, under a temporary name until it is kept.
func begin(path string) (*output, error) {
	if isDevice(path) {
		file, err := os.OpenFile(path, os.O_WRONLY, 0)
		return &output{file: file, asked: path}, err
	}
	o := &output{asked: path, path: path}
	mode := os.FileMode(0o644)
	info, err := os.Stat(path)
	switch {
	case err != nil: // the file is new, or a later call reports the error
	case info.IsDir():
		return nil, fmt.Errorf("%s is a directory: write the name of a file", path)
	default:
		mode = info.Mode().Perm()
		if o.path, err = filepath.EvalSymlinks(path); err != nil {
			return nil, err
		}
	}
	if o.file, err = os.CreateTemp(filepath.Dir(o.path), filepath.Base(o.path)+".*"); err != nil {
		return nil, o.named(err)
	}
	if err := o.file.Chmod(mode); err != nil {
		return nil, errors.Join(o.named(err), o.discard())
	}
	return o, nil
}

// named replaces the path in an error with the name that the user knows.
func (o *output) named(err error) error {
	if of, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: of.Op, Path: o.asked, Err: of.Err}
	}
	return err
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.file.Write(b)
	return n, o.named(err)
}

// keep closes the file and renames it to its final path.
func (o *output) keep() error {
	err := o.named(o.file.Close())
	if o.path == "" {
		return err
	}
	if err == nil {
		err = os.Rename(o.file.Name(), o.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(o.file.Name()))
	}
	return nil
}

// discard closes the file and leaves the old one in place.
func (o *output) discard() error {
	err := o.file.Close()
	if o.path == "" {
		return err
	}
	return errors.Join(err, os.Remove(o.file.Name()))
}

// JSON returns a function that writes v as JSON.
func JSON(v any) func(io.Writer) error {
	return func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		enc.SetIndent("", "  ")
		return enc.Encode(v)
	}
}
