package rundir

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

func experiment() *run.Experiment {
	x := run.NewExperiment("20261120T173430Z-hydra-m4-9b01")
	x.Plan, x.StartedAt, x.Baseline, x.Repeat = "hydra-m4", start, "a", 2
	x.Variants = []run.Variant{{Name: "a", Values: map[string]string{"w": "1"}}}
	return x
}

func TestExperimentDirectory(t *testing.T) {
	root := filepath.Join(t.TempDir(), "runs")
	x := experiment()
	d, err := CreateExperiment(root, x)
	require.NoError(t, err)
	path := d.Path()
	require.Equal(t, filepath.Join(root, x.ID), path)
	_, err = CreateExperiment(root, x)
	require.ErrorIs(t, err, fs.ErrExist)

	r := result()
	r.Variant, r.Repetition = "a", 1
	x.Add(r)
	require.NoError(t, d.Save(x))
	// A crash in the middle of the next change leaves this one.
	require.NoError(t, os.WriteFile(filepath.Join(path, experimentFile+".tmp"), []byte(`{"schema":`), 0o644))
	loaded, err := LoadExperiment(root, x.ID)
	require.NoError(t, err)
	require.Equal(t, x, loaded)

	runs, err := List(root)
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, "experiment, 1 of 2 runs so far", runs[0].Unfinished)
	x.Finished = true
	require.NoError(t, d.Save(x))
	runs, err = List(root)
	require.NoError(t, err)
	require.Equal(t, run.Summary{
		Header: run.Header{ID: x.ID, Plan: "hydra-m4", StartedAt: start, Labels: map[string]string{}}, Verdict: x.Verdict, Runs: 1,
	}, runs[0])
}

func TestExperimentsThatCannotBeLoaded(t *testing.T) {
	root := t.TempDir()
	x := experiment()
	_, err := LoadExperiment(root, x.ID)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = LoadExperiment(root, "../x")
	require.ErrorContains(t, err, "a name has")
	d, err := CreateExperiment(root, x)
	require.NoError(t, err)
	path := d.Path()
	for want, text := range map[string]string{
		"unexpected end of JSON input":                    `{"schema":`,
		"experiment of schema 7, this loadgen reads 2":    `{"schema": 7}`,
		`baseline "b" is not a variant of the experiment`: `{"schema": 2, "baseline": "b"}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(path, experimentFile), []byte(text), 0o644))
		_, err := LoadExperiment(root, x.ID)
		require.ErrorContains(t, err, want)
		runs, err := List(root)
		require.NoError(t, err)
		require.Contains(t, runs[0].Unfinished, want)
	}
}
