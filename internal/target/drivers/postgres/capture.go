package postgres

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
)

// parseColumn reads which column of the first row is captured.
func parseColumn(text string) (string, error) {
	name, ok := strings.CutPrefix(text, "column ")
	if !ok || name == "" {
		return "", errors.New(`write "column NAME", for a column of the first row`)
	}
	return name, nil
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
