package five

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/target/drivers"
	"github.com/loadgen/loadgen/pkg/plan"
)

// TestStudies: what the studies say of plans is in them, so that half an hour does not end at a word.
func TestStudies(t *testing.T) {
	for _, s := range studies {
		for _, e := range s.plans {
			src, err := os.ReadFile(filepath.Join("..", "..", "plans", e.plan))
			require.NoError(t, err)
			file, diags := plan.Parse(src, e.plan, drivers.All())
			require.Empty(t, diags)
			x, _ := file.Experiment()
			tables, _ := file.Tables()
			charts, _ := file.Charts()
			require.True(t, slices.ContainsFunc(charts, func(c plan.Chart) bool { return c.Title == e.chart }), "%s: chart %q", e.plan, e.chart)
			known := func(variant string) bool {
				return slices.ContainsFunc(x.Variants, func(v plan.Variant) bool { return v.Name == variant })
			}
			for _, a := range e.answers {
				require.Equal(t, 1, strings.Count(a.text, "%s"), a.text)
				if a.row == "" {
					require.True(t, known(a.of) && known(a.than), "%s: variants %s and %s", e.plan, a.of, a.than)
					require.Contains(t, string(src), fmt.Sprintf("phase %q", strings.Fields(a.metric)[0]))
					continue
				}
				require.True(t, known(a.row), "%s: variant %s", e.plan, a.row)
				shown := plan.Shown(tables, a.row)
				require.NotEmpty(t, shown, "%s: variant %s is in no table", e.plan, a.row)
				for _, name := range []string{a.column, a.lo, a.hi} {
					require.True(t, name == "" || slices.ContainsFunc(shown[0].Columns, func(c plan.Column) bool { return c.Name == name }), "%s: column %s", e.plan, name)
				}
			}
		}
	}
}
