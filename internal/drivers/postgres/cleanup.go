package postgres

import (
	"context"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadgen/loadgen/pkg/driver"
)

// made is the comment of a table that the driver has made.
const made = "made by loadgen"

// making is the key of the lock under which a table is made and dropped.
func making(table string) string { return "hashtext('loadgen " + table + "')" }

// inUse is the key of the lock that connections with statements on a table share.
func inUse(table string) string { return "hashtext('loadgen'), hashtext('" + table + "')" }

// CleanUp drops the driver's own table: of the workers that clear it, the last one that has closed its connections does.
func (Driver) CleanUp(ctx context.Context, conn net.Conn, link driver.Link) error {
	pg, table, err := loginFor(ctx, conn, link)
	if err != nil || pg == nil {
		return err
	}
	alone, err := unused(ctx, pg, table)
	if err == nil && alone {
		err = dropTable(ctx, pg, table)
	}
	if err != nil {
		return fmt.Errorf("drop table %s: %w", table, explain(err))
	}
	return pg.Close(ctx)
}

// unused takes the lock that loading connections share, and keeps it. It tries until ctx ends, and does not queue: that would hold up those that reconnect.
// A server needs a while to see that connections are closed.
func unused(ctx context.Context, pg *pgconn.PgConn, table string) (bool, error) {
	for ctx.Err() == nil {
		locked, err := rows(ctx, pg, "SELECT pg_try_advisory_lock("+inUse(table)+"), pg_sleep(0.02)")
		if err == nil && locked[0][0] == "t" {
			return true, nil
		}
		if err != nil && ctx.Err() == nil {
			return false, err
		}
	}
	return false, nil
}

// dropTable does so where the driver has made the table and it is empty.
func dropTable(ctx context.Context, pg *pgconn.PgConn, table string) error {
	own, err := rows(ctx, pg, "BEGIN; SELECT pg_advisory_xact_lock("+making(table)+"); "+
		"SELECT EXISTS (SELECT FROM pg_class WHERE relname = '"+table+"' AND pg_table_is_visible(oid) AND obj_description(oid, 'pg_class') = '"+made+"')")
	if err != nil || own[1][0] != "t" {
		return err
	}
	filled, err := rows(ctx, pg, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE; SELECT EXISTS (SELECT FROM "+table+")")
	if err != nil || filled[0][0] == "t" {
		return err
	}
	_, err = rows(ctx, pg, "DROP TABLE "+table+"; COMMIT")
	return err
}
