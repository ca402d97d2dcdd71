package postgres

import (
	"context"
	"fmt"
	"net"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadgen/loadgen/pkg/driver"
)

// made is the comment of a table that the driver has created.
const made = "made by loadgen"

// making returns the key of the lock under which a table is created and dropped.
func making(table string) string { return "hashtext('loadgen " + table + "')" }

// inUse returns the key of the lock that is shared by connections with prepared statements on a table.
func inUse(table string) string { return "hashtext('loadgen'), hashtext('" + table + "')" }

// CleanUp drops the driver's own table. Of the workers that clear it, the last one to close its connections drops it.
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

// unused takes, and keeps, the lock that loading connections share. It retries until ctx ends instead of queueing, which would block connections that
// are being reopened. A server needs a while to notice that connections are closed.
func unused(ctx context.Context, pg *pgconn.PgConn, table string) (bool, error) {
	for ctx.Err() == nil {
		locked, err := holds(ctx, pg, "SELECT pg_try_advisory_lock("+inUse(table)+"), pg_sleep(0.02)")
		if locked {
			return true, nil
		}
		if err != nil && ctx.Err() == nil {
			return false, err
		}
	}
	return false, nil
}

// dropTable drops the table if the driver created it and it is empty.
func dropTable(ctx context.Context, pg *pgconn.PgConn, table string) error {
	own, err := holds(ctx, pg, "BEGIN; SELECT pg_advisory_xact_lock("+making(table)+"); "+
		"SELECT EXISTS (SELECT FROM pg_class WHERE relname = '"+table+"' AND pg_table_is_visible(oid) AND obj_description(oid, 'pg_class') = '"+made+"')")
	if err != nil || !own {
		return err
	}
	filled, err := holds(ctx, pg, "LOCK TABLE "+table+" IN ACCESS EXCLUSIVE MODE; SELECT EXISTS (SELECT FROM "+table+")")
	if err != nil || filled {
		return err
	}
	_, err = rows(ctx, pg, "DROP TABLE "+table+"; COMMIT")
	return err
}
