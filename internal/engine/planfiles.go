package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/loadgen/loadgen/internal/keyset"
	"github.com/loadgen/loadgen/pkg/plan"
)

// openFile opens a file that the plan names where this process finds it.
func (e *Engine) openFile(what, name string) (*os.File, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.cfg.Files, path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w: copy it to where this worker was started, or give its full path", what, name, err)
	}
	return file, nil
}

// same refuses a file that the plan was not checked with.
func same(what, path, is, want string) error {
	if is == want {
		return nil
	}
	return fmt.Errorf("%s %s is not the file that the plan was checked with: its SHA-256 is %s, not %s", what, path, is, want)
}

// openTrace opens a trace where this process finds it, once it is the one that the plan was checked with.
func (e *Engine) openTrace(t *plan.Trace) (func() (io.ReadCloser, error), error) {
	file, err := e.openFile("trace", t.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return nil, fmt.Errorf("trace %q: %w", t.File, err)
	}
	if err := same("trace", file.Name(), hex.EncodeToString(sum.Sum(nil)), t.SHA256); err != nil {
		return nil, err
	}
	return func() (io.ReadCloser, error) { return os.Open(file.Name()) }, nil
}

// keysOf returns the keys of a dataset that has them from a file, else nil. They are held until another dataset's are asked for.
func (e *Engine) keysOf(k plan.Keys) (*keyset.Set, error) {
	if k.File == nil {
		return nil, nil
	}
	if e.listed.set != nil && e.listed.file == *k.File {
		return e.listed.set, nil
	}
	e.listed = listed{}
	file, err := e.openFile("file of keys", k.File.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	set, sum, err := keyset.Read(file, keyset.Source{Form: k.File.Form, Field: k.File.Field}, k.Count, k.File.Bytes)
	if err != nil {
		return nil, fmt.Errorf("file of keys %s:%w", file.Name(), err)
	}
	if err := same("file of keys", file.Name(), sum, k.File.SHA256); err != nil {
		return nil, err
	}
	e.listed = listed{*k.File, set}
	return set, nil
}

// listed is the keys of a file.
type listed struct {
	file plan.KeyFile
	set  *keyset.Set
}
