package page

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/run"
)

// TestAPageNamesVariantsBriefly if their names are long, and says which variables the values belong to.
func TestAPageNamesVariantsBriefly(t *testing.T) {
	x := run.NewExperiment("x")
	x.Variants = []run.Variant{{Name: "layout=append,size=1048576,sync=map_sync"}, {Name: "layout=raw,size=64,sync=msync"}}
	name, keys := tables.Briefly(x)
	require.Equal(t, "layout, size, sync", keys)
	require.Equal(t, "append 1048576 map_sync", name(x.Variants[0].Name))
	table := run.Table{Columns: []run.Column{{Name: "rate", Title: "rate"}}, Rows: []run.TableRow{
		{Name: x.Variants[0].Name, Cells: []run.Cell{{Text: "1"}}}, {Name: "size=1,elsewhere=2", Elsewhere: true, Cells: []run.Cell{{Text: "2"}}},
	}}
	v := newTableView(x, table)
	require.Equal(t, []tables.Cell{{Text: "layout, size, sync"}, {Text: "rate"}}, v.Head)
	require.Equal(t, "append 1048576 map_sync", v.Rows[0][0].Text)
	require.Equal(t, "size=1,elsewhere=2 *", v.Rows[1][0].Text)
	table.Transpose = true
	require.Equal(t, []tables.Cell{{}, {Text: "append 1048576 map_sync"}, {Text: "size=1,elsewhere=2 *"}}, newTableView(x, table).Head)
	require.Equal(t, x.Variants[0].Name, table.Rows[0].Name, "the terminal has it in columns")
	for _, other := range []string{"a long name of a variant that has no settings", "size=64,layout=raw,sync=msync"} {
		x.Variants[1].Name = other
		name, keys = tables.Briefly(x)
		require.Empty(t, keys)
		require.Equal(t, other, name(other))
	}
	x.Variants = []run.Variant{{Name: "w=2,r=1"}}
	name, keys = tables.Briefly(x)
	require.Empty(t, keys)
	require.Equal(t, "w=2,r=1", name("w=2,r=1"))
}
