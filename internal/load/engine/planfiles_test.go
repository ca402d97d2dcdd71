package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/safefile"
	"github.com/loadgen/loadgen/internal/plan/workload"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/pkg/plan"
)

// in opens files below a directory.
func in(dir string) func(string) (File, error) {
	return func(path string) (File, error) { return safefile.OpenBelow(dir, path) }
}

// The keys of a file are read once while they are in use, and only from the file that the plan was checked with.
func TestKeysOfAFileAreHeldOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.txt")
	write := func(text string) string {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	e := New(Config{Open: in(dir)})
	made, err := e.keysOf(t.Context(), plan.Keys{Count: 3})
	require.NoError(t, err)
	require.Nil(t, made)

	of := plan.EntryFile{Path: "keys.txt", Form: "lines", SHA256: write("a\nb\n"), Length: 4, Bytes: 10}
	first, err := e.keysOf(t.Context(), plan.Keys{Count: 2, File: &of})
	require.NoError(t, err)
	require.Equal(t, 2, first.Len())
	other := write("c\nd\n")
	same := of
	again, err := e.keysOf(t.Context(), plan.Keys{Count: 2, File: &same})
	require.NoError(t, err)
	require.Same(t, first, again)
	made, err = e.keysOf(t.Context(), plan.Keys{Count: 3})
	require.NoError(t, err)
	require.Nil(t, made, "another dataset makes its keys")

	of.Path = path
	_, err = e.keysOf(t.Context(), plan.Keys{Count: 2, File: &of})
	require.ErrorContains(t, err, `file of keys "`+path+`" is not the file that the plan was checked with: copy that to where the load runs`)
	require.NotContains(t, err.Error(), other)
	of.SHA256 = other
	next, err := e.keysOf(t.Context(), plan.Keys{Count: 2, File: &of})
	require.NoError(t, err)
	require.Equal(t, "c", string(next.Append(nil, 0)))

	write("c\nd e\n")
	of.Length, of.Bytes = 6, 11
	_, err = e.keysOf(t.Context(), plan.Keys{Count: 2, File: &of})
	require.ErrorContains(t, err, "is not the file that the plan was checked with", "what is wrong with another file is not said")
	of.SHA256 = write("c\nd e\n")
	_, err = e.keysOf(t.Context(), plan.Keys{Count: 2, File: &of})
	require.ErrorContains(t, err, path+":2:1: a key with the byte 0x20")
	_, err = e.keysOf(t.Context(), plan.Keys{Count: 2, File: &plan.EntryFile{Path: "none.txt"}})
	require.ErrorContains(t, err, `file of keys "none.txt": open`)
	_, err = New(Config{}).keysOf(t.Context(), plan.Keys{Count: 2, File: &of})
	require.ErrorContains(t, err, "this worker opens no files: start it with --files DIR")
	ended, end := context.WithCancel(t.Context())
	end()
	of.SHA256, of.Length = write("c\nd\n"), 4
	_, err = e.keysOf(ended, plan.Keys{Count: 2, File: &of})
	require.ErrorIs(t, err, context.Canceled)
}

// A phase whose dataset's files are not there is not prepared.
func TestFilesOfADatasetAreThere(t *testing.T) {
	e := New(Config{Open: in(t.TempDir())})
	e.plan = nullPlan(t, 1, "", "ops = { get = 1 }\nclosed { iterations = 1 }")
	ph, data := e.plan.Phase("load"), e.plan.Dataset("d")
	all, err := e.filesOf(t.Context(), ph)
	require.NoError(t, err)
	require.Equal(t, map[string]workload.Files{"d": {}}, all)
	data.Values.File = &plan.ValueFile{EntryFile: plan.EntryFile{Path: "values.txt"}}
	_, err = e.filesOf(t.Context(), ph)
	require.ErrorContains(t, err, `file of values "values.txt": open`)
	data.Keys.File = &plan.EntryFile{Path: "keys.txt"}
	_, err = e.filesOf(t.Context(), ph)
	require.ErrorContains(t, err, `file of keys "keys.txt": open`)
}

// Values of a file are kept beside its keys, and differ in another encoding.
func TestValuesOfAFileAreHeldOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "values.txt")
	require.NoError(t, os.WriteFile(path, []byte("YQ==\nYg==\n"), 0o644))
	sum := sha256.Sum256([]byte("YQ==\nYg==\n"))
	e := New(Config{Open: in(dir)})
	made, err := e.valuesOf(t.Context(), plan.Values{Size: 3})
	require.NoError(t, err)
	require.Nil(t, made)

	of := plan.ValueFile{EntryFile: plan.EntryFile{Path: "values.txt", Form: "lines", SHA256: hex.EncodeToString(sum[:]), Length: 10, Bytes: 16}, Encoding: "text", Count: 2}
	first, err := e.valuesOf(t.Context(), plan.Values{File: &of})
	require.NoError(t, err)
	require.Equal(t, "YQ==", string(first.Append(nil, 0)))
	_, err = e.keysOf(t.Context(), plan.Keys{Count: 2, File: &of.EntryFile})
	require.NoError(t, err)
	again, err := e.valuesOf(t.Context(), plan.Values{File: &of})
	require.NoError(t, err)
	require.Same(t, first, again)
	of.Encoding, of.Bytes = "base64", 10
	decoded, err := e.valuesOf(t.Context(), plan.Values{File: &of})
	require.NoError(t, err)
	require.Equal(t, "a", string(decoded.Append(nil, 0)))
	require.NoError(t, os.WriteFile(path, []byte("YQ==\n"), 0o644))
	of.Path = path
	_, err = e.valuesOf(t.Context(), plan.Values{File: &of})
	require.ErrorContains(t, err, `file of values "`+path+`" is not the file that the plan was checked with`)
}

