package rundir

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// probes returns what a run has kept of its observations.
func probes(t *testing.T, root, id string) (all []run.Probe) {
	t.Helper()
	require.NoError(t, Probes(root, id, func(p run.Probe) error {
		all = append(all, p)
		return nil
	}))
	return all
}

func TestProbesAreKept(t *testing.T) {
	root := t.TempDir()
	d := create(t, root)
	id := filepath.Base(d.Path())
	require.Empty(t, probes(t, root, id))
	require.NoFileExists(t, filepath.Join(d.Path(), probesFile), "of a plan that observes nothing")
	var want []run.Probe
	for i := range 3 {
		p := run.Probe{Phase: "get", Observe: "server", When: "during", At: float64(i), Value: map[string]float64{"calls": 5}, Missing: map[string]string{"x": "y\nz"}}
		want = append(want, p)
		b, err := json.Marshal(p)
		require.NoError(t, err)
		require.NoError(t, d.Observe(b))
		require.NoError(t, d.Sync())
		require.Equal(t, want, probes(t, root, id), "on disk after each sync")
	}
	abandon(t, d)

	// A crash tears the last line, wherever it cuts.
	path := filepath.Join(d.Path(), probesFile)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	two := 2 * len(whole) / 3
	for cut := two; cut < len(whole); cut++ {
		require.NoError(t, os.WriteFile(path, whole[:cut], 0o644))
		require.Equal(t, want[:2], probes(t, root, id), cut)
	}
	require.NoError(t, os.WriteFile(path, []byte("{\"at\":1}\nnonsense\n{}\n"), 0o644))
	err = Probes(root, id, func(run.Probe) error { return nil })
	require.ErrorContains(t, err, "line 2")
}
