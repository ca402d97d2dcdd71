package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/loadgen/loadgen/internal/entries"
	"github.com/loadgen/loadgen/internal/regular"
	"github.com/loadgen/loadgen/pkg/plan"
)

// File is a file that a plan names.
type File interface {
	io.ReadSeekCloser
	Stat() (fs.FileInfo, error)
}

// openFile opens a file that the plan names where this process finds it, unless ctx ends before.
func (e *Engine) openFile(ctx context.Context, name string) (File, error) {
	if e.cfg.Open == nil {
		return nil, fmt.Errorf("open %s: this worker opens no files: start it with --files DIR, the directory that they are to be read from", name)
	}
	return awaited(ctx, func() (File, error) { return e.cfg.Open(name) }, func(late File) { _ = late.Close() }) // nothing was read
}

// checked is a file of the plan that is as long as the plan says.
type checked struct {
	File
	e      *Engine
	info   fs.FileInfo
	length int64
}

// openChecked opens a file that the plan was checked with when it had a length. Nothing is read of one that has another.
func (e *Engine) openChecked(ctx context.Context, what, name string, length int64) (*checked, error) {
	file, err := e.openFile(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", what, name, err)
	}
	info, err := awaited(ctx, file.Stat, nil)
	switch {
	case err != nil:
		err = fmt.Errorf("%s %q: %w", what, name, err)
	case info.Size() != length:
		err = notSame(what, name)
	default:
		return &checked{file, e, info, length}, nil
	}
	return nil, errors.Join(err, file.Close())
}

// reading reads the file from where it stands: it ends when ctx does, and what has been read counts as progress.
func (c *checked) reading(ctx context.Context) io.Reader {
	return regular.Exact(counted{newPatient(ctx, c), c.e}, c.length)
}

type counted struct {
	io.Reader
	e *Engine
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
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

const ofTrace = "trace"

// openTrace opens a trace where this process finds it, once it is the one that the plan was checked with. What it returns opens it again, to be read
// until a context ends.
func (e *Engine) openTrace(ctx context.Context, t *plan.Trace) (func(context.Context) (io.ReadSeekCloser, error), error) {
	file, err := e.openChecked(ctx, ofTrace, t.File, t.Length)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	switch is, err := digest(file.reading(ctx)); {
	case errors.Is(err, regular.ErrLength):
		return nil, notSame(ofTrace, t.File)
	case err != nil:
		return nil, fmt.Errorf("%s %q: %w", ofTrace, t.File, err)
	case is != t.SHA256:
		return nil, notSame(ofTrace, t.File)
	}
	return func(ctx context.Context) (io.ReadSeekCloser, error) {
		again, err := e.openChecked(ctx, ofTrace, t.File, t.Length)
		if err != nil {
			return nil, err
		}
		if !os.SameFile(again.info, file.info) || !again.info.ModTime().Equal(file.info.ModTime()) {
			return nil, errors.Join(notSame(ofTrace, t.File), again.Close())
		}
		return &replayed{patient: newPatient(ctx, again), length: t.Length}, nil
	}, nil
}

// replayed is a trace that is read from its beginning to its end, once or again and again, and keeps its length.
type replayed struct {
	*patient
	length int64
	whole  io.Reader
}

func (r *replayed) Read(p []byte) (int, error) {
	if r.whole == nil {
		r.whole = regular.Exact(r.patient, r.length)
	}
	return r.whole.Read(p)
}

// Seek goes to the beginning.
func (r *replayed) Seek(offset int64, whence int) (int64, error) {
	r.whole = nil
	return r.patient.Seek(offset, whence)
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
	file, err := e.openChecked(ctx, what, f.Path, f.Length)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	set, sum, err := entries.Read(file.reading(ctx), from, count, f.Bytes)
	if err != nil {
		// What is wrong with it says what it holds, which is nobody's business but theirs who have the file themselves.
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s %q: %w", what, f.Path, context.Cause(ctx))
		}
		if _, again := file.Seek(0, io.SeekStart); again == nil {
			sum, _ = digest(file.reading(ctx))
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
