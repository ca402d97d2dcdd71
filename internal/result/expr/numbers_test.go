package expr

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// numbers returns the paths of all numbers in r's JSON.
func numbers(t *testing.T, r *run.Run) (paths []string) {
	t.Helper()
	b, err := json.Marshal(r)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(b, &v))
	var walk func(v any, path string)
	walk = func(v any, path string) {
		switch v := v.(type) {
		case float64:
			paths = append(paths, path[1:])
		case map[string]any:
			for k, inner := range v {
				walk(inner, path+"."+k)
			}
		case []any:
			for i, inner := range v {
				walk(inner, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	walk(v, "")
	return paths
}
