package report

import (
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/run"
)

// widths are those of a table's columns, the names' first.
func widths(rows [][]gridCell) []int {
	wide := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, c := range row {
			wide[i] = max(wide[i], columns(c.Text))
		}
	}
	return wide
}

// breadth is the width of a table's lines. Words in the last column can be broken.
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

// concise is a table that was too wide for a terminal: the rows of a matrix are named by those values that no column shows, below the names
// of these; a comparison has no medians, and no name of its baseline.
func concise(t run.Table) [][]gridCell {
	t, names := shortNames(t)
	if hasFindings(t) {
		t = terse(t)
	}
	rows := grid(t)
	rows[0][0].Text = names
	return rows
}

// terse is a comparison without what its other columns nearly say.
func terse(t run.Table) run.Table {
	median := func(c run.Column) bool { return c.Name == "median" }
	t.Rows = slices.Clone(t.Rows)
	for i, row := range t.Rows {
		row.Cells = nil
		for j, c := range t.Rows[i].Cells {
			if !median(t.Columns[j]) {
				row.Cells = append(row.Cells, c)
			}
		}
		t.Rows[i] = row
	}
	t.Columns = slices.DeleteFunc(slices.Clone(t.Columns), median)
	for i := range t.Columns {
		if t.Columns[i].Name == "ratio" {
			t.Columns[i].Title = "× baseline"
		}
	}
	return t
}

// shortNames gives the rows of a matrix, such as "layout=raw,size=1024", their short names, and returns what these are of.
func shortNames(t run.Table) (run.Table, string) {
	var keys []string
	var values [][]string // of each row that was measured
	for _, row := range t.Rows {
		if row.Elsewhere {
			continue
		}
		own, its, ok := settings(row.Name)
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

// settings takes the name of a variant of a matrix apart.
func settings(name string) (keys, values []string, ok bool) {
	for part := range strings.SplitSeq(name, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, nil, false
		}
		keys, values = append(keys, key), append(values, value)
	}
	return keys, values, true
}

// shows reports whether a column shows the i-th value of each row that was measured.
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

// aligned joins the names of values, and then the values of each row, below each other.
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

// spanned writes the rows of a table whose names of what was not measured here take the room of empty cells behind them.
func (p *page) spanned(t run.Table, rows [][]gridCell) {
	measured := slices.Clone(rows)
	for i := len(t.Rows); i > 0; i-- {
		if t.Rows[i-1].Elsewhere {
			measured = slices.Delete(measured, i, i+1)
		}
	}
	wide := widths(rows)
	wide[0] = widths(measured)[0]
	for _, row := range rows {
		wide[0] = max(wide[0], columns(row[0].Text)-spare(row, wide))
	}
	for _, row := range rows {
		room, i := wide[0], 1
		for ; columns(row[0].Text) > room; i++ {
			room += 2 + wide[i]
		}
		line := "  " + left(row[0].Text, room)
		for ; i < len(row); i++ {
			line += "  " + right(row[i].Text, wide[i])
		}
		p.line("%s", line)
	}
}

// spare is the room of the empty cells that a row begins with.
func spare(row []gridCell, wide []int) (room int) {
	for i := 1; i < len(row) && row[i].Text == "–"; i++ {
		room += 2 + wide[i]
	}
	return room
}
