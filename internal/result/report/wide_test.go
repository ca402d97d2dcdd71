package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/loadgen/loadgen/internal/result/run"
)

// wideTable has two variants of a matrix and a row from elsewhere, and a last column with that name, as wide as needed.
func wideTable(last string, wide int) run.Table {
	row := func(name string, elsewhere bool, texts ...string) run.TableRow {
		r := run.TableRow{Name: name, Elsewhere: elsewhere}
		for _, text := range texts {
			r.Cells = append(r.Cells, run.Cell{Text: text})
		}
		return r
	}
	fill := strings.Repeat("x", wide)
	return run.Table{
		Title:   "wide",
		Columns: []run.Column{{Name: "layout", Title: "layout"}, {Name: "ratio", Title: "× layout=raw"}, {Name: "median", Title: "median"}, {Name: last, Title: last}},
		Rows: []run.TableRow{
			row("layout=raw,size=1024,sync=msync", false, "raw", "1", "5", fill),
			row("layout=append,size=64,sync=clwb", false, "append", "2", "6", fill),
			row("2020: all of it, somewhere else", true, "", "", "7", ""),
		},
	}
}

func textOf(t run.Table) []string {
	p := newPrinter(Options{})
	p.table(t)
	return strings.Split(strings.TrimSpace(p.b.String()), "\n")
}

func TestATableThatFitsHasWholeNames(t *testing.T) {
	require.Equal(t, []string{
		"── wide",
		"                                     layout  × layout=raw  median     last",
		"  layout=raw,size=1024,sync=msync       raw             1       5  xxxxxxx",
		"  layout=append,size=64,sync=clwb    append             2       6  xxxxxxx",
		"  2020: all of it, somewhere else *       –             –       7        –",
	}, textOf(wideTable("last", 7)))
}

// TestAWideTableHasShortNames, only of values that no column shows, and split titles. Names of what was not measured extend into empty cells.
func TestAWideTableHasShortNames(t *testing.T) {
	table := wideTable("last", 50)
	table.Rows[0].Cells[3].Text = "y"
	require.Equal(t, []string{
		"── wide",
		"                                  ×",
		"  size sync      layout  layout=raw  median  " + strings.Repeat(" ", 46) + "last",
		"  1024 msync        raw           1       5  " + strings.Repeat(" ", 49) + "y",
		"  64   clwb      append           2       6  " + strings.Repeat("x", 50),
		"  2020: all of it, somewhere else *       7  " + strings.Repeat(" ", 49) + "–",
	}, textOf(table))
}

// TestAWideTableSaysOnceWhatAllRowsSay, for rows measured here. Numbers stay figures of each row.
func TestAWideTableSaysOnceWhatAllRowsSay(t *testing.T) {
	table := wideTable("last", 50)
	want := []string{
		"── wide",
		"  in all rows: last " + strings.Repeat("x", 50),
		"                                  ×",
		"  size sync      layout  layout=raw  median",
		"  1024 msync        raw           1       5",
		"  64   clwb      append           2       6",
		"  2020: all of it, somewhere else *       7",
	}
	require.Equal(t, want, textOf(table))
	figure := 1.0
	table.Rows[0].Cells[3].Value = &figure
	require.Contains(t, textOf(table)[2], "last")
	table = wideTable("last", 50)
	table.Rows[2].Cells[3].Text = "elsewhere"
	require.Contains(t, textOf(table)[2], "last")
}

func TestAWideComparisonHasItsFindingsBroken(t *testing.T) {
	table := wideTable("finding", 1)
	table.Rows = table.Rows[:2]
	table.Rows[0].Cells[3].Text = "baseline"
	table.Rows[1].Cells[3].Text = "no difference shown (MDE 12.0 %), SUSPECT, and as many words again as there are here"
	table.Columns[0].Title = strings.Repeat("-", 60)
	lines := textOf(table)
	require.Equal(t, []string{
		"  size sync   " + strings.Repeat("-", 60) + "  × baseline",
		"  1024 msync" + strings.Repeat(" ", 59) + "raw           1",
		"    baseline",
		"  64   clwb " + strings.Repeat(" ", 56) + "append           2",
		"    no difference shown (MDE 12.0 %), SUSPECT, and as many words again as there are here",
	}, lines[1:])
	table.Columns[0].Title = strings.Repeat("-", 40)
	lines = textOf(table)
	require.Equal(t, "  size sync   "+strings.Repeat("-", 40)+"  × baseline  finding", lines[1])
	require.Greater(t, len(lines), 4)
	for _, line := range lines {
		require.LessOrEqual(t, columns(line), mostWide)
	}
}

// TestNamesThatAreNoSettingsStay unchanged, however wide the table.
func TestNamesThatAreNoSettingsStay(t *testing.T) {
	for _, name := range []string{"a long name of a variant", "layout=raw", "size=1024,layout=raw,sync=msync"} {
		table := wideTable("last", 80)
		table.Rows[0].Name = name
		require.Contains(t, strings.Join(textOf(table), "\n"), "\n  "+name+" ")
	}
}
