package safefile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// OpenBelow opens a regular file below a directory for reading. It refuses a path that leads out of the directory, by its name or by a link, and an
// absolute path that does not begin with the directory. It never blocks.
func OpenBelow(dir, path string) (*os.File, error) {
	name := path
	if filepath.IsAbs(path) {
		var err error
		if name, err = filepath.Rel(dir, path); err != nil || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("open %s: %w", path, errOutside)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return open(path, name, root.Stat, root.OpenFile)
}

var errOutside = errors.New("it is not below the directory that files are read from")
