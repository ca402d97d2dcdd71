package prom_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// board is what is looked at of a dashboard.
type board struct {
	UID, Title    string
	SchemaVersion int
	Panels        []struct {
		ID          int
		Title       string
		Description string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ RefID, Expr string }
	}
}

// TestDashboardsAreLaidOut: panels stand side by side, each with a title, an explanation and queries of different names.
func TestDashboardsAreLaidOut(t *testing.T) {
	for name, b := range boards(t) {
		require.NotEmpty(t, b.UID, name)
		require.NotEmpty(t, b.Title, name)
		require.Positive(t, b.SchemaVersion, name)
		taken := map[[2]int]string{}
		ids := map[int]bool{}
		for _, p := range b.Panels {
			at := fmt.Sprintf("%s: panel %q", name, p.Title)
			require.False(t, ids[p.ID], at)
			ids[p.ID] = true
			require.NotEmpty(t, p.Title, at)
			require.NotEmpty(t, p.Description, at)
			g := p.GridPos
			require.Positive(t, g.H*g.W, at)
			require.LessOrEqual(t, g.X+g.W, 24, at) // columns of Grafana's grid
			for x := g.X; x < g.X+g.W; x++ {
				for y := g.Y; y < g.Y+g.H; y++ {
					require.Empty(t, taken[[2]int{x, y}], "%s lies over another", at)
					taken[[2]int{x, y}] = p.Title
				}
			}
			require.NotEmpty(t, p.Targets, at)
			refs := map[string]bool{}
			for _, q := range p.Targets {
				require.False(t, refs[q.RefID], at)
				refs[q.RefID] = true
				require.NotEmpty(t, q.Expr, at)
			}
		}
		require.NotEmpty(t, ids, name)
	}
}

func boards(t *testing.T) map[string]board {
	t.Helper()
	all := map[string]board{}
	fsys := os.DirFS(filepath.Join("..", "..", "grafana", "dashboards"))
	names, err := fs.Glob(fsys, "*.json")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		require.NoError(t, err)
		var b board
		require.NoError(t, json.Unmarshal(text, &b), name)
		all[name] = b
	}
	return all
}
