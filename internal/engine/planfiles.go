package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/loadgen/loadgen/internal/entries"
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

// counted is a file whose bytes count as progress when they are read.
func (e *Engine) counted(file io.Reader) io.Reader { return counted{e, file} }

type counted struct {
	e    *Engine
	from io.Reader
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.e.progress.Add(int64(n))
	return n, err
}

// same refuses a file that the plan was not checked with.
func same(what, path, is, want string) error {
	if is == want {
		return nil
	}
	return fmt.Errorf("%s %s is not the file that the plan was checked with: its SHA-256 is %s, not %s", what, path, is, want)
}

// openTrace opens a trace where this process finds it, once it is the one that the plan was checked with.
func (e *Engine) openTrace(t *plan.Trace) (func() (io.ReadSeekCloser, error), error) {
	file, err := e.openFile("trace", t.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, e.counted(file)); err != nil {
		return nil, fmt.Errorf("trace %q: %w", t.File, err)
	}
	if err := same("trace", file.Name(), hex.EncodeToString(sum.Sum(nil)), t.SHA256); err != nil {
		return nil, err
	}
	return func() (io.ReadSeekCloser, error) { return os.Open(file.Name()) }, nil
}

// keysOf returns the keys of a dataset that has them from a file, else nil. They are held until another dataset's are asked for.
func (e *Engine) keysOf(k plan.Keys) (*entries.Set, error) {
	if k.File == nil {
		return nil, nil
	}
	return e.keys.of(e, k.File, k.Count, entries.Source{Form: k.File.Form, Field: k.File.Field})
}

// valuesOf returns the values of a dataset likewise.
func (e *Engine) valuesOf(v plan.Values) (*entries.Set, error) {
	if v.File == nil {
		return nil, nil
	}
	from := entries.Source{Form: v.File.Form, Field: v.File.Field, Values: true, Encoding: v.File.Encoding}
	return e.values.of(e, &v.File.EntryFile, v.File.Count, from)
}

// listed is the entries of the file that was asked for last.
type listed struct {
	file plan.EntryFile
	from entries.Source
	set  *entries.Set
}

// of returns the entries of a file, of which there are so many.
func (l *listed) of(e *Engine, f *plan.EntryFile, count int64, from entries.Source) (*entries.Set, error) {
	if l.set != nil && l.file == *f && l.from == from {
		return l.set, nil
	}
	*l = listed{}
	what := "file of keys"
	if from.Values {
		what = "file of values"
	}
	file, err := e.openFile(what, f.Path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	set, sum, err := entries.Read(e.counted(file), from, count, f.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s %s:%w", what, file.Name(), err)
	}
	if err := same(what, file.Name(), sum, f.SHA256); err != nil {
		return nil, err
	}
	*l = listed{*f, from, set}
	return set, nil
}
