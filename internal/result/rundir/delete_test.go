package rundir

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

func TestDelete(t *testing.T) {
	root, x := study(t)
	_, err := DeletedWith(root, []string{"r1"})
	require.EqualError(t, err, "run r1 is one of experiment "+x.ID+", which would lose it: delete the experiment")
	_, err = DeletedWith(root, []string{"none"})
	require.EqualError(t, err, "no run none in "+root)
	_, err = DeletedWith(root, []string{"../x"})
	require.ErrorContains(t, err, "a name has")
	all, err := DeletedWith(root, []string{id, "r1", x.ID, id})
	require.NoError(t, err)
	require.Equal(t, []string{x.ID, "r1", "r2", id}, all)

	require.NoError(t, Delete(root, x.ID))
	all, err = DeletedWith(root, []string{"r1"})
	require.NoError(t, err, "what a crash in the middle has left can go by itself")
	require.Equal(t, []string{"r1"}, all)
	for _, name := range []string{"r1", "r2", id} {
		require.NoError(t, Delete(root, name))
	}
	require.Empty(t, treeOf(t, root))
	require.ErrorIs(t, Delete(root, id), os.ErrNotExist)
}

// Neither runs nor experiments can be deleted while a process writes in them; a process that has ended holds nothing.
func TestWhatIsBeingWrittenIsNotDeleted(t *testing.T) {
	root := t.TempDir()
	d := create(t, root)
	require.ErrorIs(t, Delete(root, id), ErrInUse)
	require.NoError(t, d.Append("w1", []byte("a")))
	require.NoError(t, d.Finish(result()))

	x := experiment()
	going, err := CreateExperiment(root, x)
	require.NoError(t, err)
	require.ErrorIs(t, Delete(root, x.ID), ErrInUse)
	require.NoError(t, going.Close())
	for _, name := range []string{id, x.ID} {
		require.NoError(t, Delete(root, name))
	}
	require.Empty(t, treeOf(t, root))
}

// A crash in the middle leaves a hidden directory, which is not a run, and which the next deletion removes.
func TestCrashWhileDeleting(t *testing.T) {
	root := t.TempDir()
	finished(t, root, id, "")
	finished(t, root, "r1", "")
	require.NoError(t, os.Rename(filepath.Join(root, id), filepath.Join(root, deleted+id)))
	runs, err := List(root)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.NoError(t, Delete(root, "r1"))
	require.Empty(t, treeOf(t, root))
}

// What is a link to somewhere else is not followed.
func TestDeleteFollowsNoLink(t *testing.T) {
	root, elsewhere := t.TempDir(), t.TempDir()
	finished(t, elsewhere, id, "")
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, id), filepath.Join(root, id)))
	require.Error(t, Delete(root, id))
	r, err := Load(elsewhere, id)
	require.NoError(t, err)
	require.Equal(t, run.Complete, r.Verdict.Completeness)
}
