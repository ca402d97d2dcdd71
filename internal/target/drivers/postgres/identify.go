package postgres

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadgen/loadgen/pkg/driver"
)

// settingsTold are the settings that bear on a measurement, by their names in pg_settings.
const settingsTold = `'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'wal_compression', 'wal_sync_method', 'shared_buffers', 'work_mem',
	'effective_cache_size', 'max_wal_size', 'checkpoint_timeout', 'checkpoint_completion_target', 'commit_delay', 'max_connections', 'jit', 'autovacuum',
	'default_transaction_isolation', 'synchronous_standby_names', 'track_io_timing', 'huge_pages'`

// askInstance distinguishes this server from its replicas, which share its system identifier, and from servers that run on a copy of its files.
const askInstance = `SELECT 'system_identifier ' || system_identifier || ', started ' || pg_postmaster_start_time() || ', port ' || current_setting('port')
	FROM pg_control_system()`

// Identify asks for the version and the settings that bear on a measurement.
func (Driver) Identify(ctx context.Context, conn net.Conn, link driver.Link) (map[string]string, error) {
	var id map[string]string
	err := driver.Interruptible(ctx, conn, func() error {
		pg, err := login(ctx, conn, link)
		if err != nil {
			return err
		}
		id = identity(ctx, pg)
		return pg.Close(ctx)
	})
	if err != nil {
		return nil, fmt.Errorf("ask postgres what it is: %w", err)
	}
	return id, nil
}

func identity(ctx context.Context, pg *pgconn.PgConn) map[string]string {
	id := map[string]string{"server": "postgres", "version": pg.ParameterStatus("server_version")}
	if told, err := rows(ctx, pg, askInstance); err == nil && len(told) == 1 && len(told[0]) == 1 && strings.HasPrefix(told[0][0], "system_identifier ") { // a user may not be allowed to ask
		id["instance"] = told[0][0]
	}
	told, err := rows(ctx, pg, "SELECT name, CASE WHEN unit IS NULL THEN setting ELSE current_setting(name) END FROM pg_settings WHERE name IN ("+settingsTold+
		") UNION ALL SELECT 'in_recovery', pg_is_in_recovery()::text")
	if err != nil {
		id[driver.Note] = fmt.Sprintf("the server says nothing of its settings: %v", explain(err))
		return id
	}
	for _, row := range told {
		if len(row) > 1 && row[1] != "" {
			id[row[0]] = row[1]
		}
	}
	return id
}
