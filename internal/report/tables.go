package report

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/quantity"
	"github.com/loadgen/loadgen/internal/run"
)

// gridCell is what stands at a place of a table.
type gridCell struct{ Text, Reason string }

// grid is a table as it is shown: the heads, then the rows, the name of each first.
func grid(t run.Table) [][]gridCell {
	head := []gridCell{{}}
	for _, c := range t.Columns {
		head = append(head, gridCell{Text: c.Title})
	}
	all := [][]gridCell{head}
	for _, row := range t.Rows {
		line := []gridCell{{Text: row.Name}}
		if row.Elsewhere {
			line[0].Text += " *" // as the note that says where from
		}
		for _, c := range row.Cells {
			line = append(line, gridCell{cellText(c), c.Reason})
		}
		all = append(all, line)
	}
	if t.Transpose {
		return transposed(all)
	}
	return all
}

// cellText is what a cell shows; what has nothing to show says so.
func cellText(c run.Cell) string {
	if c.Text == "" {
		return "–"
	}
	return c.Text
}

func transposed(rows [][]gridCell) [][]gridCell {
	all := make([][]gridCell, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			all[i] = append(all[i], cell)
		}
	}
	return all
}

// hasFindings says that a table's last column holds words, which also say why a cell is empty.
func hasFindings(t run.Table) bool {
	return !t.Transpose && len(t.Columns) > 0 && t.Columns[len(t.Columns)-1].Name == "finding"
}

// notesOf are the lines below a table: its own, and why cells are empty.
func notesOf(t run.Table) []string {
	notes := slices.Clone(t.Notes)
	if hasFindings(t) {
		return notes
	}
	var places, reasons []string
	for _, row := range t.Rows {
		for i, c := range row.Cells {
			if c.Text == "" && c.Reason != "" && !row.Elsewhere {
				places, reasons = append(places, row.Name+" "+t.Columns[i].Title), append(reasons, c.Reason)
			}
		}
	}
	return append(notes, missingNotes(places, reasons)...)
}

// missingNotes say at which places something is missing, and why: one for each reason, or for several that differ in their numbers only.
func missingNotes(places, reasons []string) (notes []string) {
	alikes, in := joinAlike(reasons)
	for i, why := range alikes {
		var at []string
		for j, place := range places {
			if in[j] == i {
				at = append(at, place)
			}
		}
		text := strings.Join(at[:min(len(at), maxPlaces)], "; ")
		if more := len(at) - maxPlaces; more > 0 {
			text += " and " + quantity.Thousands(more) + " more"
		}
		notes = append(notes, "– "+text+": "+why.String())
	}
	return notes
}

// maxPlaces bounds the cells that are named beside a reason.
const maxPlaces = 4
