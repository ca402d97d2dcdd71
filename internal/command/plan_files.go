package command

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/dialect"
	"github.com/loadgen/loadgen/internal/plan/keyfile"
	"github.com/loadgen/loadgen/internal/plan/rowfile"
	"github.com/loadgen/loadgen/internal/plan/trace"
	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/plan"
)

// namedFiles are the files that a plan names: traces, keys and values. Each is read once, however often an experiment's variants ask for it.
type namedFiles struct {
	dir   string // base of relative paths
	found map[string]finding
	order []string // of found
}

// finding is the result of reading a file.
type finding struct {
	path, sum, says string
	facts           any
	err             error
}

func newNamedFiles(dir string) namedFiles { return namedFiles{dir: dir, found: map[string]finding{}} }

// once returns the facts of a file, which it reads in the given way, and only the first time.
func once[T any](n *namedFiles, file string, way []string, read func(r io.Reader, length int64) finding) (facts T, err error) {
	key := fmt.Sprintf("%q", append(way, file))
	f, known := n.found[key]
	if !known {
		f = n.look(file, read)
		n.found[key], n.order = f, append(n.order, key)
	}
	facts, _ = f.facts.(T)
	return facts, f.err
}

// look reads a file. An error about a line starts with the file's path.
func (n *namedFiles) look(file string, read func(r io.Reader, length int64) finding) finding {
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(n.dir, path)
	}
	from, err := safefile.Open(path)
	if errors.Is(err, safefile.ErrKind) {
		return finding{err: err}
	}
	if err != nil {
		return finding{err: fmt.Errorf("%w: paths begin where the plan is, or in --files DIR", err)}
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return finding{err: err}
	}
	f := read(safefile.Exact(from, info.Size()), info.Size())
	f.path = path
	var bad *rowfile.Error
	switch {
	case errors.As(f.err, &bad):
		f.err = fmt.Errorf("%s:%w", path, bad)
	case errors.Is(f.err, safefile.ErrLength):
		f.err = fmt.Errorf("read %s: %w: wait until nothing writes to it", path, f.err)
	}
	return f
}

// trace reads a trace. timed says whether its times matter.
func (n *namedFiles) trace(path, form string, timed bool) (plan.TraceFacts, error) {
	return once[plan.TraceFacts](n, path, []string{"trace", form, strconv.FormatBool(timed)}, func(r io.Reader, length int64) finding {
		is, err := trace.Read(r, form, timed)
		facts := plan.TraceFacts{
			SHA256: is.SHA256, Length: length, Lines: is.Lines, Span: time.Duration(is.Span), Verbs: is.Verbs[:], Ops: is.Ops, LeftOut: is.LeftOut, Commands: is.Commands,
			Keys: is.Keys, Longest: is.Longest, Below: is.Below, Together: is.Together,
		}
		says := fmt.Sprintf("%d ops", is.Lines)
		if timed {
			says += fmt.Sprintf(" over %v", facts.Span)
		}
		if is.Keys > 0 {
			says += fmt.Sprintf(", chains of %d keys in all, up to %d each", is.Keys, is.Longest)
			if timed {
				says += fmt.Sprintf(", up to %d at once", is.Together)
			}
		}
		for i, name := range slices.Sorted(maps.Keys(is.LeftOut)) {
			says += []string{"; left out: ", ", "}[min(i, 1)] + fmt.Sprintf("%d %s", is.LeftOut[name], dialect.Printable(name))
		}
		for i, name := range is.Unused {
			says += []string{"; fields not used: ", ", "}[min(i, 1)] + dialect.Printable(name)
		}
		return finding{sum: is.SHA256, says: says, facts: facts, err: err}
	})
}

// keys reads a file's keys.
func (n *namedFiles) keys(path, form, field string) (plan.EntryFacts, error) {
	return once[plan.EntryFacts](n, path, []string{"keys", form, field}, func(r io.Reader, length int64) finding {
		if form == keyfile.Vegeta {
			return n.targets(path, r, length)
		}
		is, err := keyfile.Check(r, keyfile.Source{Form: form, Field: field})
		says := fmt.Sprintf("%d keys", is.Count)
		if form == keyfile.RowForm {
			says = fmt.Sprintf("%d rows: %s", is.Count, dialect.Printable(strings.Join(is.Columns, ", ")))
		}
		return finding{sum: is.SHA256, says: says, facts: entryFacts(is, length), err: err}
	})
}

// targets reads vegeta targets, and the bodies that they name, beside the targets' own file.
func (n *namedFiles) targets(file string, r io.Reader, length int64) finding {
	is, err := keyfile.ReadTargets(r, func(path string) (io.ReadCloser, error) {
		return safefile.OpenBelow(cmp.Or(n.dir, "."), filepath.Join(filepath.Dir(file), path))
	})
	if err != nil {
		return finding{err: err}
	}
	says := fmt.Sprintf("%d requests", is.Count)
	switch n := len(is.Bodies); {
	case n == 1:
		says += ", a body in " + is.Bodies[0]
	case n > 1:
		says += fmt.Sprintf(", bodies in %s and %d more files", is.Bodies[0], n-1)
	}
	facts := entryFacts(is.Facts, length)
	facts.Server, facts.Line = is.Server, is.Line
	return finding{sum: is.SHA256, says: says, facts: facts}
}

// content reads a file that becomes part of the plan.
func (n *namedFiles) content(path string) ([]byte, error) {
	return once[[]byte](n, path, []string{"content"}, func(r io.Reader, length int64) finding {
		data, err := io.ReadAll(io.LimitReader(r, plan.MostContent+1))
		if len(data) > plan.MostContent {
			err = fmt.Errorf("%s has %d bytes: a file of a request may have %v", path, length, driver.Size(plan.MostContent))
		}
		return finding{sum: fmt.Sprintf("%x", sha256.Sum256(data)), says: fmt.Sprintf("%d bytes, in the plan itself", length), facts: data, err: err}
	})
}

// entryFacts are the results for a file of the given length.
func entryFacts(is keyfile.Facts, length int64) plan.EntryFacts {
	return plan.EntryFacts{SHA256: is.SHA256, Length: length, Count: is.Count, Bytes: is.Bytes, Least: is.Least, Largest: is.Largest, Columns: is.Columns}
}

// values reads a file's values.
func (n *namedFiles) values(path, form, field, encoding string) (plan.EntryFacts, error) {
	return once[plan.EntryFacts](n, path, []string{"values", form, field, encoding}, func(r io.Reader, length int64) finding {
		is, err := keyfile.Check(r, keyfile.Source{Form: form, Field: field, Values: true, Encoding: encoding})
		facts := entryFacts(is, length)
		if err != nil {
			return finding{err: err}
		}
		held := plan.ValueFile{EntryFile: plan.EntryFile{Bytes: is.Bytes}, Count: is.Count}
		return finding{sum: is.SHA256, says: fmt.Sprintf("%d values of %d to %d bytes, %.1f on average", is.Count, is.Least, is.Largest, held.Mean()), facts: facts}
	})
}

// report says which files were read, and what they contain.
func (n *namedFiles) report(w io.Writer) error {
	if len(n.order) == 0 {
		return nil
	}
	fmt.Fprintln(w, "\nFiles that were read; a worker elsewhere must find the same ones:")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, key := range n.order {
		f := n.found[key]
		fmt.Fprintf(t, "  %s\t%s\tSHA-256 %s\n", f.path, f.says, f.sum)
	}
	return t.Flush()
}
