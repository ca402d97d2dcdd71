package judge

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/base/reason"
	"github.com/loadgen/loadgen/internal/result/run"
)

// alarms returns how many phases the results below a directory have, and what rows of the table say of them, by code.
func alarms(t *testing.T, root string) (phases int, said map[reason.Code][]string) {
	said = map[reason.Code][]string{}
	for _, row := range invariants() {
		said[row.code] = nil
	}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "result.json" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var r run.Run
		if json.Unmarshal(b, &r) != nil {
			return nil // of an experiment, or broken by a test
		}
		for name, p := range r.Phase {
			phases++
			for _, why := range p.Reasons {
				if all, is := said[why.Code]; is {
					said[why.Code] = append(all, filepath.Base(filepath.Dir(path))+", "+name+": "+why.Text)
				}
			}
		}
		return nil
	}))
	return phases, said
}

// TestAlarms prints how many phases each row doubts, of those that a test has made or of those below LOADGEN_TEST_RESULTS. On undisturbed loads, every one
// is false.
func TestAlarms(t *testing.T) {
	root := os.Getenv("LOADGEN_TEST_RESULTS")
	made := root == ""
	if made {
		root = t.TempDir()
		r := run.Run{Phase: map[string]*run.Phase{"a": {Reasons: []run.Reason{{Code: reason.AllMissed}, {Code: reason.Drift}}}, "b": {}}}
		b, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(root, "result.json"), b, 0o600))
	}
	phases, said := alarms(t, root)
	for code, all := range said {
		t.Logf("%s: %d of %d phases", code, len(all), phases)
		for _, text := range all {
			t.Log("  " + text)
		}
	}
	if made {
		require.Equal(t, []int{2, 1, 0}, []int{phases, len(said[reason.AllMissed]), len(said[reason.Drift])})
	}
}