// TestReadingFilesIsProgress counts the bytes of files that a plan names as they are read.
func TestReadingFilesIsProgress(t *testing.T) {
	dir := t.TempDir()
	e := New(Config{Open: in(dir)})
	text := strings.Repeat("key,1\n", 1000)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trace.csv"), []byte(text), 0o600))
	sum := sha256.Sum256([]byte(text))
	_, err := e.openTrace(t.Context(), &plan.Trace{File: "trace.csv", SHA256: hex.EncodeToString(sum[:]), Length: int64(len(text))})
	require.NoError(t, err)
	require.EqualValues(t, len(text), e.Progress())
}

// A file of requests is kept with its bodies, and refused once one of these has changed.
func TestRequestsOfAFileAreHeldWithTheirBodies(t *testing.T) {
	const text = "POST http://h:80/a\n@body\n"
	dir := t.TempDir()
	write := func(name, text string) string {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	write("requests", text)
	sum := sha256.Sum256([]byte(text + write("body", "hello") + "  body\n"))
	of := plan.EntryFile{Path: "requests", Form: "vegeta", SHA256: hex.EncodeToString(sum[:]), Length: int64(len(text)), Bytes: 100, Server: "http://h:80", Line: 1}
	read := func(f plan.EntryFile) (string, error) {
		set, err := New(Config{Open: in(dir)}).keysOf(t.Context(), plan.Keys{Count: 1, File: &f})
		if err != nil {
			return "", err
		}
		return string(set.Append(nil, 0)), nil
	}
	key, err := read(of)
	require.NoError(t, err)
	require.Equal(t, "POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", key)

	elsewhere := of
	elsewhere.Server = "http://i:80"
	_, err = read(elsewhere)
	require.ErrorContains(t, err, "is not the file that the plan was checked with", "its requests would go to another server")
	const refusal = `file of requests, with its bodies, "requests" is not the file that the plan was checked with: copy that to where the load runs`
	write("body", "hallo")
	_, err = read(of)
	require.EqualError(t, err, refusal)
	require.NoError(t, os.Remove(filepath.Join(dir, "body")))
	_, err = read(of)
	require.EqualError(t, err, refusal)
	_, err = New(Config{Open: in(dir)}).openBody(t.Context(), "body")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// scripted is a file in memory that says what a test wants of itself.
type scripted struct {
	*strings.Reader
	size   int64
	gone   error // in place of a size
	closed int
}

func (s *scripted) Stat() (fs.FileInfo, error) { return sized(s.size), s.gone }

func (s *scripted) Close() error {
	s.closed++
	return nil
}

// A trace is refused if its length cannot be told, is not what the plan says or is not what the file says, or if anything else stands in it. It is
// closed all the same.
func TestTracesThatAreRefused(t *testing.T) {
	const text, refusal = "a\nb\nc\n", `trace "f" is not the file that the plan was checked with: copy that to where the load runs`
	sum := sha256.Sum256([]byte(text))
	trace := plan.Trace{File: "f", SHA256: hex.EncodeToString(sum[:]), Length: 6}
	for _, tt := range []struct {
		text string
		size int64
		gone error
		want string
	}{
		{text, 6, nil, ""},
		{text, 6, errors.New("stale"), `trace "f": stale`},
		{text, 7, nil, refusal},
		{text[:5], 6, nil, refusal},
		{text + "d", 6, nil, refusal},
		{"a\nb\nd\n", 6, nil, refusal},
	} {
		file := &scripted{Reader: strings.NewReader(tt.text), size: tt.size, gone: tt.gone}
		_, err := New(Config{Open: func(string) (File, error) { return file, nil }}).openTrace(t.Context(), &trace)
		require.Equal(t, 1, file.closed, "%+v", tt)
		if tt.want == "" {
			require.NoError(t, err)
			continue
		}
		require.EqualError(t, err, tt.want, "%+v", tt)
	}
}

// A trace that another file has taken the place of is not read again, even if it looks the same.
func TestTraceThatWasReplaced(t *testing.T) {
	const text = "0,key,3,10,1,get,0\n"
	sum := sha256.Sum256([]byte(text))
	dir := t.TempDir()
	path, other, at := filepath.Join(dir, "t.csv"), filepath.Join(dir, "other"), time.Now().Add(-time.Hour)
	for _, name := range []string{path, other} {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		require.NoError(t, os.Chtimes(name, at, at))
	}
	trace := plan.Trace{File: "t.csv", SHA256: hex.EncodeToString(sum[:]), Length: int64(len(text))}
	open, err := New(Config{Open: in(dir)}).openTrace(t.Context(), &trace)
	require.NoError(t, err)
	again, err := open(t.Context())
	require.NoError(t, err)
	require.NoError(t, again.Close())
	require.NoError(t, os.Rename(other, path))
	_, err = open(t.Context())
	require.ErrorContains(t, err, "is not the file that the plan was checked with")
}

// Files are read once for as long as consecutive phases use them, and again by a phase that comes back to them.
func TestFilesAreHeldWhilePhasesUseThem(t *testing.T) {
	dir := t.TempDir()
	entries := func(name, text string) plan.EntryFile {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
		sum := sha256.Sum256([]byte(text))
		return plan.EntryFile{Path: name, Form: "lines", SHA256: hex.EncodeToString(sum[:]), Length: int64(len(text)), Bytes: 100}
	}
	e := New(Config{Open: in(dir)})
	e.plan = parsePlan(t, `
		target "t" {
			driver    = "null"
			endpoints = ["e0:1"]
		}
		dataset "d" {
			keys { count = 2 }
			values { size = 10 }
		}
		dataset "e" {
			keys { count = 3 }
			values { size = 10 }
		}
		phase "one" {
			target  = target.t
			dataset = dataset.d
			ops     = { put = 1 }
			closed { iterations = 1 }
		}
		phase "two" {
			target  = target.t
			dataset = dataset.e
			ops     = { put = 1 }
			closed { iterations = 1 }
		}`)
	keys, others := entries("keys", "a\nb\n"), entries("others", "c\nd\ne\n")
	e.plan.Dataset("d").Keys.File, e.plan.Dataset("e").Keys.File = &keys, &others
	e.plan.Dataset("d").Values.File = &plan.ValueFile{EntryFile: entries("values", "value\n"), Encoding: "text", Count: 1}
	for i, tt := range []struct {
		phase, dataset     string
		keys, values, read int
	}{{"one", "d", 2, 1, 4 + 6}, {"one", "d", 2, 1, 0}, {"two", "e", 3, 0, 6}, {"two", "e", 3, 0, 0}, {"one", "d", 2, 1, 4 + 6}} {
		before := e.Progress()
		all, err := e.filesOf(t.Context(), e.plan.Phase(tt.phase))
		require.NoError(t, err)
		require.EqualValues(t, tt.read, e.Progress()-before, "bytes read for phase %d", i)
		require.Len(t, all, 1)
		require.Equal(t, tt.keys, all[tt.dataset].Keys.Len())
		if tt.values == 0 {
			require.Nil(t, all[tt.dataset].Values)
		} else {
			require.Equal(t, tt.values, all[tt.dataset].Values.Len())
		}
	}
}

// What is wrong with a file is said if it is the one that the plan was checked with. Requests are keys, and no values.
func TestFilesThatCannotBeRead(t *testing.T) {
	const text = "no request\n"
	sum := sha256.Sum256([]byte(text))
	of := plan.EntryFile{Path: "f", Form: "vegeta", SHA256: hex.EncodeToString(sum[:]), Length: int64(len(text))}
	e := New(Config{Open: func(string) (File, error) { return &scripted{Reader: strings.NewReader(text), size: of.Length}, nil }})
	_, err := e.keysOf(t.Context(), plan.Keys{File: &of})
	require.ErrorContains(t, err, "file of requests, with its bodies, f:1:")
	_, err = e.valuesOf(t.Context(), plan.Values{File: &plan.ValueFile{EntryFile: of}})
	require.ErrorContains(t, err, `file of values f:values in the form "vegeta": there are lines, csv and json`)
}

// Whoever calls off reading a file is told nothing of what it holds, not even if that is known to be wrong: nobody knows yet whether it is the file
// that the plan was checked with.
func TestFileWhoseReadingIsCalledOff(t *testing.T) {
	for _, text := range []string{"a\nb\nc\n", "a b\nc\n"} {
		servertest.Bubble(t, func(t *testing.T) {
			keys := &stuck{
				Reader: bytes.NewReader([]byte(text)), size: 6, halt: 4,
				asked: make(chan struct{}, 1), free: make(chan struct{}), closed: make(chan struct{}),
			}
			e := New(Config{Open: func(string) (File, error) { return keys, nil }})
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := e.keysOf(ctx, plan.Keys{Count: 3, File: &plan.EntryFile{Path: "f", Form: "lines", Length: 6}})
				ended <- err
			}()
			<-keys.asked
			cancel(errors.New("called off"))
			require.EqualError(t, <-ended, `file of keys "f": called off`)
			close(keys.free)
			<-keys.closed
		})
	}
}
