package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadgen/loadgen/pkg/driver"
)

// Prepare creates the table if the load uses it, and checks the form of an existing one.
func (Driver) Prepare(ctx context.Context, conn net.Conn, link driver.Link) error {
	pg, table, err := loginFor(ctx, conn, link)
	if err != nil || pg == nil {
		return err
	}
	column := link.Config.(*Config).Column
	if err := makeTable(ctx, pg, table, column); err != nil {
		return fmt.Errorf("make table %s: %w", table, explain(err))
	}
	return errors.Join(checkTable(ctx, pg, table, column), pg.Close(ctx))
}

// loginFor logs in if requests of the link use the driver's own table, and returns the table's name; otherwise the connection is nil.
func loginFor(ctx context.Context, conn net.Conn, link driver.Link) (*pgconn.PgConn, string, error) {
	table, _, err := statements(link)
	if err != nil || table == "" {
		return nil, "", err
	}
	pg, err := login(ctx, conn, link)
	return pg, table, err
}

// makeTable creates the table in a transaction under a lock: CREATE TABLE IF NOT EXISTS fails if another connection creates the table at the same
// time. A user who may not create tables can still load an existing one.
func makeTable(ctx context.Context, pg *pgconn.PgConn, table, column string) error {
	there, err := isThere(ctx, pg, table)
	if err != nil || there {
		return err
	}
	if _, err := rows(ctx, pg, "BEGIN; SELECT pg_advisory_xact_lock("+making(table)+")"); err != nil {
		return err
	}
	if there, err = isThere(ctx, pg, table); err == nil && !there {
		_, err = rows(ctx, pg, "CREATE TABLE "+table+" (key bytea PRIMARY KEY, value "+column+" NOT NULL); COMMENT ON TABLE "+table+" IS '"+made+"'")
	}
	if err != nil {
		return err
	}
	_, err = rows(ctx, pg, "COMMIT")
	return err
}

// isThere reads the catalog, because to_regclass may use older cached entries within a transaction.
func isThere(ctx context.Context, pg *pgconn.PgConn, table string) (bool, error) {
	return holds(ctx, pg, "SELECT EXISTS (SELECT FROM pg_class WHERE relname = '"+table+"' AND pg_table_is_visible(oid))")
}

// checkTable compares the columns with those that the statements need.
func checkTable(ctx context.Context, pg *pgconn.PgConn, table, column string) error {
	found, err := rows(ctx, pg, "SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '"+table+
		"'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum")
	if err != nil {
		return explain(err)
	}
	var has []string
	for _, row := range found {
		has = append(has, row[0])
	}
	if is, want := strings.Join(has, ", "), "key bytea, value "+column; is != want {
		return fmt.Errorf("table %s has the columns (%.200s), not (%s): write another table or column, or drop it (DROP TABLE %s)", table, is, want, table)
	}
	return nil
}

// holds sends a query for a condition, and returns the truth value in the first column of the last row.
func holds(ctx context.Context, pg *pgconn.PgConn, sql string) (bool, error) {
	all, err := rows(ctx, pg, sql)
	if err != nil {
		return false, err
	}
	if len(all) == 0 {
		return false, errors.New("the server answers without a row where PostgreSQL has one")
	}
	return all[len(all)-1][0] == "t", nil
}

// rows queries for texts, at least one a row; NULL becomes "".
func rows(ctx context.Context, pg *pgconn.PgConn, sql string) (all [][]string, err error) {
	results, err := pg.Exec(ctx, sql).ReadAll()
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		for _, row := range r.Rows {
			if len(row) == 0 {
				return nil, errors.New("the server answers with a row without columns")
			}
			texts := make([]string, len(row))
			for i, b := range row {
				texts[i] = string(b)
			}
			all = append(all, texts)
		}
	}
	return all, nil
}
