// Package regular opens files that are what they seem. A path from a plan, a command line or a directory that somebody else has filled may be
// that of a named pipe, which waits for a writer for ever, or of a device that never ends: both are refused at once.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// ErrKind says that a path is not that of a regular file.
var ErrKind = errors.New("only regular files are read")

// Open opens a regular file for reading, and follows links to one. It never waits.
func Open(path string) (*os.File, error) { return open(path, path, os.Stat, os.OpenFile) }

// open opens a regular file by its name with calls that look at it and open it; path is how errors call it.
func open(path, name string, stat func(string) (fs.FileInfo, error), openFile func(string, int, fs.FileMode) (*os.File, error)) (*os.File, error) {
	if info, err := stat(name); err == nil { // to open a device may do something to it
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
		err = check(path, info) // it may be another by now
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read returns what a regular file holds. One of more than limit bytes is an error, and is not read any further.
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
	b := make([]byte, 0, min(info.Size(), limit)+1) // one more byte to meet the end with
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
		if len(b) == cap(b) { // it is longer than it said
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

// kind names what is no regular file.
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
