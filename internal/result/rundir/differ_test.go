package rundir

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each place in which two results differ is named with both values, cut short.
func TestDifferences(t *testing.T) {
	long := strings.Repeat("x", 200)
	a := map[string]any{"same": []int{1}, "in": map[string]any{"x": 1, "list": []int{1, 2}, "short": []int{1, 2}, "kind": []int{1}}, "long": long, "null": nil}
	b := map[string]any{"same": []int{1}, "in": map[string]any{"x": 2, "list": []int{1, 3}, "short": []int{1}, "kind": "a"}, "long": 1, "more": true}
	found, err := Differences(a, b)
	require.NoError(t, err)
	require.Equal(t, []string{
		`in.kind: [1], not "a"`, "in.list[1]: 2, not 3", "in.short: [1,2], not [1]", "in.x: 1, not 2", `long: "` + long[:119] + "…, not 1", "more: null, not true",
	}, found)
	found, err = Differences(a, a)
	require.NoError(t, err)
	require.Empty(t, found)
	_, err = Differences(func() {}, a)
	require.ErrorContains(t, err, "compare results: ")
}
