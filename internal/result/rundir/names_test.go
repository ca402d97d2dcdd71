package rundir

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// No name leads out of the root, whatever is done with it.
func TestNamesThatNoRunCanHave(t *testing.T) {
	root := t.TempDir()
	for _, id := range []string{"", "..", ".hidden", "a/b", "a b", strings.Repeat("x", 129)} {
		_, created := Create(root, id, nil)
		_, begun := CreateExperiment(root, &run.Experiment{ID: id})
		_, loaded := Load(root, id)
		_, experiment := LoadExperiment(root, id)
		_, plan := Plan(root, id)
		_, settings := Settings(root, id, nil)
		_, _, reopened := Reopen(root, id)
		_, doomed := DeletedWith(root, []string{id})
		_, packable := Packable(root, []string{id})
		for i, err := range []error{
			created, begun, loaded, experiment, plan, settings, reopened, doomed, packable,
			Snapshots(root, id, nil), Records(root, id, nil), Probes(root, id, nil), Samples(root, id, nil), Delete(root, id),
		} {
			require.ErrorContains(t, err, "a name has ", "%d: %q", i, id)
		}
	}
	left, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Empty(t, left)
}

// Whatever stands in the place of a run's files is read as none, and the error says which. What need not be there is not missed.
func TestFilesThatAreNone(t *testing.T) {
	root := t.TempDir()
	read := map[string]func(id string) error{
		"read the plan of run x: ":            func(id string) error { _, err := Plan(root, id); return err },
		"read the settings of experiment x: ": func(id string) error { _, err := Settings(root, id, nil); return err },
		"read the snapshots of run x: ":       func(id string) error { return Snapshots(root, id, nil) },
		"read what was observed in run x: ":   func(id string) error { return Probes(root, id, nil) },
		"read the samples of run x: ":         func(id string) error { return Samples(root, id, nil) },
		"load run x: ":                        func(id string) error { _, err := Load(root, id); return err },
		"load experiment x: ":                 func(id string) error { _, err := LoadExperiment(root, id); return err },
		"take run x: it has its result":       func(id string) error { _, _, err := Reopen(root, id); return err },
		"pack x: ":                            func(id string) error { return Pack(io.Discard, root, []string{id}) },
	}
	for _, name := range append(packed, unverifiedFile) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, "x", name), 0o700))
	}
	for says, f := range read {
		require.ErrorContains(t, f("x"), says)
	}
	all, err := List(root)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.NotEmpty(t, all[0].Unfinished)

	require.NoError(t, os.Mkdir(filepath.Join(root, "y"), 0o700))
	require.NoError(t, Probes(root, "y", nil))
	require.ErrorIs(t, Samples(root, "y", nil), ErrNoSamples)
	_, err = Load(root, "y")
	require.EqualError(t, err, "run y is unfinished: it has no result.json")
	_, _, err = Reopen(root, "z")
	require.EqualError(t, err, "no run z in "+root)
	_, err = DeletedWith(root, []string{"z"})
	require.EqualError(t, err, "no run z in "+root)
	require.ErrorIs(t, Delete(root, "z"), os.ErrNotExist)
	_, err = List(filepath.Join(root, "x", planFile, "none"))
	require.NoError(t, err)
}
