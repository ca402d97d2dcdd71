package keyfile

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/internal/plan/rowfile"
)

// RowForm is the form of a file of rows.
const RowForm = "rows"

const (
	maxRows     = 1_000_000
	maxRowBytes = 64 << 20
)

// Rows are the records of a CSV file (RFC 4180) whose first line names the columns.
type Rows struct {
	Columns []string
	Table   [][]string // by row, then column
	SHA256  string     // of the file, in lower-case hex
}

// ReadRows reads a whole file. A mistake in it is an *rowfile.Error.
func ReadRows(r io.Reader) (*Rows, error) {
	sum := sha256.New()
	limited := &io.LimitedReader{R: io.TeeReader(r, sum), N: maxRowBytes + 1}
	lines := csv.NewReader(limited)
	rows := &Rows{}
	for {
		row, err := lines.Read()
		line, column := 1, 1
		var wrong *csv.ParseError
		switch {
		case errors.As(err, &wrong):
			return nil, &rowfile.Error{Line: int64(wrong.Line), Column: int64(max(wrong.Column, 1)), What: wrong.Err.Error()}
		case err != nil && err != io.EOF:
			return nil, err
		case err == nil:
			line, column = lines.FieldPos(0)
		}
		mistake := func(format string, args ...any) error {
			return &rowfile.Error{Line: int64(line), Column: int64(column), What: fmt.Sprintf(format, args...)}
		}
		switch {
		case limited.N == 0 || len(rows.Table) > maxRows:
			return nil, mistake("more than %d rows, or %d MiB of them: write fewer", maxRows, maxRowBytes>>20)
		case err == io.EOF && len(rows.Table) == 0:
			return nil, mistake("no rows: write the names of the columns on the first line, and the rows below it")
		case err == io.EOF:
			rows.SHA256 = hex.EncodeToString(sum.Sum(nil))
			return rows, nil
		case rows.Columns != nil:
			rows.Table = append(rows.Table, row)
			continue
		}
		row[0] = strings.TrimPrefix(row[0], "\ufeff")
		for i, name := range row {
			if name == "" || strings.ContainsAny(name, "{}") || slices.Contains(row[:i], name) {
				return nil, mistake("a column named %.40q: write a name of its own for each, without braces", name)
			}
		}
		rows.Columns = row
	}
}
