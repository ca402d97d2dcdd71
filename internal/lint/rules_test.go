package lint_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/servertest"
)

var rules = map[string]func(*module) []string{
	"arguments":  arguments,
	"arrows":     arrows,
	"assembly":   assembly,
	"clock":      clock,
	"comments":   comments,
	"dashboards": dashboards,
	"exit":       exit,
	"failures":   failures,
	"floors":     storeys,
	"goroutines": goroutines,
	"held":       heldLoops,
	"inits":      inits,
	"layers":     layers,
	"links":      links,
	"marks":      marks,
	"names":      names,
	"places":     places,
	"plans":      plans,
	"registries": registries,
	"require":    required,
	"bubbles":    bubbles,
	"shelves":    shelves,
	"skips":      skips,
	"unraced":    unraced,
	"unsafe":     unsafes,
	"variables":  variables,
}

func TestThisModule(t *testing.T) {
	m := load(t, os.DirFS(filepath.Join("..", "..")))
	require.NotEmpty(t, m.code())
	for name, find := range rules {
		if !servertest.Whole() && name != "layers" {
			continue // one goroutine reads the whole source, and some rules do so for each of thousands of words
		}
		t.Run(name, func(t *testing.T) {
			found := slices.Sorted(slices.Values(find(m)))
			require.Empty(t, found, strings.Join(found, "\n"))
		})
	}
	t.Run("CONTRIBUTING.md", m.requireTable)
	if testing.Verbose() {
		t.Log(m.shape())
	}
}

// TestRulesFind shows that each rule finds what it should. A line of "want" that ends in dots is the beginning of a finding.
func TestRulesFind(t *testing.T) {
	for name, find := range rules {
		t.Run(name, func(t *testing.T) {
			archive, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
			require.NoError(t, err)
			tree := fstest.MapFS{"go.mod": {Data: []byte("module example.org/planted\n")}}
			for _, f := range archive.Files {
				tree[f.Name] = &fstest.MapFile{Data: f.Data}
			}
			require.Contains(t, tree, "want")
			want := strings.Split(strings.TrimSpace(string(tree["want"].Data)), "\n")
			found := slices.Sorted(slices.Values(find(load(t, tree))))
			require.Len(t, found, len(want), strings.Join(found, "\n"))
			for i, line := range want {
				if begin, cut := strings.CutSuffix(line, "..."); cut {
					require.True(t, strings.HasPrefix(found[i], begin), "%s\n%s", line, found[i])
				} else {
					require.Equal(t, line, found[i])
				}
			}
		})
	}
}
