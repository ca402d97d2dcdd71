package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/report/page"
	"github.com/loadgen/loadgen/internal/result/run"
	"github.com/loadgen/loadgen/internal/result/timeline"
	"github.com/loadgen/loadgen/internal/servertest"
)

// TestNullsInAResult removes one thing after another from results, as an untrusted sender may. Each is refused, or can be shown. One part in three has
// its turn.
func TestNullsInAResult(t *testing.T) {
	seen, each := map[string]bool{}, 3
	if !servertest.Whole() {
		each = 8
	}
	for _, r := range []*run.Run{good(), levels(), observed()} {
		holed(t, r, seen, each, func(text []byte) (valid func() error, source timeline.Source) {
			var holed run.Run
			require.NoError(t, json.Unmarshal(text, &holed))
			return holed.CheckValid, timeline.Source{Run: &holed}
		})
	}
	x := compared()
	for i := range x.Runs {
		x.Runs[i].Variant = x.Baseline
	}
	holed(t, x, seen, each, func(text []byte) (valid func() error, source timeline.Source) {
		var holed run.Experiment
		require.NoError(t, json.Unmarshal(text, &holed))
		return holed.CheckValid, timeline.Source{Study: timeline.NewStudy(&holed)}
	})
}

// alikePaths are phases, ops and the like: what holds below one holds below all.
var alikePaths = regexp.MustCompile(`\.(phase|op|observe|probes|scenario|nulls|value)\.[^.]+`)

// holed shows a result with one of its parts null at a time: of those that are alike the first, and of these one in so many.
func holed(t *testing.T, result any, seen map[string]bool, each int, read func(text []byte) (valid func() error, source timeline.Source)) {
	t.Helper()
	whole, err := json.Marshal(result)
	require.NoError(t, err)
	valid, _ := read(whole)
	require.NoError(t, valid())
	var tree any
	require.NoError(t, json.Unmarshal(whole, &tree))
	eachPart("", tree, func(path string) {
		if path = alikePaths.ReplaceAllString(path, ".$1.*"); seen[path] {
			return
		}
		seen[path] = true
		if len(seen)%each != 0 {
			return
		}
		text, err := json.Marshal(tree)
		require.NoError(t, err)
		valid, source := read(text)
		if valid() != nil {
			return
		}
		require.NotPanics(t, func() {
			text := func(w io.Writer, all []timeline.Source) error { return Texts(w, all, Options{}) }
			for _, show := range []func(io.Writer, []timeline.Source) error{text, Markdown, CSV, page.Write} {
				require.NoError(t, show(io.Discard, []timeline.Source{source}), path)
			}
		}, "without %s", path)
	})
}

// eachPart calls f with every part of a tree null, in lists those of the first element. It restores the tree before it returns.
func eachPart(path string, tree any, f func(path string)) {
	part := func(at string, inner any, set func(v any)) {
		set(nil)
		f(at)
		set(inner)
		eachPart(at, inner, f)
	}
	switch v := tree.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if v[name] != nil {
				part(path+"."+name, v[name], func(inner any) { v[name] = inner })
			}
		}
	case []any:
		for i := range v[:min(len(v), 1)] {
			if v[i] != nil {
				part(fmt.Sprintf("%s[%d]", path, i), v[i], func(inner any) { v[i] = inner })
			}
		}
	}
}
