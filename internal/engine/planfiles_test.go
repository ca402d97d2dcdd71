package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/regular"
	"github.com/loadgen/loadgen/internal/servertest"
	"github.com/loadgen/loadgen/internal/workload"
	"github.com/loadgen/loadgen/pkg/plan"
	"github.com/loadgen/loadgen/pkg/plan/file"
)

// in opens files below a directory.
func in(dir string) func(string) (File, error) {
	return func(path string) (File, error) { return regular.OpenBelow(dir, path) }
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

	of := file.EntryFile{Path: "keys.txt", Form: "lines", SHA256: write("a\nb\n"), Length: 4, Bytes: 10}
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
	_, err = e.keysOf(t.Context(), plan.Keys{Count: 2, File: &file.EntryFile{Path: "none.txt"}})
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
	data.Values.File = &file.ValueFile{EntryFile: file.EntryFile{Path: "values.txt"}}
	_, err = e.filesOf(t.Context(), ph)
	require.ErrorContains(t, err, `file of values "values.txt": open`)
	data.Keys.File = &file.EntryFile{Path: "keys.txt"}
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

	of := file.ValueFile{EntryFile: file.EntryFile{Path: "values.txt", Form: "lines", SHA256: hex.EncodeToString(sum[:]), Length: 10, Bytes: 16}, Encoding: "text", Count: 2}
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
	of := file.EntryFile{Path: "requests", Form: "vegeta", SHA256: hex.EncodeToString(sum[:]), Length: int64(len(text)), Bytes: 100, Server: "http://h:80", Line: 1}
	read := func(f file.EntryFile) (string, error) {
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
				_, err := e.keysOf(ctx, plan.Keys{Count: 3, File: &file.EntryFile{Path: "f", Form: "lines", Length: 6}})
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
