package run

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nullPaths returns the steps to every null in r's JSON.
func nullPaths(t *testing.T, r *Run) (paths [][]string) {
	t.Helper()
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(b, &v))
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case nil:
			paths = append(paths, slices.Clone(path))
		case map[string]any:
			for k, inner := range v {
				walk(inner, append(path, k))
			}
		case []any:
			for i, inner := range v {
				walk(inner, append(path, strconv.Itoa(i)))
			}
		}
	}
	walk(v, nil)
	return paths
}

func TestJSONRoundTrip(t *testing.T) {
	r := New(Header{ID: "x", StartedAt: time.Date(2026, 11, 20, 17, 34, 38, 0, time.UTC)}, nowhere())
	r.Add("get", newPhase(closedPhase(), openLoad(1000, 0)))
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var back Run
	require.NoError(t, json.Unmarshal(b, &back))
	again, err := json.Marshal(&back)
	require.NoError(t, err)
	require.JSONEq(t, string(b), string(again))
	require.NoError(t, back.CheckValid())
}
