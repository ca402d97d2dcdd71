package rundir

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestReopen makes a result of a run whose coordinator ended wherever a crash may have cut its log.
func TestReopen(t *testing.T) {
	for _, cut := range []int{0, 1, 7, 30} {
		root := t.TempDir()
		d := create(t, root)
		require.NoError(t, d.Append("w1", []byte("the first snapshot")))
		require.NoError(t, d.Append("", []byte("of the coordinator")))
		require.NoError(t, d.Sync())
		path := filepath.Join(d.Path(), logFile)
		whole, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, d.Append("w1", []byte("the last snapshot, of many bytes")))
		_, _, err = Reopen(root, id)
		require.ErrorIs(t, err, ErrInUse)
		abandon(t, d)
		require.NoError(t, os.Truncate(path, int64(len(whole)+cut)))

		again, torn, err := Reopen(root, id)
		require.NoError(t, err)
		require.EqualValues(t, cut, torn)
		var records []string
		require.NoError(t, again.Records(func(worker, record []byte) error {
			records = append(records, string(worker)+": "+string(record))
			return nil
		}))
		require.Equal(t, []string{"w1: the first snapshot", ": of the coordinator"}, records)
		require.NoError(t, again.Discard())
		after, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Len(t, after, len(whole)+cut, "as it was found")

		again, _, err = Reopen(root, id)
		require.NoError(t, err)
		require.NoError(t, again.Finish(result()))
		after, err = os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, whole, after)
		n := 0
		require.NoError(t, Snapshots(root, id, func(_, _ []byte) error { n++; return nil }))
		require.Equal(t, 1, n, "the coordinator's own record is no snapshot")
		_, _, err = Reopen(root, id)
		require.ErrorContains(t, err, "it has its result")
	}
}

// TestReopenRefuses what no coordinator has left behind.
func TestReopenRefuses(t *testing.T) {
	root := t.TempDir()
	_, _, err := Reopen(root, id)
	require.EqualError(t, err, "no run "+id+" in "+root)
	_, _, err = Reopen(root, "..")
	require.ErrorContains(t, err, "a name has")
	x, err := CreateExperiment(root, experiment())
	require.NoError(t, err)
	require.NoError(t, x.Close())
	_, _, err = Reopen(root, filepath.Base(x.Path()))
	require.ErrorContains(t, err, "it is an experiment")

	d := create(t, root)
	abandon(t, d)
	path := filepath.Join(d.Path(), logFile)
	require.NoError(t, os.Remove(path))
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, _, err = Reopen(root, id)
	require.ErrorContains(t, err, "only regular files are read")
}
