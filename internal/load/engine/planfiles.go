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
	"path/filepath"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/pkg/plan"
)

// File is a file that a plan names.
type File interface {
	io.ReadSeekCloser
	Stat() (fs.FileInfo, error)
}

// openFile opens a file that the plan names, unless ctx ends first.
func (e *Engine) openFile(ctx context.Context, name string) (File, error) {
	if e.cfg.Open == nil {
		return nil, fmt.Errorf("open %s: this worker opens no files: start it with --files DIR, the directory that they are to be read from", name)
	}
	return awaited(ctx, func() (File, error) { return e.cfg.Open(name) }, func(late File) { _ = late.Close() }) // nothing was read
}

// checked is a file of the plan whose length is as the plan says.
type checked struct {
	File
	e      *Engine
	info   fs.FileInfo
	length int64
}

// openChecked opens a file, and refuses it unless it has the length that it had when the plan was checked.
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

// reading returns a reader from the file's current position. It ends when ctx does, and its bytes count as progress.
func (c *checked) reading(ctx context.Context) io.Reader {
	return safefile.Exact(counted{newPatient(ctx, c), c.e}, c.length)
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

// digest returns the SHA-256 of the rest of a file.
func digest(file io.Reader) (string, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// notSame is the error for a file that is not the one that the plan was checked with. It reveals nothing of the content.
func notSame(what, name string) error {
	return fmt.Errorf("%s %q is not the file that the plan was checked with: copy that to where the load runs", what, name)
}

const ofTrace = "trace"

// openTrace checks that a trace is the one that the plan was checked with. It returns a function that opens the trace for reading until a context
// ends.
func (e *Engine) openTrace(ctx context.Context, t *plan.Trace) (func(context.Context) (io.ReadSeekCloser, error), error) {
	file, err := e.openChecked(ctx, ofTrace, t.File, t.Length)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	switch is, err := digest(file.reading(ctx)); {
	case errors.Is(err, safefile.ErrLength):
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

// replayed is a trace that is read from beginning to end, once or repeatedly; its length must not change.
type replayed struct {
	*patient
	length int64
	whole  io.Reader
}

func (r *replayed) Read(p []byte) (int, error) {
	if r.whole == nil {
		r.whole = safefile.Exact(r.patient, r.length)
	}
	return r.whole.Read(p)
}

// Seek is called for the beginning only.
func (r *replayed) Seek(offset int64, whence int) (int64, error) {
	r.whole = nil
	return r.patient.Seek(offset, whence)
}

// filesOf returns the files of a phase's datasets, and drops those of earlier phases that this one does not use.
func (e *Engine) filesOf(ctx context.Context, ph *plan.Phase) (map[string]workload.Files, error) {
	all, before := map[string]workload.Files{}, e.lists
	e.lists = map[listing]*keyfile.Set{}
	for _, name := range ph.Datasets() {
		data := e.plan.Dataset(name)
		for _, l := range []listing{keysFrom(data.Keys), valuesFrom(data.Values), rowsFrom(data.Rows)} {
			if set := before[l]; set != nil {
				e.lists[l] = set
			}
		}
	}
	for _, name := range ph.Datasets() {
		data := e.plan.Dataset(name)
		keys, err := e.keysOf(ctx, data.Keys)
		if err != nil {
			return nil, err
		}
		values, err := e.valuesOf(ctx, data.Values)
		if err != nil {
			return nil, err
		}
		rows, err := e.listed(ctx, rowsFrom(data.Rows))
		if err != nil {
			return nil, err
		}
		all[name] = workload.Files{Keys: keys, Values: values, Rows: rows}
	}
	return all, nil
}

// keysOf returns a dataset's keys if they are from a file, else nil.
func (e *Engine) keysOf(ctx context.Context, k plan.Keys) (*keyfile.Set, error) {
	return e.listed(ctx, keysFrom(k))
}

// valuesOf returns a dataset's values if they are from a file, else nil.
func (e *Engine) valuesOf(ctx context.Context, v plan.Values) (*keyfile.Set, error) {
	return e.listed(ctx, valuesFrom(v))
}

// listing is a file of keys, values or rows, and its number of entries. The zero value stands for no file.
type listing struct {
	file  plan.EntryFile
	count int64
	from  keyfile.Source
}

func keysFrom(k plan.Keys) listing {
	if k.File == nil {
		return listing{}
	}
	return listing{*k.File, k.Count, keyfile.Source{Form: k.File.Form, Field: k.File.Field}}
}

func valuesFrom(v plan.Values) listing {
	if v.File == nil {
		return listing{}
	}
	return listing{v.File.EntryFile, v.File.Count, keyfile.Source{Form: v.File.Form, Field: v.File.Field, Values: true, Encoding: v.File.Encoding}}
}

func rowsFrom(r *plan.Rows) listing {
	if r == nil {
		return listing{}
	}
	return listing{r.EntryFile, r.Count, keyfile.Source{Form: keyfile.RowForm}}
}

// listed returns the entries of a file and keeps them for later phases; nil for no file.
func (e *Engine) listed(ctx context.Context, l listing) (*keyfile.Set, error) {
	if l == (listing{}) || e.lists[l] != nil {
		return e.lists[l], nil
	}
	set, err := e.readList(ctx, &l.file, l.count, l.from)
	if err != nil {
		return nil, err
	}
	if e.lists == nil {
		e.lists = map[listing]*keyfile.Set{}
	}
	e.lists[l] = set
	return set, nil
}

// readEntries reads the entries of an open file, and returns them with the file's digest.
func (e *Engine) readEntries(ctx context.Context, file *checked, f *plan.EntryFile, count int64, from keyfile.Source) (*keyfile.Set, string, error) {
	if from.Form != keyfile.Vegeta || from.Values {
		return keyfile.Read(file.reading(ctx), from, count, f.Bytes)
	}
	t, err := keyfile.ReadTargets(file.reading(ctx), func(path string) (io.ReadCloser, error) {
		return e.openBody(ctx, filepath.Join(filepath.Dir(f.Path), path))
	})
	if err != nil {
		return nil, "", err
	}
	if t.Server != f.Server {
		return nil, "", notSame("server of requests", f.Path)
	}
	return t.Set, t.SHA256, nil
}

// body is a file that is read until a context ends.
type body struct {
	io.Reader
	io.Closer
}

// openBody opens a file that another file names.
func (e *Engine) openBody(ctx context.Context, path string) (io.ReadCloser, error) {
	file, err := e.openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	return body{counted{newPatient(ctx, file), e}, file}, nil
}

// readList reads the entries of a file, which must number count.
func (e *Engine) readList(ctx context.Context, f *plan.EntryFile, count int64, from keyfile.Source) (*keyfile.Set, error) {
	what := "file of keys"
	switch {
	case from.Values:
		what = "file of values"
	case from.Form == keyfile.RowForm:
		what = "file of rows"
	case from.Form == keyfile.Vegeta:
		what = "file of requests, with its bodies,"
	}
	file, err := e.openChecked(ctx, what, f.Path, f.Length)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	set, sum, err := e.readEntries(ctx, file, f, count, from)
	if err != nil {
		if ctx.Err() == nil {
			if _, again := file.Seek(0, io.SeekStart); again == nil {
				sum, _ = digest(file.reading(ctx))
			}
		}
		switch { // the error may quote the file, which the coordinator may not see
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%s %q: %w", what, f.Path, context.Cause(ctx))
		case sum != f.SHA256:
			return nil, notSame(what, f.Path)
		}
		return nil, fmt.Errorf("%s %s:%w", what, f.Path, err)
	}
	if sum != f.SHA256 {
		return nil, notSame(what, f.Path)
	}
	return set, nil
}
