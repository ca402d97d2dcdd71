package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/loadgen/loadgen/internal/entries"
	"github.com/loadgen/loadgen/pkg/plan"
)

// openFile opens a file that the plan names where this process finds it.
func (e *Engine) openFile(what, name string) (*os.File, error) {
	file, err := e.openNamed(name)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", what, name, err)
	}
	return file, nil
}

func (e *Engine) openNamed(name string) (*os.File, error) {
	if e.cfg.Open == nil {
		return nil, fmt.Errorf("open %s: this worker opens no files: start it with --files DIR, the directory that they are to be read from", name)
	}
	return e.cfg.Open(name)
}

// reading reads a file of the plan: it ends when ctx does, and what has been read counts as progress.
func (e *Engine) reading(ctx context.Context, file io.Reader) io.Reader { return counted{ctx, e, file} }

type counted struct {
	ctx  context.Context
	e    *Engine
	from io.Reader
}

func (c counted) Read(p []byte) (int, error) {
	if err := context.Cause(c.ctx); err != nil {
		return 0, err
	}
	n, err := c.from.Read(p)
	c.e.progress.Add(int64(n))
	return n, err
}

// digest returns the SHA-256 of what is left of a file.
func digest(file io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// notSame is of a file that the plan was not checked with. Whoever hears it learns nothing of what the file holds.
func notSame(what, name string) error {
	return fmt.Errorf("%s %q is not the file that the plan was checked with: copy that to where the load runs", what, name)
}

// openTrace opens a trace where this process finds it, once it is the one that the plan was checked with.
func (e *Engine) openTrace(ctx context.Context, t *plan.Trace) (func() (io.ReadSeekCloser, error), error) {
	const what = "trace"
	file, err := e.openFile(what, t.File)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	checked, err := file.Stat()
	if err != nil {
		return nil, err
	}
	switch is, err := digest(e.reading(ctx, file)); {
	case err != nil:
		return nil, fmt.Errorf("%s %q: %w", what, t.File, err)
	case is != t.SHA256:
		return nil, notSame(what, t.File)
	}
	return func() (io.ReadSeekCloser, error) {
		again, err := e.openFile(what, t.File)
		if err != nil {
			return nil, err
		}
		if info, err := again.Stat(); err != nil || !os.SameFile(info, checked) {
			return nil, errors.Join(notSame(what, t.File), err, again.Close())
		}
		return again, nil
	}, nil
}

// keysOf returns the keys of a dataset that has them from a file, else nil. They are held until another dataset's are asked for.
func (e *Engine) keysOf(ctx context.Context, k plan.Keys) (*entries.Set, error) {
	if k.File == nil {
		return nil, nil
	}
	return e.keys.of(ctx, e, k.File, k.Count, entries.Source{Form: k.File.Form, Field: k.File.Field})
}

// valuesOf returns the values of a dataset likewise.
func (e *Engine) valuesOf(ctx context.Context, v plan.Values) (*entries.Set, error) {
	if v.File == nil {
		return nil, nil
	}
	from := entries.Source{Form: v.File.Form, Field: v.File.Field, Values: true, Encoding: v.File.Encoding}
	return e.values.of(ctx, e, &v.File.EntryFile, v.File.Count, from)
}

// listed is the entries of the file that was asked for last.
type listed struct {
	file plan.EntryFile
	from entries.Source
	set  *entries.Set
}

// of returns the entries of a file, of which there are so many.
func (l *listed) of(ctx context.Context, e *Engine, f *plan.EntryFile, count int64, from entries.Source) (*entries.Set, error) {
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
	set, sum, err := entries.Read(e.reading(ctx, file), from, count, f.Bytes)
	if err != nil {
		// What is wrong with it says what it holds, which is nobody's business but theirs who have the file themselves.
		if _, again := file.Seek(0, io.SeekStart); again == nil && ctx.Err() == nil {
			sum, _ = digest(e.reading(ctx, file))
		}
		if ctx.Err() == nil && sum != f.SHA256 {
			return nil, notSame(what, f.Path)
		}
		return nil, fmt.Errorf("%s %s:%w", what, f.Path, err)
	}
	if sum != f.SHA256 {
		return nil, notSame(what, f.Path)
	}
	*l = listed{*f, from, set}
	return set, nil
}
