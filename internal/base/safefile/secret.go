package safefile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxSecret bounds a secret, in bytes.
const maxSecret = 4 << 10

// Secret returns the first line of a regular file that belongs to this process's user and that nobody else may read or write. It checks the file that
// it has opened.
func Secret(path string) (string, error) {
	f, err := Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if err := private(path, info); err != nil {
		return "", err
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	line, rest, _ := bytes.Cut(b, []byte("\n"))
	line = bytes.TrimSuffix(line, []byte("\r"))
	switch {
	case len(line) == 0:
		return "", fmt.Errorf("%s: its first line is empty: write the secret there", path)
	case len(b) > maxSecret:
		return "", fmt.Errorf("%s has more than %d bytes: it must contain one line: the secret", path, maxSecret)
	case len(bytes.TrimSpace(rest)) > 0:
		return "", fmt.Errorf("%s has more than one line: it must contain one line: the secret", path)
	}
	return string(line), nil
}

// private refuses a file that belongs to another user, or that others may read or write.
func private(path string, info os.FileInfo) error {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return errors.New(path + ": its owner cannot be told")
	case int(owner.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d, not to you (%d)", path, owner.Uid, os.Geteuid())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to others (mode %04o): chmod go= %s; and if somebody may have read it, write another secret", path, info.Mode().Perm(), path)
	}
	return nil
}
