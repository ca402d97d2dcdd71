package rundir

import (
	"errors"
	"io"
	"os"
)

// Modes of new files and directories. A result holds host names, command lines and servers' texts, which are private.
const (
	dirMode  = 0o700
	fileMode = 0o600
)

// disk is the file system to write to. Tests use one that fails.
type disk interface {
	OpenFile(path string, flag int) (file, error) // flag as for os.OpenFile
	Mkdir(path string) error
	Rename(from, to string) error
	Remove(path string) error
	RemoveAll(path string) error
	SyncDir(path string) error // makes the names in a directory durable
}

// file is an open file of a disk.
type file interface {
	io.Writer
	Sync() error
	Close() error
}

// system is the disk of the operating system.
type system struct{}

func (system) OpenFile(path string, flag int) (file, error) {
	f, err := os.OpenFile(path, flag, fileMode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (system) Mkdir(path string) error      { return os.Mkdir(path, dirMode) }
func (system) Rename(from, to string) error { return os.Rename(from, to) }
func (system) Remove(path string) error     { return os.Remove(path) }
func (system) RemoveAll(path string) error  { return os.RemoveAll(path) }

func (system) SyncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
