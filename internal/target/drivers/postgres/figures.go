package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/loadgen/loadgen/pkg/driver"
)

var _ driver.Informant = Driver{}

// tableRows is the one figure that is sent only if the plan names it, since the server reads the whole table to count the rows.
const tableRows = "table_rows"

// figures are the figures requested from the server, about the loaded database, the driver's table, and the statements on it.
var figures = func() []driver.Figure {
	all := []driver.Figure{
		{Name: "database_size", Unit: "bytes"},
		{Name: "table_size", Unit: "bytes"},
		{Name: "connections"},
		{Name: "sessions", Counter: true},
		{Name: "locks_waiting"},
		{Name: "sessions_active"},
		{Name: "sessions_running"},
		{Name: "sessions_on_io"},
		{Name: "sessions_on_locks"},
		{Name: "xact_commit", Counter: true},
		{Name: "xact_rollback", Counter: true},
		{Name: "blks_read", Counter: true},
		{Name: "blks_hit", Counter: true},
		{Name: "tup_inserted", Counter: true},
		{Name: "tup_updated", Counter: true},
		{Name: "tup_deleted", Counter: true},
		{Name: "tup_fetched", Counter: true},
		{Name: "deadlocks", Counter: true},
		{Name: "temp_bytes", Unit: "bytes", Counter: true},
		{Name: "wal_position", Unit: "bytes", Counter: true},
	}
	for _, verb := range markedVerbs {
		all = append(all, driver.Figure{Name: "statements_" + verb + "_calls", Counter: true}, driver.Figure{Name: "statements_" + verb + "_us", Unit: "us", Counter: true})
	}
	return all
}()

var markedVerbs = []string{"get", "put", "delete", "append"}

// Figures lists what AppendQuestion requests.
func (Driver) Figures() []driver.Figure { return slices.Clone(figures) }

// Describe returns the unit and kind of a figure.
func (Driver) Describe(name string) driver.Figure {
	if i := slices.IndexFunc(figures, func(f driver.Figure) bool { return f.Name == name }); i >= 0 {
		return figures[i]
	}
	return driver.Figure{Name: name}
}

// askDatabase returns a row of name and value for each figure. A backend that waits for the lock of the write-ahead log counts as waiting for the
// disk. Servers before 15 count their sessions late, or not at all.
const askDatabase = `SELECT f.name, f.value FROM pg_stat_database d, LATERAL (SELECT count(*) active,
		count(*) FILTER (WHERE wait_event_type IS NULL) running,
		count(*) FILTER (WHERE wait_event_type = 'IO' OR wait_event = 'WALWrite') io,
		count(*) FILTER (WHERE wait_event_type IN ('Lock', 'LWLock', 'BufferPin') AND wait_event <> 'WALWrite') locks
		FROM pg_stat_activity WHERE datid = d.datid AND state = 'active' AND pid <> pg_backend_pid()) a, LATERAL (VALUES
	('database_size', pg_database_size(d.datid)::text), ('connections', d.numbackends::text),
	('sessions', CASE WHEN current_setting('server_version_num')::int >= 150000 THEN to_jsonb(d)->>'sessions' END),
	('locks_waiting', (SELECT count(*) FROM pg_locks WHERE NOT granted)::text),
	('sessions_active', a.active::text), ('sessions_running', a.running::text), ('sessions_on_io', a.io::text), ('sessions_on_locks', a.locks::text),
	('xact_commit', d.xact_commit::text), ('xact_rollback', d.xact_rollback::text), ('blks_read', d.blks_read::text), ('blks_hit', d.blks_hit::text),
	('tup_inserted', d.tup_inserted::text), ('tup_updated', d.tup_updated::text), ('tup_deleted', d.tup_deleted::text), ('tup_fetched', d.tup_fetched::text),
	('deadlocks', d.deadlocks::text), ('temp_bytes', d.temp_bytes::text),
	('wal_position', CASE WHEN pg_is_in_recovery() THEN NULL ELSE (pg_current_wal_lsn() - '0/0'::pg_lsn)::text END)
	) f(name, value) WHERE d.datname = current_database()`

// askStatements fails if the extension pg_stat_statements is missing.
func askStatements() string {
	var verbs []string
	for _, verb := range markedVerbs {
		verbs = append(verbs, "('"+verb+"')")
	}
	return `SELECT f.name, f.value FROM (SELECT v.verb, coalesce(sum(s.calls), 0) calls, coalesce(sum(s.total_exec_time), 0) ms FROM (VALUES ` + strings.Join(verbs, ", ") +
		`) v(verb) LEFT JOIN pg_stat_statements s ON s.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
		AND starts_with(s.query, '/* loadgen ' || v.verb || ' */') GROUP BY v.verb) t,
		LATERAL (VALUES ('statements_' || t.verb || '_calls', t.calls::text), ('statements_' || t.verb || '_us', round((t.ms * 1000)::numeric)::text)) f(name, value)`
}

// askTable returns a query for the size of the table with its indexes and its TOAST, and, if count is set, for its number of rows. The text is empty
// if table is empty. The query fails if the table does not exist.
func askTable(table string, count bool) string {
	if table == "" {
		return ""
	}
	sql := "SELECT 'table_size', pg_total_relation_size('" + table + "')::text"
	if count {
		sql += " UNION ALL SELECT '" + tableRows + "', count(*)::text FROM " + table
	}
	return sql
}

// AppendQuestion sends three simple queries, of which the last may be empty.
func (Driver) AppendQuestion(dst []byte, link driver.Link) ([]byte, error) {
	table := link.Config.(*Config).Table
	for _, sql := range []string{askDatabase, askStatements(), askTable(table, slices.Contains(link.Figures, tableRows))} {
		dst = append(dst, 'Q')
		dst = binary.BigEndian.AppendUint32(dst, uint32(4+len(sql)+1))
		dst = append(append(dst, sql...), 0)
	}
	return dst, nil
}

// ParseFigures reads the answers. The second one's figures are missing if the server has no pg_stat_statements, and the third one's without the table.
func (Driver) ParseFigures(b []byte) (map[string]string, int, error) {
	told, answers := map[string]string{}, 0
	for at := 0; ; {
		kind, body, n, err := message(b[at:])
		if n == 0 || err != nil {
			return nil, 0, err
		}
		at += n
		switch kind {
		case 'D':
			var row pgproto3.DataRow
			if err := row.Decode(body); err != nil || len(row.Values) != 2 {
				return nil, 0, errors.New("postgres: a row of figures without a name and a value")
			}
			if value := string(row.Values[1]); value != "" {
				told[string(row.Values[0])] = value
			}
		case 'E':
			if p := readProblem(body); p.fatal || answers == 0 {
				return nil, 0, fmt.Errorf("postgres: %s", p.text())
			}
		case 'Z':
			if answers++; answers == 3 {
				return told, at, nil
			}
		case 'T', 'C', 'I', 'N', 'S', 'A':
		default:
			return nil, 0, fmt.Errorf("postgres: a message %q to a question", kind)
		}
	}
}
