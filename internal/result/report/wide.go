package report

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/result/report/tables"
	"github.com/loadgen/loadgen/internal/result/run"
)

// widths returns the widths of a table's columns, the names' first.
func widths(rows [][]tables.Cell) []int {
	wide := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			wide[i] = max(wide[i], columns(c.Text))
		}
	}
	return wide
}

// breadth returns the width of a table's lines. Words in the last column can be wrapped.
func breadth(wide []int, words bool) int {
	if words {
		wide = append(slices.Clone(wide[:len(wide)-1]), minWords)
	}
	sum := 2 * len(wide)
	for _, w := range wide {
		sum += w
	}
	return sum
}

// concise makes the grid of a comparison that was too wide: rows of a matrix are named only by values that no column shows, under a head that names
// these variables. The baseline's name is left out.
func concise(t run.Table) [][]tables.Cell {
	t, names := shortNames(narrow(t))
	for i := range t.Columns {
		if t.Columns[i].Name == "ratio" {
			t.Columns[i].Title = "× baseline"
		}
	}
	rows := tables.Grid(t)
	rows[0][0].Text = names
	return rows
}

// tight writes a table that was too wide for some terminals, with short names, common values shown once, and titles split.
func (p *printer) tight(t run.Table) {
	t, names := shortNames(t)
	t, all := same(t)
	if len(all) > 0 {
		for _, line := range Wrap("in all rows: "+strings.Join(all, ", "), leastWide-2) {
			p.line("  %s", line)
		}
	}
	rows := tables.Grid(t)
	rows[0][0].Text = names
	p.spanned(t, rows)
}

// same removes the columns in which all measured rows have the same text, and returns these texts after their titles.
func same(t run.Table) (run.Table, []string) {
	var said []string
	out := func(i int) bool {
		first, n := "", 0
		for _, row := range t.Rows {
			c := row.Cells[i]
			switch {
			case row.Elsewhere && c.Text == "":
				continue
			case c.Value != nil || c.Text == "" || n > 0 && c.Text != first:
				return false
			}
			first, n = c.Text, n+1
		}
		if n > 1 {
			said = append(said, t.Columns[i].Title+" "+first)
		}
		return n > 1
	}
	return tables.Without(t, out), said
}

// breakTitles splits the first part off titles that are wider than their column, and returns the line of these parts.
func breakTitles(rows [][]tables.Cell) (above []tables.Cell) {
	wide := widths(rows[1:])
	above = make([]tables.Cell, len(rows[0]))
	for i, c := range rows[0] {
		best, words := columns(c.Text), strings.Fields(c.Text)
		for n := 1; i > 0 && n < len(words) && best > wide[i]; n++ {
			top, bottom := strings.Join(words[:n], " "), strings.Join(words[n:], " ")
			if most := max(columns(top), columns(bottom)); most < best {
				best, above[i].Text, rows[0][i].Text = most, top, bottom
			}
		}
	}
	return above
}

// shortNames gives the rows of a matrix, such as "layout=raw,size=1024", short names, and returns the variables that they are values of.
func shortNames(t run.Table) (run.Table, string) {
	var keys []string
	var values [][]string // of each measured row
	for _, row := range t.Rows {
		if row.Elsewhere {
			continue
		}
		own, its, ok := tables.Settings(row.Name)
		if !ok || keys != nil && !slices.Equal(keys, own) {
			return t, ""
		}
		keys, values = own, append(values, its)
	}
	var kept []int
	for i := range keys {
		if !slices.ContainsFunc(t.Columns, func(c run.Column) bool { return shows(t, c.Name, i, values) }) {
			kept = append(kept, i)
		}
	}
	lines := aligned(keys, values, kept)
	t.Rows = slices.Clone(t.Rows)
	at := 0
	for i := range t.Rows {
		if !t.Rows[i].Elsewhere {
			at++
			t.Rows[i].Name = lines[at]
		}
	}
	return t, lines[0]
}

// shows reports whether a column shows the i-th value of each measured row.
func shows(t run.Table, column string, i int, values [][]string) bool {
	at := slices.IndexFunc(t.Columns, func(c run.Column) bool { return c.Name == column })
	n := 0
	for _, row := range t.Rows {
		if row.Elsewhere {
			continue
		}
		if strings.ReplaceAll(row.Cells[at].Text, ",", "") != values[n][i] {
			return false
		}
		n++
	}
	return true
}

// aligned formats the names of values, and then the values of each row, in columns.
func aligned(keys []string, values [][]string, kept []int) []string {
	lines := make([]string, len(values)+1)
	for _, i := range kept {
		wide := columns(keys[i])
		for _, row := range values {
			wide = max(wide, columns(row[i]))
		}
		for n := range lines {
			text := keys[i]
			if n > 0 {
				text = values[n-1][i]
			}
			lines[n] += left(text, wide) + " "
		}
	}
	for n := range lines {
		lines[n] = strings.TrimRight(lines[n], " ")
	}
	return lines
}

// spanned writes the rows of a table; names of rows that were not measured here extend into the empty cells after them.
func (p *printer) spanned(t run.Table, rows [][]tables.Cell) {
	above := breakTitles(rows)
	wide := widths(append(rows, above))
	wide[0] = columns(rows[0][0].Text)
	for i, row := range t.Rows {
		if !row.Elsewhere {
			wide[0] = max(wide[0], columns(rows[i+1][0].Text))
		}
	}
	for _, row := range rows {
		wide[0] = max(wide[0], columns(row[0].Text)-spare(row, wide))
	}
	if slices.ContainsFunc(above, func(c tables.Cell) bool { return c.Text != "" }) {
		p.line("%s", strings.TrimRight(spannedLine(above, wide), " "))
	}
	for _, row := range rows {
		p.line("%s", spannedLine(row, wide))
	}
}

// spannedLine formats a row; a long name takes up as many cells as it needs.
func spannedLine(row []tables.Cell, wide []int) string {
	room, i := wide[0], 1
	for ; columns(row[0].Text) > room; i++ {
		room += 2 + wide[i]
	}
	line := "  " + left(row[0].Text, room)
	for ; i < len(row); i++ {
		line += "  " + right(row[i].Text, wide[i])
	}
	return line
}

// spare returns the width of the empty cells at the start of a row.
func spare(row []tables.Cell, wide []int) (room int) {
	for i := 1; i < len(row) && row[i].Text == "–"; i++ {
		room += 2 + wide[i]
	}
	return room
}
