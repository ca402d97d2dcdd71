package postgres

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loadgen/loadgen/pkg/driver"
	"github.com/loadgen/loadgen/pkg/driver/form"
)

// capture is a column of the first row that the scenario keeps.
type capture struct{ as, column string }

// catches reads what is captured.
func (s *statement) catches(all map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		column, ok := strings.CutPrefix(all[name], "column ")
		if !ok || column == "" {
			return fmt.Errorf(`capture %s = %.80q: write "column NAME", for a column of the first row`, name, all[name])
		}
		if err := form.CheckCapture(name); err != nil {
			return err
		}
		s.captures = append(s.captures, capture{name, column})
	}
	return nil
}

// catch captures columns of a row, given the body of its RowDescription.
func (s *statement) catch(columns, row []byte, reply *driver.Reply) {
	found := new(driver.Findings)
	for _, c := range s.captures {
		text, is := valueOf(c.column, columns, row)
		if err := form.Capture(&found.Bag, s.op, "column "+c.column, c.as, text, is); err != nil {
			*reply = driver.Reply{Outcome: driver.Error, Message: []byte(err.Error())}
			return
		}
	}
	reply.Found = found
}

// valueOf returns the text of the column of that name in a row whose form is checked; or else what it is.
func valueOf(name string, columns, row []byte) (text []byte, is string) {
	const described = 18 // bytes after a column's name
	for len(columns) > 2 {
		columns = columns[2:] // their number, then the last two bytes about the previous column
		column, rest, _ := bytes.Cut(columns, []byte{0})
		if len(rest) < described || len(row) < 6 {
			break
		}
		size := int32(binary.BigEndian.Uint32(row[2:]))
		row = row[4:]
		switch {
		case string(column) != name:
		case size < 0:
			return nil, "NULL"
		default:
			return row[2 : 2+size], ""
		}
		row = row[max(size, 0):]
		columns = rest[described-2:]
	}
	return nil, "missing"
}
