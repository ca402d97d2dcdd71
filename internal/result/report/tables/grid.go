package tables

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/base/quantity"
	"github.com/loadgen/loadgen/internal/result/run"
)

// Cell is one cell of a table.
type Cell struct{ Text, Reason string }

// Grid returns a table as shown: the heads, then the rows, each with its name first.
func Grid(t run.Table) [][]Cell {
	head := []Cell{{}}
	for _, c := range t.Columns {
		head = append(head, Cell{Text: c.Title})
	}
	all := [][]Cell{head}
	for _, row := range t.Rows {
		line := []Cell{{Text: row.Name}}
		if row.Elsewhere {
			line[0].Text += " *" // a note gives the source
		}
		for _, c := range row.Cells {
			line = append(line, Cell{Text(c), c.Reason})
		}
		all = append(all, line)
	}
	if t.Transpose {
		return transposed(all)
	}
	return all
}

// Text returns what a cell shows; empty cells show that they are empty.
func Text(c run.Cell) string {
	if c.Text == "" {
		return "–"
	}
	return c.Text
}

func transposed(rows [][]Cell) [][]Cell {
	all := make([][]Cell, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			all[i] = append(all[i], cell)
		}
	}
	return all
}

// HasFindings says whether a table's last column holds words, which also say why cells are empty.
func HasFindings(t run.Table) bool {
	return !t.Transpose && len(t.Columns) > 0 && t.Columns[len(t.Columns)-1].Name == "finding"
}

// Unvarying says why a comparison has nothing to show: the load sets the figure, or all variants are the same; "" if it has something to show.
func Unvarying(t run.Table) string {
	last := len(t.Columns) - 1
	set, same := len(t.Rows) > 1, len(t.Rows) > 1
	for _, row := range t.Rows {
		finding := row.Cells[last].Text
		set = set && (strings.HasPrefix(finding, "no finding: ") || strings.HasPrefix(finding, "baseline"))
		same = same && row.Cells[0].Text != "" && row.Cells[0].Text == t.Rows[0].Cells[0].Text
	}
	switch {
	case set:
		return "the load sets it"
	case same:
		return t.Rows[0].Cells[0].Text + " in all runs"
	}
	return ""
}

// WithoutEmpty returns a comparison without the columns that hold nothing.
func WithoutEmpty(t run.Table) run.Table {
	empty := func(i int) bool {
		return !slices.ContainsFunc(t.Rows, func(row run.TableRow) bool { return row.Cells[i].Text != "" })
	}
	return Without(t, empty)
}

// Without returns a table without some columns.
func Without(t run.Table, out func(column int) bool) run.Table {
	less := t
	less.Columns, less.Rows = nil, slices.Clone(t.Rows)
	for n := range less.Rows {
		less.Rows[n].Cells = nil
	}
	for i, c := range t.Columns {
		if out(i) {
			continue
		}
		less.Columns = append(less.Columns, c)
		for n, row := range t.Rows {
			less.Rows[n].Cells = append(less.Rows[n].Cells, row.Cells[i])
		}
	}
	return less
}

// Notes returns the lines below a table: its own, and why cells are empty.
func Notes(t run.Table) []string {
	notes := slices.Clone(t.Notes)
	if HasFindings(t) {
		return notes
	}
	var missing []Missed
	for _, row := range t.Rows {
		for i, c := range row.Cells {
			if c.Text == "" && c.Reason != "" && !row.Elsewhere {
				missing = append(missing, Missed{row.Name + " " + t.Columns[i].Title, c.Reason, c.Cause})
			}
		}
	}
	return append(notes, Missing(missing)...)
}

// Missed is an empty cell and its reason. Cause is "", or the reason without the name of the null figure that it begins with.
type Missed struct{ Place, Reason, Cause string }

// Missing says at which places values are missing, and why. It joins reasons that differ only in their numbers, or in the figure that they name.
func Missing(all []Missed) (notes []string) {
	for _, why := range Alikes(all, shared(all)) {
		var at []string
		for _, one := range why.Members {
			at = append(at, one.Place)
		}
		text := strings.Join(at[:min(len(at), maxPlaces)], "; ")
		if more := len(at) - maxPlaces; more > 0 {
			text += " and " + quantity.Thousands(more) + " more"
		}
		notes = append(notes, "– "+text+": "+why.String())
	}
	return notes
}

// shared returns a function that returns a cell's reason, or only the cause if several figures share it.
func shared(all []Missed) func(Missed) string {
	first := map[string]string{} // reason, by cause
	several := map[string]bool{}
	for _, one := range all {
		if first[one.Cause] == "" {
			first[one.Cause] = one.Reason
		}
		several[one.Cause] = several[one.Cause] || first[one.Cause] != one.Reason
	}
	return func(one Missed) string {
		if one.Cause != "" && several[one.Cause] {
			return one.Cause
		}
		return one.Reason
	}
}

// maxPlaces bounds the cells named for a reason.
const maxPlaces = 4
