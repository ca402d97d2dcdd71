// Package safefile reads regular files, and writes files completely or not at all. A path from a plan, a command line or somebody else's directory may
// name a pipe, which waits for a writer forever, or a device that never ends. Both are refused at once.
package safefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrKind says that a path does not name a regular file.
var ErrKind = errors.New("only regular files are read")

// Open opens a regular file for reading. It follows links, and never blocks.
func Open(path string) (*os.File, error) { return open(path, path, os.Stat, os.OpenFile) }

// open opens a regular file by its name, with the given calls to stat and open it. Errors call it path.
func open(path, name string, stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, error) {
	if info, err := stat(name); err == nil { // merely opening a device may have an effect
		if err := check(path, info); err != nil {
			return nil, err
		}
	}
	f, err := openFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = check(path, info) // another file may have taken its place
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read returns the content of a regular file. If the file is longer than limit bytes, Read returns an error and stops reading.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, min(info.Size(), limit)+1) // one more byte, to see the end
	for {
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > limit:
			return nil, fmt.Errorf("%s has more than %d bytes, the most that are read", path, limit)
		case err == io.EOF:
			return b, nil
		case err != nil:
			return nil, err
		}
		if len(b) == cap(b) { // the file is longer than its size said
			b = append(b, 0)[:len(b)]
		}
	}
}

func check(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("open %s: it is %s: %w", path, kind(info.Mode()), ErrKind)
}

// kind names the kind of a file that is not regular.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "no file"
}
