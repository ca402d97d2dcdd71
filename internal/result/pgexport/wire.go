package pgexport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Values are sent in PostgreSQL's text format. The server parses the few types that are needed here. pgx's conversion of every PostgreSQL type
// (package pgtype) would be a tenth of the program.

// asJSON is a value that its column keeps as JSON.
type asJSON struct{ of any }

// text appends a value as PostgreSQL reads it; ok is false for NULL.
func text(dst []byte, value any) (_ []byte, ok bool, err error) {
	switch v := value.(type) {
	case nil:
		return dst, false, nil
	case string:
		return append(dst, v...), true, nil
	case []byte:
		return append(dst, v...), v != nil, nil
	case asJSON:
		b, err := json.Marshal(v.of)
		return append(dst, b...), err == nil, err
	case float64:
		return strconv.AppendFloat(dst, v, 'g', -1, 64), true, nil
	case *float64:
		if v == nil {
			return dst, false, nil
		}
		return strconv.AppendFloat(dst, *v, 'g', -1, 64), true, nil
	case int:
		return strconv.AppendInt(dst, int64(v), 10), true, nil
	case int64:
		return strconv.AppendInt(dst, v, 10), true, nil
	case uint64:
		return strconv.AppendUint(dst, v, 10), true, nil
	case bool:
		return strconv.AppendBool(dst, v), true, nil
	case time.Time:
		return v.UTC().AppendFormat(dst, "2006-01-02T15:04:05.999999999Z"), true, nil
	}
	return dst, false, fmt.Errorf("a value of the type %T", value)
}

// exec executes one statement with parameters $1, $2, …, and returns how many rows it changed.
func (db *DB) exec(ctx context.Context, query string, args ...any) (changed int64, err error) {
	r, err := db.ask(ctx, query, args)
	if err != nil {
		return 0, err
	}
	return r.CommandTag.RowsAffected(), nil
}

// number executes a statement that returns one integer.
func (db *DB) number(ctx context.Context, query string, args ...any) (int64, error) {
	r, err := db.ask(ctx, query, args)
	if err != nil {
		return 0, err
	}
	if len(r.Rows) != 1 || len(r.Rows[0]) != 1 {
		return 0, errors.New("the database answered with no row, or several")
	}
	return strconv.ParseInt(string(r.Rows[0][0]), 10, 64)
}

func (db *DB) ask(ctx context.Context, query string, args []any) (*pgconn.Result, error) {
	params := make([][]byte, len(args))
	for i, arg := range args {
		switch b, ok, err := text([]byte{}, arg); {
		case err != nil:
			return nil, fmt.Errorf("$%d: %w", i+1, err)
		case ok:
			params[i] = b
		}
	}
	r := db.conn.ExecParams(ctx, query, params, nil, nil, nil).Read()
	return r, r.Err
}

// script executes statements without parameters or results.
func (db *DB) script(ctx context.Context, statements string) error {
	_, err := db.conn.Exec(ctx, statements).ReadAll()
	return err
}

// copyRows writes rows in COPY's text format (PostgreSQL's manual, COPY, File Formats): one line each, tabs between the columns, \N for NULL.
func (db *DB) copyRows(ctx context.Context, t rowsOf) error {
	var lines bytes.Buffer
	var field []byte
	for _, row := range t.rows {
		for i, value := range row {
			if i > 0 {
				lines.WriteByte('\t')
			}
			b, ok, err := text(field[:0], value)
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", t.columns[i], err)
			case !ok:
				lines.WriteString(`\N`)
			default:
				lines.WriteString(copyEscapes.Replace(string(b)))
			}
			field = b
		}
		lines.WriteByte('\n')
	}
	_, err := db.conn.CopyFrom(ctx, &lines, `COPY loadgen.`+t.name+` (`+strings.Join(t.columns, ", ")+`) FROM STDIN`)
	return err
}

// copyEscapes escapes the characters that are special in a row.
var copyEscapes = strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`)
