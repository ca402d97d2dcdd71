package rundir

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// Each place in which two results differ is named with both values, cut short.
func TestDifferences(t *testing.T) {
	long := strings.Repeat("x", 200)
	a := map[string]any{"same": []int{1}, "in": map[string]any{"x": 1, "list": []int{1, 2}, "short": []int{1, 2}, "kind": []int{1}}, "long": long, "null": nil}
	b := map[string]any{"same": []int{1}, "in": map[string]any{"x": 2, "list": []int{1, 3}, "short": []int{1}, "kind": "a"}, "long": 1, "more": true}
	found := Differences(a, b)
	require.Equal(t, []string{
		`in.kind: [1], not "a"`, "in.list[1]: 2, not 3", "in.short: [1,2], not [1]", "in.x: 1, not 2", `long: "` + long[:119] + "…, not 1", "more: null, not true",
	}, found)
	require.Empty(t, Differences(a, a))
	require.Len(t, Differences(make([]int, 1e6), slices.Repeat([]int{1}, 1e6)), MostDifferences)
	type inner struct{ Shown int }
	type outer struct {
		inner
		Named   *int           `json:"named"`
		Left    map[string]int `json:"left,omitempty"`
		Nothing []int          `json:"nothing"`
		Hidden  int            `json:"-"`
	}
	require.Equal(t, []string{"Shown: 0, not 1", "named: null, not 0", "nothing: null, not []"},
		Differences(&outer{}, &outer{inner: inner{1}, Named: new(int), Left: map[string]int{}, Nothing: []int{}, Hidden: 1}))
}

// A pack's rows cost nothing more when they are compared: 120,000 of them, which a pack of 98 kB can hold, took 300 MB.
func TestDifferencesOfManyRows(t *testing.T) {
	of := func(rows int) *run.Run {
		return &run.Run{Phase: map[string]*run.Phase{"p": {Series: make([]run.Row, rows)}}}
	}
	many, one := of(120_000), of(1)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found := Differences(many, one)
	runtime.ReadMemStats(&after)
	require.Len(t, found, 1)
	require.Contains(t, found[0], "phase.p.series: 120000 of [{")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1_000_000))
}
