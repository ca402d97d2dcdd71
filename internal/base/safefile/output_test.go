package safefile_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/safefile"
)

// text writes a text to a file that is replaced.
func text(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// requireFiles checks that a directory has these files and no others: no temporary file is left.
func requireFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	require.Equal(t, names, have)
}

func TestAFileIsReplacedWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	require.NoError(t, safefile.Replace(path, text("first")))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o644), info.Mode())

	require.NoError(t, os.Chmod(path, 0o600))
	before, err := os.Open(path)
	require.NoError(t, err)
	defer before.Close()
	require.NoError(t, safefile.Replace(path, func(w io.Writer) error {
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "first", string(now), "while it is written")
		return text("second")(w)
	}))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "second", string(now))
	old, err := io.ReadAll(before)
	require.NoError(t, err)
	require.Equal(t, "first", string(old), "for who has it open")
	info, err = os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode(), "it keeps its permissions")
	requireFiles(t, dir, "out")
}

func TestAFileThatCannotBeWrittenStays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	require.NoError(t, safefile.Replace(path, text("first")))
	cause := errors.New("cause")
	require.ErrorIs(t, safefile.Replace(path, func(w io.Writer) error { return errors.Join(text("half")(w), cause) }), cause)
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "first", string(now))
	requireFiles(t, dir, "out")
}

// Behind a link, the file is replaced, and the link stays a link.
func TestALinkStays(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "far"), 0o755))
	far, link := filepath.Join(dir, "far", "out"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(far, []byte("first"), 0o644))
	require.NoError(t, os.Symlink(filepath.Join("far", "out"), link))
	require.NoError(t, safefile.Replace(link, text("second")))
	now, err := os.ReadFile(far)
	require.NoError(t, err)
	require.Equal(t, "second", string(now))
	to, err := os.Readlink(link)
	require.NoError(t, err)
	require.Equal(t, filepath.Join("far", "out"), to)
	requireFiles(t, filepath.Join(dir, "far"), "out")
}

func TestADeviceIsWrittenTo(t *testing.T) {
	require.NoError(t, safefile.Check("--out", os.DevNull))
	require.NoError(t, safefile.Replace(os.DevNull, text("first")))
	info, err := os.Stat(os.DevNull)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&fs.ModeDevice, "it is one still")
}

func TestCheckLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	require.NoError(t, safefile.Check("--out", ""))
	require.NoError(t, safefile.Check("--out", path))
	requireFiles(t, dir)
	require.NoError(t, safefile.Replace(path, text("first")))
	require.NoError(t, safefile.Check("--out", path))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "first", string(now))
	requireFiles(t, dir, "out")
}

// Errors name the file as the user did, not the temporary one beside it.
func TestWhatIsWrongIsSaidOfTheFileAsked(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none", "out")
	require.EqualError(t, safefile.Check("--report", none), "--report: open "+none+": no such file or directory")
	require.EqualError(t, safefile.Replace(none, text("first")), "open "+none+": no such file or directory")
	require.EqualError(t, safefile.Check("--report", dir), "--report: "+dir+" is a directory: write the name of a file")
	require.EqualError(t, safefile.Replace(dir, text("first")), dir+" is a directory: write the name of a file")
}

func TestJSONIsForPeopleToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out.json")
	require.NoError(t, safefile.Replace(path, safefile.JSON(map[string]string{"a": "<b> & c"})))
	now, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "{\n  \"a\": \"<b> & c\"\n}\n", string(now))
	require.Error(t, safefile.Replace(path, safefile.JSON(func() {})), "what has no JSON")
	again, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, now, again)
}
