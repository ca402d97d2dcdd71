package keyfile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/rowfile"
)

// RowForm is the form of a CSV file (RFC 4180) whose first line names the columns. Each field is an entry, row by row.
const RowForm = "rows"

const (
	maxRows     = 1_000_000
	maxRowBytes = 64 << 20
)

// readRows reads a whole file into the set.
func (s *Set) readRows(r io.Reader) error {
	limited := &io.LimitedReader{R: r, N: maxRowBytes + 1}
	lines := csv.NewReader(limited)
	for n := 0; ; n++ {
		row, err := lines.Read()
		at, wrong := &rowfile.Error{Line: 1, Column: 1}, new(csv.ParseError)
		if err == nil {
			line, _ := lines.FieldPos(0)
			at.Line = int64(line)
		}
		switch {
		case limited.N == 0 || err == nil && n > maxRows:
			at.What = fmt.Sprintf("more than %d rows, or %d MiB of them: write fewer", maxRows, maxRowBytes>>20)
		case errors.As(err, &wrong):
			at = &rowfile.Error{Line: int64(wrong.Line), Column: int64(max(wrong.Column, 1)), What: wrong.Err.Error()}
		case err == io.EOF && n < 2:
			at.What = "no rows: write the names of the columns on the first line, and the rows below it"
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case n > 0:
			for _, field := range row {
				s.text = append(s.text, field...)
				s.ends = append(s.ends, uint32(len(s.text)))
			}
		default:
			row[0] = strings.TrimPrefix(row[0], "\ufeff")
			for i, name := range row {
				if name == "" || strings.ContainsAny(name, "{}") || slices.Contains(row[:i], name) {
					at.What = fmt.Sprintf("a column named %.40q: write a name of its own for each, without braces", name)
				}
			}
			s.columns = row
		}
		if at.What != "" {
			return at
		}
	}
}
